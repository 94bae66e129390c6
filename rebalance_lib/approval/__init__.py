"""Who may approve a plan, and when nobody has to: what the owners of a cluster say, and how it decides."""
