"""DAGs, ready to be put into a file of the DAGs folder.

from kafka_rebalance_airflow.factories import rebalance_dag

dag = rebalance_dag()
"""

from kafka_rebalance_airflow.factories.adjust import adjust_dag
from kafka_rebalance_airflow.factories.cancel import cancel_dag
from kafka_rebalance_airflow.factories.fleet import fleet_dag
from kafka_rebalance_airflow.factories.history import history_dag
from kafka_rebalance_airflow.factories.rebalance import rebalance_dag
from kafka_rebalance_airflow.factories.rollback import rollback_dag
from kafka_rebalance_airflow.factories.scheduled import scheduled_dags
from kafka_rebalance_airflow.factories.snapshot import snapshot_dag

__all__ = [
    "adjust_dag",
    "cancel_dag",
    "fleet_dag",
    "history_dag",
    "rebalance_dag",
    "rollback_dag",
    "scheduled_dags",
    "snapshot_dag",
]
