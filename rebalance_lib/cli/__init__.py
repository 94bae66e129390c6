"""``kafka-rebalance`` on the command line."""

from rebalance_lib.cli.main import main

__all__ = ["main"]
