"""``kafka-rebalance plan``."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.broker_files import broker_file_options, with_broker_files
from rebalance_lib.cli.options import broker_ids, command, output_option, with_options
from rebalance_lib.cli.output import Output
from rebalance_lib.cli.pace import pace_options
from rebalance_lib.cli.plan_files import free_for_plans, read_cluster
from rebalance_lib.cli.stages import Stages, progress
from rebalance_lib.history import LoadOptions, Statistic
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology import ClusterFile

EXAMPLE = r"""
kafka-rebalance plan --snapshot . --mode balance --out plan
kafka-rebalance plan --snapshot cluster.json --mode drain --brokers 7,8 --out plan
"""
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGTP]?)(i?)B?")
_MOST_BYTES = 1 << 62
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def number_of_bytes(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """``500``, ``500GB`` in powers of 1000, ``500GiB`` in powers of 1024."""
    if text is None:
        return None
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is not a number of bytes such as 500000, 500GB or 1.5TiB", param=param)
    number, power, binary = found.groups()
    bytes_ = float(number) * math.pow(1024 if binary else 1000, _POWERS[power])
    if bytes_ > _MOST_BYTES:
        raise click.BadParameter(f"{text!r} is more than any cluster holds; give 4096PiB at most", param=param)
    return round(bytes_)


def request_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each field of a request, and hand the function those that were given, by field."""
    options = [
        click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), required=True, help="See above."),
        _list("--brokers", "Those the mode is about: to fill, drain, replace, relieve or demote."),
        _list("--log-dirs", "drain-log-dirs: those to empty, each as BROKER:PATH."),
        _list("--replacements", "replace: the brokers that take their places, in the same order."),
        _list("--allowed-brokers", "Those that may be given replicas; default all that are alive."),
        _list("--excluded-brokers", "Those that neither give nor take, replicas or leaders."),
        _list("--topics", "Topics that may be moved, names or patterns such as 'orders-*'; default all but internal."),
        _list("--excluded-topics", "Topics that are left alone, names or patterns."),
        click.option("--include-internal", is_flag=True, default=None, help="Move internal topics too."),
        click.option("--tolerance", type=float, help="Part of its share that a broker may be off; default 0.01."),
        click.option(
            "--byte-budget", callback=number_of_bytes, metavar="BYTES", help="Copied at most: 500000, 500GB, 2TiB."
        ),
        click.option("--move-budget", type=int, help="Replicas that may be copied at most."),
        click.option("--max-fill", type=float, help="Part of its capacity that no log dir exceeds; default 0.9."),
        click.option("--fill-level", type=float, help="light: relieve brokers above this part of their capacity."),
        click.option(
            "--replication-factor", type=int, help="replication-factor: the factor; repair: the least factor."
        ),
        click.option("--partitions", type=int, help="partitions: how many each chosen topic shall have altogether."),
        click.option("--balance", is_flag=True, default=None, help="drain: even out the other brokers too."),
        _list("--leader-racks", "Racks that leaders are kept in, where a partition has a replica in sync there."),
        _list("--min-topic-leaders", "How many partitions of a topic each broker leads at least: 'metrics-*=1'."),
        _list("--goals", "What to aim at, the first counting the most: disk, replicas=0.05 and so on; see the docs."),
        click.option(
            "--polish",
            type=float,
            metavar="SECONDS",
            help="balance, expand, topics: once there is a plan, look so long for one that is more even, or copies "
            "less. For clusters too large to be planned exactly; the result depends on the machine. Default 0.",
        ),
        click.option("--seed", type=int, help="Chooses between equals; the same seed gives the same plan."),
        click.option("--shards", type=int, help="Parts that a cluster is cut into for planning; default by its size."),
    ]
    names = [one.name for one in fields(Request)]

    @functools.wraps(function)
    def wrapped(*arguments: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in names}
        return function(*arguments, given={name: v for name, v in given.items() if v not in (None, ())}, **values)

    return with_options(wrapped, options)


def _list(name: str, words: str) -> Callable[..., Any]:
    def split(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[Any, ...]:
        if any(not value.strip(" ,") for value in values):
            raise click.BadParameter("it is empty; leave the option out, or name some", param=param)
        if name.endswith(("topics", "goals", "log-dirs", "racks", "topic-leaders")):
            return tuple(word for value in values for word in value.split(",") if word)
        return tuple(id_ for value in values for id_ in broker_ids(value, param.opts[0]))

    return click.option(name, multiple=True, callback=split, help=f"{words} With commas, or repeated.")


@command("plan", example=EXAMPLE)
@click.option("--snapshot", "place", required=True, help="A snapshot's directory or URI, or a cluster's JSON file.")
@request_options
@broker_file_options
@click.option("--out", required=True, help="The directory, or its URI, that the files are published as.")
@click.option(
    "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Where to plan."
)
@click.option("--history", help="The directory or URI of a history of snapshots, for loads; default none.")
@click.option(
    "--window",
    type=click.FloatRange(min=0, min_open=True),
    default=24.0,
    show_default=True,
    help="With --history: how many hours before the snapshot count.",
)
@click.option(
    "--load",
    type=click.Choice([str(one) for one in Statistic]),
    default=str(Statistic.MEAN),
    show_default=True,
    help="With --history: what of these hours is written and read counts: the mean, the 95th percentile over the "
    "intervals between snapshots, or the last of them.",
)
@click.option(
    "--horizon",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="DAYS",
    help="With --history: plan with the sizes that partitions will have after so many days, at the growth of the "
    "window; default 0, as they are.",
)
@click.option("--master", help="spark: the master to submit to; default that of spark-submit.")
@pace_options
@output_option
def plan(
    *,
    output: Output,
    place: str,
    given: dict[str, Any],
    capacities: Path | None,
    broker_sets: Path | None,
    out: str,
    history: str | None,
    window: float,
    load: str,
    horizon: float,
    engine: str,
    master: str | None,
    pace: Pace,
) -> None:
    """Plan a rebalance from a snapshot; no cluster is needed, nothing is changed.

    Writes the recommended plan as reassignment JSON, the other candidates, all figures and a review to OUT, which
    appears whole or not at all. Throttles, caps and order are those that its forecast counts with.
    """
    options = LoadOptions(window, Statistic(load), horizon)
    if not history and (options.horizon_days or options.statistic != Statistic.MEAN):
        raise click.UsageError("--load and --horizon are about a history of snapshots: give --history, too")
    directory = Artifacts.named(out)
    free_for_plans(directory)
    with progress(output) as show_stage:
        stages = Stages(show_stage)
        with stages("read", "reading"), ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_cluster, place)
            from rebalance_lib.cli import plan_result, planning  # noqa: PLC0415 - brings numba, while the file is read

            cluster = with_broker_files(reading.result(), capacities, broker_sets)
        request = Request.from_dict(with_file(given, cluster))
        past = planning.Past(Artifacts.named(history), options) if history else None
        if past:
            past.check_cluster(cluster.snapshot)
        inputs = planning.PlanInputs(cluster, request, pace, past)
        if engine == "spark":
            planning.plan_on_spark(inputs, directory, stages, master)
        else:
            planning.plan_here(inputs, directory, stages)
    summary = directory.read_json("summary.json")
    plan_result.show_result(output, summary, out)
    output.result({"out": out, **summary})


MODES = "\n".join(f"  {mode:<20}{mode.explained}" for mode in Mode)
plan.help = f"{inspect.cleandoc(plan.help or '')}\n\n\b\nModes:\n{MODES}"


def with_file(given: dict[str, Any], cluster: ClusterFile) -> dict[str, Any]:
    """The request, completed by what the cluster's file says about its brokers."""
    of_mode = {Mode.DRAIN: cluster.remove, Mode.EXPAND: cluster.add}
    said: dict[str, Any] = {"brokers": of_mode.get(Mode(given["mode"]), ())}
    everyone = cluster.snapshot.brokers["broker"].to_pylist()
    if cluster.targets is not None and set(cluster.targets) != set(everyone):
        said["allowed_brokers"] = cluster.targets
    return {**{name: value for name, value in said.items() if value}, **given}
