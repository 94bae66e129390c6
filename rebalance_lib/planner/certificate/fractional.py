"""Which replicas move where for the fewest bytes, if fractions of replicas could move: one linear program.

Goal:
    All loads of a group of brokers within their bands, at the least bytes copied. A group is a rack where no replica
    can change its rack, else all brokers. Since whole replicas are harder to fit than fractions, no plan copies less;
    and since only as many partitions are split as there are bands, a plan of whole replicas is near.

Algorithm:
    A column moves a replica to a broker. There are far too many, so they are generated: the program has a few, its
    prices (what a unit of each load is worth on each broker) say which others would pay off, and those that pay off the
    most are added, until none does. It begins with some that about reach the bands, see `first_moves`. Bands may be
    left at a penalty, which rises as long as it is paid.

Why it is a bound:
    In any allowed placement, match each replica that stays with itself, and those that go with those that come, within
    the rack where racks are closed. Then each replica goes to one broker at most, the bytes of those that go are the
    bytes copied, and loads change by theirs. By weak duality, any prices give a bound: what the bands ask for at these
    prices, less what each replica gains at most by going where it is worth the most. No solver is trusted: the bound is
    computed from the prices.

Example:
    Brokers 1 and 2 are empty and should have 1 of the 3 replicas of broker 0 each, of 1, 2 and 9 bytes. Either broker
    alone asks for the replica of 1 byte, together they ask for those of 1 and 2 bytes: 3 bytes instead of 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

from rebalance_lib.planner.certificate.first_moves import first_moves

if TYPE_CHECKING:
    from collections.abc import Callable

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints, Problem

COLUMNS = 150  # added at once; 10,000 partitions, 30 brokers: 20 to 40 ms a rack, also with 75 or 300
PRIMAL, DUAL = 4, 1
"""Strategies of the simplex method: where columns come, and where limits change. Once columns are there that about
reach the bands, the dual one takes half of the time of the primal one, also after further columns
(bench.small_clusters).
"""
FEW_SLOTS = 1000  # of a group of brokers: a few rounds have added all that there is to choose from
ROUNDS = 200
GAP, TILTED_GAP = 1e-5, 2e-4  # of the bytes
PENALTY, RISE, HIGHEST = 3.0, 5.0, 1e4  # bytes of an average broker for its share of a load
WHOLE = 1e-6  # nearer than this to 0 or 1, a fraction is whole
SAFETY = 1e-9  # of the most that a broker holds: far more than sums of floats can be off
ROUNDING = 1e-12  # of all that is added up


Moves = tuple["Ints", "Ints"]  # slots, and the broker that each goes to


def groups(problem: Problem) -> list[Ints]:
    """Brokers between which replicas may move: those of each rack where none can change its rack, else all."""
    if not problem.racks_are_closed:
        return [np.arange(problem.brokers)]
    return [np.flatnonzero(problem.rack == rack) for rack in range(problem.racks)]


@dataclass(frozen=True, eq=False)
class Fractions:
    """A solution: which part of a slot's replica goes to which broker of the group."""

    slot: Ints
    broker: Ints
    part: Floats
    prices: Floats  # by broker of the group and load
    bound: float  # bytes: no plan copies less
    bytes: float  # of this solution
    outside: bool  # whether it leaves a band
    split: Ints  # slots whose replica does not go as a whole


class FractionalMoves:
    """The program of one group of brokers."""

    def __init__(self, problem: Problem, brokers: Ints, space: Floats | None = None) -> None:
        """``space`` has by broker the bytes that may arrive; as many as there are if not given."""
        self._problem, self.brokers = problem, brokers
        at = np.full(problem.brokers + 1, -1)  # the last one is that of replicas without a broker
        at[brokers] = np.arange(len(brokers))
        self.slots = np.flatnonzero(problem.may_leave & ((at[problem.broker] >= 0) | (problem.broker < 0)))
        self.partition = problem.slot_partition[self.slots]
        self.must_leave = problem.must_leave[self.slots]
        source = at[problem.broker[self.slots]]
        self.source, self.placed = np.maximum(source, 0), source >= 0
        self.unit = max(1.0, float((problem.size * problem.replication_factor).sum()) / max(1, problem.brokers))
        self.sizes = problem.size[self.partition] / self.unit
        self._units = np.array([max(float(loads.share.mean()), 1e-300) for loads in problem.loads])
        self.loads = np.column_stack([loads.per_replica[self.partition] for loads in problem.loads]) / self._units
        held = [problem.held(loads) for loads in problem.loads]
        bands = [problem.band(loads) for loads in problem.loads]
        # Shares are sums of floats: a band is wider by what these can be off.
        off = [float(has.max(initial=0.0)) * SAFETY for has in held]
        edges = [[low - has - by, high - has + by] for (low, high), has, by in zip(bands, held, off, strict=True)]
        self.low, self.high = (np.column_stack([one[side][brokers] for one in edges]) / self._units for side in (0, 1))
        self.space = np.full(len(brokers), np.inf) if space is None else space[brokers] / self.unit

    def rows_of(self, slot: Ints, broker: Ints) -> tuple[Ints, Ints]:
        """Slots and brokers as they are counted here; -1 for those that are not of the group."""
        row, at = np.full(len(self._problem.broker), -1), np.full(self._problem.brokers, -1)
        row[self.slots], at[self.brokers] = np.arange(len(self.slots)), np.arange(len(self.brokers))
        return row[slot], at[broker]

    @property
    def is_needed(self) -> bool:
        """Whether a load is outside of its band, or a replica must go."""
        return bool(np.any(self.low > 0) or np.any(self.high < 0) or self.must_leave.any())

    @cached_property
    def closed(self) -> Flags:
        """By slot and broker of the group: where its replica cannot go: brokers that take nothing, or have one."""
        problem = self._problem
        closed = np.tile(~problem.takes[self.brokers] | problem.leaves[self.brokers], (len(self.slots), 1))
        at = np.full(problem.brokers + 1, -1)
        at[self.brokers] = np.arange(len(self.brokers))
        factor = problem.replication_factor[self.partition]
        row = np.repeat(np.arange(len(self.slots)), factor)
        first = np.cumsum(factor) - factor
        host = at[problem.broker[problem.offsets[self.partition][row] + np.arange(len(row)) - first[row]]]
        closed[row[host >= 0], host[host >= 0]] = True
        return closed

    def close(self, slot_and_broker: Flags) -> None:
        """Let no replica go where these flags say so; the bound is then one of such plans."""
        self.__dict__["closed"] = self.closed | slot_and_broker

    def costs(self, prices: Floats, space: Floats | None = None) -> Floats:
        """By slot and broker: bytes of going there, and what that is worth on both; infinite where it cannot go."""
        worth = self.loads @ prices.T
        here = np.where(self.placed, worth[np.arange(len(worth)), self.source], 0.0)
        cost: Floats = worth + (self.sizes - here)[:, None]
        if space is not None:
            cost += np.outer(self.sizes, space)
        cost[self.closed] = np.inf
        return cost

    def bound(self, prices: Floats) -> float:
        """By weak duality: a lower bound on the bytes of any plan, at any prices."""
        prices = np.where(prices > 0, np.where(np.isfinite(self.high), prices, 0.0), prices)
        prices = np.where(prices < 0, np.where(np.isfinite(self.low), prices, 0.0), prices)
        gain = self.costs(prices).min(axis=1, initial=np.inf)
        gain = np.where(self.must_leave, gain, np.minimum(0.0, gain))
        edge = np.where(prices > 0, -self.high, np.where(prices < 0, -self.low, 0.0))
        asked = prices * edge
        off = ROUNDING * float(np.abs(asked).sum() + np.abs(gain).sum())
        return (float(asked.sum() + gain.sum()) - off) * self.unit

    @cached_property
    def coarseness(self) -> Floats:
        """By slot: the largest of its loads, beside that of the average replica; a load that all have alike is none."""
        mean = np.maximum(self.loads.mean(axis=0), 1e-300) if len(self.loads) else np.ones(self.loads.shape[1])
        differs = np.ptp(self.loads, axis=0) > 0 if len(self.loads) else np.zeros(self.loads.shape[1], np.bool_)
        return np.asarray((self.loads / mean)[:, differs].max(axis=1, initial=0.0))

    def solve(self, known: float = 0.0) -> Fractions | None:
        """The cheapest moves; None if a replica that must go can go nowhere.

        It ends where it is near a bound in bytes that is known already.
        """
        if np.any(self.must_leave & self.closed.all(axis=1)):
            return None
        search = Search(self, known / self.unit, lambda: highspy.kHighsInf)
        if len(self.slots) > FEW_SLOTS:
            search.begin_near(*first_moves(self))
        return search.found()


class Search:
    """The program with the columns that there are by now."""

    def __init__(
        self, moves: FractionalMoves, known: float, seconds_left: Callable[[], float], tilt: Floats | float = 0.0
    ) -> None:
        self._moves, self._seconds_left = moves, seconds_left
        self._bound = known
        self._tilt = moves.sizes * tilt
        self._gap = GAP if np.max(tilt, initial=0.0) == 0 else TILTED_GAP
        self._loads, self._count = moves.loads.shape[1], len(moves.brokers)
        self._bands = self._loads * self._count
        self._row_of = np.full(len(moves.slots), -1)  # that all columns of a slot together are 1 at most
        self._only = np.full(len(moves.slots), -1)  # the first column of a slot: as long as it is alone it needs no row
        self._rows = self._bands + self._count
        self._slot, self._broker = np.empty(0, np.int64), np.empty(0, np.int64)
        self._has = moves.closed.copy()
        self._program = highspy.Highs()  # type: ignore[no-untyped-call]
        self._program.silent()
        options: dict[str, int | str] = {"threads": 1, "presolve": "off", "simplex_strategy": PRIMAL}
        for option, value in options.items():
            self._program.setOptionValue(option, value)
        if seconds_left() < highspy.kHighsInf:
            self._program.cbSimplexInterrupt.subscribe(self._check)
        self._add_rows(np.append(moves.low.ravel(), np.full(self._count, -np.inf)), np.append(moves.high, moves.space))
        sides = np.repeat(np.arange(self._bands), 2)
        self._slack = len(sides)
        self._penalty = PENALTY
        self._add_columns(np.full(self._slack, PENALTY), sides[:, None], np.tile([[1.0], [-1.0]], (self._bands, 1)))
        must = np.flatnonzero(moves.must_leave)
        self._extend(must, self._has[must].argmin(axis=1))

    def _check(self, event: Any) -> None:
        event.data_in.user_interrupt = self._seconds_left() <= 0

    def _add_rows(self, low: Floats, high: Floats, column: Ints | None = None) -> None:
        """Rows between these limits, each with one column that there is already, or none."""
        column = np.empty(0, np.int64) if column is None else column
        start = np.arange(len(low), dtype=np.int32) if len(column) else np.zeros(len(low), np.int32)
        one = np.ones(len(column))
        self._program.addRows(len(low), low, np.ravel(high), len(column), start, column.astype(np.int32), one)

    def _add_columns(self, cost: Floats, index: Ints, value: Floats, most: float = highspy.kHighsInf) -> None:
        count, width = index.shape
        start = np.arange(0, index.size, width, dtype=np.int32)
        limits = np.zeros(count), np.full(count, most)
        self._program.addCols(count, cost, *limits, index.size, start, index.ravel().astype(np.int32), value.ravel())

    def begin_near(self, slot: Ints, broker: Ints) -> None:
        """Begin with moves that about reach the bands."""
        self._program.setOptionValue("simplex_strategy", DUAL)
        self._extend(slot, broker)

    def _extend(self, slot: Ints, broker: Ints) -> None:
        """Let these slots go to these brokers, each to one."""
        shared, placed = (self._only[slot] >= 0) | self._moves.must_leave[slot], self._moves.placed[slot]
        self._add_slot_rows(slot[shared & (self._row_of[slot] < 0)])
        for alike in (~shared, shared & placed, shared & ~placed):  # columns of as many entries
            self._add_moves(slot[alike], broker[alike])

    def _add_slot_rows(self, slot: Ints) -> None:
        """That of a slot that must go there from the start, that of others with the column they have."""
        for some in (slot[self._only[slot] < 0], slot[self._only[slot] >= 0]):
            if len(some):
                self._row_of[some] = self._rows + np.arange(len(some))
                self._rows += len(some)
                low, column = np.where(self._moves.must_leave[some], 1.0, -np.inf), self._only[some]
                self._add_rows(low, np.ones(len(some)), self._slack + column[column >= 0])

    def _add_moves(self, slot: Ints, broker: Ints) -> None:
        if not len(slot):
            return
        moves, loads, row = self._moves, np.arange(self._loads), self._row_of[slot, None]
        index = [broker[:, None] * self._loads + loads, self._bands + broker[:, None]]
        value = [moves.loads[slot], moves.sizes[slot, None]]
        if moves.placed[slot[0]]:
            index.append(moves.source[slot, None] * self._loads + loads)
            value.append(-moves.loads[slot])
        if row[0] >= 0:
            index.append(row)
            value.append(np.ones(row.shape))
        self._only[slot] = np.where(self._only[slot] < 0, len(self._slot) + np.arange(len(slot)), self._only[slot])
        self._add_columns(moves.sizes[slot] + self._tilt[slot], np.hstack(index), np.hstack(value), 1.0)
        self._has[slot, broker] = True
        self._slot, self._broker = np.append(self._slot, slot), np.append(self._broker, broker)

    def found(self) -> Fractions:
        """Solve, and add columns, until none pays off."""
        best = self._solved()
        for _ in range(ROUNDS):
            prices, space, of_slot, cost, left = best
            values = np.resize(self._program.getSolution().col_value or [0.0], self._slack + len(self._slot))
            self._bound = max(self._bound, self._moves.bound(prices) / self._moves.unit)
            paid = values[: self._slack].sum() > WHOLE
            near = cost - self._bound <= self._gap * abs(cost)
            slot, broker, _ = self._paying(prices, space, of_slot)
            if left <= 0 or ((near or not len(slot)) and (not paid or self._penalty >= HIGHEST)):
                break
            if near or not len(slot):
                self._raise_penalty()
            else:
                self._extend(slot, broker)
            best = self._solved()
        return self._fractions(values, prices, outside=bool(paid))

    def _paying(self, prices: Floats, space: Floats, of_slot: Floats) -> tuple[Ints, Ints, Floats]:
        """Slots that should go to another broker at these prices: those that gain the most, where to, and all gains."""
        pays = self._moves.costs(prices, space) + (self._tilt - of_slot)[:, None]
        pays[self._has] = 0.0
        broker = pays.argmin(axis=1)
        gain = pays[np.arange(len(broker)), broker]
        slot = np.flatnonzero(gain < -1e-9)
        chosen = slot
        if len(slot) > COLUMNS:
            chosen = np.sort(slot[np.argpartition(gain[slot], COLUMNS)[:COLUMNS]])
        return chosen, broker[chosen], gain[slot]

    def _raise_penalty(self) -> None:
        self._penalty *= RISE
        self._program.changeColsCost(
            self._slack, np.arange(self._slack, dtype=np.int32), np.full(self._slack, self._penalty)
        )

    def _solved(self) -> tuple[Floats, Floats, Floats, float, float]:
        """Prices of loads and of space, what each slot's own row is worth, the cost, and the seconds left."""
        self._program.run()
        left = self._seconds_left()
        info = self._program.getInfo()
        if self._program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            left = 0.0
        dual = np.array(self._program.getSolution().row_dual)
        if len(dual) < self._rows:  # it was stopped before there was a solution
            dual = np.zeros(self._rows)
        of_slot = np.where(self._row_of >= 0, dual[self._row_of], 0.0)
        alone = np.flatnonzero((self._row_of < 0) & (self._only >= 0))
        at_limit = np.resize(self._program.getSolution().col_dual or [0.0], self._slack + len(self._slot))
        of_slot[alone] = np.minimum(0.0, at_limit[self._slack + self._only[alone]])
        prices = -dual[: self._bands].reshape(self._count, self._loads)
        space = np.maximum(0.0, -dual[self._bands : self._bands + self._count])
        return prices, space, of_slot, float(info.objective_function_value), left

    def _fractions(self, values: Floats, prices: Floats, *, outside: bool) -> Fractions:
        part = values[self._slack :]
        some = np.flatnonzero(part > WHOLE)
        moves, split = self._moves, np.unique(self._slot[(part > WHOLE) & (part < 1 - WHOLE)])
        return Fractions(
            moves.slots[self._slot[some]],
            moves.brokers[self._broker[some]],
            part[some],
            prices,
            self._bound * moves.unit,
            float(moves.sizes[self._slot[some]] @ part[some]) * moves.unit,
            outside,
            moves.slots[split],
        )
