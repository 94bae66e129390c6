"""A dry run: the controller's rules driven by sizes, throttles and caps, which gives a plan's timeline.

Goal: how long a plan will take, how full each log dir gets on the way, what each broker sends and receives, and which
partitions come down to their min ISR, before anything is touched. The moves that begin are those that the engine
begins: both ask `Waves`. What a reassignment does to replicas, ISR and leader is what the `Controller` says.

Constraints: no I/O; a hundred thousand partitions in seconds; nothing random, so that the same plan has the same
forecast.

Algorithm: every copy is a flow of bytes from its partition's leader to the broker that receives it, or between log dirs
of one broker. Flows share the throttle of both brokers fairly (`fair_shares`); those of a partition that is written to
meanwhile have that much more to carry. From one moment to the next in which a flow ends, rates are constant. When the
last flow of a move has ended, and the ISR and its end have gone through, the controller's rules say which replicas are
removed, and the next moves begin. Where many flows are under way, the first fiftieth of them end in one step, each at
its own time: what they leave is given to others at the end of the step, which is late by less than a fiftieth.

A copy without a log dir in the plan goes where the most disk space is at that moment, what is under way counted in. A
replica that goes to another log dir of its broker is a move of its own, which waits until its partition has its
replicas.

Example, with a throttle of 10 bytes a second, one move in per broker, and ideal conditions: ``a-0`` of 100 bytes moves
from [1] to [2], ``b-0`` of 50 bytes from [1] to [3], ``c-0`` of 30 bytes from [1] to [3].

    0 s    a-0 and b-0 begin, and share what broker 1 may send: 5 bytes a second each
    10 s   b-0 ends, c-0 begins
    16 s   c-0 ends; a-0 has 20 bytes left, and broker 1 for itself
    18 s   a-0 ends

Broker 3 holds 80 bytes in the end and at most, and broker 1 is empty after 60 s more, when the files of a-0 are gone.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.pace import Pace
from rebalance_lib.plan.stages import stages
from rebalance_lib.plan.waves import Move, Waves, in_order
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.controller import Controller
from rebalance_lib.reassignment.fair_shares import fair_shares
from rebalance_lib.reassignment.forecast import Forecast, MoveTimes, Timeline, forecast_of
from rebalance_lib.reassignment.log_dirs import UNKNOWN
from rebalance_lib.reassignment.state import Brokers, PartitionState, TopicSettings
from rebalance_lib.reassignment.work import NOBODY, Cluster, Work
from rebalance_lib.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from rebalance_lib.plan import Plan
    from rebalance_lib.topology import Snapshot

FLOWS_OF_A_STEP = 0.02
_NEVER = float("inf")
_STAGE = -1  # in the place of a copy: the stage of a partition


def simulate(
    plan: Plan,
    snapshot: Snapshot,
    pace: Pace | None = None,
    *,
    write_rates: pa.Table | None = None,
    min_insync: Mapping[str, int] | None = None,
    conditions: Conditions | None = None,
) -> Forecast:
    """The forecast of a plan that is executed at a pace.

    Args:
        plan: what is to change.
        snapshot: the cluster as it is.
        pace: throttles, caps and order; the default ones if None.
        write_rates: bytes per second written to each partition, as topic, partition and write_rate; None if not known.
        min_insync: ``min.insync.replicas`` by topic; what the snapshot knows if None.
        conditions: how brokers behave; as they do by default if None.

    Raises:
        InvalidInputError: The plan names a partition, a broker or a log dir that the snapshot does not have.
    """
    least = snapshot.min_insync_replicas() if min_insync is None else min_insync
    work = Work.of(plan, Cluster.of(snapshot, write_rates))
    return simulate_work(work, pace or Pace(), least, conditions or Conditions())


def simulate_work(work: Work, pace: Pace, min_insync: Mapping[str, int] | None, conditions: Conditions) -> Forecast:
    """The same of a plan that has been set beside its cluster."""
    return forecast_of(work, _Simulation(work, pace, conditions, min_insync).run(), pace, conditions)


@dataclass(frozen=True, slots=True)
class _WithinBroker(Move):
    """A replica that goes to another log dir of its broker."""

    copy: int = _STAGE


class _Simulation:
    """The state of one dry run; partitions and copies are numbered as in `Work`."""

    def __init__(self, work: Work, pace: Pace, conditions: Conditions, min_insync: Mapping[str, int] | None) -> None:
        self._work, self._pace, self._conditions, self._min_insync = work, pace, conditions, min_insync
        topics, numbers = (work.entries[name].to_pylist() for name in ("topic", "partition"))
        self._names = [TopicPartition(*name) for name in zip(topics, numbers, strict=True)]
        self._row = {name: row for row, name in enumerate(self._names)}
        self._ids = work.brokers.tolist()
        self._place = {id_: place for place, id_ in enumerate(self._ids)}
        self._controller = Controller(
            _states(work, self._names, self._ids),
            Brokers(frozenset(self._ids), frozenset(work.brokers[work.alive].tolist())),
            topics={topic: TopicSettings(least) for topic, least in (min_insync or {}).items()},
        )
        self._limits = _limits(work, pace, conditions)
        copies = work.copies
        self._offsets = np.searchsorted(copies.partition, np.arange(work.partitions + 1)).tolist()
        self._receiver, self._within = copies.broker.tolist(), copies.within.tolist()
        self._size, self._log_dir = copies.size.tolist(), copies.log_dir.tolist()
        self._left = copies.size.astype(np.float64)
        self._sends, self._receives = np.zeros((2, len(self._size)), np.int64)
        self._begins, self._ends = np.full((2, len(self._size)), np.nan)
        self._written = work.write_rate[copies.partition]
        self._leaving = work.leaving.tolist()
        self._leaves = np.searchsorted(
            work.replicas.brokers.rows[work.leaving], np.arange(work.partitions + 1)
        ).tolist()
        self._holder = [self._ids[place] for place in work.replicas.brokers.values[work.leaving].tolist()]
        self._gone = np.full(len(work.replicas.size), np.nan)
        self._under_way = np.empty(0, np.int64)
        self._disk_space = work.log_dirs.disk_space()
        self._freed: deque[tuple[float, int, int]] = deque()  # when, which log dir, how much
        self._settling: list[tuple[float, int, int]] = []  # when, which partition, and its stage or a copy within
        self._stage = [0] * work.partitions
        self._open = [0] * work.partitions  # copies that the present stage waits for
        self._last = [0.0] * work.partitions  # when a copy of the partition caught up last
        self._moves: dict[int, Move] = {}
        self._moves_within: dict[int, _WithinBroker] = {}  # by copy
        self._before: dict[int, tuple[int, ...]] = {}  # the replicas when the present stage began
        self._times = MoveTimes()
        self._peak = np.zeros(len(self._limits))
        self._in_sync = work.replicas.brokers.count_by_row(work.replicas.in_sync).tolist()  # before the plan
        self._at_min_isr: set[int] = set()
        self._blocked: set[int] = set()
        self._ways: list[tuple[tuple[int, ...], ...]] = []

    def run(self) -> Timeline:
        """From the first move to the last."""
        first = self._first_moves()
        self._waves = Waves(self._pace, in_order(first, self._pace.order))
        self._begin(0.0)
        self._take_first_answers()
        now = 0.0
        while len(self._under_way) or self._settling:
            until = self._flow(now)
            if until == _NEVER:
                break
            now = until
            while self._settling and self._settling[0][0] <= now:
                self._end(*heapq.heappop(self._settling))
            self._begin(now)
        work, brokers = self._work, len(self._ids)
        return Timeline(
            begins=self._begins,
            ends=self._ends,
            senders=np.where(work.copies.within, work.copies.broker, self._sends),
            log_dirs=np.array(self._log_dir, np.int64),
            gone=self._gone,
            moves=self._times,
            peak_out=self._peak[:brokers],
            peak_in=self._peak[brokers : 2 * brokers],
            blocked=sorted(self._blocked),
            never=self._never(),
            at_min_isr=None if self._min_insync is None else sorted(self._at_min_isr),
        )

    def _never(self) -> list[int]:
        """Partitions that are able to move, and have a stage or a copy between log dirs that did not end."""
        copying = set(self._work.copies.partition[np.isnan(self._ends)].tolist())
        return [
            row
            for row, way in enumerate(self._ways)
            if (self._stage[row] < len(way) or row in copying) and row not in self._blocked
        ]

    def _first_moves(self) -> list[Move]:
        """The first stage of every partition that has a leader to copy from and live brokers to copy to."""
        work = self._work
        moves: list[Move] = []
        dead_target = work.target.count_by_row(
            ~work.alive[work.target.values] & ~work.target.contained_in(work.replicas.brokers)
        )
        whole = work.replicas.brokers.count_by_row(work.replicas.in_sync) == work.replicas.brokers.lengths
        target, offsets = [self._ids[place] for place in work.target.values.tolist()], work.target.offsets.tolist()
        for row, name in enumerate(self._names):
            state = self._controller.state(name)
            goal = tuple(target[offsets[row] : offsets[row + 1]])
            self._ways.append(stages(state.replicas, goal) if self._pace.one_replica_at_a_time else (goal,))
            if state.leader is None or dead_target[row]:
                self._blocked.add(row)
                continue
            self._look_at_isr(row, state)
            if state.replicas == goal:
                self._ways[row] = ()
                moves += self._log_dir_moves(row)
            else:
                moves.append(self._move(row, state, at_risk=not whole[row]))
        return moves

    def _move(self, row: int, state: PartitionState, *, at_risk: bool) -> Move:
        goal = self._ways[row][self._stage[row]]
        receivers = tuple(broker for broker in goal if broker not in state.replicas)
        sender = state.leader if receivers else None
        move = Move(self._names[row], sender, receivers, int(self._work.size[row]), at_risk)
        self._moves[row] = move
        return move

    def _log_dir_moves(self, row: int) -> list[_WithinBroker]:
        moves = {
            copy: _WithinBroker(
                self._names[row], None, (self._ids[self._receiver[copy]],), int(self._work.size[row]), copy=copy
            )
            for copy in range(self._offsets[row], self._offsets[row + 1])
            if self._within[copy]
        }
        self._moves_within |= moves
        return list(moves.values())

    def _begin(self, now: float) -> None:
        """Begin what may begin, and give its copies their log dirs."""
        while self._freed and self._freed[0][0] <= now:
            _, log_dir, size = self._freed.popleft()
            self._disk_space[log_dir] += size
        begun: list[int] = []
        for move in self._waves.begin():
            copies = self._begin_within(move, now) if isinstance(move, _WithinBroker) else self._begin_stage(move, now)
            for copy in copies:
                self._begin_copy(copy, move, now)
            begun += copies
        if begun:
            self._under_way = np.concatenate([self._under_way, np.array(begun, np.int64)])

    def _begin_stage(self, move: Move, now: float) -> list[int]:
        """Begin a stage of a partition; returns its copies."""
        row = self._row[move.partition]
        self._before[row] = self._controller.state(move.partition).replicas
        self._controller.reassign(move.partition, self._ways[row][self._stage[row]])
        coming = {self._place[broker] for broker in move.receivers}
        self._open[row] = len(coming)
        self._times.begin(row, self._stage[row], now, move.bytes)
        if not coming:
            heapq.heappush(self._settling, (now + self._conditions.settling, row, _STAGE))
        copies = range(self._offsets[row], self._offsets[row + 1])
        return [copy for copy in copies if not self._within[copy] and self._receiver[copy] in coming]

    def _begin_within(self, move: _WithinBroker, now: float) -> list[int]:
        """Begin a copy between log dirs; a partition that changes nothing else is first seen here."""
        row = self._row[move.partition]
        if not self._ways[row] and self._stage[row] == 0:
            self._times.begin(row, 0, now, 0)
            self._times.end(row, 0, now)
            self._stage[row] = 1
        return [move.copy]

    def _begin_copy(self, copy: int, move: Move, now: float) -> None:
        brokers, receiver = len(self._ids), self._receiver[copy]
        if self._within[copy] or move.sender is None:
            self._sends[copy], self._receives[copy] = 2 * brokers + receiver, 3 * brokers
        else:
            self._sends[copy], self._receives[copy] = self._place[move.sender], brokers + receiver
        if self._log_dir[copy] == UNKNOWN:
            first, end = self._work.log_dirs.first[receiver : receiver + 2]
            self._log_dir[copy] = int(first + np.argmax(self._disk_space[first:end]))
        self._disk_space[self._log_dir[copy]] -= self._size[copy]
        self._begins[copy] = now

    def _take_first_answers(self) -> None:
        """What the first answer to each broker's fetches has is not held back by any throttle."""
        flows = self._under_way[~self._work.copies.within[self._under_way]]
        most = self._conditions.partition_fetch
        if self._pace.throttle is None or not most or not len(flows):
            return
        sends, receives = self._sends[flows], self._receives[flows]
        _, which, count = np.unique(sends * len(self._limits) + receives, return_inverse=True, return_counts=True)
        answer = np.minimum(count * most, self._conditions.fetch)[which].astype(np.float64)
        credit = np.zeros(len(self._limits))
        np.maximum.at(credit, sends, answer)
        np.maximum.at(credit, receives, answer)
        self._left[flows] -= np.minimum(np.minimum(fair_shares(sends, receives, credit), most), self._left[flows])

    def _flow(self, now: float) -> float:
        """Let flows run up to the next moment at which some end, and say when that is."""
        flows = self._under_way
        step = max(1, int(FLOWS_OF_A_STEP * len(flows)))
        until = self._settling[min(step, len(self._settling)) - 1][0] if self._settling else _NEVER
        if not len(flows):
            return until
        sends, receives = self._sends[flows], self._receives[flows]
        rates = fair_shares(sends, receives, self._limits)
        for side in (sends, receives):
            np.maximum(self._peak, np.bincount(side, rates, minlength=len(self._limits)), out=self._peak)
        net, left = rates - self._written[flows], self._left[flows]
        due = np.full(len(flows), _NEVER)
        np.divide(left, net, out=due, where=net > 0)
        due = now + np.where(left > 0, due, 0.0)
        ending = due[due < _NEVER]
        if len(ending):  # perhaps fewer than a step: what they leave may let others end
            last = min(step, len(ending)) - 1
            until = min(until, float(np.partition(ending, last)[last]))
        if until == _NEVER:
            return until
        over = due <= until
        self._left[flows] = np.where(over, 0.0, left - net * (until - now))
        self._under_way = flows[~over]
        self._ends[flows[over]] = due[over]
        for copy, end in zip(flows[over].tolist(), due[over].tolist(), strict=True):
            self._caught_up(copy, end)
        return until

    def _caught_up(self, copy: int, now: float) -> None:
        work, row = self._work, int(self._work.copies.partition[copy])
        if self._within[copy]:
            old = int(work.copies.from_log_dir[copy])
            self._freed.append((now + self._conditions.delete_delay, old, self._size[copy]))
            heapq.heappush(self._settling, (now + self._conditions.settling, row, copy))
            return
        self._open[row] -= 1
        self._last[row] = max(now, self._last[row])
        if not self._open[row]:
            heapq.heappush(self._settling, (self._last[row] + self._conditions.settling, row, _STAGE))

    def _end(self, now: float, row: int, copy: int) -> None:
        """A move is over: the rules say what is removed; what the partition does next waits from now on."""
        if copy != _STAGE:
            self._waves.end(self._moves_within[copy])
            return
        name = self._names[row]
        if self._controller.state(
            name
        ).reassigning:  # else it only took away or changed the order, which was done at once
            self._controller.caught_up(name)
        state = self._controller.state(name)
        if state.reassigning:  # it takes away more than it adds, and waits for all that stay
            lagging = (b for b in state.target if b not in state.isr and self._work.alive[self._place[b]])
            self._controller.caught_up(name, *lagging)
            state = self._controller.state(name)
        self._waves.end(self._moves[row])
        if state.reassigning:
            self._blocked.add(row)
            return
        self._look_at_isr(row, state)
        self._times.end(row, self._stage[row], now)
        for leaving in range(self._leaves[row], self._leaves[row + 1]):
            if self._holder[leaving] in self._before[row] and self._holder[leaving] not in state.replicas:
                self._remove(self._leaving[leaving], now)
        self._stage[row] += 1
        if self._stage[row] < len(self._ways[row]):
            self._waves.follow(self._move(row, state, at_risk=self._moves[row].at_risk))
            return
        for move in self._log_dir_moves(row):
            self._waves.add(move)

    def _remove(self, slot: int, now: float) -> None:
        self._gone[slot] = now + self._conditions.delete_delay
        size = max(0, int(self._work.replicas.size[slot]))
        self._freed.append((self._gone[slot], int(self._work.replicas.log_dir[slot]), size))

    def _look_at_isr(self, row: int, state: PartitionState) -> None:
        """Note a partition that the plan brings down to its min ISR; one that has no more now is not made worse."""
        if self._min_insync is None or len(state.isr) >= self._in_sync[row]:
            return
        if len(state.isr) <= self._min_insync.get(self._names[row].topic, 0):
            self._at_min_isr.add(row)


def _states(work: Work, names: list[TopicPartition], ids: list[int]) -> dict[TopicPartition, PartitionState]:
    """Every partition at rest, as the snapshot saw it."""
    held = [ids[place] for place in work.replicas.brokers.values.tolist()]
    in_sync, offsets = work.replicas.in_sync.tolist(), work.replicas.brokers.offsets.tolist()
    states = {}
    for row, (name, leader) in enumerate(zip(names, work.leader.tolist(), strict=True)):
        slots = range(offsets[row], offsets[row + 1])
        states[name] = PartitionState(
            replicas=tuple(held[slots.start : slots.stop]),
            isr=tuple(held[slot] for slot in slots if in_sync[slot]),
            leader=None if leader == NOBODY else ids[leader],
        )
    return states


def _limits(work: Work, pace: Pace, conditions: Conditions) -> NDArray[np.float64]:
    """What each broker may send, receive, and copy between its log dirs; and one limit that is none."""
    between, within = conditions.between_brokers(pace), conditions.between_log_dirs(pace)
    return np.append(np.repeat([between, between, within], len(work.brokers)), np.inf).astype(np.float64)
