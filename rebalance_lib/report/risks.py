"""What may go wrong with a plan, a sentence each: what a person should know before approving it.

A plan with risks is never approved by a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rebalance_lib.planner.request import PLACING
from rebalance_lib.report.finish import finish, name_log_dir

NAMED = 5


def risks(
    cluster: Mapping[str, Any],
    in_fewer_racks: int,
    forecast: Mapping[str, Any] | None,
    groups: Mapping[str, Any] | None = None,
    goals: Iterable[Mapping[str, Any]] = (),
) -> list[str]:
    """The risks of one plan.

    Args:
        cluster: What ``summary.json`` says of the cluster, whatever the plan.
        in_fewer_racks: How many partitions end in fewer racks than now.
        forecast: The plan's forecast; None if there is nothing to copy.
        groups: What the plan does to consumer groups; None if they are not known.
        goals: What each goal says of the plan.
    """
    return [
        *_of_cluster(cluster),
        *_of_racks(in_fewer_racks),
        *_of_goals(goals, (cluster.get("request") or {}).get("mode", "")),
        *_of_forecast(forecast or {}, cluster.get("pace") or {}),
        *_of_groups((groups or {}).get("left_idle", 0)),
    ]


def _of_goals(goals: Iterable[Mapping[str, Any]], mode: str) -> Iterator[str]:
    """Hard goals that the plan leaves as far away as they are; racks have a sentence of their own.

    Modes that say themselves where each replica goes may bring a broker above its capacity while others come down.
    """
    for goal in goals:
        no_better = goal["after"] >= goal["before"] or (goal["goal"] == "capacity" and mode in PLACING)
        if goal["hard"] and not goal["met"] and no_better and goal["goal"] != "racks":
            yield f"The goal {goal['goal']} is not met: {goal['why']}."


def _of_cluster(cluster: Mapping[str, Any]) -> Iterator[str]:
    if missing := cluster["brokers_without_rack"]:
        yield f"Racks do not count, because brokers {_list(missing)} have none: replicas may end in one rack."
    for resource, brokers in cluster.get("unknown_capacities", {}).items():
        yield (
            f"The {resource} capacity of brokers {_list(brokers)} is not known, while that of others is: no "
            f"{resource} load is shared out to them, but other goals may change it. Give it with --capacities or in "
            "the clusters' file."
        )
    if dead := cluster["dead_brokers"]:
        yield (
            f"Brokers {_list(dead)} are down. Modes that repair or empty brokers place replicas on them elsewhere; "
            "others leave their partitions alone."
        )
    for broker, replicas in cluster["replicas_kept"].items():
        yield f"Broker {broker} keeps {replicas} replicas of excluded topics: it will not be empty."
    if (led := cluster.get("leaders_kept")) and led["count"]:
        yield (
            f"Brokers {_list(cluster['request']['brokers'])} stay the preferred leaders of {led['count']} partitions "
            "that are left out, or have no other replica in sync that may lead: "
            f"{_list(led['partitions'], led['count'])}."
        )
    if alone := cluster["partitions_left_alone"]:
        yield f"{alone} partitions are left alone because a replica of theirs is on a broker that is down."
    if unknown := cluster["replicas_of_unknown_size"]:
        yield (
            f"The size of {unknown} replicas is not known (their brokers did not answer): each counts as the largest "
            "known replica of its partition, as 0 bytes if none is known."
        )


def _of_racks(in_fewer_racks: int) -> Iterator[str]:
    if in_fewer_racks:
        yield f"{in_fewer_racks} partitions end in fewer racks than now: the request leaves them no more."


def _of_forecast(forecast: Mapping[str, Any], pace: Mapping[str, Any]) -> Iterator[str]:
    if full := [log_dir for log_dir in forecast.get("log_dirs", ()) if log_dir["overflows"]]:
        named = [name_log_dir(log_dir["path"], log_dir["broker"]) for log_dir in full]
        yield f"Disks would overflow: {_list(named)}."
    if forecast and forecast["never"]["count"]:
        yield f"Forecast: {finish(forecast, pace)}."
    for name, text in _FORECASTS.items():
        found = forecast.get(name)
        if found and found["count"]:
            yield f"{found['count']} {text}: {_list(found['partitions'], found['count'])}."


def _of_groups(left_idle: int) -> Iterator[str]:
    if left_idle:
        yield f"{left_idle} members of consumer groups that have partitions now are left without any."


_FORECASTS = {
    "blocked": "partitions cannot move as the cluster is now (no leader, or a target that is down)",
    "at_min_isr": "partitions come down to their min.insync.replicas",
}


def _list(values: Sequence[object], count: int | None = None) -> str:
    text = ", ".join(str(value) for value in values[:NAMED])
    return f"{text}, ..." if (len(values) if count is None else count) > NAMED else text
