"""Whether the planner's loops are compiled yet: the first plan on a machine takes a minute more than all others."""

from __future__ import annotations

from rebalance_lib.planner.compiled.cache import COMPLETE, cache_directory
from rebalance_lib.planner.compiled.compare import compare


def is_compiled() -> bool:
    """Whether an earlier run left compiled loops of these sources."""
    # Every plan ends with a comparison, so it is there only if a plan was made.
    return are_all_compiled() or any(cache_directory().glob(f"*.{compare.__name__}-*.nbi"))


def are_all_compiled() -> bool:
    """Whether all loops of these sources were compiled, by `warm_up`."""
    return (cache_directory() / COMPLETE).is_file()
