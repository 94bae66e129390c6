"""The hook that owns the connection to Kafka."""
