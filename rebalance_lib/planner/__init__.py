"""Balanced plans that move next to nothing more than they must."""

from rebalance_lib.planner.candidates import Candidate, candidates
from rebalance_lib.planner.choice import Choice
from rebalance_lib.planner.model import ClusterModel
from rebalance_lib.planner.request import Mode, Request
from rebalance_lib.planner.scope import Scope

__all__ = ["Candidate", "Choice", "ClusterModel", "Mode", "Request", "Scope", "candidates"]
