"""Rebalance clusters on schedule: an Airflow DAG for each cluster of the file of clusters that has a schedule."""

from pathlib import Path

from kafka_rebalance_airflow.factories import scheduled_dags

globals().update({dag.dag_id: dag for dag in scheduled_dags(Path(__file__).with_name("kafka_clusters.yaml"))})
