"""Carry a plan out on a live cluster: preflight, throttles, submission and progress.

Nothing is remembered between steps but the plan, the saved throttles and the cluster itself, so each step can be run
again at any moment.
"""

from rebalance_lib.execution.conclusion import Outcome, conclude
from rebalance_lib.execution.progress import Progress, measure_progress
from rebalance_lib.execution.run import Run
from rebalance_lib.execution.status import PlanStatus, Status, plan_status
from rebalance_lib.execution.submission import preflight, submit
from rebalance_lib.execution.throttle import (
    Throttle,
    apply_throttle,
    left_behind,
    restore_left_behind,
    restore_throttles,
)

__all__ = [
    "Outcome",
    "PlanStatus",
    "Progress",
    "Run",
    "Status",
    "Throttle",
    "apply_throttle",
    "conclude",
    "left_behind",
    "measure_progress",
    "plan_status",
    "preflight",
    "restore_left_behind",
    "restore_throttles",
    "submit",
]
