"""What ``--polish SECONDS`` adds to a plan: small parts of it are solved exactly, as long as there is time.

The planner's passes have a layout; ``polish_exact`` looks for one with less outside of the tolerances, and then for one
that copies less. Its result goes through the passes once more, so that planning again finds nothing to do, and is taken
only if it is better. Clusters small enough to be planned exactly need none of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.exact import Score, is_small
from rebalance_lib.planner.exact.places import free_by_broker, lay_out
from rebalance_lib.planner.polish_exact import polish
from rebalance_lib.planner.problem import problem_of
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, sum_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags

CELLS = 100_000_000  # partitions times brokers: a table of both must fit into memory, 100 MB


def polished(work: Workspace, placed: Placement, passes: Callable[[Workspace], Placement]) -> Placement:
    """The placement, or a better one that was found in the request's time; the workspace is where the cluster is."""
    request, model = work.request, work.model
    if not request.polish or request.limited or is_small(work) or model.partitions * model.brokers > CELLS:
        return placed
    found = polish(
        problem_of(work),
        placed.layout.broker,
        seconds=request.polish,
        monotonic=time.monotonic,
        seed=request.seed,
        space=free_by_broker(work),
    )
    layout = lay_out(work, placed.layout, _held(work, found.broker), _free(work, placed.layout))
    if layout is None:
        return placed
    again = passes(work.resumed(layout, layout.broker[layout.offsets[:-1]]))
    if work.exceeds(again.layout):
        return placed
    now, was = Score.of(work, again.layout), Score.of(work, placed.layout)
    saves = _copied(work, again.layout) < _copied(work, placed.layout) and not was.beats(now)
    return again if now.beats(was) or saves else placed


def _free(work: Workspace, layout: Layout) -> NDArray[np.int64]:
    """By log dir: what may arrive; where the layout has more arrive than that, as much as it has."""
    comes = ~_held(work, work.layout.broker)[work.model.slot_partition, layout.broker]
    comes &= layout.log_dir >= 0
    size = work.model.size[work.model.slot_partition[comes]]
    free: NDArray[np.int64] = work.state.free
    return np.maximum(free, sum_by(layout.log_dir[comes], size, len(work.state.free)))


def _held(work: Workspace, broker: NDArray[np.int32]) -> Flags:
    has = np.zeros((work.model.partitions, work.model.brokers), np.bool_)
    has[work.model.slot_partition, broker] = True
    return has


def _copied(work: Workspace, layout: Layout) -> int:
    arrives = _held(work, layout.broker) & ~_held(work, work.layout.broker)
    return int(np.count_nonzero(arrives, axis=1) @ work.model.size)
