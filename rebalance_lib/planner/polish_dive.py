"""From the linear program of the certificate to replicas that go as a whole or not at all: a dive.

Goal:
    Moves of whole replicas, all loads within their bands, for hardly more bytes than the linear program asks for.

Algorithm:
    The program splits as many replicas as there are bands to keep. Whoever rounds these at once leaves the bands, and
    what brings loads back in costs bytes. So the coarsest are rounded first, and the program is solved again: all that
    is finer makes up for what was rounded. From level to level, each half as coarse as the one before:

    1. Half of the split replicas coarser than the level go to where most of them goes, those first that are nearest to
       that, and the program is solved again; then half of those that are split now, and in the end all of them.
    2. Where that costs more than ``WORTH``, one half of them is rounded before the other; one that costs that much
       alone goes to whichever of its brokers costs the least.
    3. What is coarser than the level stays where it is from now on.

    In the end only fine replicas are split: a little that the bands are narrower by (``MARGIN``) is enough for these.

Example:
    Broker 0 is to give 5 bytes to broker 1, of partitions of 4, 3, 2 and 1 bytes. Each byte costs the same. The program
    may move 4 and a third of the 3. First the 3 is rounded: it stays. Solved again, the 4 and half of the 2 move, or 4
    and 1: the finer ones make up for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.fractional import (
    DUAL,
    PRIMAL,
    TILTED_GAP,
    WHOLE,
    FractionalMoves,
    Fractions,
    Search,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rebalance_lib.planner.certificate.fractional import Moves
    from rebalance_lib.planner.certificate.problem import Floats, Ints

LEVELS = tuple(64.0 / 2**number for number in range(10))  # times the load of the average replica
TRIES = 4  # of a level, until all that is coarser is rounded
WORTH = 5e-4  # of the bytes: what rounding may cost before other brokers are tried
OPTIONS = 4  # brokers that are tried
MARGIN = 0.125  # of the load of the average replica, as the last level; of a load that all have alike one replica
NARROWEST = 0.1  # of a band: no margin is wider
TILT, FINE, COARSEST = 2e-5, 2.0, 50.0  # of its bytes: what the coarseness of a replica counts in the choice
PRICED = 1e-4  # of the bytes: a rise after which other columns may pay off
ROUNDS = 20  # of new columns, until it is good enough to round on


def dive(moves: FractionalMoves, seconds_left: Callable[[], float], start: Moves) -> Fractions | None:
    """Moves of whole replicas; None if a replica that must go can go nowhere.

    Prices and bound are those of the linear program. ``start`` is a plan: its moves are among the first columns.
    """
    if np.any(moves.must_leave & moves.closed.all(axis=1)):
        return None
    search = _Dive(moves, seconds_left)
    search.begin(*start)
    first = search.found()
    if len(moves.slots) and seconds_left() > 0:
        search.narrow()
        for level in LEVELS:
            search.round_down_to(level)
    return search.rounded(first)


class _Dive(Search):
    """The program, with more and more replicas that go as a whole or not at all."""

    def __init__(self, moves: FractionalMoves, seconds_left: Callable[[], float]) -> None:
        super().__init__(moves, 0.0, seconds_left, tilt=TILT * np.clip(moves.coarseness - FINE, 0.0, COARSEST))
        self._cost = self._priced_at = 0.0  # when it was solved the last time, and when columns were looked for

    def begin(self, slot: Ints, broker: Ints) -> None:
        """Add the moves of a plan, as far as they are allowed and not there yet."""
        row, at = self._moves.rows_of(slot, broker)
        known = (row >= 0) & (at >= 0)
        row, at = row[known], at[known]
        new = ~self._has[row, at]
        self._extend(row[new], at[new])

    def narrow(self) -> None:
        """Leave what rounding of the finest needs between loads and the edges of bands."""
        moves = self._moves
        mean = moves.loads.mean(axis=0)
        differs = np.ptp(moves.loads, axis=0) > 0
        margin = np.where(differs, MARGIN * mean, mean * differs.any())  # a number alone splits hardly anything
        margin = np.minimum(margin, NARROWEST * (moves.high - moves.low))
        margin = np.where(np.isfinite(margin), np.maximum(0.0, margin), 0.0)
        rows = np.arange(self._bands, dtype=np.int32)
        edges = (moves.low + margin).ravel(), (moves.high - margin).ravel()
        self._program.changeRowsBounds(self._bands, rows, *edges)  # type: ignore[attr-defined]
        self._raise_penalty()
        self._resolve()

    def round_down_to(self, level: float) -> None:
        """Round what is split and coarser than the level, and let no such replica change after that."""
        coarse = self._moves.coarseness > level
        free = TRIES
        while self._seconds_left() > 0:
            parts = self._parts()
            whole = parts.max(axis=1) > 1 - WHOLE
            if not free:
                rest = np.flatnonzero(coarse & whole & ~self._has.all(axis=1))
                self._fix(rest, parts[rest].argmax(axis=1))
            split = np.flatnonzero(coarse & ~whole)
            if not len(split) and not free:
                break
            free = max(0, free - 1) if len(split) else 0
            nearest = split[np.argsort(-parts[split].max(axis=1), kind="stable")]
            chosen = nearest[: (len(nearest) + 1) // 2]
            self._round(chosen, parts[chosen])

    def _parts(self) -> Floats:
        """By slot and broker of the group: which part of the replica goes there; the last column is what stays."""
        parts = np.zeros((len(self._moves.slots), self._count + 1))
        parts[self._slot, self._broker] = self._values()[self._slack :]
        parts[:, -1] = 1 - parts.sum(axis=1)
        return parts

    def _values(self) -> Floats:
        return np.asarray(np.resize(self._program.getSolution().col_value or [0.0], self._slack + len(self._slot)))

    def _round(self, slots: Ints, parts: Floats) -> None:
        """Round these slots together; where that costs too much, one half after the other, and one alone anywhere."""
        allowed = self._cost * (1 + WORTH)
        self._fix(slots, parts.argmax(axis=1))
        self._resolve()
        if self._cost <= allowed:
            return
        if len(slots) == 1:
            options = np.argsort(-parts[0], kind="stable")[:OPTIONS]
            options = options[parts[0, options] > WHOLE]
            cost = [self._cost_with(slots, option) for option in options.tolist()]
            self._cost_with(slots, int(options[int(np.argmin(cost))]))
            return
        self._limit(slots, 0.0, 1.0)
        self._resolve()
        half = len(slots) // 2
        for some in (slots[:half], slots[half:]):
            self._round(some, self._parts()[some])

    def _cost_with(self, slot: Ints, target: int) -> float:
        self._fix(slot, np.array([target]))
        self._resolve()
        return self._cost

    def _fix(self, slots: Ints, targets: Ints) -> None:
        """Let these slots go to these brokers of the group and nowhere else; the one after the last is to stay."""
        target = np.full(len(self._moves.slots), -1)
        target[slots] = targets
        goes = (self._broker == target[self._slot]).astype(np.float64)
        self._limit(slots, goes, goes)
        self._has[slots] = True

    def _limit(self, slots: Ints, low: Floats | float, high: Floats | float) -> None:
        chosen = np.zeros(len(self._moves.slots), np.bool_)
        chosen[slots] = True
        columns = np.flatnonzero(chosen[self._slot])
        limits = (np.broadcast_to(side, self._slot.shape)[columns] for side in (low, high))
        self._program.changeColsBounds(len(columns), (self._slack + columns).astype(np.int32), *limits)

    def _resolve(self) -> None:
        """Solve after limits have changed; where that costs more, look for columns that pay off now."""
        self._program.setOptionValue("simplex_strategy", DUAL)
        solved = self._solved()
        self._cost = solved[3]
        if self._cost > self._priced_at * (1 + PRICED):
            self._program.setOptionValue("simplex_strategy", PRIMAL)
            for _ in range(ROUNDS):
                slot, broker, gain = self._paying(*solved[:3])
                if solved[-1] <= 0 or -gain.sum() <= TILTED_GAP * abs(self._cost):
                    break
                self._extend(slot, broker)
                solved = self._solved()
                self._cost = solved[3]
            self._priced_at = self._cost
        self._priced_at = min(self._priced_at, self._cost)

    def rounded(self, first: Fractions) -> Fractions:
        """Whole replicas, with the prices and the bound of the linear program.

        What is still split goes where the least is outside of the bands, one replica after another, as often as that
        helps.
        """
        parts = self._parts()
        target = parts.argmax(axis=1)
        split = np.flatnonzero(parts.max(axis=1) < 1 - WHOLE)
        load, better = self._loads_with(target), True
        while better:
            better = False
            for slot in split.tolist():
                options = np.flatnonzero(parts[slot] > WHOLE)
                without = load - self._change(slot, int(target[slot]))
                after = [without + self._change(slot, option) for option in options.tolist()]
                best = int(np.argmin([self._outside(one) for one in after]))
                if self._outside(after[best]) < self._outside(load) - WHOLE:
                    target[slot], load, better = options[best], after[best], True
        moves, goes = self._moves, np.flatnonzero(target < self._count)
        return replace(
            first,
            slot=moves.slots[goes],
            broker=moves.brokers[target[goes]],
            part=np.ones(len(goes)),
            bytes=float(moves.sizes[goes].sum()) * moves.unit,
            split=moves.slots[split],
        )

    def _loads_with(self, target: Ints) -> Floats:
        """By broker of the group and load: what it gets or loses by that."""
        moves, load = self._moves, np.zeros((self._count + 1, self._loads))
        np.add.at(load, target, moves.loads)
        gone = np.flatnonzero((target < self._count) & moves.placed)
        np.subtract.at(load, moves.source[gone], moves.loads[gone])
        return load[:-1]

    def _change(self, slot: int, target: int) -> Floats:
        moves, change = self._moves, np.zeros((self._count, self._loads))
        if target < self._count:
            change[target] += moves.loads[slot]
            change[moves.source[slot]] -= moves.loads[slot] * moves.placed[slot]
        return change

    def _outside(self, load: Floats) -> float:
        moves = self._moves
        return float((np.maximum(0.0, load - moves.high) + np.maximum(0.0, moves.low - load)).sum())
