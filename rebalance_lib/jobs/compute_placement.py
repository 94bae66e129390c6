"""Plan runs on Spark: read their snapshots, work out candidates, check what was written, publish it.

    spark-submit compute_placement.py --run file:///.../RUN [--run ...] --mode balance
    spark-submit compute_placement.py --run file:///.../RUN --request '{"mode": "drain", "brokers": [3]}'
    spark-submit compute_placement.py --run file:///.../RUN --mode balance --history file:///.../history --horizon 7

Candidates times clusters are tasks of their own, and a cluster too large for one is cut into shards; `tasks` says what
workers do. The plans are the ones that `kafka-rebalance plan` works out on one machine, for the same seed. Every run
gets its ``plan/`` on its own, at once, and only if what was written breaks none of the `invariants`. The job fails
at the end if any run has none, and says why.

Names in a request are checked before there is a Spark session: a wrong one costs next to nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from rebalance_lib.artifacts import PLAN, RATES, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import LoadOptions, Statistic, clusters, planned, window_until
from rebalance_lib.jobs.checks import Written, load_snapshots, violations
from rebalance_lib.jobs.groups import write_impacts
from rebalance_lib.jobs.history import Window, window_loads
from rebalance_lib.jobs.session import session, tune_spark
from rebalance_lib.jobs.tasks import (
    ANSWERS_DDL,
    CandidateTask,
    RunTask,
    ShardTask,
    Task,
    WriteTask,
    answering,
    read_model,
)
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Mode, Request, Scope
from rebalance_lib.planner.shards import cut_up


@dataclass
class RunState:
    """A run on its way: what its cluster is called, and what went wrong, if anything did."""

    task: RunTask
    cluster_id: str
    taken_at: str
    partitions: int
    seconds: float = 0.0
    errors: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; errors are one clear line each and exit code 1, and wrong input costs no Spark session."""
    options = _parse(arguments)
    try:
        request = _request(options)
        pace = Pace.from_dict(options.pace)
        loads = LoadOptions(options.window, options.load, options.horizon)
    except RebalanceError as error:
        return _fail(str(error))
    runs, refused = prepare_all(options.run, request, pace)
    if not runs:
        return _fail(*refused.values())
    try:
        with session("kafka-rebalance compute_placement") as spark:
            tune_spark(spark, sum(run.partitions for run in runs))
            compute(spark, runs, options.history, loads)
    except RebalanceError as error:
        return _fail(str(error))
    finally:
        for run in runs:
            Artifacts(run.task.scratch).remove()
            Artifacts(run.task.staging).remove()
    failed = {run.task.uri: run.errors for run in runs if run.errors}
    lines = [f"{uri}: {why}" for uri, why in refused.items()]
    for uri, errors in failed.items():
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        lines.append(f"{uri}: nothing is published: {errors[0]}{more}")
    if lines and len(runs) + len(refused) > 1:
        lines.append(f"{len(lines)} of {len(runs) + len(refused)} runs failed")
    return _fail(*lines) if lines else 0


def _fail(*lines: str) -> int:
    for line in lines:
        print(f"compute_placement: {line}", file=sys.stderr)
    return 1


def prepare_all(
    uris: Iterable[str], request: Request, pace: Pace | None = None
) -> tuple[list[RunState], dict[str, str]]:
    """The runs that can be planned, and what is wrong with the others."""
    runs, refused = [], {}
    for uri in dict.fromkeys(uris):
        try:
            runs.append(prepare(uri, request, pace))
        except RebalanceError as error:
            refused[uri] = str(error)
        except Exception as error:  # whatever it is, the other clusters go on
            traceback.print_exc()
            refused[uri] = f"it cannot be read: {type(error).__name__}: {error}"
    return runs, refused


def prepare(uri: str, request: Request, pace: Pace | None = None) -> RunState:
    """Check a request against a run's snapshot."""
    run = Artifacts(uri)
    model = read_model(run)
    Scope.of(model, request)
    task = RunTask(
        uri=run.uri,
        request=request if model.sets else cut_up(request, model.partitions),
        scratch=(run / "placement").staging().uri,
        staging=(run / PLAN).staging().uri,
        pace=pace or Pace(),
        by_set=model.sets is not None,
    )
    return RunState(task, model.snapshot.cluster_id, model.snapshot.taken_at, model.partitions)


def compute(
    spark: SparkSession, runs: Sequence[RunState], history: str | None = None, options: LoadOptions | None = None
) -> None:
    """Plan, write, check and publish; what goes wrong with a run is kept with it."""
    if history:
        write_loads(spark, runs, history, options or LoadOptions())
    perform(spark, ((run, ShardTask(run.task, *part)) for run in _good(runs) for part in run.task.shards))
    perform(spark, ((run, CandidateTask(run.task, name)) for run in _good(runs) for name in run.task.candidates))
    begun = time.perf_counter()
    write_impacts(spark, {number: run.task for number, run in enumerate(_good(runs))})
    groups = time.perf_counter() - begun
    planned = _good(runs)
    if not planned:
        return
    # To write the files of one cluster keeps one core busy; what the checks need of the snapshots goes on beside it.
    with ThreadPoolExecutor(1) as beside:
        places = {number: Artifacts(run.task.uri) for number, run in enumerate(planned)}
        loading = beside.submit(load_snapshots, spark, places, planned[0].task.request)
        perform(spark, ((run, WriteTask(run.task, (("plan", run.seconds), ("groups", groups)))) for run in planned))
        loading.result()
    publish(spark, {number: run for number, run in enumerate(planned) if not run.errors})


def perform(spark: SparkSession, work: Iterable[tuple[RunState, Task]]) -> None:
    """Do each piece of work in a task of its own, and keep its time and its error with its run."""
    listed = list(work)
    if not listed:
        return
    tasks = spark.range(0, len(listed), 1, len(listed))
    for row in tasks.mapInArrow(answering([task for _, task in listed]), ANSWERS_DDL).collect():
        run = listed[row.task][0]
        run.seconds += row.seconds
        if row.error is not None and row.error not in run.errors:
            run.errors = (*run.errors, row.error)


def publish(spark: SparkSession, runs: Mapping[int, RunState]) -> None:
    """Let the files of those runs appear that break no invariant."""
    if not runs:
        return
    written = {number: Written(Artifacts(run.task.staging)) for number, run in runs.items()}
    # Runs differ in shards alone, which no invariant looks at.
    found = violations(spark, written, next(iter(runs.values())).task.request)
    for number, run in runs.items():
        run.errors = tuple(f"the plan breaks a rule: {line}" for line in found.get(number, []))
        if not run.errors:
            (Artifacts(run.task.uri) / PLAN).publish(Artifacts(run.task.staging))


def write_loads(spark: SparkSession, runs: Sequence[RunState], history: str, options: LoadOptions) -> None:
    """Leave each run's tasks the loads of its cluster in the hours before its snapshot; none if there are none.

    Each run has a window of its own: what came after its snapshot is not its affair, however new others' are.
    """
    known = set(clusters(Artifacts(history)))
    in_history, windows = [], []
    for run in runs:
        try:
            if run.cluster_id in known:
                windows.append(Window(run.cluster_id, *window_until(run.taken_at, options.hours)))
                in_history.append(run)
        except RebalanceError as error:
            run.errors = (str(error),)
    if not in_history:
        return
    loads = window_loads(spark, history, windows).select("window", *options.columns).toArrow()
    for number, run in enumerate(in_history):
        own = planned(loads.filter(pc.equal(loads["window"], number)), options)
        if own is not None:
            Artifacts(run.task.scratch).write_table(RATES, own)


def _good(runs: Iterable[RunState]) -> list[RunState]:
    return [run for run in runs if not run.errors]


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--run", required=True, action="append", help="URI of a run's artifacts; its snapshot must be there; repeatable"
    )
    add("--request", type=_object, help="what is asked for, as JSON")
    add("--mode", choices=list(map(str, Mode)), help="what kind of plan; required without --request")
    add("--topics", type=_names, default=[], help="topics that may move, with commas; default all but internal ones")
    add("--brokers", type=_ids, default=[], help="brokers the mode is about, with commas; for kafka, those to place on")
    add("--pace", type=_object, default={}, help="how fast the plan may go, as JSON: what the forecast counts with")
    add("--seed", type=int, help="where choices between equals start; the same seed gives the same plan")
    add("--shards", type=int, help="parts to cut each cluster into; default by its size")
    add("--history", help="URI of the history of snapshots, for loads")
    add("--window", type=float, default=24.0, help="hours of history to look at, up to the run's snapshot; default 24")
    add("--load", choices=list(map(str, Statistic)), default="mean", help="what of these hours counts; default mean")
    add("--horizon", type=float, default=0.0, help="plan with the sizes after so many days; default 0, as they are")
    return parser.parse_args(arguments)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'give an object such as {{"mode": "balance"}}, not {text!r}')
    return value


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _ids(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"broker ids are numbers, with commas, not {text!r}") from error


if __name__ == "__main__":
    sys.exit(main())
