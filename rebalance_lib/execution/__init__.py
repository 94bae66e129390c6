"""Carry a plan out on a live cluster: preflight, throttles, submission and progress.

Nothing is remembered between steps but the plan, the saved throttles and the cluster itself, so each step can be run
again at any moment.
"""

from rebalance_lib.execution.cancellation import (
    Cancelled,
    ask_to_cancel,
    asked_to_cancel,
    cancel,
    cancel_own,
    forget_cancel,
)
from rebalance_lib.execution.commands.execute import Limits, Prepared, execute, prepare
from rebalance_lib.execution.commands.plan_state import live_assignment
from rebalance_lib.execution.commands.verify import (
    Throttles,
    Verdict,
    Verification,
    noted_way_back,
    release_throttles,
    verify,
)
from rebalance_lib.execution.executor import Executor
from rebalance_lib.execution.finalize import Outcome, conclude
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.new_partitions import add_partitions
from rebalance_lib.execution.plan_status import PlanStatus, Status, read_status
from rebalance_lib.execution.preflight import Preflight, preflight
from rebalance_lib.execution.progress import Meter, Progress
from rebalance_lib.execution.records.retention import drop_old_runs
from rebalance_lib.execution.records.run import Run
from rebalance_lib.execution.report import Report, State
from rebalance_lib.execution.rollback import prepare_rollback
from rebalance_lib.execution.runner import Comparison, Ending, finish, leave, run_plan
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.apply import Throttle, apply_throttle
from rebalance_lib.execution.throttles.maintain import set_throttles
from rebalance_lib.execution.throttles.restore import Restored, restore_stale_throttles, restore_throttles
from rebalance_lib.execution.throttles.saved import stale_throttles

__all__ = [
    "Cancelled",
    "Comparison",
    "Ending",
    "Executor",
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
    "conclude",
    "drop_old_runs",
    "execute",
    "finish",
    "forget_cancel",
    "leave",
    "live_assignment",
    "noted_way_back",
    "preflight",
    "prepare",
    "prepare_rollback",
    "read_status",
    "release_throttles",
    "restore_stale_throttles",
    "restore_throttles",
    "run_plan",
    "set_throttles",
    "stale_throttles",
    "verify",
]
