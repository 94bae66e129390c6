"""How good a plan for a cluster could be at all, whatever plan there is.

A plan is near the best one if it is near these figures. If it is not, either the plan or the bound can be improved.
Modules: `problem` (what is asked, and what an allowed placement is), `evenness` and `least_bytes` (bounds, with why
they hold), `exact` (the same of small clusters), `program` and `mip` (integer programs over allowed placements, for
small clusters and parts of large ones). What becomes of it for a request is in ``certified``.
"""

from __future__ import annotations

from rebalance_lib.planner.certificate.problem import Loads, Problem

__all__ = ["Loads", "Problem"]
