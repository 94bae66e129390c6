"""``kafka-rebalance simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rebalance_lib.artifacts import RATES, Artifacts
from rebalance_lib.cli.options import PlanFile, command, disk_reserve_option, output_option, plan_option
from rebalance_lib.cli.output import Output
from rebalance_lib.cli.pace import pace_options
from rebalance_lib.cli.plan_files import read_cluster
from rebalance_lib.plan.pace import Pace
from rebalance_lib.reassignment import Forecast
from rebalance_lib.reassignment import simulate as dry_run
from rebalance_lib.report.documents import fullest_log_dirs
from rebalance_lib.report.durations import human_seconds
from rebalance_lib.report.finish import finish, name_log_dir
from rebalance_lib.report.units import human_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from rebalance_lib.topology.cluster_json import ClusterFile

EXAMPLE = r"""
kafka-rebalance simulate --snapshot . --reassignment-json-file plan/plan.json --throttle 50000000
kafka-rebalance simulate --snapshot . --reassignment-json-file plan/plan.json --throttle 50000000 \
    --moves-in 5 --one-replica-at-a-time   # gentler: what does it cost?
"""
SHOWN = 10
NAMED = 5


@command("simulate", example=EXAMPLE)
@click.option("--snapshot", "place", required=True, help="A snapshot's directory or URI, or a cluster's JSON file.")
@plan_option
@pace_options
@disk_reserve_option
@output_option
def simulate(*, output: Output, place: str, plan_file: PlanFile, pace: Pace, disk_reserve: float) -> None:
    """Show what a plan would do, and when; no cluster is needed, nothing is changed.

    The moves begin as the engine begins them, under the same caps and in the same order, and share the throttle of
    their brokers. Shown are the waves in which they begin and how much time is left after each, how full log dirs get
    on the way (new replicas count from their beginning, removed ones until Kafka has deleted their files), and what
    brokers send and receive. What is not known is assumed, and said. Write rates are read from rates.parquet beside the
    plan, where the planner leaves them if it knows them, or else from the cluster's JSON.
    """
    cluster = read_cluster(place)
    forecast = dry_run(plan_file.read(), cluster.snapshot, pace, write_rates=_rates(plan_file, cluster))
    document = forecast.as_dict(reserve=disk_reserve)
    show(output, forecast, document, pace, disk_reserve)
    output.result(document)


def _rates(plan_file: PlanFile, cluster: ClusterFile) -> pa.Table | None:
    """The loads that the plan was made with, for a candidate beside the recommended plan; else the cluster's own."""
    directory = plan_file.path.absolute().parent
    if directory.parent.name == "candidates":
        directory = directory.parents[1]
    planned = Artifacts.at(directory)
    return planned.read_table(RATES) if planned.exists(RATES) else cluster.loads


def show(output: Output, forecast: Forecast, document: dict[str, Any], pace: Pace, reserve: float) -> None:
    """A forecast for people."""
    if not forecast.partitions:
        output.say("Nothing to do: every partition has its replicas already")
        return
    change = f"{forecast.partitions} partitions change and {human_bytes(forecast.bytes)} are copied"
    if forecast.seconds is None:
        output.say(f"{change}, but {finish(document, pace.as_dict())}")
    else:
        output.say(f"{change} in {human_seconds(forecast.seconds)}")
    for one in forecast.log_dirs:
        if missing := one.lacks(reserve):
            kept = f" with {reserve:.0%} of it kept free" if reserve else ""
            words = f"would overflow{kept}: it lacks {human_bytes(missing)}"
            output.say(f"Warning: {name_log_dir(one.path, one.broker)} {words}")
    _show_waves(output, forecast)
    _show_log_dirs(output, document["log_dirs"])
    _show_brokers(output, forecast)
    _print_partitions(
        output, "cannot move as the cluster is now (no leader, or a target that is down)", forecast.blocked
    )
    _print_partitions(output, "come down to their min.insync.replicas", forecast.at_min_isr or ())
    for line in forecast.assumptions:
        output.say(f"- {line}")


def _show_waves(output: Output, forecast: Forecast) -> None:
    rows = [
        (
            str(wave.number),
            human_seconds(wave.begins),
            human_seconds(wave.ends),
            str(wave.partitions),
            human_bytes(wave.bytes),
            "-" if wave.seconds_left is None else human_seconds(wave.seconds_left),
        )
        for wave in forecast.waves
    ]
    columns = ("wave", "begins", "ends", "partitions", "bytes", "left after it")
    output.table("\nWaves: what begins together, or within a twentieth of the time", columns, rows)


def _show_log_dirs(output: Output, log_dirs: list[dict[str, Any]]) -> None:
    rows = [
        (
            str(one["broker"]),
            one["path"] or "not known",
            human_bytes(one["bytes_before"]),
            human_bytes(one["bytes_peak"]),
            human_seconds(one["peak_at"]),
            human_bytes(one["bytes_after"]),
            "-" if one["fill"] is None else f"{one['fill']:.1%}",
        )
        for one in fullest_log_dirs(log_dirs, SHOWN)
    ]
    columns = ("broker", "log dir", "before", "peak", "at", "after", "disk full at the peak")
    output.table(f"Log dirs that get fullest, {SHOWN} at most", columns, rows)


def _show_brokers(output: Output, forecast: Forecast) -> None:
    busiest = sorted(forecast.brokers, key=lambda one: (-max(one.peak_in, one.peak_out), -one.bytes_peak))[:SHOWN]
    rows = [
        (
            str(one.broker),
            f"{human_bytes(one.peak_in)}/s",
            f"{human_bytes(one.peak_out)}/s",
            human_bytes(one.bytes_before),
            human_bytes(one.bytes_peak),
            human_bytes(one.bytes_after),
        )
        for one in busiest
    ]
    columns = ("broker", "receives at most", "sends at most", "before", "peak", "after")
    output.table(f"Brokers with most traffic, {SHOWN} at most", columns, rows)


def _print_partitions(output: Output, what: str, names: tuple[str, ...]) -> None:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        output.say(f"{len(names)} partitions {what}: {', '.join(names[:NAMED])}{more}")
