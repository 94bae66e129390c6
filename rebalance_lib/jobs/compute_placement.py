"""Plan runs on Spark: read their snapshots, work out candidates, check what was written, publish it.

    spark-submit compute_placement.py --run file:///.../RUN [--run ...] --mode balance
    spark-submit compute_placement.py --run file:///.../RUN --request '{"mode": "drain", "brokers": [3]}'
    spark-submit compute_placement.py --run file:///.../RUN --mode balance --history file:///.../history --horizon 7

`dataflow` says what Spark does. The plans are those that `kafka-rebalance plan` works out on one machine, for the same
seed, unless a cluster is so large that it is cut into shards. Every run gets its ``plan/`` as soon as what was written
breaks none of the `invariants`. The job ends with 1 if any run has none, and says why.

What no request can be is refused at once, whether Spark has started or not.
"""

from __future__ import annotations

from rebalance_lib.jobs.session import is_submitted, session, start_session

NAME = "kafka-rebalance compute_placement"
STARTED = start_session(NAME) if __name__ == "__main__" and is_submitted() else None  # while the rest is imported

import argparse
import traceback
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from rebalance_lib.artifacts import PLAN, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import LoadOptions, Statistic
from rebalance_lib.jobs.command_line import JobLog, json_object, parser_for, run_program
from rebalance_lib.jobs.dataflow import RunState, plan_runs
from rebalance_lib.jobs.rows import Past, PlanTask
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Mode, Request

log = JobLog("compute_placement")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; errors are one clear line each and exit code 1, and wrong input does not wait for Spark."""
    options = _parse(arguments)
    try:
        request = _request(options)
        pace = Pace.from_dict(options.pace)
        loads = LoadOptions(options.window, options.load, options.horizon)
    except RebalanceError as error:
        return log.fail(str(error))
    past = Past(options.history, loads) if options.history else None
    uris = dict.fromkeys(uri.rstrip("/") for uri in options.run)
    runs = [run_state(number, uri, request, pace, past) for number, uri in enumerate(uris)]
    is_new = STARTED is not None or SparkSession.getActiveSession() is None
    try:
        with session(NAME, STARTED) as spark:
            plan_runs(spark, runs, log, is_new=is_new)
    except Exception as error:
        traceback.print_exc()
        for run in runs:
            if not run.published and not run.errors:
                run.errors.append(f"the job failed: {type(error).__name__}: {error}")
    finally:
        for run in runs:
            _remove(run)
    return report(runs)


def _remove(run: RunState) -> None:
    """Remove what was staged; where that fails, the other runs are not concerned."""
    try:
        Artifacts(run.task.staging).remove()
    except Exception as error:
        log(f"{run.task.uri}: what was staged is left behind: {error}")


def report(runs: Sequence[RunState]) -> int:
    """A line for each run that has no plan; the exit code of the job."""
    lines = [f"{run.task.uri}: {_several(run.errors)}" for run in runs if run.errors]
    if lines and len(runs) > 1:
        lines.append(f"{len(lines)} of {len(runs)} runs failed")
    return log.fail(*lines) if lines else 0


def run_state(number: int, uri: str, request: Request, pace: Pace | None = None, past: Past | None = None) -> RunState:
    """A run to be planned."""
    run = Artifacts(uri)
    return RunState(number, PlanTask(run.uri, request, (run / PLAN).staging().uri, pace or Pace(), past))


def _several(errors: Sequence[str]) -> str:
    return errors[0] + (f" (and {len(errors) - 1} more)" if len(errors) > 1 else "")


def _request(options: argparse.Namespace) -> Request:
    """What is asked for: a request as JSON, or the options that stand for one."""
    if options.request is not None:
        if options.mode or options.topics or options.brokers:
            raise InvalidInputError("--request says it all: give it without --mode, --topics and --brokers")
        request = Request.from_dict(options.request)
    else:
        if options.mode is None:
            raise InvalidInputError(f"it is not said what to plan: give --mode, one of {', '.join(Mode)}, or --request")
        which = "allowed_brokers" if options.mode == Mode.KAFKA else "brokers"
        request = Request.from_dict({"mode": options.mode, "topics": options.topics, which: options.brokers})
    given = {name: getattr(options, name) for name in ("seed", "shards") if getattr(options, name) is not None}
    return replace(request, **given)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add(
        "--run", required=True, action="append", help="URI of a run's artifacts; its snapshot must be there; repeatable"
    )
    add("--request", type=json_object, help="what is asked for, as JSON")
    add("--mode", choices=list(map(str, Mode)), help="what kind of plan; required without --request")
    add("--topics", type=_names, default=[], help="topics that may move, with commas; default all but internal ones")
    add("--brokers", type=_ids, default=[], help="brokers the mode is about, with commas; for kafka, those to place on")
    add("--pace", type=json_object, default={}, help="how fast the plan may go, as JSON: what the forecast counts with")
    add("--seed", type=int, help="where choices between equals start; the same seed gives the same plan")
    add("--shards", type=int, help="parts to cut each cluster into; default by its size")
    add("--history", help="URI of the history of snapshots, for loads")
    add("--window", type=float, default=24.0, help="hours of history to look at, up to the run's snapshot; default 24")
    add("--load", choices=list(map(str, Statistic)), default="mean", help="what of these hours counts; default mean")
    add("--horizon", type=float, default=0.0, help="plan with the sizes after so many days; default 0, as they are")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _ids(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"broker ids are numbers, with commas, not {text!r}") from error


if __name__ == "__main__":
    run_program(main)
