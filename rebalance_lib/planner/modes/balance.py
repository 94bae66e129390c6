"""``balance``, ``expand`` and ``topics``: all three even out what their scope allows, see ``rebalance``.

They differ in who takes part: in ``expand`` only new brokers take, in ``topics`` only chosen topics move.

Partitions are put in the order of their sizes first, which is how they are walked through: a million of them are then
read from memory one after another, not here and there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.exact import place_exactly
from rebalance_lib.planner.polish import polished
from rebalance_lib.planner.rebalance import rebalance
from rebalance_lib.planner.workspace import Layout, Placement, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


def place(model: ClusterModel, scope: Scope, request: Request) -> Placement:
    """Bring the cluster into balance."""
    rows = np.argsort(-model.size, kind="stable")
    by_size, slots = model.select(rows)
    scope_by_size = replace(scope, movable=scope.movable[rows])
    work = Workspace.of(by_size, scope_by_size, request, Layout.of(by_size), by_size.leader)
    start = work.layout, work.leader
    begun = time.monotonic()
    placed = place_exactly(work, rebalance, moves=True)
    if request.polish:
        placed = polished(work.resumed(*start), placed, rebalance, time.monotonic() - begun)
    broker, held, log_dir = np.empty_like(model.broker), np.empty_like(model.bytes), np.empty_like(model.log_dir)
    broker[slots], held[slots], log_dir[slots] = placed.layout.broker, placed.layout.bytes, placed.layout.log_dir
    return Placement(model, Layout(model.offsets, broker, held, log_dir), broker[model.offsets[:-1]])
