"""Each set of brokers planned as a cluster of its own, see ``broker_sets``, and the answers put together.

A part has the partitions of a set's topics, and all brokers; those outside of the set are to it as dead ones: they get
no replicas, lead nothing, have no share and no rack that counts. What they hold of the set's topics is misplaced. Modes
that put a cluster in order (``balance``, ``topics``, ``repair``, ``kafka``, ``drain`` with ``balance``) bring it home
first, all of it, as ``drain`` would; in the others it stays, and only what is given goes to the set.

Sets give and take apart, so that no two of them fill the same log dir. Budgets are shared: what must go home comes
first, the rest is shared out by the bytes that even loads ask for.

Example: topic ``pay`` of the set {1, 2} is on [1, 3], ``log`` of the set {3, 4} on [3, 4]. The replica of ``pay`` on 3
goes to 2, and nothing of ``log`` does, however empty 2 is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.compiled.compare import compare
from rebalance_lib.planner.min_topic_leaders import Placer, place_around
from rebalance_lib.planner.modes import leaders as leaders_only
from rebalance_lib.planner.modes.mandatory import settle_all
from rebalance_lib.planner.rebalance import ideal_bytes
from rebalance_lib.planner.request import BALANCING, Mode
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, carried_out, slots_of, spent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.broker_sets import Sets
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

    Rows = NDArray[np.int64]

GATHERING = frozenset({Mode.BALANCE, Mode.TOPICS, Mode.REPAIR, Mode.KAFKA})
WHOLE = frozenset({Mode.DISKS, Mode.DRAIN_LOG_DIRS, Mode.DEMOTE, Mode.REPLACE})
"""Modes in which no broker gets anything, or a broker that is named gets what another one had."""
_COLUMNS = ("topic", "partition", "size", "moving", "write_rate", "read_rate")
_TAKING_AWAY = frozenset({Mode.REPLICATION_FACTOR, Mode.REPAIR, Mode.KAFKA})
"""Modes in which replicas outside of their set may be dropped, or are placed anew with all others."""


@dataclass(frozen=True, eq=False)
class SetPart:
    """The topics of one set, as a cluster of their own."""

    number: int  # of the set
    name: str
    rows: Rows  # where its partitions are in the whole
    model: ClusterModel
    scope: Scope


def gathers(request: Request) -> bool:
    """Whether replicas outside of their topic's set are moved there."""
    return request.mode in GATHERING or (request.mode is Mode.DRAIN and request.balance)


def split(model: ClusterModel, scope: Scope, request: Request | None = None) -> Iterator[SetPart]:
    """The parts of a cluster with sets that have any partitions; without a request nothing is to be brought home."""
    sets = _sets(model)
    for number in range(len(sets.names)):
        rows = np.flatnonzero(sets.topic[model.topic] == number)
        if len(rows):
            here = sets.members(number)
            rack = np.where(here, model.rack, -1).astype(np.int32) if model.has_racks else model.rack
            part = replace(model.select(rows)[0], alive=model.alive & here, rack=rack, sets=None)
            yield SetPart(number, sets.describe(number), rows, part, _scope(scope, here, rows, request))


def _scope(scope: Scope, here: NDArray[np.bool_], rows: Rows, request: Request | None) -> Scope:
    """What a request allows in one set."""
    leaves, gives = scope.leaves, scope.gives
    if request is not None and gathers(request):
        leaves = leaves | (~here & ~scope.excluded)
    if request is None or request.mode not in _TAKING_AWAY:
        gives = gives & here  # what is outside is either brought home first or stays
    return replace(
        scope,
        movable=scope.movable[rows],
        takes=scope.takes & here,
        gives=gives,
        leaves=leaves,
        may_lead=scope.may_lead & here,
        may_lead_else=None if scope.may_lead_else is None else scope.may_lead_else & here,
    )


def place_by_set(placer: Placer, model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """What a mode makes of a cluster, set by set if it has any."""
    moves = placer is not leaders_only.place
    if model.sets is None:
        return place_around(placer, model, scope, request, moves=moves)
    if request.mode in WHOLE:
        placement = placer(model, scope, request)
        _refuse_foreign(model, placement)
        return placement
    parts = list(split(model, scope, request if moves else None))
    needs = [_need(part, request) for part in parts] if request.limited else []
    placements: list[Placement] = []
    left = request
    for number, part in enumerate(parts):
        try:
            of_set = _share_of(left, needs[number:]) if request.limited else request
            of_set = replace(of_set, polish=request.polish * len(part.rows) / max(1, model.partitions))
            of_part = partial(_place, placer, part)
            placements.append(place_around(of_part, part.model, part.scope, of_set, moves=moves))
        except InvalidInputError as error:
            raise InvalidInputError(f"{part.name}: {error}") from error
        left = left.less(*spent(part.model, placements[-1]))
    return _merged(model, parts, placements)


def bytes_needed(model: ClusterModel, scope: Scope, request: Request) -> tuple[int, int]:
    """How many bytes must go home to their sets, and how many even loads ask for besides."""
    if model.sets is None:
        return 0, _ideal(model, scope, request)
    needs = [_need(part, request) for part in split(model, scope, request)]
    return sum(one.bytes_home for one in needs), sum(one.ideal for one in needs)


@dataclass(frozen=True, slots=True)
class _Need:
    """What a set asks for."""

    bytes_home: int
    moves_home: int
    ideal: int


def _need(part: SetPart, request: Request) -> _Need:
    home = part.scope.leaves[part.model.broker] & part.scope.movable[part.model.slot_partition]
    size = part.model.size[part.model.slot_partition[home]]
    return _Need(int(size.sum()), len(size), _ideal(part.model, part.scope, request))


def _ideal(model: ClusterModel, scope: Scope, request: Request) -> int:
    return ideal_bytes(Workspace.of(model, scope, request, Layout.of(model), model.leader))


def _share_of(left: Request, needs: Sequence[_Need]) -> Request:
    """The budgets of the first of some sets: what it must have, and its share of what nobody must have."""
    if left.mode not in BALANCING and not left.balance:
        return left
    ideal = sum(one.ideal for one in needs)
    part = needs[0].ideal / ideal if ideal else 1 / len(needs)

    def share(budget: int | None, home: list[int]) -> int | None:
        return None if budget is None else min(budget, home[0] + int(part * max(0, budget - sum(home))))

    return replace(
        left,
        byte_budget=share(left.byte_budget, [one.bytes_home for one in needs]),
        move_budget=share(left.move_budget, [one.moves_home for one in needs]),
    )


def _place(placer: Placer, part: SetPart, model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """What a mode makes of a part, with what is settled of it already."""
    leaving = scope.leaves[model.broker] & scope.movable[model.slot_partition]
    if leaving.any():
        _refuse_small(replace(part, model=model, scope=scope))
    if placer is leaders_only.place or (request.mode is Mode.DRAIN and not leaving.any() and not request.balance):
        return leaders_only.place(model, scope, request)
    if request.mode in {Mode.BALANCE, Mode.TOPICS} and leaving.any():
        work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
        settle_all(work, model, "the replicas that are outside of it cannot be brought there")
        home = Placement(model, work.layout, model.leader)
        rest = placer(carried_out(model, home.layout), scope, request.less(*spent(model, home)))
        return replace(rest, model=model)
    return placer(model, scope, request)


def _refuse_small(part: SetPart) -> None:
    """Refuse a topic that must move to a set with fewer brokers than it has replicas."""
    model, scope = part.model, part.scope
    leaving = scope.leaves[model.broker] & scope.movable[model.slot_partition]
    rows = np.unique(model.slot_partition[leaving])
    largest = rows[np.argmax(model.replication_factor[rows])]
    staying = int((model.alive & ~scope.leaves).sum())
    if model.replication_factor[largest] > staying:
        raise InvalidInputError(
            f"{model.name(largest)} has {model.replication_factor[largest]} replicas, but only {staying} live brokers "
            "are there to hold them: add brokers to the set, lower the replication factor, or leave the topic out"
        )


def _refuse_foreign(model: ClusterModel, placement: Placement) -> None:
    """Refuse replacements that would get replicas of another set's topics."""
    sets, layout = _sets(model), placement.layout
    arrives, _, _ = compare(model.offsets, model.broker, model.log_dir, layout.offsets, layout.broker, layout.log_dir)
    if len(foreign := np.flatnonzero(arrives & sets.misplaced(model, layout))):
        p = int(model.slot_partition[foreign[0]])
        own = sets.describe(int(sets.topic[model.topic[p]]))
        raise InvalidInputError(
            f"broker {model.broker_ids[layout.broker[foreign[0]]]} cannot replace another: it would get {model.name(p)}"
            f" of {own}, in which it is not, as {len(foreign)} replicas in all; take a broker of the same set, or drain"
        )


def _merged(model: ClusterModel, parts: Sequence[SetPart], placements: Sequence[Placement]) -> Placement:
    """The placements of all parts as one of the whole cluster; partitions that are new come behind all others."""
    begin, rows, new = model.partitions, [], []
    for part, placement in zip(parts, placements, strict=True):
        added = placement.model.partitions - len(part.rows)
        rows.append(np.r_[part.rows, np.arange(begin, begin + added)])
        new.append(np.arange(placement.model.partitions) >= len(part.rows))
        begin += added
    lengths = np.zeros(begin, np.int64)
    leader = np.full(begin, -1, np.int32)
    for of_part, placement in zip(rows, placements, strict=True):
        lengths[of_part], leader[of_part] = np.diff(placement.layout.offsets), placement.leader
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    layout = Layout(offsets, *(np.empty(offsets[-1], dtype) for dtype in (np.int32, np.int64, np.int32)))
    for of_part, placement in zip(rows, placements, strict=True):
        slots = slots_of(offsets, of_part)
        for name in ("broker", "bytes", "log_dir"):
            getattr(layout, name)[slots] = getattr(placement.layout, name)
    columns: dict[str, Any] = {
        name: np.concatenate(
            [getattr(model, name), *(getattr(one.model, name)[of] for one, of in zip(placements, new, strict=True))]
        )
        for name in _known(model)
    }
    extended = model if begin == model.partitions else replace(model, **columns)
    return Placement(extended, layout, leader, kept=sum(one.kept for one in placements))


def part_of(part: SetPart, placement: Placement) -> Placement:
    """What a placement of the whole cluster is for one part; partitions that are new come last there, too."""
    whole, layout = placement.model, placement.layout
    rows = np.flatnonzero(_sets(whole).topic[whole.topic] == part.number)
    slots = slots_of(layout.offsets, rows)
    offsets = np.r_[0, np.cumsum(np.diff(layout.offsets)[rows])].astype(np.int64)
    own = Layout(offsets, layout.broker[slots], layout.bytes[slots], layout.log_dir[slots])
    columns: dict[str, Any] = {name: getattr(whole, name)[rows] for name in _known(whole)}
    return Placement(replace(part.model, **columns), own, placement.leader[rows])


def _known(model: ClusterModel) -> list[str]:
    """The columns of a model that have a value for each partition, new ones too."""
    return [name for name in _COLUMNS if getattr(model, name) is not None]


def _sets(model: ClusterModel) -> Sets:
    if model.sets is None:
        raise ValueError("the cluster has no broker sets")
    return model.sets
