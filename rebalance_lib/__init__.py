"""The thinking half of kafka-rebalance: no Airflow, and Kafka and Spark each in one package only."""

__version__ = "0.1.0"
