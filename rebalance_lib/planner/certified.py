"""The certificate of a request: how even a cluster could be, and how few bytes any plan needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate import Loads, Problem
from rebalance_lib.planner.certificate.evenness import best_possible
from rebalance_lib.planner.certificate.least_bytes import least_bytes
from rebalance_lib.planner.goals import View
from rebalance_lib.planner.rebalance import shares_of
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import Layout, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds for all plans of a request."""

    best: dict[str, float]  # by goal: how even its resource could be, as the goal measures it
    least_bytes: int | None  # within all tolerances around shares that racks allow; None if nothing is within them


def certificate_of(model: ClusterModel, scope: Scope, request: Request) -> Certificate:
    """Bounds for all plans that even out what follows from where replicas are."""
    layout = Layout.of(model)
    work = Workspace.of(model, scope, request, layout, model.leader)
    view = View(model, scope, request, layout)
    problem = problem_of(work)
    weight = dict(zip(map(str, work.resources), work.state.weight, strict=True))
    best = {}
    for loads in problem.loads:
        plain = Loads.within(loads.name, weight[loads.name], view.share(Resource(loads.name)), 0.0)
        best[loads.name] = max(1.0, best_possible(replace(problem, loads=(plain,)), plain))
    return Certificate(best, least_bytes(problem))


def problem_of(work: Workspace) -> Problem:
    """What follows from where replicas are, within its tolerances, as far as the request asks for it."""
    model, scope, request = work.model, work.scope, work.request
    shares = shares_of(work)
    weight = dict(zip(work.resources, work.state.weight, strict=True))
    asked = [one for one in work.resources if request.weight_of(one)]
    rack = np.where(model.alive, model.rack, -1).astype(np.int32)
    layout = work.layout
    where = (layout.offsets, layout.broker, model.size, scope.movable, rack)
    bands = tuple(Loads.within(str(one), weight[one], shares[one], request.tolerance_of(one)) for one in asked)
    return Problem(*where, scope.gives, scope.takes, scope.leaves, bands)
