"""A least number of leaders on each broker, for chosen topics.

Goal:
    Each broker that may lead, leads at least so many partitions of each chosen topic, with as few bytes copied as
    possible. Where that cannot be, as many brokers as can do, and the goal's verdict says what lacks.

Algorithm:
    Chosen topics come first, one by one, after what must move of them anyway, to leave a broker, come to a set of
    brokers or be in more racks.

    1. Leadership is handed over along lists, in chains where it takes several, as few as can be, see
       ``compiled.leaders``: nobody but a broker with more than the least gives any up. That copies nothing.
    2. A broker that still lacks some is given a replica of the smallest partition whose leader can do without it, see
       ``compiled.give``, and leads that.

    Then these topics are fixed, and the rest of the cluster is planned around them. What that makes possible, since
    disks have more space, is done in another round; there is none if the round before changed nothing. So planning
    again finds nothing to do.

Example:
    Topic metrics has partitions on [1, 2], [1, 2] and [1, 2] with 3, 2 and 1 GB, there are brokers 1, 2 and 3, and each
    shall lead one. Broker 2 takes over the lead of a partition without a copy. Broker 3 has no replica: it is given one
    of the smallest partition that 1 leads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.compare import leader_to_front
from rebalance_lib.planner.compiled.give import give_smallest
from rebalance_lib.planner.compiled.leaders import Leaders
from rebalance_lib.planner.compiled.settle import repair_racks
from rebalance_lib.planner.goals.min_topic_leaders import find_lacks
from rebalance_lib.planner.leaders import even_leaders, sending_of
from rebalance_lib.planner.modes.mandatory import settle_all
from rebalance_lib.planner.order import electable, sending
from rebalance_lib.planner.rebalance import shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import (
    Layout,
    Placement,
    Workspace,
    carried_out,
    slots_of,
    spent,
    still_leading,
    to_int,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

    Bools = NDArray[np.bool_]
    Rows = NDArray[np.int64]

Placer = Callable[["ClusterModel", "Scope", "Request"], Placement]
REPEATS = 30  # far more than it takes: each must find space that the one before made


def place_around(placer: Placer, model: ClusterModel, scope: Scope, request: Request, *, moves: bool) -> Placement:
    """What a placer makes of a cluster once chosen topics are settled; `moves` says whether replicas may move."""
    if scope.min_leaders is None:
        return placer(model, scope, request)
    chosen = scope.min_leaders[model.topic] > 0
    own, rest = (replace(scope, movable=scope.movable & part) for part in (chosen, ~chosen))
    now, placement = model, None
    for _ in range(REPEATS):
        settled = _settled(now, own, request.less(*_needed(now, rest)), moves=moves)
        if placement is not None and settled.layout.is_like(Layout.of(now)):
            break
        left = request.less(*spent(now, settled))
        placement = placer(carried_out(now, settled.layout), rest, left)
        now = carried_out(now, placement.layout)
        if request.limited:
            break
    return replace(placement or placer(model, rest, request), model=model)


def _needed(model: ClusterModel, scope: Scope) -> tuple[int, int]:
    """Bytes and replicas that must leave their brokers: no budget is spent before they have theirs."""
    leaving = scope.leaves[model.broker] & scope.movable[model.slot_partition]
    return int(model.size[model.slot_partition[leaving]].sum()), int(leaving.sum())


def _settled(model: ClusterModel, scope: Scope, request: Request, *, moves: bool) -> Placement:
    """The cluster with its chosen topics settled; only these are movable in the scope."""
    work = Workspace.of(model, scope, request, Layout.of(model), model.leader)
    if moves:
        if len(work.unassigned):
            settle_all(work, model, "topics with a least number of leaders cannot be moved")
        repair_racks(work.state, work.order, to_int(shares_of(work)[Resource.DISK]))
    leader = _Topics(work, moves=moves).lead()
    layout = work.layout
    broker = layout.broker.copy()
    leader_to_front(layout.offsets, broker, leader)
    return Placement(model, layout.in_order(broker), broker[layout.offsets[:-1]])


class _Topics:
    """Chosen topics of a workspace, in which replicas are moved."""

    def __init__(self, work: Workspace, *, moves: bool) -> None:
        layout = work.layout
        self._work, self._moves, self._offsets = work, moves, layout.offsets
        self._may_lead = electable(work, layout)
        self._leader = still_leading(layout, work.leader)
        self._sending = sending(work, layout)
        kept = (self._leader >= 0) & work.scope.excluded[self._leader]  # by excluded brokers, with all they lead
        self._movable: Bools = work.scope.movable & ~kept

    def lead(self) -> NDArray[np.int32]:
        """By partition: who shall lead it."""
        model, scope = self._work.model, self._work.scope
        topics = np.unique(model.topic[self._movable & ~self._well_led()])
        if (lacks := find_lacks(model, scope, self._leader)) is not None:
            topics = np.union1d(topics, lacks.topic)
        order = np.argsort(model.topic, kind="stable")
        begins = np.searchsorted(model.topic[order], [topics, topics + 1])
        for topic, begin, end in zip(topics.tolist(), *begins.tolist(), strict=True):
            self._settle(order[begin:end], int(scope.min_leaders[topic]) if scope.min_leaders is not None else 0)
        return self._leader

    def _well_led(self) -> Bools:
        """By partition: whether its leader may be made its leader."""
        own = np.repeat(self._leader, np.diff(self._offsets))
        good = (self._work.state.slots["broker"] == own) & (self._may_lead > 0)
        partition = np.repeat(np.arange(len(self._leader)), np.diff(self._offsets))
        found: Bools = np.bincount(partition[good], minlength=len(self._leader)) > 0
        return found

    def _settle(self, rows: Rows, least: int) -> None:
        """Let brokers lead so many of one topic's partitions: handed over, and where that is not enough, moved."""
        low = np.where(self._work.scope.may_lead, least, 0)
        by_size = rows[np.argsort(self._work.model.size[rows], kind="stable")]
        counts = self._hand_over(rows, low)
        refused = np.zeros(len(low), np.bool_)  # those that were given nothing; others' leaders may have changed since
        while self._moves and len(lacking := np.flatnonzero((counts < low) & ~refused)):
            d = int(lacking[np.argmin(counts[lacking])])
            spare = self._spare(rows, counts, low)
            open_rows = by_size[self._movable[by_size] & (self._leader[by_size] >= 0) & self._can_send(by_size, d)]
            slot, p = give_smallest(self._work.state, open_rows[spare[self._leader[open_rows]]], d)
            if slot < 0:
                refused[d] = True
                continue
            self._given(slot, p, d)
            counts = self._hand_over(rows, low)

    def _given(self, slot: int, p: int, d: int) -> None:
        """Count a replica that has moved: its new broker may lead, others only where they may, too."""
        slots, scope = slice(self._offsets[p], self._offsets[p + 1]), self._work.scope
        broker = self._work.state.slots["broker"]
        self._may_lead[slots] &= scope.may_lead[broker[slots]]
        self._may_lead[slot] = 1
        self._leader[p] = d

    def _can_send(self, rows: Rows, d: int) -> Bools:
        """By partition: whether a broker could lead it, too, within its network capacity."""
        sent, base, most = self._sending
        now = base[d] + sent[self._leader == d].sum()
        fits: Bools = now + sent[rows] <= most[d]
        return fits

    def _hand_over(self, rows: Rows, low: NDArray[np.int64]) -> NDArray[np.int64]:
        """Hand leadership over until nobody can be given more; returns by broker how many it leads."""
        slots = slots_of(self._offsets, rows)
        offsets = np.r_[0, np.cumsum(np.diff(self._offsets)[rows])].astype(np.int64)
        where = (offsets, self._work.state.slots["broker"][slots], self._may_lead[slots])
        lacked = len(rows) * len(low) + 1
        while True:  # a search for chains that was cut short goes on from where it came to
            limits = (low.astype(np.float64), low, np.full(len(low), len(rows) + 1), np.zeros(len(low), np.int64))
            now = (self._leader[rows].copy(), self._movable[rows].astype(np.uint8))
            found = even_leaders(Leaders(*where, *now, *limits, *sending_of(self._sending, rows, self._leader)))
            self._leader[rows] = np.where(found >= 0, found, self._leader[rows])
            counts = np.bincount(self._leader[rows][self._leader[rows] >= 0], minlength=len(low))
            lack = int(np.maximum(0, low - counts).sum())
            if not 0 < lack < lacked:
                return counts
            lacked = lack

    def _spare(self, rows: Rows, counts: NDArray[np.int64], low: NDArray[np.int64]) -> Bools:
        """By broker: whether it can do without a partition that it leads, since it gets another one if need be."""
        spare: Bools = counts > low
        slots = slots_of(self._offsets, rows)
        partition = np.repeat(rows, np.diff(self._offsets)[rows])
        broker = self._work.state.slots["broker"][slots]
        open_slots = (self._may_lead[slots] > 0) & self._movable[partition] & (self._leader[partition] >= 0)
        leader, broker = self._leader[partition][open_slots], broker[open_slots]
        while True:
            before = np.count_nonzero(spare)
            spare[broker[spare[leader]]] = True
            if np.count_nonzero(spare) == before:
                return spare
