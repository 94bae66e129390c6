"""An integer program for HiGHS, put together column by column and row by row.

One thread, a fixed seed and a counted number of nodes: the answer depends on nothing but the program, unless a limit in
seconds is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints


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


class _Checks:
    """Stops a search that has asked so often whether to go on, or whose time is up."""

    def __init__(self, most: int | None, seconds_left: Callable[[], float] | None) -> None:
        self._left, self._seconds_left = most, seconds_left

    def count(self, event: Any) -> None:
        event.data_in.user_interrupt = self._is_over()

    def _is_over(self) -> bool:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return True
        return self._seconds_left is not None and self._seconds_left() <= 0


class IntegerProgram:
    """Columns with their limits, and rows."""

    def __init__(self) -> None:
        self._lower: Floats = np.empty(0)
        self._upper: Floats = np.empty(0)
        self._whole: Flags = np.empty(0, np.bool_)
        self._rows = _Rows()

    @property
    def columns(self) -> int:
        """How many there are by now."""
        return len(self._upper)

    def add_columns(self, lower: Floats, upper: Floats, *, whole: bool) -> Ints:
        """Columns between these limits, whole numbers or not; their numbers."""
        added = np.arange(self.columns, self.columns + len(lower))
        self._lower, self._upper = np.append(self._lower, lower), np.append(self._upper, upper)
        self._whole = np.append(self._whole, np.full(len(lower), whole))
        return added

    def add_row(self, low: float, high: float, index: Ints, value: Floats) -> None:
        """The sum of these columns, times their values, is between two limits."""
        self._rows.add(low, high, index, value)

    def solve(
        self,
        cost: Floats,
        *,
        nodes: int,
        gap: float = 0.0,
        start: tuple[Ints, Flags] | None = None,
        seconds_left: Callable[[], float] | None = None,
        checks: int | None = None,
    ) -> Solution:
        """Minimise, up to a part of the objective, from a start if there is one.

        HiGHS asks now and then whether to go on, at the same points of the search whenever it is run: after so many
        `checks` it stops, or when no seconds are left, by whatever clock. Nodes alone limit little, since a small
        program spends most of its time on the first one.
        """
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
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        program.integrality_ = [kinds[whole] for whole in self._whole.tolist()]
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.silent()
        for option, value in {
            "threads": 1,
            "random_seed": 0,
            "mip_max_nodes": nodes,
            "mip_allow_restart": False,  # a restart of a small program costs more than it gains
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
        if checks is not None or seconds_left is not None:
            solver.cbMipInterrupt.subscribe(_Checks(checks, seconds_left).count)
        try:
            solver.run()
        except ValueError:  # out of HiGHS' own containers, where numbers are of very different scales
            return Solution(None, 0.0, infeasible=False, proven=False)
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return Solution(None, np.inf, infeasible=True, proven=True)
        bound = solver.getInfo().mip_dual_bound
        bound = max(0.0, bound) if np.isfinite(bound) else 0.0
        found = solver.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
        chosen = np.array(solver.getSolution().col_value) > 0.5 if found else None
        return Solution(chosen, bound, infeasible=False, proven=status == highspy.HighsModelStatus.kOptimal)
