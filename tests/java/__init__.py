"""Kafka's own Java classes, asked for the right answer."""
