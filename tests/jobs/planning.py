"""Runs planned by the Spark job in this process."""

from __future__ import annotations

from rebalance_lib.artifacts import SNAPSHOT, Artifacts
from rebalance_lib.jobs.checks import Checks
from rebalance_lib.jobs.compute_placement import run_state
from rebalance_lib.jobs.dataflow import plan_runs
from rebalance_lib.jobs.files import Staged
from rebalance_lib.jobs.session import another_session


def plan_on_spark(spark, runs, request, pace=None, past=None):
    """What became of each run."""
    states = [run_state(number, run.uri, request, pace, past) for number, run in enumerate(runs)]
    plan_runs(another_session(spark), states, lambda _line: None)
    return states


def violations(spark, staged, request, shards=None):
    """By run: the rules that files staged in a directory of the run break; `staged` has these directories by run.

    `shards` has how many tasks a run's rows are read by, for those that are not read by one.
    """
    snapshots = {number: Artifacts(one.uri.rsplit("/", 1)[0]) / SNAPSHOT for number, one in staged.items()}
    with Checks(another_session(spark), request) as checks:
        return checks.violations(
            [Staged(number, snapshots[number], one, 1, (shards or {}).get(number, 1)) for number, one in staged.items()]
        )
