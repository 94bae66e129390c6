"""Pause, resume or adjust a run by its id: an Airflow DAG, triggered with a form."""

from kafka_rebalance_airflow.factories import adjust_dag

dag = adjust_dag()
