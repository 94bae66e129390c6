"""Execute a plan on a live cluster: preflight, throttles, moves, clean-up, and the record of it.

Nothing is remembered between steps but the plan, the saved throttles, the requests of people and the cluster itself, so
each step can be run again at any moment.

    preflight      refuse a plan that must not be executed as things are
    set_throttles  throttle the brokers that take part
    Executor       begin moves as caps allow, follow them, remedy what stalls; `run_plan` is all of this in one process
    clean_up       cancel what is under way, restore the throttles that were set before
    finalize_run   elect preferred leaders, compare cluster and plan, write the record and the report

``throttles`` has what concerns them, ``records`` what a run keeps, ``commands`` drop-in commands.
"""

from rebalance_lib.execution.clean_up import clean_up
from rebalance_lib.execution.executor import Executor
from rebalance_lib.execution.finalize import finalize_run
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.new_partitions import add_partitions
from rebalance_lib.execution.preflight import preflight
from rebalance_lib.execution.records.retention import drop_old_runs
from rebalance_lib.execution.records.run import Run
from rebalance_lib.execution.report import Report, RunState
from rebalance_lib.execution.requests import Kind, make_request
from rebalance_lib.execution.rollback import prepare_rollback
from rebalance_lib.execution.runner import run_plan, set_throttles
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.restore import restore_stale_throttles

__all__ = [
    "Executor",
    "Job",
    "Kind",
    "Report",
    "Run",
    "RunState",
    "Settings",
    "add_partitions",
    "clean_up",
    "drop_old_runs",
    "finalize_run",
    "make_request",
    "preflight",
    "prepare_rollback",
    "restore_stale_throttles",
    "run_plan",
    "set_throttles",
]
