"""No broker beyond its capacity: the fullest one, in any resource whose capacity is known, over what it may have.

Of disks, a part is kept free, see ``max_fill``. What leaves a log dir makes space in it for what levels the rest of a
plan: such moves wait for one another, see ``execution.disk_space``.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.resources import CAPACITIES, Resource

_NAMED = 3
_UNITS = {
    Resource.DISK: "bytes that it may fill of its disk",
    Resource.NETWORK_IN: "bytes per second that its network_in allows",
    Resource.NETWORK_OUT: "bytes per second that its network_out allows",
}


class _Capacity(Goal):
    def measure(self, view: View) -> float | None:
        fills = [fill for resource in CAPACITIES if (fill := self._fill(view, resource)) is not None]
        return max(fills) if fills else None

    def why(self, view: View) -> str:
        """Who is above what, by how much, the worst first."""
        found = []
        for resource in CAPACITIES:
            if (self._fill(view, resource) or 0.0) > 1:
                load, capacity = view.load(resource), view.model.capacity[resource]
                most = capacity * (view.request.max_fill if resource is Resource.DISK else 1.0)
                over = np.where(view.stays & np.isfinite(most), load / most, 0.0)
                found += [(over[at], resource, at, load[at], most[at]) for at in np.flatnonzero(over > 1)]
        listed = [
            f"broker {view.model.broker_ids[at]} has {load:.0f} of {most:.0f} {_UNITS[resource]}"
            for _, resource, at, load, most in sorted(found, key=lambda one: -one[0])
        ]
        more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
        return f"{', '.join(listed[:_NAMED])}{more}: add brokers or capacity, or move less there"

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
