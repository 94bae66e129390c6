"""The whole workflow on one machine: a sandbox cluster with data, a local Airflow, one rebalance."""
