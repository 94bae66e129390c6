"""The way back: what the partitions that a plan changes had before it.

A rollback is a plan like any other, and goes through the same review, engine and verification. It names
only the partitions that the plan changes, so that running it moves nothing else, with the replicas in their
former order and, where they are known, in their former log dirs.

Example: before, ``foo-0`` is on ``[1, 2]`` and ``foo-1`` on ``[2, 3]``. The rollback of a plan that puts
``foo-0`` on ``[3, 2]`` and leaves ``foo-1`` where it is has one entry: ``foo-0`` on ``[1, 2]``.
"""

from __future__ import annotations

from rebalance_lib.plan.diff import changed_entries
from rebalance_lib.plan.plan import Plan


def rollback(plan: Plan, before: Plan) -> Plan:
    """The plan that undoes a plan; raises InvalidInputError if ``before`` lacks one of its partitions."""
    prior, _, _ = changed_entries(before, plan)
    return Plan.from_table(prior)
