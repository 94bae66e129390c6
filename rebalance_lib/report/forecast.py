"""The forecast that a review shows of each candidate: a dry run, or an outline where that would take too long.

Plans of up to `CHANGES_TO_SIMULATE` copies and partitions are simulated, which takes a second at most; larger ones are
outlined, in a few hundredths of the time that planning them takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_lib.plan.pace import Pace
from rebalance_lib.reassignment import Forecast, simulate
from rebalance_lib.reassignment.outline import outline
from rebalance_lib.reassignment.work import Work
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from rebalance_lib.plan import Plan
    from rebalance_lib.planner import ClusterModel

CHANGES_TO_SIMULATE = 2000


def forecast(plan: Plan, model: ClusterModel, pace: Pace) -> Forecast:
    """The forecast of a plan for partitions that the cluster has."""
    rates = _write_rates(model)
    work = Work.of(plan, model.snapshot, rates)
    if max(len(work.copies.size), len(plan)) > CHANGES_TO_SIMULATE:
        return outline(work, pace, min_insync=model.snapshot.min_insync_replicas())
    return simulate(plan, model.snapshot, pace, write_rates=rates)


def _write_rates(model: ClusterModel) -> pa.Table | None:
    if model.write_rate is None:
        return None
    topics = decode_texts(model.topic, pa.array(model.topics, pa.string()))
    return pa.table({"topic": topics, "partition": model.partition, "write_rate": model.write_rate})
