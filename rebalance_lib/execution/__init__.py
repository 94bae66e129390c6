"""Carry a plan out on a live cluster: preflight, throttles, submission and progress.

Nothing is remembered between steps but the plan, the saved throttles and the cluster itself, so each step can be run
again at any moment.
"""

from rebalance_lib.execution.additions import add_partitions
from rebalance_lib.execution.cancellation import (
    Cancelled,
    ask_to_cancel,
    asked_to_cancel,
    cancel,
    cancel_own,
    forget_cancel,
)
from rebalance_lib.execution.carrying import Comparison, Ending, carry_out, finish, leave
from rebalance_lib.execution.conclusion import Outcome, conclude
from rebalance_lib.execution.engine import Engine
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.keeping import put_throttles
from rebalance_lib.execution.preflight import Preflight, preflight
from rebalance_lib.execution.progress import Meter, Progress
from rebalance_lib.execution.reassign import Limits, Prepared, execute, prepare
from rebalance_lib.execution.reports import Report, State
from rebalance_lib.execution.restoring import Restored, restore_left_behind, restore_throttles
from rebalance_lib.execution.retention import drop_old_runs
from rebalance_lib.execution.rolling_back import prepare_rollback
from rebalance_lib.execution.run import Run
from rebalance_lib.execution.saved_throttles import left_behind
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.state import live_assignment
from rebalance_lib.execution.status import PlanStatus, Status, plan_status
from rebalance_lib.execution.throttle import Throttle, apply_throttle
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
    "Comparison",
    "Ending",
    "Engine",
    "Job",
    "Limits",
    "Meter",
    "Outcome",
    "PlanStatus",
    "Preflight",
    "Prepared",
    "Progress",
    "Report",
    "Restored",
    "Run",
    "Settings",
    "State",
    "Status",
    "Throttle",
    "Throttles",
    "Verdict",
    "Verification",
    "add_partitions",
    "apply_throttle",
    "ask_to_cancel",
    "asked_to_cancel",
    "cancel",
    "cancel_own",
    "carry_out",
    "conclude",
    "drop_old_runs",
    "execute",
    "finish",
    "forget_cancel",
    "leave",
    "left_behind",
    "live_assignment",
    "noted_way_back",
    "plan_status",
    "preflight",
    "prepare",
    "prepare_rollback",
    "put_throttles",
    "release_throttles",
    "restore_left_behind",
    "restore_throttles",
    "verify",
]
