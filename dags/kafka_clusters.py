"""Check the file of clusters: what is wrong in it is an import error in Airflow's list of DAGs. It has no DAG."""

from pathlib import Path

from kafka_rebalance_airflow.clusters import check_clusters

check_clusters(Path(__file__).with_suffix(".yaml"))
