"""Reassignment plans: their JSON, their digest, what they change, the way back, and what makes one right."""

from rebalance_lib.plan.diff import DIFF_SCHEMA, PlanDiff, diff
from rebalance_lib.plan.plan import PLAN_SCHEMA, Plan, PlanEntry
from rebalance_lib.plan.reassignment_json import format_plan, parse_plan

__all__ = ["DIFF_SCHEMA", "PLAN_SCHEMA", "Plan", "PlanDiff", "PlanEntry", "diff", "format_plan", "parse_plan"]
