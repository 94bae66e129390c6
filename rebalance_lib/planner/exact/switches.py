"""A choice for each partition, improved one switch at a time: a tabu search for loads below a target.

Goal:
    The least weighted sum of levels, one for each goal: the largest load of the goal's rows, but at least its limit.

Algorithm:
    One goal at a time, the one that counts most first: its target is set below its level, that of every other goal at
    its own level, and the search looks for choices with no load above a target. A step takes the switch of one
    partition, among those that a load above its target depends on, after which the loads above their targets cost
    least, also if that is more than before: then these loads become dearer, so that the search leaves where it is
    stuck. A partition that was switched stays for some steps. If all loads come below their targets, the next target
    is twice as far below; after ``WORK`` in vain, a quarter as far, until the least that counts as a gain was
    tried in vain as often as there are attempts.

    Work is counted, and chance has a fixed seed: the same problem gives the same choices.

Example:
    Brokers 1 and 2 should each lead 6 of partitions with 3, 3, 2, 2 and 2. There are 3+2+2 and 3+2. No single switch is
    better: a 2 gives 5 and 7, the 3 gives 4 and 8. One of them is taken, and from there it is one more: 2+2+2 and 3+3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.switches import Columns, bring_below

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.problem import Floats, Ints

WORK = 1_000_000  # of one attempt: rows, partitions and what columns add, each time that one is looked at
ATTEMPTS = 72  # at the least distance, each by other chances; shared by all goals
"""Of 14 hard programs of cpu and failover, 24 attempts of three times the work took as long and left 0.25 % in the mean
to the best known instead of 0.23 %, 6 of them 0.39 %, 200 of a third 0.50 %. 72 take 0.1 to 0.5 s for one goal.
"""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Choices:
    """Columns to choose from, one for each partition, and the rows of loads that they add to."""

    owner: Ints  # by column: its partition, counted from 0
    load: Floats  # by column and row, in shares
    fixed: Floats  # by row: what is there whatever is chosen
    goal: Ints  # by row
    limit: Floats  # by goal: no less counts as better
    weight: Floats  # by goal

    @cached_property
    def columns(self) -> Columns:
        """The same, for the compiled search."""
        first = np.searchsorted(self.owner, np.arange(int(self.owner.max(initial=-1)) + 2))
        column, row = np.nonzero(self.load)
        begin = np.searchsorted(column, np.arange(len(self.owner) + 1))
        return Columns(first, begin, row, self.load[column, row])

    @cached_property
    def unit(self) -> Floats:
        """By row: what all columns add that add anything; 0 where they differ, or something is fixed."""
        most = self.load.max(axis=0, initial=0.0)
        least = np.where(self.load > 0, self.load, np.inf).min(axis=0, initial=np.inf)
        return np.where((least >= most * (1 - ROUNDING)) & (self.fixed == 0), most, 0.0)

    def reachable(self, target: Floats) -> Floats:
        """By row: the most that a load can be up to its target. Numbers are whole: far below 5 is 4, not 4.99."""
        unit = np.where(self.unit > 0, self.unit, 1.0)
        return np.where(self.unit > 0, np.floor(target / unit + ROUNDING) * unit, target)

    def loads(self, chosen: Ints) -> Floats:
        """By row."""
        found: Floats = self.fixed + self.load[chosen].sum(axis=0)
        return found

    def levels(self, chosen: Ints) -> Floats:
        """By goal."""
        found = self.limit.copy()
        np.maximum.at(found, self.goal, self.loads(chosen))
        return found


def lowered(choices: Choices, chosen: Ints, gain: float) -> Ints:
    """Choices with lower levels; `gain` is the least of their weighted sum that counts."""
    attempts = max(1, ATTEMPTS // len(choices.weight))
    for goal in np.argsort(-choices.weight, kind="stable").tolist():
        least = gain / choices.weight[goal]
        distance, failed = least, 0
        while failed < attempts:
            levels = choices.levels(chosen)
            target = levels.copy()
            target[goal] = max(choices.limit[goal], levels[goal] - distance)
            if target[goal] > levels[goal] - least * (1 - ROUNDING):
                break
            found = _below(choices, chosen, choices.reachable(target[choices.goal]), seed=failed)
            if found is not None:
                chosen, distance = found, 2 * distance
            else:
                failed += distance <= least
                distance = max(least, distance / 4)
    return chosen


def _below(choices: Choices, start: Ints, target: Floats, seed: int) -> Ints | None:
    """Choices with no load above its target, or None if the search did not come to any."""
    chosen = start.copy()
    return chosen if bring_below(choices.columns, chosen, choices.loads(start) - target, WORK, seed) else None
