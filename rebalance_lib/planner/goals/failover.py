"""What is left after a failure: the most that a survivor leads, or sends, once any one broker or rack has died.

Leadership goes to the next replica in the list that is still there. Measured is the most loaded survivor's load over
its share of all of it, for the worst death; of leaders and, where rates are known, of what they send.
"""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View
from rebalance_lib.planner.order import MOST_BROKERS
from rebalance_lib.planner.resources import Resource, per_leader


class _Failover(Goal):
    def measure(self, view: View) -> float | None:
        model = view.model
        if view.stays.sum() < 2 or model.brokers > MOST_BROKERS or not len(view.leader):
            return None
        alive = view.stays
        worst = 0.0
        loads = [one for one in (Resource.LEADERS, Resource.NETWORK_OUT) if one in view.resources]
        for resource in loads:
            weight = per_leader(model, resource, np.diff(view.layout.offsets))
            load, part = view.load(resource), view.parts(resource)
            worst = max(worst, _worst(view, weight, load, part, np.arange(model.brokers), alive))
            if model.has_racks and len(np.unique(model.rack[alive])) > 1:
                worst = max(worst, _worst(view, weight, load, part, model.rack, alive))
        return worst or None


def _worst(  # noqa: PLR0917 - the columns of one table
    view: View, weight: np.ndarray, load: np.ndarray, part: np.ndarray, group: np.ndarray, alive: np.ndarray
) -> float:
    """The most loaded survivor over its share, when all brokers of one group die; the worst group."""
    offsets, broker = view.layout.offsets, view.layout.broker
    leader, lengths = view.leader, np.diff(offsets)
    heir = np.full(len(leader), -1)
    for place in range(int(lengths.max(initial=1)) - 1, 0, -1):
        rows = np.flatnonzero(lengths > place)
        other = broker[offsets[rows] + place]
        lives = alive[other] & (group[other] != group[leader[rows]])
        heir[rows[lives]] = other[lives]
    groups = int(group.max()) + 1
    found = (heir >= 0) & (group[leader] >= 0)  # a dead broker that nobody knows has no rack
    cells = np.bincount(group[leader[found]] * len(load) + heir[found], weight[found], minlength=groups * len(load))
    inherited = cells.reshape(groups, len(load))
    survives = (group[None, :] != np.arange(groups)[:, None]) & alive
    after = np.where(survives, load + inherited, 0.0)
    share = np.where(survives, part, 0.0)
    sums, parts = after.sum(axis=1, keepdims=True), share.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = after / (share / parts * sums)
    return float(np.nanmax(np.where(survives & (share > 0) & (sums > 0), ratio, 0.0), initial=0.0))


FAILOVER = _Failover("failover", "what survivors lead and send once a broker or a rack has died")
