"""Undo a run by its id: an Airflow DAG, triggered with a form."""

from kafka_rebalance_airflow.factories import rollback_dag

dag = rollback_dag()
