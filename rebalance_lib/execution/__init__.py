"""Carry a plan out on a live cluster: preflight, throttles, submission and progress.

Nothing is remembered between steps but the plan, the saved throttles and the cluster itself, so each step can be run
again at any moment.
"""

from rebalance_lib.execution.conclusion import Outcome, conclude
from rebalance_lib.execution.progress import Progress, measure_progress
from rebalance_lib.execution.run import Run
from rebalance_lib.execution.status import Status, plan_status
from rebalance_lib.execution.submission import preflight, submit
from rebalance_lib.execution.throttle import apply_throttle, restore_throttles

__all__ = [
    "Outcome",
    "Progress",
    "Run",
    "Status",
    "apply_throttle",
    "conclude",
    "measure_progress",
    "plan_status",
    "preflight",
    "restore_throttles",
    "submit",
]
