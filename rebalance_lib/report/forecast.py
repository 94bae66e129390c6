"""The forecast that a review shows of each candidate: a dry run, or an outline where that would take too long.

Plans of up to `CHANGES_TO_SIMULATE` copies and partitions are simulated, which takes a second at most; larger ones are
outlined, in a few hundredths of the time that planning them takes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.pace import Pace
from rebalance_lib.reassignment import Forecast
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.outline import outline
from rebalance_lib.reassignment.simulation import simulate_work
from rebalance_lib.reassignment.work import Cluster, Work
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_lib.plan import Plan
    from rebalance_lib.planner import ClusterModel

CHANGES_TO_SIMULATE = 2000


@dataclass(frozen=True, eq=False)
class Forecasts:
    """The forecasts of plans for one cluster, which is read once."""

    cluster: Cluster
    min_insync: Mapping[str, int] | None
    pace: Pace

    @classmethod
    def of(cls, model: ClusterModel, pace: Pace) -> Forecasts:
        """For plans that are executed at this pace."""
        cluster = Cluster.of(model.snapshot, _write_rates(model), _other_bytes(model))
        return cls(cluster, model.snapshot.min_insync_replicas(), pace)

    def of_plan(self, plan: Plan) -> Forecast:
        """The forecast of a plan for partitions that the cluster has."""
        work = Work.of(plan, self.cluster)
        if max(len(work.copies.size), len(plan)) > CHANGES_TO_SIMULATE:
            return outline(work, self.pace, min_insync=self.min_insync)
        return simulate_work(work, self.pace, self.min_insync, Conditions())


def _other_bytes(model: ClusterModel) -> dict[tuple[int, str | None], int]:
    """By broker id and path: the bytes of partitions that are not in the model."""
    held: Counter[tuple[int, str | None]] = Counter()
    if model.rest is not None:
        sums, paths = model.rest.sums, [*model.log_dirs.paths, ""]  # -1 finds the last
        for row in np.flatnonzero(sums.columns["replicas"]).tolist():
            id_, path = int(model.broker_ids[sums.broker[row]]), paths[sums.log_dir[row]] or None
            held[id_, path] += int(sums.columns["bytes"][row])
    return held


def _write_rates(model: ClusterModel) -> pa.Table | None:
    if model.write_rate is None:
        return None
    topics = decode_texts(model.topic, pa.array(model.topics, pa.string()))
    return pa.table({"topic": topics, "partition": model.partition, "write_rate": model.write_rate})
