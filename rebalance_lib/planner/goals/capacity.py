"""No broker beyond its capacity: the fullest one, in any resource whose capacity is known, over what it may have.

Of disks, a part is kept free, see ``max_fill``. What leaves a log dir makes space in it for what levels the rest of a
plan: such moves wait for one another, see ``execution.disk_space``.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.resources import CAPACITIES, Resource


class _Capacity(Goal):
    def measure(self, view: View) -> float | None:
        fills = [fill for resource in CAPACITIES if (fill := self._fill(view, resource)) is not None]
        return max(fills) if fills else None

    def why(self, view: View) -> str:
        found = {resource: self._fill(view, resource) or 0.0 for resource in CAPACITIES}
        fullest = max(found, key=lambda one: found[one])
        load, capacity = view.load(fullest), np.nan_to_num(view.model.capacity[fullest], nan=np.inf)
        worst = int(np.argmax(np.where(view.stays, load / capacity, 0.0)))
        allowed = f"{view.request.max_fill:.0%} of its disk" if fullest is Resource.DISK else f"its {fullest} capacity"
        return f"broker {view.model.broker_ids[worst]} is above {allowed}: add brokers or capacity, or move less to it"

    @staticmethod
    def _fill(view: View, resource: Resource) -> float | None:
        model = view.model
        capacity = model.capacity.get(resource)
        known = np.isfinite(capacity) & view.stays if capacity is not None else np.zeros(model.brokers, np.bool_)
        if capacity is None or resource not in view.resources or not known.any():
            return None
        load = view.load(resource)
        if resource is Resource.DISK:
            load = load / view.request.max_fill
        if resource is Resource.CPU:
            return None  # an estimate without a unit: it is shared out by cores, not held against them
        return float((load[known] / capacity[known]).max())


CAPACITY = _Capacity("capacity", "no broker beyond its disk or network", hard=True, of_cluster=True)
