"""How good a plan for a cluster could be at all, whatever plan there is: bounds, or the optimum of a small cluster.

A plan is near the best one if it is near these figures. If it is not, either the plan or the bound can be improved.
Modules: `problem` (what is asked, and what an allowed placement is), `evenness` and `least_bytes` (bounds, with why
they hold), `exact` (the optimum, up to a counted number of variables).
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lib.planner.certificate import evenness, exact, least_bytes
from rebalance_lib.planner.certificate.evenness import best_order
from rebalance_lib.planner.certificate.problem import Loads, Problem

__all__ = ["Best", "Certificate", "Loads", "Problem", "best_order", "certify"]


@dataclass(frozen=True, slots=True)
class Best:
    """How even one load could be: no allowed placement has a lower maximum of load over share."""

    name: str
    best_possible: float  # 1 or more where shares add up to the load
    exact: bool  # some allowed placement comes to this, within 0.01 %


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds for all plans of one cluster."""

    evenness: tuple[Best, ...]  # one for each load, as if it alone counted
    least_bytes: int | None  # that bring all loads into their bands; None if no allowed placement is within them
    least_bytes_exact: bool

    @property
    def exact(self) -> bool:
        """Whether all of it is the optimum, not a bound."""
        return self.least_bytes_exact and all(best.exact for best in self.evenness)

    def best_possible(self, name: str) -> float:
        """The figure of one load."""
        return next(best.best_possible for best in self.evenness if best.name == name)


def certify(problem: Problem, *, variables: int = exact.VARIABLES) -> Certificate:
    """The optimum if an integer program with at most so many variables finds it, bounds if not."""
    small = exact.variables(problem) <= variables
    bytes_bound = least_bytes.least_bytes(problem)
    optimum = exact.least_bytes(problem) if small and bytes_bound is not None else exact.Optimum(None, False)
    if optimum.exact:
        bytes_bound = None if optimum.value is None else int(optimum.value)
    elif optimum.value is not None and bytes_bound is not None:
        bytes_bound = max(bytes_bound, int(optimum.value))
    return Certificate(
        evenness=tuple(_best(problem, loads, small) for loads in problem.loads),
        least_bytes=bytes_bound,
        least_bytes_exact=optimum.exact or bytes_bound is None,
    )


def _best(problem: Problem, loads: Loads, small: bool) -> Best:
    bound = evenness.best_possible(problem, loads)
    if not small:
        return Best(loads.name, bound, False)
    optimum = exact.best_possible(problem, loads)
    if optimum.value is None:
        return Best(loads.name, bound, False)
    return Best(loads.name, max(bound, optimum.value), optimum.exact)
