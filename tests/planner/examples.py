"""How many random clusters each statement about plans is tried on."""

from __future__ import annotations

from tests.budget import cases

EXAMPLES = cases(8, long=200)
