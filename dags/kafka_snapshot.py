"""Feed the history: an Airflow DAG that takes snapshots of all clusters."""

from pathlib import Path

from kafka_rebalance_airflow.factories import snapshot_dag

dag = snapshot_dag(Path(__file__).with_name("kafka_clusters.yaml"))
