"""How many random clusters each statement about plans is tried on."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("PLANNER_EXAMPLES", "12"))
"""Clusters a statement; ``PLANNER_EXAMPLES=1000`` looks harder."""
