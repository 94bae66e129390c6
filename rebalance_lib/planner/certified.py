"""The certificate of a request: how even a cluster could be, and how few bytes any plan needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.by_set import split
from rebalance_lib.planner.certificate import Loads, exact
from rebalance_lib.planner.certificate.evenness import best_possible
from rebalance_lib.planner.certificate.least_bytes import least_bytes
from rebalance_lib.planner.goals import View
from rebalance_lib.planner.problem import problem_of
from rebalance_lib.planner.rebalance import bands, shares_of
from rebalance_lib.planner.request import BALANCING
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.workspace import Layout, Workspace

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate import Problem
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

ROUNDING = 1e-8  # of a share, so that no bound is too high by a rounding error


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds for all plans of a request."""

    best: dict[str, float]  # by goal: how even its resource could be, as the goal measures it
    least_bytes: int | None  # within all tolerances around shares that racks allow; None if nothing is within them
    best_of_sets: tuple[dict[str, float], ...] = ()  # `best` of each set of brokers that has topics, if there are any


def certificate_of(model: ClusterModel, scope: Scope, request: Request) -> Certificate | None:
    """Bounds for all plans that even out what follows from where replicas are; each set of brokers has its own.

    None for modes that do not aim at even loads. Where only sums are known of some partitions, how even the cluster
    could be is not, and the least to copy is what brokers lack.
    """
    if request.mode not in BALANCING:
        return None
    if model.sets is None:
        return _certificate(model, scope, request)
    found = [_certificate(part.model, part.scope, request) for part in split(model, scope, request)]
    names = {name for one in found for name in one.best}
    best = {name: max(one.best[name] for one in found if name in one.best) for name in sorted(names)}
    known = [one.least_bytes for one in found if one.least_bytes is not None]
    return Certificate(best, sum(known) if len(known) == len(found) else None, tuple(one.best for one in found))


def _certificate(model: ClusterModel, scope: Scope, request: Request) -> Certificate:
    layout = Layout.of(model)
    work = Workspace.of(model, scope, request, layout, model.leader)
    if model.rest is not None:
        return Certificate({}, _lacking(work))
    view = View(model, scope, request, layout)
    problem = problem_of(work)
    weight = dict(zip(map(str, work.resources), work.state.weight, strict=True))
    best = {}
    for loads in problem.loads:
        # What is outside of its set comes in, and has a share then.
        share, comes = view.share(Resource(loads.name)), float(weight[loads.name][work.unassigned].sum())
        share = share * (1 + comes / share.sum()) if share.any() else comes * view.parts(Resource(loads.name))
        plain = Loads.within(loads.name, weight[loads.name], share, 0.0)
        best[loads.name] = _best_possible(problem, plain)
    return Certificate(best, _least_bytes(problem))


def _lacking(work: Workspace) -> int:
    """What brokers lack of their tolerance, which any plan must copy, whatever partitions there are."""
    if not work.request.weight_of(Resource.DISK):
        return 0
    low, _ = bands(work, shares_of(work), Resource.DISK)
    lack = low * (1 - ROUNDING) - work.load(Resource.DISK)
    return int(np.maximum(0.0, lack)[work.scope.takes].sum())


def _best_possible(problem: Problem, loads: Loads) -> float:
    bound = max(1.0, best_possible(problem, loads))
    if not exact.is_small(problem):
        return bound
    return exact.best_possible(problem, loads, bound).value or bound


def _least_bytes(problem: Problem) -> int | None:
    bound = least_bytes(problem)
    if bound is None or not exact.is_small(problem):
        return bound
    found = exact.least_bytes(problem).value
    return None if found is None else max(bound, int(found))
