"""The rules of an allowed placement as an integer program for HiGHS.

Columns: whether partition p has a replica on broker b; which racks it is in, where the rule asks for that; whether b
leads it, if leaders count. Rows: as many replicas as it has, no more in a rack than the rule lets it have, one leader,
on a broker with a replica. What is asked besides, bands or a level, is added by whoever asks.
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

FEASIBILITY = 1e-9  # of a share: how far out of its band HiGHS may leave a broker


@dataclass(frozen=True, slots=True)
class Solution:
    """What HiGHS found."""

    chosen: Flags | None  # by column; None if there is none, or none was found
    bound: float  # the objective is no less
    infeasible: bool
    proven: bool  # that there is no better one


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


class Program:
    """The rules of an allowed placement: first a column for each replica there may be, then for each leader."""

    def __init__(self, problem: Problem, *, led: bool, hosts: Flags | None = None) -> None:
        """``hosts`` are the brokers of each partition that count; all that are allowed if not given."""
        self._problem = problem
        now = np.zeros((problem.partitions, problem.brokers), np.bool_)
        placed = problem.broker >= 0
        now[problem.slot_partition[placed], problem.broker[placed]] = True
        may = problem.movable[:, None] & (now | problem.takes) & ~problem.leaves
        if hosts is not None:
            may &= hosts
        self.partition, self.broker = (np.asarray(side, np.int64) for side in np.nonzero(may))
        held = now[self.partition, self.broker]
        self.arrives: Flags = ~held
        self._lower = (held & ~problem.gives[self.broker]).astype(np.float64)
        self._upper = np.ones(len(self.partition))
        self._replicas = len(self.partition)
        self._rows = _Rows()
        self._integral = self._replicas
        self._leader: Ints = np.empty(0, np.int64)
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

    def keep_in_band(self, loads: Loads, low: Floats, high: Floats) -> None:
        """Each broker ends within its band."""
        for b, index, value, fixed in self._by_broker(loads):
            unit = loads.share[b]
            edges = (low[b] - fixed) / unit - FEASIBILITY, (high[b] - fixed) / unit + FEASIBILITY
            self._rows.add(*edges, index, value)

    def measure_band(self, loads: Loads, low: Floats, high: Floats) -> Ints:
        """The columns that say how far each broker is below and above its band, in shares."""
        added = []
        for b, index, value, fixed in self._by_broker(loads):
            unit, sides = loads.share[b], self._append(2, np.inf)
            edges = (low[b] - fixed) / unit, (high[b] - fixed) / unit
            self._rows.add(*edges, np.append(index, sides), np.append(value, [1.0, -1.0]))
            added.append(sides)
        return np.concatenate([np.empty(0, np.int64), *added])

    def _by_broker(self, loads: Loads) -> list[tuple[int, Ints, Floats, float]]:
        """Brokers with a share: their columns, what these add in shares, and the load that may not move."""
        fixed, at, load, columns = self._fixed_load(loads), self._at(loads), self._load(loads), self._of(loads)
        counted = np.flatnonzero((loads.share > 0) & ~self._problem.leaves).tolist()
        return [(b, columns[at == b], load[at == b] / loads.share[b], float(fixed[b])) for b in counted]

    def add_level(self, loads: Loads) -> int:
        """A column that is at least each broker's load over its share."""
        level = int(self._append(1, np.inf)[0])
        for b, index, value, fixed in self._by_broker(loads):
            self._rows.add(-np.inf, -fixed / loads.share[b], np.append(index, level), np.append(value, -1.0))
        return level

    def leads(self, chosen: Flags) -> tuple[Ints, Ints]:
        """Partitions and their leaders in a solution."""
        columns = self._leader[chosen[self._leader]]
        return self.partition[columns], self.broker[columns]

    def replicas(self, chosen: Flags) -> tuple[Ints, Ints]:
        """Partitions and brokers of the replicas in a solution."""
        columns = np.flatnonzero(chosen[: self._replicas])
        return self.partition[columns], self.broker[columns]

    def columns_of(self, has: Flags, leader: Ints) -> tuple[Ints, Flags]:
        """A placement as columns: whether each partition has a replica on each broker, and who leads it."""
        columns = np.append(np.arange(self._replicas), self._leader)
        holds = has[self.partition[: self._replicas], self.broker[: self._replicas]]
        leads = leader[self.partition[self._leader]] == self.broker[self._leader]
        return columns, np.append(holds, leads)

    def solve(
        self,
        cost: Floats,
        *,
        nodes: int,
        gap: float = 0.0,
        start: tuple[Ints, Flags] | None = None,
        seconds: float = highspy.kHighsInf,
    ) -> Solution:
        """Minimise, up to a part of the objective, from a start if there is one."""
        if not self.columns:  # HiGHS takes an empty program for solved
            infeasible = max(self._rows.low, default=0.0) > 0 or min(self._rows.high, default=0.0) < 0
            return Solution(None if infeasible else np.zeros(0, np.bool_), np.inf, infeasible, True)
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
            "mip_max_nodes": nodes,
            "time_limit": seconds,
            "mip_rel_gap": gap,
            "mip_abs_gap": 1e-9,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
        }.items():
            solver.setOptionValue(option, value)
        solver.passModel(program)
        if start is not None:
            columns, values = start  # HiGHS works out the others
            solver.setSolution(len(columns), columns.astype(np.int32), values.astype(np.float64))
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return Solution(None, np.inf, infeasible=True, proven=True)
        bound = solver.getInfo().mip_dual_bound
        bound = max(0.0, bound) if np.isfinite(bound) else 0.0
        found = solver.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
        chosen = np.array(solver.getSolution().col_value) > 0.5 if found else None
        return Solution(chosen, bound, infeasible=False, proven=status == highspy.HighsModelStatus.kOptimal)
