"""Each plan of a choice before the one verifier, which knows nothing of how it was made.

The verifier gets the request: which brokers may be given replicas, which must be empty afterwards, how many replicas
there shall be, how full log dirs may become, the budgets, and who shall lead. It reads sets, sizes, disks and networks
from the snapshot itself, and what is written to partitions from the loads that were planned with. It is shown only the
partitions that may change, so that a plan which touches another one is found out too, and a broker to be drained keeps
the replicas of excluded topics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import LeaderRule, Limits, Plan, Rules, SetRule, Traffic, current_assignment, verify_plan
from rebalance_lib.planner.by_set import WHOLE, gathers
from rebalance_lib.planner.candidates import LEADERS
from rebalance_lib.planner.request import EMPTYING, PLACING, Mode
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rebalance_lib.planner.candidates import Candidate
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request


def check_candidates(model: ClusterModel, request: Request, candidates: Iterable[Candidate]) -> None:
    """Raise RebalanceError, naming the candidate and a rule, if one of the plans is not right."""
    everything = current_assignment(model.snapshot)
    common = _rules(model, request)
    for candidate in candidates:
        movable = candidate.outcome.scope.movable
        whole = movable.all() or request.mode is Mode.PARTITIONS
        before = everything if whole else Plan.from_table(everything.entries.filter(pa.array(movable)))
        rules = replace(
            common, allowed_brokers=_allowed(model, request, candidate), broker_sets=_sets(common, request, candidate)
        )
        if found := verify_plan(candidate.plan, brokers=model.snapshot.alive_brokers(), before=before, rules=rules):
            raise RebalanceError(
                f"the plan {candidate.name!r} breaks {len(found)} rules, so nothing is written; the first is "
                f"{found[0]}; this is a mistake of the planner: report it with the snapshot and the request"
            )


def _rules(model: ClusterModel, request: Request) -> Rules:
    """What a request asks of all its candidates."""
    factor, snapshot = request.replication_factor, model.snapshot
    drained = request.brokers if request.mode in EMPTYING else ()
    sets = SetRule.of(snapshot, may_keep=frozenset(request.excluded_brokers))
    demoted = request.brokers if request.mode is Mode.DEMOTE else ()
    return Rules(
        dead_brokers=model.broker_ids[~model.alive].tolist(),
        drained_brokers=drained,
        replication_factor=factor if request.mode is Mode.REPLICATION_FACTOR else None,
        least_replication_factor=factor if request.mode is Mode.REPAIR else None,
        new_partitions=request.mode is Mode.PARTITIONS,
        broker_sets=sets,
        limits=Limits.of(snapshot, request.max_fill, request.byte_budget, request.move_budget),
        traffic=_traffic(model, request),
        leaders=LeaderRule.of(
            snapshot,
            leader_racks=request.leader_racks,
            least=request.least_leaders,
            barred={*drained, *demoted, *request.excluded_brokers},
            broker_sets=None if request.mode in WHOLE else sets,  # `demote` chooses among all that hold a replica
        ),
    )


def _allowed(model: ClusterModel, request: Request, candidate: Candidate) -> set[int]:
    takes = {*model.broker_ids[candidate.outcome.scope.takes].tolist(), *request.replacements}
    return takes - set(request.brokers) if request.mode in EMPTYING else takes


def _sets(rules: Rules, request: Request, candidate: Candidate) -> SetRule | None:
    """What the plan was to bring to its broker sets: not one that changes leaders alone."""
    gathered = candidate.name != LEADERS and request.mode is not Mode.KAFKA and gathers(request)
    return None if rules.broker_sets is None else replace(rules.broker_sets, gathered=gathered)


def _traffic(model: ClusterModel, request: Request) -> Traffic | None:
    """Networks, but for modes that say themselves where each replica goes."""
    if model.write_rate is None or request.mode in PLACING:
        return None
    topic = decode_texts(model.topic, pa.array(model.topics, pa.string()))
    rates = {"topic": topic, "partition": model.partition, "write_rate": model.write_rate}
    return Traffic.of(model.snapshot, pa.table(rates))
