"""kafka-rebalance in Airflow's words: hook, operators, sensor and trigger."""

from kafka_rebalance_airflow.storage import filesystem
from rebalance_lib.storage import use_connections

use_connections(filesystem)
