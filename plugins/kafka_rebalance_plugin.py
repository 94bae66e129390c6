"""Shows Airflow the plugin where this folder is its plugins folder and the package is not installed.

An installed package has an entry point for it; registered twice, Airflow would list the second as an error.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="kafka_rebalance"):
    from kafka_rebalance_airflow.plugin import KafkaRebalancePlugin  # noqa: F401
