"""What a request asks of a workspace, as a problem for linear and integer programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate import Loads, Problem
from rebalance_lib.planner.rebalance import shares_of

if TYPE_CHECKING:
    from rebalance_lib.planner.workspace import Workspace


def problem_of(work: Workspace) -> Problem:
    """What follows from where replicas are, within its tolerances, as far as the request asks for it."""
    model, scope, request = work.model, work.scope, work.request
    shares = shares_of(work)
    weight = dict(zip(work.resources, work.state.weight, strict=True))
    pursued = [one for one in work.resources if request.weight_of(one)]
    rack = np.where(model.alive, model.rack, -1).astype(np.int32)
    layout = work.layout
    where = (layout.offsets, layout.broker, model.size, scope.movable, rack)
    bands = tuple(Loads.within(str(one), weight[one], shares[one], request.tolerance_of(one)) for one in pursued)
    return Problem(*where, scope.gives, scope.takes, scope.leaves, bands)
