"""Log dirs within a broker: what the fullest one holds, over its share of what the broker holds; the worst broker.

Shares are by the capacities of the log dirs, or equal where one of them is not known. Only brokers with several log
dirs count, and only replicas whose log dir is known. Mode ``disks`` pursues it. In all others a replica that arrives
goes to the log dir with the most free space, and nothing moves between log dirs.

Example: a broker has 6 GB in one of two equal log dirs and 2 GB in the other: 6 over 4 is 1.5.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.model import NO_LIMIT


class _LogDirs(Goal):
    def measure(self, view: View) -> float | None:
        over = _over_share(view)
        return float(over.max(initial=1.0)) if len(over) else None

    def why(self, view: View) -> str:
        dirs = view.model.log_dirs
        owner = np.repeat(view.model.broker_ids, np.diff(dirs.offsets))
        worst = int(np.argmax(_over_share(view)))
        return (
            f"{dirs.paths[worst]} of broker {owner[worst]} has the most for its share: mode disks evens out log dirs, "
            "as far as single replicas are not too large"
        )


def _over_share(view: View) -> np.ndarray:
    """By log dir: what it holds over its share, 0 where that says nothing; empty if no broker has several log dirs."""
    dirs, layout, brokers = view.model.log_dirs, view.layout, view.model.brokers
    count = np.diff(dirs.offsets)
    if not np.any((count > 1) & view.stays):
        return np.empty(0)
    owner = np.repeat(np.arange(brokers), count)
    placed = layout.log_dir >= 0
    load = np.bincount(layout.log_dir[placed], layout.bytes[placed], minlength=len(owner)).astype(np.float64)
    if view.model.rest is not None:
        load += view.model.rest.sums.by_log_dir("bytes", len(owner))
    known = np.bincount(owner, dirs.total >= NO_LIMIT, minlength=brokers) == 0
    weight = np.where(known[owner], dirs.total, 1).astype(np.float64)
    held, whole = (np.bincount(owner, values, minlength=brokers) for values in (load, weight))
    share = weight / np.maximum(whole, 1e-300)[owner] * held[owner]
    counts = (share > 0) & ((count > 1) & view.stays)[owner]
    return np.divide(load, share, out=np.zeros(len(owner)), where=counts)


LOG_DIRS = _LogDirs("log_dirs", "log dirs of a broker evenly filled", of_cluster=True)
