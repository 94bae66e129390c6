"""Each plan of a choice before the one verifier, which knows nothing of how it was made.

The verifier is told what was asked: which brokers may be given replicas, which must be empty afterwards, how many
replicas there shall be. It is shown only the partitions that may change, so that a plan which touches another one is
found out too, and a broker to be drained keeps the replicas of excluded topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import Plan, Violation, current_assignment, verify_plan
from rebalance_lib.plan.columns import Lists, find_sorted, partition_keys
from rebalance_lib.planner.request import EMPTYING, Mode
from rebalance_lib.topology import Broker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_lib.planner.candidates import Candidate
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request


def check_candidates(model: ClusterModel, request: Request, candidates: Iterable[Candidate]) -> None:
    """Raise RebalanceError, naming the candidate and a rule, if one of the plans is not right."""
    everything = current_assignment(model.snapshot)
    for candidate in candidates:
        movable = candidate.outcome.scope.movable
        whole = movable.all() or request.mode is Mode.PARTITIONS
        before = everything if whole else Plan.from_table(everything.entries.filter(pa.array(movable)))
        if found := _violations(model, request, candidate, before):
            raise RebalanceError(
                f"the plan {candidate.name!r} breaks {len(found)} rules, so nothing is written; the first is "
                f"{found[0]}; this is a mistake of the planner: report it with the snapshot and the request"
            )


def _violations(model: ClusterModel, request: Request, candidate: Candidate, before: Plan) -> list[Violation]:
    plan, scope = candidate.plan, candidate.outcome.scope
    takes = {*model.broker_ids[scope.takes].tolist(), *request.replacements}
    rules: dict[str, Any] = {
        "brokers": _brokers(model, plan),
        "before": before,
        "allowed_brokers": takes - set(request.brokers) if request.mode in EMPTYING else takes,
        "drained_brokers": request.brokers if request.mode in EMPTYING else (),
    }
    factor = request.replication_factor
    if request.mode is Mode.PARTITIONS:
        return verify_plan(plan, **rules, new_partitions=True)
    if request.mode is Mode.REPLICATION_FACTOR:
        return verify_plan(plan, **rules, replication_factor=factor)
    if request.mode is Mode.REPAIR and factor is not None:
        few, enough = _split(plan, before, factor)
        return [*verify_plan(few, **rules, replication_factor=factor), *verify_plan(enough, **rules)]
    return verify_plan(plan, **rules)


def _brokers(model: ClusterModel, plan: Plan) -> list[Broker]:
    """The live brokers, and the dead ones that keep a replica, each in a rack of its own: theirs takes nothing."""
    kept = np.isin(model.broker_ids, Lists.from_column(plan.entries["replicas"]).values)
    dead = model.broker_ids[kept & ~model.alive].tolist()
    return [*model.snapshot.alive_brokers(), *(Broker(id_, f"of broker {id_}") for id_ in dead)]


def _split(plan: Plan, before: Plan, factor: int) -> tuple[Plan, Plan]:
    """The entries of partitions that had fewer replicas than the factor, and the others."""
    keys, known = partition_keys(plan.entries, before.entries)
    had = Lists.from_column(before.entries["replicas"]).lengths[find_sorted(known, keys)]
    few = pa.array(had < factor)
    return Plan.from_table(plan.entries.filter(few)), Plan.from_table(plan.entries.filter(pc.invert(few)))
