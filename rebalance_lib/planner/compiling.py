"""Whether the planner's loops are compiled yet.

Numba keeps what it compiled beside the source, or in the user's cache directory if it cannot write there, and takes it
up again as long as the source, the processor and its own version stay the same. So the first plan on a machine takes
some seconds more than all others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance_lib.planner.compiled.compare import compare


def is_compiled() -> bool:
    """Whether an earlier run left compiled loops that are not older than their source."""
    dispatcher: Any = compare  # every plan ends with it, so it is there only if a plan was made
    source = Path(dispatcher.py_func.__code__.co_filename)
    cache = Path(dispatcher.stats.cache_path)
    indexes = cache.glob(f"{source.stem}.{dispatcher.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in indexes)
