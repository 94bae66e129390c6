"""The rules of an allowed placement as an integer program for HiGHS.

Columns: whether partition p has a replica on broker b; which racks it is in, where the rule asks for that. Rows: as
many replicas as it has, no more in a rack than the rule lets it have. What is asked besides, bands or a level, is added
by whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.mip import IntegerProgram

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints, Loads, Problem

FEASIBILITY = 1e-9  # of a share: how far out of its band HiGHS may leave a broker


class Program(IntegerProgram):
    """The rules of an allowed placement: first a column for each replica there may be."""

    def __init__(self, problem: Problem, *, hosts: Flags | None = None) -> None:
        """``hosts`` are the brokers of each partition that count; all that are allowed if not given."""
        super().__init__()
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
        self.add_columns((held & ~problem.gives[self.broker]).astype(np.float64), np.ones(len(held)), whole=True)
        self._replicas = len(self.partition)
        self._distinct_and_racks()

    def _append(self, count: int, high: float, *, low: float = 0.0, whole: bool = False) -> Ints:
        added = self.add_columns(np.full(count, low), np.full(count, high), whole=whole)
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
            self.add_row(factor, factor, own, np.ones(len(own)))
            rack = problem.rack[broker[own]]
            fewest = int(problem.fewest_racks[p])
            implied = -(-factor // max(1, most)) if np.all(rack >= 0) else 0  # racks, by the limit of each alone
            used = self._append(problem.racks, 1.0, whole=True) if fewest > implied else None
            for number in range(problem.racks):
                inside = own[rack == number]
                if most < min(factor, len(inside)):
                    self.add_row(0, most, inside, np.ones(len(inside)))
                if used is not None:
                    self.add_row(0, np.inf, np.append(inside, used[number]), np.append(np.ones(len(inside)), -1.0))
            if used is not None:
                self.add_row(fewest, np.inf, used, np.ones(len(used)))

    def _fixed_load(self, loads: Loads) -> Floats:
        """By broker: the load of the partitions that may not move."""
        problem = self._problem
        return problem.held(loads, ~problem.movable[problem.slot_partition])

    def keep_in_band(self, loads: Loads, low: Floats, high: Floats) -> None:
        """Each broker ends within its band."""
        for b, index, value, fixed in self._by_broker(loads):
            unit = loads.share[b]
            edges = (low[b] - fixed) / unit - FEASIBILITY, (high[b] - fixed) / unit + FEASIBILITY
            self.add_row(*edges, index, value)

    def measure_band(self, loads: Loads, low: Floats, high: Floats) -> Ints:
        """The columns that say how far each broker is below and above its band, in shares."""
        added = []
        for b, index, value, fixed in self._by_broker(loads):
            unit, sides = loads.share[b], self._append(2, np.inf)
            edges = (low[b] - fixed) / unit, (high[b] - fixed) / unit
            self.add_row(*edges, np.append(index, sides), np.append(value, [1.0, -1.0]))
            added.append(sides)
        return np.concatenate([np.empty(0, np.int64), *added])

    def _by_broker(self, loads: Loads) -> list[tuple[int, Ints, Floats, float]]:
        """Brokers with a share: their columns, what these add in shares, and the load that may not move."""
        fixed, at = self._fixed_load(loads), self.broker[: self._replicas]
        load = loads.per_replica[self.partition[: self._replicas]]
        counted = np.flatnonzero((loads.share > 0) & ~self._problem.leaves).tolist()
        own = {b: np.flatnonzero(at == b) for b in counted}
        return [(b, own[b], load[own[b]] / loads.share[b], float(fixed[b])) for b in counted]

    def add_constant(self) -> int:
        """A column that is 1."""
        return int(self._append(1, 1.0, low=1.0)[0])

    def add_level(self, loads: Loads, at_least: float = 0.0) -> int:
        """A column that is at least each broker's load over its share."""
        level = int(self._append(1, np.inf, low=at_least)[0])
        for b, index, value, fixed in self._by_broker(loads):
            self.add_row(-np.inf, -fixed / loads.share[b], np.append(index, level), np.append(value, -1.0))
        return level

    def replicas(self, chosen: Flags) -> tuple[Ints, Ints]:
        """Partitions and brokers of the replicas in a solution."""
        columns = np.flatnonzero(chosen[: self._replicas])
        return self.partition[columns], self.broker[columns]

    def columns_of(self, has: Flags) -> tuple[Ints, Flags]:
        """A placement as columns: whether each partition has a replica on each broker."""
        return np.arange(self._replicas), has[self.partition[: self._replicas], self.broker[: self._replicas]]
