"""What ``--polish SECONDS`` adds to a plan: it is improved by linear and integer programs, as long as there is time.

The planner's passes have a layout; ``polish_exact`` looks for one with less outside of the tolerances, and then for one
that copies less. Its result goes through the passes once more, so that planning again finds nothing to do, and is taken
only if it is better, or as good and copies less. The time for that is kept back. Clusters small enough to be planned
exactly need none of it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.exact import LESS_OUTSIDE, Score, is_small
from rebalance_lib.planner.exact.places import free_by_broker, lay_out
from rebalance_lib.planner.goals.objective import GAIN
from rebalance_lib.planner.polish_exact import polish
from rebalance_lib.planner.polish_part import Clock
from rebalance_lib.planner.problem import problem_of
from rebalance_lib.planner.rebalance import bands, shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, hosts, spent, sum_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Problem

CELLS = 100_000_000  # partitions times brokers: a table of both must fit into memory, 100 MB
REPAIR = 3.0  # times what the passes took: as long they may take again if a load is still outside of its band
NARROW = 0.1  # of the tolerance: what a band has at least above its share, as the passes aim at it
LAST_PASS = 2.0  # times what a pass takes that changes nothing: lists are put in order anew, and the layout is built


def polished(
    work: Workspace, placed: Placement, passes: Callable[[Workspace], Placement], took: float = 0.0
) -> Placement:
    """The placement, or a better one that was found in the request's time; the workspace is where the cluster is.

    ``took`` is how many seconds the passes needed for the placement.
    """
    request, model = work.request, work.model
    if not request.polish or request.limited or is_small(work) or model.partitions * model.brokers > CELLS:
        return placed
    end = time.monotonic() + request.polish
    # The last pass is one that changes little, as this one does that changes nothing.
    passes(work.resumed(placed.layout, placed.leader))
    was = Score.of(work, placed.layout)
    last = LAST_PASS * (time.monotonic() - end + request.polish)
    found = polish(
        _problem(work),
        placed.layout.broker,
        Clock(end - last, time.monotonic, repair=REPAIR * took),
        seed=request.seed,
        space=free_by_broker(work),
    )
    layout = lay_out(
        work, placed.layout, hosts(work.model, replace(placed.layout, broker=found.broker)), _free(work, placed.layout)
    )
    if layout is None:
        return placed
    again = passes(work.resumed(layout, layout.broker[layout.offsets[:-1]]))
    if work.exceeds(again.layout):
        return placed
    within = found.outside == 0 and spent(model, again)[0] == found.bytes_copied
    return again if _is_better(work, again, placed, was, within=within) else placed


def _problem(work: Workspace) -> Problem:
    """What is asked, numbers as whole ones, a little narrower where data flows one way only.

    Where brokers that take nothing hold less than a fair share, others end near the fair one as well, by which goals
    are measured.
    """
    problem, shares, fair = problem_of(work), shares_of(work), shares_of(work, fair=True)
    loads = []
    for one in problem.loads:
        resource = Resource(one.name)
        (low, high), (_, fair_high) = (bands(work, by, resource) for by in (shares, fair))
        near = one.share * (1 + NARROW * work.request.tolerance_of(resource))
        loads.append(replace(one, low=np.maximum(one.low, low), high=np.minimum(high, np.maximum(fair_high, near))))
    return replace(problem, loads=tuple(loads))


def _is_better(work: Workspace, again: Placement, placed: Placement, was: Score, *, within: bool) -> bool:
    """Whether a placement is better than the one before, or as good and copies less.

    Within the bands is good enough, also where a broker that takes nothing leaves more than a fair share to the others.
    """
    now = Score.of(work, again.layout)
    as_good = now.crowded <= was.crowded and now.objective <= was.objective * (1 + GAIN)
    saves = spent(work.model, again)[0] < spent(work.model, placed)[0]
    return now.beats(was) or (saves and as_good and (within or now.outside <= was.outside * (1 + LESS_OUTSIDE)))


def _free(work: Workspace, layout: Layout) -> NDArray[np.int64]:
    """By log dir: what may arrive; where the layout has more arrive than that, as much as it has."""
    comes = ~hosts(work.model, work.layout)[work.model.slot_partition, layout.broker]
    comes &= layout.log_dir >= 0
    size = work.model.size[work.model.slot_partition[comes]]
    free: NDArray[np.int64] = work.state.free
    return np.maximum(free, sum_by(layout.log_dir[comes], size, len(work.state.free)))
