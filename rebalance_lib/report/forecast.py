"""The forecast that a review shows of each candidate: a dry run, or an outline where that would take too long.

Plans of up to `CHANGES_TO_SIMULATE` copies and partitions are simulated, which takes a second at most; larger ones are
outlined, in a few hundredths of the time that planning them takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_lib.plan.pace import Pace
from rebalance_lib.reassignment import Forecast
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.outline import outline
from rebalance_lib.reassignment.simulation import simulate_work
from rebalance_lib.reassignment.work import Cluster, Work
from rebalance_lib.report.summed_forecast import bytes_of_rest, forecast_of_sums
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rebalance_lib.planner import Candidate, ClusterModel

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
        cluster = Cluster.of(model.snapshot, _write_rates(model), bytes_of_rest(model, model.rest))
        return cls(cluster, model.snapshot.min_insync_replicas(), pace)

    def of_candidate(self, candidate: Candidate) -> Forecast:
        """The forecast of a plan for partitions that the cluster has; from sums where others are not in the model."""
        if candidate.outcome.model.rest is not None:
            return forecast_of_sums(candidate.outcome, self.cluster, self.pace)
        plan = candidate.plan
        work = Work.of(plan, self.cluster)
        if max(len(work.copies.size), len(plan)) > CHANGES_TO_SIMULATE:
            return outline(work, self.pace, min_insync=self.min_insync)
        return simulate_work(work, self.pace, self.min_insync, Conditions())


def _write_rates(model: ClusterModel) -> pa.Table | None:
    if model.write_rate is None:
        return None
    topics = decode_texts(model.topic, pa.array(model.topics, pa.string()))
    return pa.table({"topic": topics, "partition": model.partition, "write_rate": model.write_rate})
