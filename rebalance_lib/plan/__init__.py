"""Reassignment plans: their JSON, their digest, what they change, the way back, and what makes one right."""

from rebalance_lib.plan.assignment import current_assignment
from rebalance_lib.plan.diff import DIFF_SCHEMA, PlanDiff, SizeSource, diff
from rebalance_lib.plan.plan import PLAN_SCHEMA, Plan, PlanEntry
from rebalance_lib.plan.reassignment_json import format_plan, parse_plan, write_plan
from rebalance_lib.plan.rollback import rollback
from rebalance_lib.plan.topics_json import parse_topics_to_move
from rebalance_lib.plan.verify import Rule, Rules, Violation, verify_plan
from rebalance_lib.plan.verify_leaders import LeaderRule
from rebalance_lib.plan.verify_limits import Limits
from rebalance_lib.plan.verify_sets import SetRule
from rebalance_lib.plan.verify_traffic import Traffic

__all__ = [
    "DIFF_SCHEMA",
    "PLAN_SCHEMA",
    "LeaderRule",
    "Limits",
    "Plan",
    "PlanDiff",
    "PlanEntry",
    "Rule",
    "Rules",
    "SetRule",
    "SizeSource",
    "Traffic",
    "Violation",
    "current_assignment",
    "diff",
    "format_plan",
    "parse_plan",
    "parse_topics_to_move",
    "rollback",
    "verify_plan",
    "write_plan",
]
