"""Small clusters planned exactly: what moves downhill have come to, improved by integer programs.

Goal:
    The least ``goals.objective`` that a layout can have; among those as good, the one that copies the fewest bytes.

Algorithm:
    The planner's own passes find a layout from where the cluster is; if partitions lack racks in it, an integer program
    looks for the most that the free disk space allows, and the passes begin from there. Integer programs then look for
    better places of replicas (`places`), and for better orders of lists (`orders`), which copy nothing. If the result
    is better than the start by at least ``GAIN`` of a goal, all of it is done once more from there, as if the cluster
    were laid out like that; else the start is the plan. So planning again after a plan begins with the very step that
    found nothing better, and finds nothing again, whatever the passes and the programs do.

    Programs and searches are limited by counts, never by the clock: the same request gives the same plan. Clusters with
    more than ``COLUMNS`` movable partitions times brokers are left to the passes alone.

Example:
    Brokers 1, 2 and 3 should hold 12 GB each, of partitions of 8, 8, 5, 5, 4, 3 and 3. Moves and swaps have come to
    8+5, 8+4 and 5+3+3: no move or swap of two lowers the 13 without another 13. The program finds 8+4, 5+4+3 and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.exact import COLUMNS
from rebalance_lib.planner.compiled.compare import rack_spread
from rebalance_lib.planner.exact.orders import better_orders
from rebalance_lib.planner.exact.places import better_places, fewer_bytes, more_racks
from rebalance_lib.planner.goals import GOALS, View
from rebalance_lib.planner.goals.objective import GAIN, objective, outside, weights_of
from rebalance_lib.planner.order import order_lists, sends_too_much
from rebalance_lib.planner.resources import known_resources, weights
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 30  # far more than it takes: each must be better than the one before
LESS_OUTSIDE = 0.1  # of what is outside of the bands, where the objective is the same: as a pass of ``rebalance`` asks
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Score:
    """What layouts are compared by."""

    crowded: tuple[float, int]  # racks come first: partitions that lack any, then all that share one
    objective: float
    outside: float
    least: float  # what the last goal of the list counts in the objective: its gains count as those of the first do

    @classmethod
    def of(cls, work: Workspace, layout: Layout) -> Score:
        """That of a layout of the workspace's cluster."""
        view = View(work.model, work.scope, work.request, layout)
        racks, fullest = rack_spread(layout.offsets, layout.broker, work.model.rack)
        crowded = len(layout.broker) - int(racks.sum()) + int(fullest.sum()) if work.model.has_racks else 0
        least = min(weights_of(view).values(), default=1.0)
        return cls((view.measure(GOALS["racks"]) or 1.0, crowded), objective(view), outside(view), least)

    def beats(self, other: Score) -> bool:
        """Whether it is better by so much that it is worth another plan."""
        if self.crowded != other.crowded:
            return self.crowded < other.crowded
        if self.objective < other.objective * (1 - GAIN * self.least):
            return True
        return (
            self.objective <= other.objective * (1 + ROUNDING)
            and self.outside < other.outside * (1 - LESS_OUTSIDE) - ROUNDING
        )


def is_small(work: Workspace) -> bool:
    """Whether a cluster is planned exactly."""
    model = work.model
    if work.request.limited or int(np.count_nonzero(work.scope.movable)) * model.brokers > COLUMNS:
        return False
    # A broker of unknown capacity keeps what it has: no share is then the same in all layouts.
    return not any(np.isnan(weights(model, one)[model.alive]).any() for one in known_resources(model))


def place_exactly(work: Workspace, passes: Callable[[Workspace], Placement], *, moves: bool) -> Placement:
    """What the passes and the programs come to; `moves` says whether replicas may move, or only lists change."""
    if not is_small(work):
        return passes(work)
    start, leader = work.layout, work.leader
    kept = Placement(work.model, start, leader)
    score = Score.of(work, start)
    for _ in range(REPEATS):
        found = _improved(work.resumed(kept.layout, kept.leader), passes, moves=moves)
        now = Score.of(work, found.layout)
        if not now.beats(score):
            break
        kept, score = found, now
    return kept


def _improved(work: Workspace, passes: Callable[[Workspace], Placement], *, moves: bool) -> Placement:
    """One step: the passes, then better places, then better orders."""
    found, ordered = passes(work.resumed(work.layout, work.leader)), False
    score = Score.of(work, found.layout)
    if moves and score.crowded[0] > 1 and (layout := more_racks(work)) is not None:
        spread = passes(work.resumed(layout, work.leader))
        now = Score.of(work, spread.layout)
        if now.crowded < score.crowded:
            found, score = spread, now
    if moves:
        for look in (better_places, fewer_bytes):
            layout = look(work, found.layout)
            if layout is None:
                continue
            placed = order_lists(work.resumed(layout, layout.broker[layout.offsets[:-1]]))
            placed = _ordered(work, placed)
            now = Score.of(work, placed.layout)
            if sends_too_much(work, placed.layout):
                continue
            if now.beats(score) or (look is fewer_bytes and not score.beats(now)):
                found, score, ordered = placed, now, True
    return found if ordered else _ordered(work, found)


def _ordered(work: Workspace, placed: Placement) -> Placement:
    layout = better_orders(work, placed.layout)
    if layout is None or sends_too_much(work, layout):
        return placed
    if not Score.of(work, layout).beats(Score.of(work, placed.layout)):
        return placed
    return Placement(work.model, layout, layout.broker[layout.offsets[:-1]])
