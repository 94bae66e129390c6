"""Kafka's own commands, execute and verify, as drop-in replacements that keep their state beside the plan's file."""
