"""Each plan of a choice before the one verifier, which knows nothing of how it was made.

The verifier is told what was asked: which brokers may be given replicas, which must be empty afterwards, how many
replicas there shall be, how full log dirs may become, and the budgets. It reads sets, sizes and disks from the snapshot
itself. It is shown only the partitions that may change, so that a plan which touches another one is found out too, and
a broker to be drained keeps the replicas of excluded topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import Limits, Plan, SetRule, Violation, current_assignment, verify_plan
from rebalance_lib.plan.columns import Lists
from rebalance_lib.planner.by_set import gathers
from rebalance_lib.planner.candidates import LEADERS
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
    limits = Limits.of(model.snapshot, request.max_fill, request.byte_budget, request.move_budget)
    for candidate in candidates:
        movable = candidate.outcome.scope.movable
        whole = movable.all() or request.mode is Mode.PARTITIONS
        before = everything if whole else Plan.from_table(everything.entries.filter(pa.array(movable)))
        if found := _violations(model, request, candidate, before, limits):
            raise RebalanceError(
                f"the plan {candidate.name!r} breaks {len(found)} rules, so nothing is written; the first is "
                f"{found[0]}; this is a mistake of the planner: report it with the snapshot and the request"
            )


def _violations(
    model: ClusterModel, request: Request, candidate: Candidate, before: Plan, limits: Limits
) -> list[Violation]:
    plan, scope = candidate.plan, candidate.outcome.scope
    takes = {*model.broker_ids[scope.takes].tolist(), *request.replacements}
    rules: dict[str, Any] = {
        "brokers": _brokers(model, plan),
        "before": before,
        "allowed_brokers": takes - set(request.brokers) if request.mode in EMPTYING else takes,
        "drained_brokers": request.brokers if request.mode in EMPTYING else (),
        "broker_sets": SetRule.of(
            model.snapshot,
            gathered=candidate.name != LEADERS and request.mode is not Mode.KAFKA and gathers(request),
            may_keep=frozenset(request.excluded_brokers),
        ),
        "limits": limits,
    }
    factor = request.replication_factor
    if request.mode is Mode.PARTITIONS:
        return verify_plan(plan, **rules, new_partitions=True)
    if request.mode is Mode.REPLICATION_FACTOR:
        return verify_plan(plan, **rules, replication_factor=factor)
    if request.mode is Mode.REPAIR:
        return verify_plan(plan, **rules, least_replication_factor=factor)
    return verify_plan(plan, **rules)


def _brokers(model: ClusterModel, plan: Plan) -> list[Broker]:
    """The live brokers, and the dead ones that keep a replica, each in a rack of its own: theirs takes nothing."""
    kept = np.isin(model.broker_ids, Lists.from_column(plan.entries["replicas"]).values)
    dead = model.broker_ids[kept & ~model.alive].tolist()
    return [*model.snapshot.alive_brokers(), *(Broker(id_, f"of broker {id_}") for id_ in dead)]
