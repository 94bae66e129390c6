"""What is left after a failure: the most that a survivor leads, or sends, once any one broker or rack has died.

Leadership goes to the next replica in the list that is still there. Measured is the most loaded survivor's load over
its share of all of it, for the worst death; of leaders and, where rates are known, of what they send.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.order import MOST_BROKERS
from rebalance_lib.planner.resources import Resource, per_leader

INHERITED = (Resource.LEADERS, Resource.NETWORK_OUT)


class _Failover(Goal):
    def measure(self, view: View) -> float | None:
        model = view.model
        if view.stays.sum() < 2 or model.brokers > MOST_BROKERS or not view.partitions:
            return None
        return max((worst for name in groups_of(view) for worst in _worst(view, name)), default=0.0) or None


def groups_of(view: View) -> dict[str, np.ndarray]:
    """By what may die: the group of each broker, of which all die together."""
    model = view.model
    groups: dict[str, np.ndarray] = {"broker": np.arange(model.brokers)}
    if model.has_racks and len(np.unique(model.rack[view.stays])) > 1:
        groups["rack"] = model.rack
    return groups


def inherited_loads(view: View, group: np.ndarray) -> dict[Resource, np.ndarray]:
    """By load that fails over: what survivors inherit of the model's partitions, by group that dies and survivor."""
    leader, brokers, groups = view.leader, view.model.brokers, int(group.max()) + 1
    heir = _heirs(view, group)
    found = np.flatnonzero((heir >= 0) & (group[leader] >= 0))  # a broker whose rack is not known dies alone
    cell = group[leader[found]] * brokers + heir[found]
    lengths = np.diff(view.layout.offsets)
    weights = {one: per_leader(view.model, one, lengths) for one in INHERITED if one in view.resources}
    return {
        one: np.bincount(cell, weight[found], minlength=groups * brokers).reshape(groups, brokers).astype(np.float64)
        for one, weight in weights.items()
    }


def _worst(view: View, name: str) -> Iterator[float]:
    """By resource: the most loaded survivor over its share, when all brokers of one group die; the worst group."""
    group, alive = groups_of(view)[name], view.stays
    survives = (group[None, :] != np.arange(int(group.max()) + 1)[:, None]) & alive
    for resource, own in inherited_loads(view, group).items():
        inherited = own if view.model.rest is None else own + view.model.rest.inherited[f"{name} {resource}"]
        after = np.where(survives, view.load(resource) + inherited, 0.0)
        share = np.where(survives, view.parts(resource), 0.0)
        sums, parts = after.sum(axis=1, keepdims=True), share.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = after / (share / parts * sums)
        yield float(np.nanmax(np.where(survives & (share > 0) & (sums > 0), ratio, 0.0), initial=0.0))


def _heirs(view: View, group: np.ndarray) -> np.ndarray:
    """By partition: who leads it once its leader's group has died, the next in its list; -1 if nobody is left."""
    offsets, broker, leader = view.layout.offsets, view.layout.broker, view.leader
    lengths = np.diff(offsets)
    heir = np.full(len(leader), -1)
    for place in range(int(lengths.max(initial=1)) - 1, 0, -1):
        rows = np.flatnonzero(lengths > place)
        other = broker[offsets[rows] + place]
        lives = view.stays[other] & (group[other] != group[leader[rows]])
        heir[rows[lives]] = other[lives]
    return heir


FAILOVER = _Failover("failover", "what survivors lead and send once a broker or a rack has died")
