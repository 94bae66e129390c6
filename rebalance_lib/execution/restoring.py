"""Take a run's throttles off, so that exactly what stood before stands again.

Of each topic's list only the run's own entries leave; of each broker's rates only those that the run set. Whatever
somebody else put there meanwhile is theirs, and stays. A broker that others' throttled moves use now keeps our rate, if
there was none before: without it their moves would run free. It stays saved, and goes with the next restore.

Where a rate was inherited, from a default of the cluster or from the broker's file, ours is deleted, and the inherited
one shows again: that is what stood before.

A broker that is down keeps its setting until it is back: it is skipped, told, and stays saved. What a run left because
its machine died is found by its saved file, and put right before the next snapshot or run, unless moves of that run are
still under way: they need their throttle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, Entries
from rebalance_lib.cluster.values import DYNAMIC
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.lock import locked
from rebalance_lib.execution.saved_throttles import SAVED, SavedThrottles, entries, left_behind
from rebalance_lib.execution.status import listing
from rebalance_lib.execution.throttle import (
    ALL_REPLICAS,
    REPLICA_LISTS,
    dynamic_rates,
    plan_rates,
    standing_throttles,
    throttled_partitions,
)
from rebalance_lib.plan import Plan

STATE = ".state"  # how the directory beside a plan's file ends
READ_BACK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, and what could not be, with the reason."""

    topics: list[str] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"put back on {len(self.topics)} topics and brokers {self.brokers}"
        reasons: dict[str, list[str]] = {}
        for where, reason in self.left.items():
            reasons.setdefault(reason, []).append(where)
        return text + "".join(f"; left on {', '.join(places)}: {reason}" for reason, places in reasons.items())


def restore_throttles(cluster: Cluster, artifacts: Artifacts) -> Restored:
    """Put back what stood before `apply_throttle`; what cannot be reached now stays saved, and is listed.

    Raises:
        DriftError: The saved values are another cluster's.
    """
    restored = Restored()
    if not left_behind(artifacts):
        return restored
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    alive = set(cluster.alive_brokers())
    used = _used_by_others(cluster, saved)
    for broker, rates in saved.brokers.items():
        if broker not in alive:
            restored.left[f"broker {broker}"] = "not alive; run the restore again when it is back"
            continue
        try:
            kept = _restore_broker(cluster, broker, rates, used=broker in used)
        except ClusterError as error:
            restored.left[f"broker {broker}"] = str(error)
            continue
        if kept:
            restored.left[f"broker {broker}"] = "throttled moves of others use it; restore again when they have ended"
        else:
            restored.brokers.append(broker)
            _strike_off(restored, [f"broker {broker}"], partial(saved.forget_broker, broker))
    for topic, lists in saved.topics.items():
        try:
            if cluster.partitions([topic]):  # else it was deleted meanwhile, and its settings with it
                _restore_topic(cluster, topic, {key: entry["added"] for key, entry in lists.items()})
        except ClusterError as error:
            restored.left[f"topic {topic}"] = str(error)
        else:
            restored.topics.append(topic)
    _strike_off(restored, [f"topic {topic}" for topic in restored.topics], lambda: saved.forget_topics(restored.topics))
    return restored


def _strike_off(restored: Restored, places: Iterable[str], forget: Callable[[], None]) -> None:
    """What was put back leaves the saved file; where that cannot be written, the rest is put back all the same."""
    try:
        forget()
    except RebalanceError as error:
        restored.left.update(dict.fromkeys(places, f"it was put back, but could not be struck off: {error}"))


def restore_left_behind(cluster: Cluster, runs: Artifacts, *, alive: Collection[str] = ()) -> dict[str, Restored]:
    """Put back what the run in this directory, or runs below it, left on this cluster because they died; by run.

    Args:
        cluster: The cluster.
        runs: The directory.
        alive: The URIs of runs that are known to be alive, and are left alone.
    """
    cluster_id = cluster.cluster_id()
    found: dict[str, Restored] = {}
    for run in (runs, *_below(runs)):
        if run.uri in alive or not left_behind(run) or run.read_json(SAVED)["cluster_id"] != cluster_id:
            continue
        found[run.uri] = _restore_dead(cluster, run, cluster_id)
    return found


def _restore_dead(cluster: Cluster, run: Artifacts, cluster_id: str) -> Restored:
    """Put back what one run left, unless it lives, or its moves do."""
    try:
        with locked(run):
            moving = sorted(SavedThrottles(run, cluster_id).partitions & cluster.reassignments().keys())
            if not moving:
                return restore_throttles(cluster, run)
    except RebalanceError as error:
        return Restored(left=dict.fromkeys(left_behind(run), str(error)))
    reason = (
        f"{len(moving)} of its moves are under way ({listing(moving, 3)}) and need it: run the plan again, or restore "
        "again when they have ended"
    )
    return Restored(left=dict.fromkeys(left_behind(run), reason))


def _below(runs: Artifacts) -> Iterator[Artifacts]:
    """The directories of runs in this one, and those beside plans within them."""
    for name in runs.directories():
        yield runs / name
        if name.endswith(STATE):
            yield from _below(runs / name)


def clear_throttles(cluster: Cluster, plan: Plan) -> Restored:
    """Take off what throttles a plan that another tool started, where nothing is known of what stood before.

    Only the plan's own entries leave the topics' lists; the rates are deleted, as that tool would. Rates go first: if
    this ends half way, the entries still tell that there is something to clear.
    """
    restored = Restored()
    throttle = standing_throttles(cluster, plan)
    keys = plan_rates(plan, replicas=bool(throttle.replicas))
    for broker in throttle.brokers:
        try:
            _set_rates(cluster, broker, dict.fromkeys(dynamic_rates(cluster, broker, keys)))
        except ClusterError as error:
            restored.left[f"broker {broker}"] = str(error)
        else:
            restored.brokers.append(broker)
    for topic, lists in throttle.replicas.items():
        try:
            _restore_topic(cluster, topic, lists)
        except ClusterError as error:
            restored.left[f"topic {topic}"] = str(error)
        else:
            restored.topics.append(topic)
    return restored


def _used_by_others(cluster: Cluster, saved: SavedThrottles) -> set[int]:
    """The brokers of throttled reassignments under way that are not this run's."""
    others = {tp: entry for tp, entry in cluster.reassignments().items() if tp not in saved.partitions}
    return {broker for tp in throttled_partitions(cluster, others) for broker in others[tp].replicas}


def _restore_broker(cluster: Cluster, broker: int, rates: Mapping[str, Mapping[str, Any]], *, used: bool) -> bool:
    """Put the rates of one broker back; returns whether some of ours is kept, because others need it."""
    standing = dynamic_rates(cluster, broker, tuple(rates))
    goal: dict[str, str | None] = {}
    kept = False
    for key, entry in rates.items():
        own = entry["source"] in DYNAMIC and not entry.get("shared")
        if key in standing and standing[key] not in entry["set"]:
            continue  # somebody else set another one meanwhile
        if not own and used and key in standing:
            kept = True
        else:
            goal[key] = entry["value"] if own else None
    _set_rates(cluster, broker, goal)
    return kept


def _set_rates(cluster: Cluster, broker: int, goal: Mapping[str, str | None]) -> None:
    cluster.alter_broker_config(broker, goal)
    _read_back(
        lambda: dynamic_rates(cluster, broker, tuple(goal)),
        lambda standing: all(standing.get(key) == value for key, value in goal.items()),
        f"broker {broker}, set to {dict(goal)},",
    )


def _restore_topic(cluster: Cluster, topic: str, added: Mapping[str, Collection[str]]) -> None:
    """Take our entries out of a topic's lists, and delete a list that has no others."""
    own = {key: tuple(sorted(items)) for key, items in added.items() if items}

    def lists() -> dict[str, str]:
        return {key: value.value for key, value in cluster.topic_config(topic, REPLICA_LISTS).items()}

    standing = lists()
    cluster.alter_topic_config(
        topic, {key: Entries(items, out=True) for key, items in own.items() if standing.get(key) != ALL_REPLICAS}
    )
    _read_back(
        lists,
        lambda standing: not any(set(entries(standing.get(key))) & set(items) for key, items in own.items()),
        f"topic {topic}",
    )
    standing = lists()
    cluster.alter_topic_config(topic, {key: None for key in own if key not in standing})


def _read_back(
    read: Callable[[], Mapping[str, str]], is_right: Callable[[Mapping[str, str]], bool], where: str
) -> None:
    """Wait until the cluster shows what was set: it reaches the brokers a moment after the controller took it."""
    deadline = time.monotonic() + READ_BACK_SECONDS
    while not is_right(standing := read()):
        if time.monotonic() > deadline:
            raise ClusterError(f"{where} still shows {standing} after {READ_BACK_SECONDS:.0f} s")
        time.sleep(0.2)
