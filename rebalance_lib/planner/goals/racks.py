"""Replicas of a partition in as many racks as there are: 1 plus the part of partitions that could be in more.

Where there are sets of brokers, a partition could be in as many racks as its set has; a replica outside of its set is
in a rack all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.compare import rack_spread
from rebalance_lib.planner.goals.goal import Goal, View

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Racks(Goal):
    def measure(self, view: View) -> float | None:
        model = view.model
        if not model.has_racks or not view.partitions:
            return None
        others = 0 if model.rest is None else model.rest.narrow
        return 1 + float(in_too_few_racks(view) + others) / view.partitions

    def why(self, _view: View) -> str:
        return "some partitions are in fewer racks than they could be: they may not move, or a budget does not allow it"


def in_too_few_racks(view: View) -> int:
    """How many partitions of the model could be in more racks than they are."""
    model = view.model
    rack = np.where(model.alive, model.rack, -1)
    racks, _ = rack_spread(view.layout.offsets, view.layout.broker, rack)
    crowded = racks < np.minimum(np.diff(view.layout.offsets), _racks_there(view))
    return int(np.count_nonzero(crowded))


def _racks_there(view: View) -> int | NDArray[np.int64]:
    """How many racks there are, by partition if it has a set."""
    model, sets = view.model, view.model.sets
    racked = view.stays & (model.rack >= 0)
    if sets is None:
        return len(np.unique(model.rack[racked]))
    of_set = np.array([len(np.unique(model.rack[racked & sets.members(number)])) for number in range(len(sets.names))])
    return of_set[sets.topic[model.topic]]


RACKS = _Racks("racks", "replicas of a partition in as many racks as there are", hard=True, of_cluster=True)
