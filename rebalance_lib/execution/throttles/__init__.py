"""Replication throttles of a run: set for its moves, maintained while they are under way, restored in the end."""
