"""The sensor that waits for the plan."""
