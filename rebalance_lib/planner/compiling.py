"""Whether the planner's loops are compiled yet: the first plan on a machine takes some seconds more than all others."""

from __future__ import annotations

from rebalance_lib.planner.compiled.cache import cache_directory
from rebalance_lib.planner.compiled.compare import compare


def is_compiled() -> bool:
    """Whether an earlier run left compiled loops of these sources."""
    # Every plan ends with a comparison, so it is there only if a plan was made.
    return any(cache_directory().rglob(f"*.{compare.__name__}-*.nbi"))
