"""Carry a plan out on a live cluster: preflight, throttles, submission and progress.

Nothing is remembered between steps but the plan, the saved throttles and the cluster itself, so each step can be run
again at any moment.
"""

from rebalance_lib.execution.cancellation import Cancelled, cancel
from rebalance_lib.execution.conclusion import Outcome, conclude
from rebalance_lib.execution.progress import Progress, measure_progress
from rebalance_lib.execution.reassign import Limits, Prepared, execute, prepare
from rebalance_lib.execution.run import Run
from rebalance_lib.execution.state import live_assignment
from rebalance_lib.execution.status import PlanStatus, Status, plan_status
from rebalance_lib.execution.submission import preflight, submit
from rebalance_lib.execution.throttle import (
    Throttle,
    apply_throttle,
    left_behind,
    restore_left_behind,
    restore_throttles,
)
from rebalance_lib.execution.verification import (
    Throttles,
    Verdict,
    Verification,
    noted_way_back,
    release_throttles,
    verify,
)

__all__ = [
    "Cancelled",
    "Limits",
    "Outcome",
    "PlanStatus",
    "Prepared",
    "Progress",
    "Run",
    "Status",
    "Throttle",
    "Throttles",
    "Verdict",
    "Verification",
    "apply_throttle",
    "cancel",
    "conclude",
    "execute",
    "left_behind",
    "live_assignment",
    "measure_progress",
    "noted_way_back",
    "plan_status",
    "preflight",
    "prepare",
    "release_throttles",
    "restore_left_behind",
    "restore_throttles",
    "submit",
    "verify",
]
