"""Replicas of a partition in as many racks as there are: 1 plus the part of partitions that could be in more."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.compiled.compare import rack_spread
from rebalance_lib.planner.goals.goal import Goal, View


class _Racks(Goal):
    def measure(self, view: View) -> float | None:
        model = view.model
        if not model.has_racks or not len(view.leader):
            return None
        rack = np.where(model.alive, model.rack, -1)
        racks, _ = rack_spread(view.layout.offsets, view.layout.broker, rack)
        there = len(np.unique(model.rack[view.stays & (model.rack >= 0)]))
        crowded = racks < np.minimum(np.diff(view.layout.offsets), there)
        return 1 + float(np.count_nonzero(crowded)) / len(crowded)

    def why(self, _view: View) -> str:
        return "some partitions are in fewer racks than they could be: they may not move, or a budget does not allow it"


RACKS = _Racks("racks", "replicas of a partition in as many racks as there are", hard=True)
