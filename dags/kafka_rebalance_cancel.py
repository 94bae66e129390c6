"""End a run by its id: an Airflow DAG, triggered with a form."""

from kafka_rebalance_airflow.factories import cancel_dag

dag = cancel_dag()
