"""Each resource shared out by its capacities: what the most loaded broker has, over its share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.request import BALANCING, Mode
from rebalance_lib.planner.resources import Resource

if TYPE_CHECKING:
    from rebalance_lib.planner.workspace import Workspace

_EXPLAINED = {
    Resource.DISK: "bytes on disk, by the size of disks",
    Resource.NETWORK_IN: "what is written to replicas, by network capacity",
    Resource.REPLICAS: "numbers of replicas",
    Resource.LEADERS: "numbers of leaders",
    Resource.NETWORK_OUT: "what leaders send to followers and consumers, by network capacity",
    Resource.CPU: "the estimated work of processors, by cores",
}


@dataclass(frozen=True)
class Balance(Goal):
    """A resource evenly shared out."""

    resource: Resource = Resource.DISK

    def measure(self, view: View) -> float | None:
        """The most loaded broker's load over its share."""
        if self.resource not in view.resources:
            return None
        load, share = view.load(self.resource), view.share(self.resource)
        shared = share > 0
        return float((load[shared] / share[shared]).max(initial=1.0)) if shared.any() else None

    def limit(self, view: View) -> float:
        """Numbers are whole: one more than an even part is always within."""
        limit = super().limit(view)
        if self.resource in {Resource.REPLICAS, Resource.LEADERS}:
            sharers = view.sharers(self.resource)
            even = float(view.load(self.resource)[sharers].sum()) / max(1, int(sharers.sum()))
            limit = max(limit, float(np.ceil(even)) / max(even, 1e-300))
        return limit

    def why(self, view: View) -> str:
        """Which broker has too much."""
        if self.resource.of_replicas and view.request.mode in {Mode.LEADERS, Mode.DEMOTE}:
            return f"mode {view.request.mode} moves no data"
        load, share = view.load(self.resource), view.share(self.resource)
        over = np.divide(load, share, out=np.zeros_like(load), where=share > 0)
        broker = view.model.broker_ids[int(np.argmax(over))]
        further = "; --polish looks further" if self.resource.of_replicas and _is_polished(view) else ""
        return (
            f"broker {broker} has the most for its share; no better place was found within racks, disk space, budgets, "
            f"what may move and the goals before this one, or single partitions are too large{further}"
        )


def _is_polished(view: View) -> bool:
    """Whether ``--polish`` would look for a better plan, and was not given."""
    from rebalance_lib.planner.exact import is_small  # noqa: PLC0415 - they import goals
    from rebalance_lib.planner.polish import CELLS  # noqa: PLC0415

    model, request = view.model, view.request
    if request.polish or request.limited or request.mode not in BALANCING:
        return False
    whole = request.shards <= 1 and model.rest is None and model.partitions * model.brokers <= CELLS
    return whole and not is_small(cast("Workspace", view))  # which has all that is looked at


BALANCE = tuple(Balance(str(one), _EXPLAINED[one], resource=one) for one in _EXPLAINED)
