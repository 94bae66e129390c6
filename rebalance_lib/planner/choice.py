"""What a planning run hands on: the cluster, the request, and the candidates to choose from.

A plan that comes from somewhere else is a choice of one, so that a review says of it what it says of all plans.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import Lists, find_sorted, partition_at, partition_keys
from rebalance_lib.planner.candidates import FULL, UNLIMITED, Candidate, all_candidates, undominated
from rebalance_lib.planner.goals import View
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.request import Mode, Request
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.workspace import Layout, Placement
from rebalance_lib.threads import beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from rebalance_lib.plan import Plan
    from rebalance_lib.planner.certified import Certificate
    from rebalance_lib.planner.model import ClusterModel

GIVEN = "given"


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates for one request, best first; ``request`` is None for a plan that was not planned here."""

    model: ClusterModel
    request: Request | None
    candidates: Sequence[Candidate]
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds by stage
    impacts: pa.Table | None = None  # what each candidate does to each consumer group, where groups are known
    rates: pa.Table | None = None  # the write rates that were planned with, where they are known
    certificate: Certificate | None = None  # where it was worked out beside the plans

    @cached_property
    def before(self) -> View:
        """The cluster as it is, which the goals of all candidates measure once."""
        request = self.request or Request(Mode.BALANCE)
        return View(self.model, self.recommended.outcome.scope, request, Layout.of(self.model))

    @property
    def recommended(self) -> Candidate:
        """The first one, which is the full plan."""
        return self.candidates[0]

    @classmethod
    def planned(
        cls, model: ClusterModel, request: Request, loads: pa.Table | None, timings: dict[str, float]
    ) -> Choice:
        """The plans of a request worth choosing from, and beside them the certificate.

        Args:
            model: The cluster, with these loads.
            request: What to plan.
            loads: See `ClusterModel.with_loads`; None if nothing is known.
            timings: By stage, in seconds; ``plan``, of the full plan alone, is added.
        """
        from rebalance_lib.planner.certified import certificate_of  # noqa: PLC0415 - brings HiGHS

        scope = Scope.of(model, request)
        certificate = beside(lambda: certificate_of(model, scope, request), model.partitions)
        found = all_candidates(model, scope, request)
        timings["plan"] = sum(one.seconds for one in found if one.name in {UNLIMITED, FULL})
        kept = undominated(found, request)
        return cls(model, request, kept, timings, rates=loads, certificate=certificate.result())

    @classmethod
    def given(cls, model: ClusterModel, plan: Plan) -> Choice:
        """A plan from somewhere else, for partitions and brokers that the cluster has; figures leave out log dirs."""
        nobody = np.zeros(model.brokers, np.bool_)
        everything = np.ones(model.partitions, np.bool_)
        scope = Scope(everything, model.alive, ~nobody, nobody, model.alive, nobody, offline=0)
        return cls(model, None, [_Given(GIVEN, Outcome(model, scope, _placed(model, plan)), given=plan)])


@dataclass(frozen=True, eq=False)
class _Given(Candidate):
    """A candidate whose plan is kept as it came, with entries that change nothing and log dirs."""

    given: Plan = field(kw_only=True)

    @property
    def plan(self) -> Plan:
        return self.given


def _placed(model: ClusterModel, plan: Plan) -> Placement:
    """The model's replicas with those of the plan in place of theirs."""
    rows = _rows_in(model, plan)
    target = Lists.from_column(plan.entries["replicas"])
    broker = find_sorted(model.broker_ids, target.values)
    if len(strange := np.flatnonzero(broker < 0)):
        where = partition_at(plan.entries, target.rows[strange[0]])
        raise InvalidInputError(f"{where}: the cluster has no broker {target.values[strange[0]]}; use one that it has")
    lengths = model.replication_factor.copy()
    lengths[rows] = target.lengths
    after = Lists.from_lengths(lengths, np.empty(0, np.int32))
    planned = np.zeros(model.partitions, np.bool_)
    planned[rows] = True
    of_plan = planned[after.rows]
    brokers = np.empty(len(after.rows), np.int32)
    brokers[~of_plan] = model.broker[~planned[model.slot_partition]]
    brokers[of_plan] = broker
    after = Lists(after.offsets, brokers)
    held = after.position_in(Lists(model.offsets, model.broker))
    sizes = np.where(held >= 0, model.bytes[held], model.size[after.rows])
    log_dirs = np.where(held >= 0, model.log_dir[held], np.int32(-1))
    return Placement(model, Layout(after.offsets, brokers, sizes, log_dirs), brokers[after.offsets[:-1]])


def _rows_in(model: ClusterModel, plan: Plan) -> NDArray[np.int64]:
    """The model's partition of each entry, in the order of entries, which is the model's too."""
    replicas = model.snapshot.replicas
    known, wanted = partition_keys(replicas.select(["topic", "partition"]), plan.entries)
    found = find_sorted(np.unique(known), wanted)
    if len(missing := np.flatnonzero(found < 0)):
        where = partition_at(plan.entries, missing[0])
        raise InvalidInputError(f"{where} is in the plan, but not in the snapshot: take another, or leave it out")
    return found
