"""Topics on the brokers of their sets: 1 plus the part of partitions with a replica outside of theirs."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.goals.goal import Goal, View


class _BrokerSets(Goal):
    def measure(self, view: View) -> float | None:
        model, layout = view.model, view.layout
        if model.sets is None or not len(view.leader):
            return None
        outside = model.sets.misplaced(model, layout)
        partitions = len(layout.offsets) - 1
        partition = np.repeat(np.arange(partitions), np.diff(layout.offsets))
        return 1 + len(np.unique(partition[outside])) / partitions

    def why(self, _view: View) -> str:
        return (
            "some partitions have replicas outside of their topic's broker set: they may not move, or the mode brings "
            "none back, as balance, topics and repair do"
        )


BROKER_SETS = _BrokerSets("broker_sets", "topics on the brokers of their sets", hard=True, of_cluster=True)
