"""The optimum itself, for small clusters: an integer program, solved by HiGHS.

Variables are whether partition p has a replica on broker b, and, if a load of leaders counts, whether b leads it: in
all at most ``VARIABLES``, and at most ``NODES`` nodes are looked at, so that the answer depends on nothing but the
cluster. If the nodes do not suffice, what HiGHS has proven by then is still a lower bound, and the answer says that it
is not exact.

Rows are the rules of an allowed placement (see `Problem`), and either the bands of all loads, with the bytes that
arrive as objective, or one load below a level of the shares, with the level as objective. Only movable partitions have
variables, and only for brokers where they are or may be.

Example: two brokers with a share of 5 bytes each, replicas of 4, 3, 2 and 1 bytes all on broker 0, tolerance 0. Two
sets of replicas have 5 bytes: 4 and 1, or 3 and 2; so 5 bytes are copied, and the level is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints, Loads, Problem

VARIABLES = 400  # takes at most two seconds there; 600 took up to five, 1,200 up to eight
NODES = 300
LEVEL_GAP = 1e-4  # of a level: to prove the last digits of it takes longer than all else
FEASIBILITY = 1e-9  # of a share: how far out of its band HiGHS may leave a broker
SAFETY = 1e-6  # of a bound that is not exact


@dataclass(frozen=True, slots=True)
class Optimum:
    """The least there can be, or a lower bound of it; None if there is no allowed placement within the bands."""

    value: float | None
    exact: bool


def variables(problem: Problem) -> int:
    """How many the integer program would have; counted before anything is built."""
    movable = int(np.count_nonzero(problem.movable))
    return movable * problem.brokers * (2 if any(loads.led for loads in problem.loads) else 1)


def least_bytes(problem: Problem) -> Optimum:
    """The fewest bytes that bring all loads into their bands."""
    program = _Program(problem, led=any(loads.led for loads in problem.loads))
    for loads in problem.loads:
        program.keep_in_band(loads)
    unit = max(1.0, float(problem.size[problem.movable].max(initial=0)))
    cost = np.where(program.arrives, problem.size[program.partition] / unit, 0.0)
    found = program.solve(cost)
    if found.infeasible:
        return Optimum(None, True)
    if found.chosen is None:
        return Optimum(float(np.ceil(found.bound * unit * (1 - SAFETY))), False)
    arriving = found.chosen & program.arrives
    return Optimum(float(problem.size[program.partition[arriving]].sum()), True)


def best_possible(problem: Problem, loads: Loads) -> Optimum:
    """The lowest level that one load can be brought to, whatever becomes of the others."""
    counted = (loads.share > 0) & ~problem.leaves
    if not counted.any():
        return Optimum(0.0, True)
    program = _Program(problem, led=loads.led)
    level = program.add_level(loads, counted)
    cost = np.zeros(program.columns)
    cost[level] = 1.0
    found = program.solve(cost, LEVEL_GAP)
    if found.infeasible:
        return Optimum(None, True)
    return Optimum(found.bound * (1 - SAFETY), found.chosen is not None)


@dataclass(frozen=True, slots=True)
class _Solution:
    chosen: Flags | None  # by column; None if there is none, or the best one is not known
    bound: float
    infeasible: bool


@dataclass
class _Rows:
    """Rows of a program, one after another."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    start: list[int] = field(default_factory=lambda: [0])
    index: list[Ints] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)

    def add(self, low: float, high: float, index: Ints, value: Floats) -> None:
        self.low.append(low)
        self.high.append(high)
        self.start.append(self.start[-1] + len(index))
        self.index.append(index)
        self.value.append(value)


class _Program:
    """The rules of an allowed placement: first a column for each replica there may be, then for each leader."""

    def __init__(self, problem: Problem, *, led: bool) -> None:
        self._problem = problem
        now = np.zeros((problem.partitions, problem.brokers), np.bool_)
        placed = problem.broker >= 0
        now[problem.slot_partition[placed], problem.broker[placed]] = True
        may = problem.movable[:, None] & (now | problem.takes) & ~problem.leaves
        self.partition, self.broker = (np.asarray(side, np.int64) for side in np.nonzero(may))
        held = now[self.partition, self.broker]
        self.arrives: Flags = ~held
        self._lower = (held & ~problem.gives[self.broker]).astype(np.float64)
        self._upper = np.ones(len(self.partition))
        self._replicas = len(self.partition)
        self._rows = _Rows()
        self._integral = self._replicas
        self._distinct_and_racks()
        if led:
            self._leaders()

    @property
    def columns(self) -> int:
        """How many there are by now."""
        return len(self._upper)

    def _append(self, count: int, high: float) -> Ints:
        added = np.arange(self.columns, self.columns + count)
        self._lower = np.append(self._lower, np.zeros(count))
        self._upper = np.append(self._upper, np.full(count, high))
        for name in ("partition", "broker"):
            setattr(self, name, np.append(getattr(self, name), np.full(count, -1)))
        self.arrives = np.append(self.arrives, np.zeros(count, np.bool_))
        return added

    def _distinct_and_racks(self) -> None:
        problem = self._problem
        of_column, broker = self.partition.copy(), self.broker.copy()
        begin = np.searchsorted(of_column, np.arange(problem.partitions + 1))
        for p in np.flatnonzero(problem.movable).tolist():
            own = np.arange(begin[p], begin[p + 1])
            factor, most = int(problem.replication_factor[p]), int(problem.most_in_rack[p])
            self._rows.add(factor, factor, own, np.ones(len(own)))
            rack = problem.rack[broker[own]]
            fewest = int(problem.fewest_racks[p])
            implied = -(-factor // max(1, most)) if np.all(rack >= 0) else 0  # racks, by the limit of each alone
            used = self._append(problem.racks, 1.0) if fewest > implied else None
            for number in range(problem.racks):
                inside = own[rack == number]
                if most < min(factor, len(inside)):
                    self._rows.add(0, most, inside, np.ones(len(inside)))
                if used is not None:
                    self._rows.add(0, np.inf, np.append(inside, used[number]), np.append(np.ones(len(inside)), -1.0))
            if used is not None:
                self._rows.add(fewest, np.inf, used, np.ones(len(used)))
        self._integral = self.columns

    @cached_property
    def _led_by(self) -> NDArray[np.int64]:
        """By partition: its first replica, -1 if that has no broker."""
        problem = self._problem
        leader = np.full(problem.partitions, -1, np.int64)
        has = problem.replication_factor > 0
        leader[has] = problem.broker[problem.offsets[:-1][has]]
        return leader

    def _leaders(self) -> None:
        """One leader for each partition, among its replicas; brokers without a share lead only what they lead now."""
        problem = self._problem
        shares = [loads.share > 0 for loads in problem.loads if loads.led]
        may_lead = np.all(shares, axis=0)
        replica = np.flatnonzero(
            may_lead[self.broker[: self._replicas]]
            | (self._led_by[self.partition[: self._replicas]] == self.broker[: self._replicas])
        )
        self._leader = self._append(len(replica), 1.0)
        self.partition[self._leader], self.broker[self._leader] = self.partition[replica], self.broker[replica]
        for leads, holds in zip(self._leader.tolist(), replica.tolist(), strict=True):
            self._rows.add(0, np.inf, np.array([holds, leads]), np.array([1.0, -1.0]))
        begin = np.searchsorted(self.partition[self._leader], np.arange(problem.partitions + 1))
        for p in np.flatnonzero(problem.movable & (problem.replication_factor > 0)).tolist():
            own = self._leader[begin[p] : begin[p + 1]]
            self._rows.add(1, 1, own, np.ones(len(own)))
        self._integral = self.columns

    def _of(self, loads: Loads) -> Ints:
        return self._leader if loads.led else np.arange(self._replicas)

    def _at(self, loads: Loads) -> Ints:
        """By column of a load: its broker."""
        return self.broker[self._of(loads)]

    def _load(self, loads: Loads) -> Floats:
        """By column of a load: what it adds to its broker."""
        return loads.per_replica[self.partition[self._of(loads)]]

    def _fixed_load(self, loads: Loads) -> Floats:
        """By broker: the load of the partitions that may not move."""
        problem = self._problem
        return problem.held(loads, ~problem.movable[problem.slot_partition])

    def keep_in_band(self, loads: Loads) -> None:
        """Each broker ends within its band."""
        low, high = self._problem.band(loads)
        fixed, at, load, columns = self._fixed_load(loads), self._at(loads), self._load(loads), self._of(loads)
        for b in np.flatnonzero((loads.share > 0) & ~self._problem.leaves).tolist():
            unit, own = loads.share[b], at == b
            slack = FEASIBILITY
            edges = (low[b] - fixed[b]) / unit - slack, (high[b] - fixed[b]) / unit + slack
            self._rows.add(*edges, columns[own], load[own] / unit)

    def add_level(self, loads: Loads, counted: Flags) -> int:
        """A column that is at least each broker's load over its share."""
        level = int(self._append(1, np.inf)[0])
        fixed, at, load, columns = self._fixed_load(loads), self._at(loads), self._load(loads), self._of(loads)
        for b in np.flatnonzero(counted).tolist():
            unit, own = loads.share[b], at == b
            index, value = np.append(columns[own], level), np.append(load[own] / unit, -1.0)
            self._rows.add(-np.inf, -fixed[b] / unit, index, value)
        return level

    def solve(self, cost: Floats, gap: float = 0.0) -> _Solution:
        """Minimise; the solution if it is proven to be the best, up to a part of it."""
        if not self.columns:  # HiGHS takes an empty program for solved
            infeasible = max(self._rows.low, default=0.0) > 0 or min(self._rows.high, default=0.0) < 0
            return _Solution(None if infeasible else np.zeros(0, np.bool_), np.inf, infeasible)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = self.columns, len(self._rows.low)
        program.col_cost_, program.col_lower_, program.col_upper_ = cost, self._lower, self._upper
        program.row_lower_, program.row_upper_ = np.array(self._rows.low), np.array(self._rows.high)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(self._rows.start)
        program.a_matrix_.index_ = np.concatenate([np.empty(0, np.int64), *self._rows.index])
        program.a_matrix_.value_ = np.concatenate([np.empty(0), *self._rows.value])
        kinds = [highspy.HighsVarType.kInteger] * self._integral
        program.integrality_ = kinds + [highspy.HighsVarType.kContinuous] * (self.columns - self._integral)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.silent()
        for option, value in {
            "threads": 1,
            "random_seed": 0,
            "mip_max_nodes": NODES,
            "mip_rel_gap": gap,
            "mip_abs_gap": 1e-9,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
        }.items():
            solver.setOptionValue(option, value)
        solver.passModel(program)
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return _Solution(None, np.inf, True)
        bound = solver.getInfo().mip_dual_bound
        bound = max(0.0, bound) if np.isfinite(bound) else 0.0
        proven = status == highspy.HighsModelStatus.kOptimal
        return _Solution(np.array(solver.getSolution().col_value) > 0.5 if proven else None, bound, False)
