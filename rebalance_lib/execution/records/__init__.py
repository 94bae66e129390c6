"""What a run keeps: its artifacts, the journal of its events, the audit record, and how long all of it stays."""
