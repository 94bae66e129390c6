"""kafka-rebalance in Airflow's words: hook, operators, sensor and trigger."""
