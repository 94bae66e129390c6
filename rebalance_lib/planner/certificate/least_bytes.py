"""The fewest bytes that any plan copies to bring every load into its band: a lower bound by linear programming.

Why it is a bound:
    Partitions keep their number of replicas. So each replica that departs from a broker, or has none, is copied once,
    and the bytes copied are the bytes that depart, and also the bytes that arrive. Take a broker that holds more of
    some loads than its band allows. In any allowed placement, the replicas that departed from it carried at least that
    excess, of every load; choosing fractions ``y`` of its replicas, instead of whole ones, to minimise
    ``sum(size * y)`` subject to ``sum(load * y) >= excess`` for every load can only come out lower. What departs in all
    is at least the sum over brokers, plus what must be copied anyway: replicas without a broker, or on one that leaves.
    The same holds for what arrives on brokers that lack, where any movable partition that is not there may come. The
    bound is the larger of the two sums; where no replica can change its rack, the larger of the two in each rack.
    It lets several brokers get the same cheap replica: clusters that are not too large for it have the bound of
    `fractional` too, which does not. A bound above all bytes that may move says that no plan is within the bands.

    No solver is trusted: by weak duality, any prices ``u >= 0`` of the loads give a broker's bound
    ``excess * u - sum(max(0, load * u - size))``. HiGHS finds good prices, and the bound is computed from them.

Algorithm:
    The bound of a broker is concave in the prices, of which there are as many as loads. Each evaluation yields a plane
    above it (Kelley's cutting planes); the highest point under all planes is evaluated next, until both are near. What
    may arrive is nearly the same for all brokers: they share what was evaluated, up to a counted budget, after which
    each takes the best prices found so far.

Example:
    Broker 0 holds partitions of 6, 3 and 1 bytes with write rates of 1, 3 and 2, broker 1 a partition of 2 bytes and
    rate 0. Shares are 6 bytes and a rate of 3, tolerance 0. Broker 0 has 4 bytes and a rate of 3 too much. By bytes
    alone the bound is 4; by the rate alone 2.0 (the partition of 1 byte and a third of that of 3 bytes). Together they
    are 4: the partitions of 1 and 3 bytes, with a rate of 5. Were only 1 byte too much, the rate alone would ask for
    the partition of 1 byte and a third of the other: 2 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import highspy
import numpy as np

from rebalance_lib.planner.certificate.fractional import SAFETY, FractionalMoves, groups

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints, Problem

GAP = 1e-4  # of a broker's bound: what its prices may leave
SMALL = 1e-5  # of the bytes of an average broker: a gap that is not worth another evaluation
EVALUATIONS = 40  # of prices, for one broker
BUDGET = 100_000_000  # replicas looked at, for all brokers that lack; 2.9 s in all at 1 M partitions, 1,000 brokers
CELLS = 400_000  # partitions times brokers of a group: 10,000 and 30 in 3 racks take 0.05 to 1.2 s
HIGHEST_PRICE = 1e6  # in bytes of the average replica for the load of the average replica

Plane = tuple["Floats", float]  # loads and bytes of the replicas chosen: lies at loads * prices - bytes


class UnreachableError(Exception):
    """No allowed placement is within the bands."""


def least_bytes(problem: Problem) -> int | None:
    """A lower bound; None if no allowed placement is within the bands."""
    try:
        departing, arriving = _departing(problem), _arriving(problem)
    except UnreachableError:
        return None
    if problem.racks_are_closed:
        racks = np.maximum(problem.rack, 0)
        bounds = np.maximum(*(np.bincount(racks, values, problem.racks) for values in (departing, arriving)))
    else:
        unassigned = problem.must_leave & (problem.broker < 0)
        mandatory = float(problem.size[problem.slot_partition[unassigned]].sum())
        bounds = np.array([max(float(departing.sum()) + mandatory, float(arriving.sum()))])
    if problem.loads:
        bounds = np.array([_together(problem, *one) for one in zip(groups(problem), bounds.tolist(), strict=True)])
    movable = float(problem.size[problem.slot_partition[problem.may_leave]].sum())
    bound = float(bounds.sum())
    return max(0, int(np.ceil(bound * (1 - SAFETY) - 1e-6))) if bound <= movable * (1 + SAFETY) + 1 else None


def _together(problem: Problem, brokers: Ints, known: float) -> float:
    """The bound of a group of brokers, if that is higher than what is known by now."""
    if problem.partitions * len(brokers) > CELLS:
        return known
    moves = FractionalMoves(problem, brokers)
    found = moves.solve(known) if moves.is_needed else None
    return known if found is None else max(known, found.bound)


def _departing(problem: Problem) -> Floats:
    """By broker: the bytes that must at least depart from it."""
    bound = np.zeros(problem.brokers)
    leaving = problem.must_leave & (problem.broker >= 0)
    np.add.at(bound, problem.broker[leaving], problem.size[problem.slot_partition[leaving]])
    if not problem.loads:
        return bound
    excess = np.column_stack([problem.held(loads) - problem.band(loads)[1] for loads in problem.loads])
    excess = np.where(_beyond_rounding(excess, problem), excess, -1.0)
    chosen = np.flatnonzero(problem.may_leave & ~problem.must_leave)
    chosen = chosen[np.argsort(problem.broker[chosen], kind="stable")]
    first = np.searchsorted(problem.broker[chosen], np.arange(problem.brokers + 1))
    load = np.column_stack([loads.per_replica for loads in problem.loads])
    start, small = np.zeros(len(problem.loads)), _small(problem)
    for b in np.flatnonzero((excess > 0).any(axis=1) & ~problem.leaves).tolist():
        partition = problem.slot_partition[chosen[first[b] : first[b + 1]]]
        # Whole replicas go: one with more than the excess does no more than one with just that.
        counts = np.minimum(load[partition], np.maximum(excess[b], 0.0))
        search = _Search(_Candidates(counts, problem.size[partition]), EVALUATIONS, start)
        found = search.best(excess[b], small)
        bound[b], start = found.value, found.prices
    return bound


def _arriving(problem: Problem) -> Floats:
    """By broker: the bytes that must at least arrive on it."""
    bound = np.zeros(problem.brokers)
    if not problem.loads:
        return bound
    lack = np.column_stack([problem.band(loads)[0] - problem.held(loads) for loads in problem.loads])
    lack = np.where(_beyond_rounding(lack, problem), lack, -1.0)
    under = np.flatnonzero((lack > 0).any(axis=1) & problem.takes & ~problem.leaves)
    if not len(under):
        return bound
    load = np.column_stack([loads.per_replica for loads in problem.loads])
    every = _Candidates(load[problem.movable], problem.size[problem.movable])
    here = np.flatnonzero(problem.movable[problem.slot_partition] & (problem.broker >= 0))
    here = here[np.argsort(problem.broker[here], kind="stable")]
    first = np.searchsorted(problem.broker[here], np.arange(problem.brokers + 1))
    search = _Search(every, BUDGET // max(1, problem.partitions), np.zeros(len(problem.loads)))
    small = _small(problem)
    need = (np.maximum(0.0, lack[under]) / every.units).sum(axis=1)
    for b in under[np.argsort(-need, kind="stable")].tolist():
        partition = problem.slot_partition[here[first[b] : first[b + 1]]]
        own = _Candidates(load[partition], problem.size[partition])
        if np.any(lack[b] > (every.all[0] - own.all[0]) * (1 + SAFETY)):
            raise UnreachableError
        found = search.best(lack[b], small)
        # What it holds already cannot arrive: that is left out at the prices found, which keeps the planes common.
        loads, size = own.plane(found.prices)
        bound[b] = found.value + float(loads @ found.prices) - size
    return bound


def _small(problem: Problem) -> float:
    return SMALL * float((problem.size * problem.replication_factor).sum()) / problem.brokers


def _beyond_rounding(amount: Floats, problem: Problem) -> Flags:
    """Whether it is more than what sums of floats can be off."""
    total = np.array([problem.held(loads).max(initial=0.0) for loads in problem.loads])
    return amount > total * SAFETY


class _Candidates:
    """The replicas that may go one way."""

    def __init__(self, load: Floats, size: Ints) -> None:
        self._rows = np.vstack([load.T, size])
        self.all = self._sums(np.ones(len(size)))
        self.units = np.where(self.all[0] > 0, self.all[0], 1.0)

    def plane(self, prices: Floats) -> Plane:
        """The sums of those that are worth their bytes at these prices."""
        worth = np.append(prices, -1.0) @ self._rows
        return self._sums((worth > 0).astype(np.float64))  # numpy multiplies flags many times slower

    def _sums(self, chosen: Floats) -> Plane:
        sums = self._rows @ chosen
        return sums[:-1], float(sums[-1])


@dataclass(frozen=True, slots=True)
class _Found:
    value: float
    prices: Floats


class _Search:
    """Good prices for what must go, among candidates that several brokers may have in common."""

    def __init__(self, candidates: _Candidates, evaluations: int, start: Floats) -> None:
        self._candidates = candidates
        self._left = evaluations
        self._master = _Master(candidates)
        self._prices = np.zeros((0, len(start)))
        self._worth = np.zeros(0)  # at each of the prices: of all that is worth its bytes, less these
        self._evaluate(np.zeros_like(start))
        if start.any():
            self._evaluate(start)

    def _evaluate(self, prices: Floats) -> None:
        loads, size = self._candidates.plane(prices)
        self._prices = np.vstack([self._prices, prices])
        self._worth = np.append(self._worth, loads @ prices - size)
        self._master.add((loads, size))
        self._left -= 1

    def _best_tried(self, amount: Floats) -> _Found:
        values = self._prices @ amount - self._worth
        at = int(values.argmax())
        return _Found(float(values[at]), self._prices[at])

    def best(self, amount: Floats, small: float) -> _Found:
        """The highest bound found."""
        found = self._best_tried(amount)
        for _ in range(min(EVALUATIONS, self._left)):
            prices, above = self._master.solve(amount)
            if above - found.value <= max(found.value * GAP, small):
                break
            self._evaluate(prices)
            found = self._best_tried(amount)
        return found


class _Master:
    """The highest point under all planes: a linear program in the prices and the height of what they choose.

    Loads are counted in those of all candidates, and bytes likewise, so that numbers are near 1.
    """

    def __init__(self, candidates: _Candidates) -> None:
        self._load_unit = candidates.units
        self._size_unit = candidates.all[1] or 1.0
        count = len(self._load_unit)
        self._columns = np.arange(count + 1, dtype=np.int32)
        self._program = highspy.Highs()  # type: ignore[no-untyped-call]
        self._program.silent()
        self._program.setOptionValue("threads", 1)
        self._program.setOptionValue("presolve", "off")
        none, nothing = np.empty(0, np.int32), np.empty(0)
        for _ in range(count):
            self._program.addCol(0.0, 0.0, HIGHEST_PRICE, 0, none, nothing)
        self._program.addCol(1.0, 0.0, highspy.kHighsInf, 0, none, nothing)
        self.add(candidates.all)

    def add(self, plane: Plane) -> None:
        """The height is at least this plane's."""
        loads, size = plane
        values = np.append(-loads / self._load_unit, 1.0)
        self._program.addRow(-size / self._size_unit, highspy.kHighsInf, len(values), self._columns, values)

    def solve(self, amount: Floats) -> tuple[Floats, float]:
        """The prices of the highest point for what must go, and how high it is."""
        count = len(amount)
        self._program.changeColsCost(count, self._columns[:-1], -amount / self._load_unit)
        self._program.run()
        values = np.array(self._program.getSolution().col_value[:count])
        prices = np.maximum(0.0, values) * self._size_unit / self._load_unit
        return prices, -self._program.getInfo().objective_function_value * self._size_unit
