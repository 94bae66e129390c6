"""The steps of a rebalance."""
