"""Which moves may begin now: caps on brokers and on the cluster, kept as full as they can be.

Goal: whenever a move ends, the next one in order that fits begins. There are no rounds in lock-step, where many wait
for the slowest: a wave here is what begins together. The engine asks this with what is under way on the live cluster,
the simulator with what its model says; so both begin the same moves.

Constraints: no cap is exceeded, except by a move that is larger than the cap alone: it runs when nothing else counts
against that cap, since otherwise it would never run. A move that copies nothing (an order, a removal) is always let
through.

What a broker sends and receives is capped in slots, one for each replica. A small move lasts as long as its request
takes, not as long as its bytes do, so that a slot for it alone would stay idle: it takes only its part of one, in
hundredths, by its bytes against those of a whole slot.

Algorithm: every waiting move is filed under the one cap that stopped it, beside those that count as much against it.
When a move ends, only the caps that it counted against are looked at again, the first in order first, until they are
full again, and of moves that count as much as one that does not fit no other is looked at; so a move that ends costs a
few looks, however many wait.

Example, with one move in per broker, in order: ``a`` to broker 1, ``b`` to broker 1, ``c`` to broker 2. ``a`` and ``c``
begin; when ``a`` ends, ``b`` begins, whether ``c`` has ended or not. If ``a`` and ``b`` had 4 MB each, they would take
40 hundredths each, and begin together.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.pace import Order, Pace
from rebalance_lib.topology import TopicPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cap = tuple[str, int]  # which limit, and of which broker; 0 for those of the cluster

SLOT = 100  # what a broker's slots are counted in
SLOT_BYTES = 10_000_000  # a copy of so many bytes takes a slot of its own

WAITING: Cap = ("waiting", 0)
CLUSTER: Cap = ("cluster", 0)
BYTES: Cap = ("bytes", 0)


@dataclass(frozen=True, slots=True)
class Move:
    """One partition that is to change, or a stage of its way: who sends and who receives how much.

    Args:
        partition: the partition.
        sender: the broker that the copies come from, its leader; None where there is none, or nothing is sent.
        receivers: the brokers that are given a copy.
        size: the bytes of one copy.
        at_risk: whether the partition is offline or short of in-sync replicas, so that it comes before others.
    """

    partition: TopicPartition
    sender: int | None
    receivers: tuple[int, ...]
    size: int
    at_risk: bool = False

    @property
    def bytes(self) -> int:
        """What is copied altogether."""
        return self.size * len(self.receivers)


def slots(size: int) -> int:
    """The part of a broker's slot that a copy of this size takes, in hundredths."""
    return max(1, min(SLOT, size * SLOT // SLOT_BYTES))


def slots_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """`slots` of many copies."""
    return np.clip(sizes * SLOT // SLOT_BYTES, 1, SLOT)


def in_order(moves: Iterable[Move], order: Order) -> list[Move]:
    """The moves in the order in which they are to begin; equals by partition."""
    sign = -1 if order is Order.LARGEST_FIRST else 1
    return sorted(moves, key=lambda move: (not move.at_risk, sign * move.bytes, move.partition))


class Waves:
    """The moves that wait, in order, and those under way."""

    def __init__(self, pace: Pace, waiting: Sequence[Move], under_way: Iterable[Move] = ()) -> None:
        self._limits = {
            "in": None if pace.moves_in is None else pace.moves_in * SLOT,
            "out": None if pace.moves_out is None else pace.moves_out * SLOT,
            "cluster": pace.moves_in_cluster,
            "bytes": pace.bytes_in_flight,
        }
        self._moves = list(waiting)
        self._places = {move.partition: place for place, move in enumerate(self._moves)}
        self._wanted: dict[int, dict[Cap, int]] = {}  # what moves count against, since one may be looked at often
        self._load: Counter[Cap] = Counter()
        self._filed: dict[Cap, dict[int, list[int]]] = {WAITING: {0: list(range(len(self._moves)))}}
        self._open: set[Cap] = {WAITING}
        for move in under_way:
            self._load.update(self._demands(move))

    def begin(self) -> list[Move]:
        """The moves that may begin now; from here on they count as under way."""
        heads = [
            (files[0], cap, amount) for cap in self._open for amount, files in self._filed.get(cap, {}).items() if files
        ]
        heapq.heapify(heads)
        self._open = set()
        begun: list[Move] = []
        too_large: list[tuple[list[int], int]] = []
        while heads:
            _, cap, amount = heapq.heappop(heads)
            files = self._filed[cap][amount]
            place = heapq.heappop(files)  # one that was filed here meanwhile may come first
            demands = self._wanted.get(place)
            if demands is None:
                demands = self._wanted[place] = self._demands(self._moves[place])
            full = self._full(demands)
            if full is None:
                self._load.update(demands)
                begun.append(self._moves[place])
            elif full == cap:
                too_large.append((files, place))
                if cap != BYTES:  # where all that are filed here count as much, so that none of them fits
                    continue
            else:
                self._file(place, full, 0 if full == BYTES else demands[full])
            if files and self._has_free_slots(cap):
                heapq.heappush(heads, (files[0], cap, amount))
        for files, place in too_large:
            heapq.heappush(files, place)
        return begun

    def _file(self, place: int, cap: Cap, amount: int = 0) -> None:
        heapq.heappush(self._filed.setdefault(cap, {}).setdefault(amount, []), place)

    def end(self, move: Move) -> None:
        """A move that was under way is over: what it counted against is free for others."""
        demands = self._demands(move)
        self._load.subtract(demands)
        self._open |= demands.keys()

    def follow(self, move: Move) -> None:
        """The next stage of a partition whose last one is over: it waits in the place in the order that one had."""
        place = self._places[move.partition]
        self._moves[place] = move
        self._wanted.pop(place, None)
        self._file(place, WAITING)
        self._open.add(WAITING)

    def add(self, move: Move) -> None:
        """One more move; it waits behind all others."""
        self._file(len(self._moves), WAITING)
        self._moves.append(move)
        self._open.add(WAITING)

    def _demands(self, move: Move) -> dict[Cap, int]:
        """How much a move counts against each cap there is."""
        copies, part = len(move.receivers), slots(move.size)
        wanted: dict[Cap, int] = {("in", broker): part for broker in move.receivers}
        if move.sender is not None:
            wanted["out", move.sender] = copies * part
        wanted[CLUSTER] = copies
        wanted[BYTES] = move.bytes
        return {cap: amount for cap, amount in wanted.items() if amount and self._limits[cap[0]] is not None}

    def _has_free_slots(self, cap: Cap) -> bool:
        limit = self._limits.get(cap[0])
        return limit is None or self._load[cap] < limit

    def _full(self, demands: dict[Cap, int]) -> Cap | None:
        for cap, amount in demands.items():
            limit, load = self._limits[cap[0]], self._load[cap]
            if limit is not None and load and load + amount > limit:
                return cap
        return None
