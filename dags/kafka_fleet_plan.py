"""Plan for all clusters, changing nothing: an Airflow DAG with one report."""

from pathlib import Path

from kafka_rebalance_airflow.factories import fleet_dag

dag = fleet_dag(Path(__file__).with_name("kafka_clusters.yaml"))
