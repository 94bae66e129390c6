"""Rebalance one cluster: an Airflow DAG, triggered with a form."""

from pathlib import Path

from kafka_rebalance_airflow.factories import rebalance_dag

dag = rebalance_dag(clusters=Path(__file__).with_name("kafka_clusters.yaml"))
