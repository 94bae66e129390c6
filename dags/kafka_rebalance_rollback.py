"""Undo a run by its id: an Airflow DAG, triggered with a form."""

from pathlib import Path

from kafka_rebalance_airflow.factories import rollback_dag

dag = rollback_dag(clusters=Path(__file__).with_name("kafka_clusters.yaml"))
