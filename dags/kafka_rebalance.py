"""Rebalance one cluster: an Airflow DAG, triggered with a form."""

from kafka_rebalance_airflow.factories import rebalance_dag

dag = rebalance_dag()
