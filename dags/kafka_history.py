"""Maintain the history: an Airflow DAG that compacts it once a day, and forecasts when disks are full."""

from pathlib import Path

from kafka_rebalance_airflow.factories import history_dag

dag = history_dag(Path(__file__).with_name("kafka_clusters.yaml"))
