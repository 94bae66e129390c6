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

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Cluster, Entries, Reassignment
from rebalance_lib.cluster.values import DYNAMIC
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.plan_status import listing
from rebalance_lib.execution.throttles.apply import (
    ALL_REPLICAS,
    REPLICA_LISTS,
    dynamic_rates,
    plan_rates,
    standing_throttles,
    throttled_partitions,
)
from rebalance_lib.execution.throttles.saved import SAVED, SavedThrottles, entries, stale_throttles
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

STATE = ".state"  # how the directory beside a plan's file ends
READ_BACK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, what could not be, with the reason, and the brokers that keep a rate of somebody else's."""

    topics: list[str] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    theirs: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"put back on {len(self.topics)} topics and brokers {self.brokers}"
        if self.theirs:
            text += f"; brokers {self.theirs} keep a rate that somebody else set"
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
    if not stale_throttles(artifacts):
        return restored
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    alive = set(cluster.alive_brokers())
    reassignments = cluster.reassignments()
    needing = _used_by_others(cluster, saved, reassignments)
    moving = {broker for entry in reassignments.values() for broker in entry.replicas}
    for broker, rates in saved.brokers.items():
        if broker not in alive:
            restored.left[f"broker {broker}"] = "not alive; run the restore again when it is back"
            continue
        try:
            back = _restore_broker(cluster, broker, rates, used=broker in needing)
        except ClusterError as error:
            restored.left[f"broker {broker}"] = str(error)
            continue
        if back.kept:
            restored.left[f"broker {broker}"] = "throttled moves of others use it; restore again when they have ended"
        elif back.theirs and broker in moving:
            # Whoever set it may have found ours there, and put that back in the end.
            restored.left[f"broker {broker}"] = (
                "somebody else set another rate, and moves under way use it; restore again when they have ended"
            )
        else:
            (restored.theirs if back.theirs else restored.brokers).append(broker)
            _strike_off(restored, [f"broker {broker}"], partial(saved.forget_broker, broker))
    left = _restore_topics(
        cluster, {topic: {key: e["added"] for key, e in lists.items()} for topic, lists in saved.topics.items()}
    )
    restored.left.update({f"topic {topic}": reason for topic, reason in left.items()})
    restored.topics.extend(topic for topic in saved.topics if topic not in left)
    _strike_off(restored, [f"topic {topic}" for topic in restored.topics], lambda: saved.forget_topics(restored.topics))
    return restored


def _strike_off(restored: Restored, places: Iterable[str], forget: Callable[[], None]) -> None:
    """What was put back leaves the saved file; where that cannot be written, the rest is put back all the same."""
    try:
        forget()
    except RebalanceError as error:
        restored.left.update(dict.fromkeys(places, f"it was put back, but could not be struck off: {error}"))


def restore_stale_throttles(cluster: Cluster, runs: Artifacts, *, alive: Collection[str] = ()) -> dict[str, Restored]:
    """Put back what the run in this directory, or runs below it, left on this cluster because they died; by run.

    Args:
        cluster: The cluster.
        runs: The directory.
        alive: The URIs of runs that are known to be alive, and are left alone.
    """
    cluster_id = cluster.cluster_id()
    found: dict[str, Restored] = {}
    for run in (runs, *_below(runs)):
        if run.uri in alive or not stale_throttles(run) or run.read_json(SAVED)["cluster_id"] != cluster_id:
            continue
        found[run.uri] = _restore_dead(cluster, run, cluster_id)
    return found


def _restore_dead(cluster: Cluster, run: Artifacts, cluster_id: str) -> Restored:
    """Put back what one run left, unless it lives, or its moves do."""
    try:
        with run.locked(clock=cluster.clock):
            moving = sorted(SavedThrottles(run, cluster_id).partitions & cluster.reassignments().keys())
            if not moving:
                return restore_throttles(cluster, run)
    except RebalanceError as error:
        return Restored(left=dict.fromkeys(stale_throttles(run), str(error)))
    reason = (
        f"{len(moving)} of its moves are under way ({listing(moving, 3)}) and need it: run the plan again, or restore "
        "again when they have ended"
    )
    return Restored(left=dict.fromkeys(stale_throttles(run), reason))


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
    left = _restore_topics(cluster, throttle.replicas)
    restored.left.update({f"topic {topic}": reason for topic, reason in left.items()})
    restored.topics.extend(topic for topic in throttle.replicas if topic not in left)
    return restored


def _used_by_others(
    cluster: Cluster, saved: SavedThrottles, reassignments: Mapping[TopicPartition, Reassignment]
) -> set[int]:
    """The brokers of throttled reassignments under way that are not this run's."""
    others = {tp: entry for tp, entry in reassignments.items() if tp not in saved.partitions}
    return {broker for tp in throttled_partitions(cluster, others) for broker in others[tp].replicas}


class _Back(NamedTuple):
    """What became of a broker's rates: whether some of ours is kept, because others need it, and some is another's."""

    kept: bool
    theirs: bool


def _restore_broker(cluster: Cluster, broker: int, rates: Mapping[str, Mapping[str, Any]], *, used: bool) -> _Back:
    """Put the rates of one broker back."""
    standing = dynamic_rates(cluster, broker, tuple(rates), attempts=2)
    goal: dict[str, str | None] = {}
    kept = theirs = False
    for key, entry in rates.items():
        own = entry["source"] in DYNAMIC and not entry.get("shared")
        if key in standing and standing[key] not in entry["set"]:
            theirs |= standing[key] != entry["value"]  # else somebody else put it back already
        elif not own and used and key in standing:
            kept = True
        else:
            goal[key] = entry["value"] if own else None
    _set_rates(cluster, broker, goal)
    return _Back(kept, theirs)


def _set_rates(cluster: Cluster, broker: int, goal: Mapping[str, str | None]) -> None:
    cluster.alter_broker_config(broker, goal)
    _read_back(
        cluster.clock,
        lambda: dynamic_rates(cluster, broker, tuple(goal)),
        lambda standing: all(standing.get(key) == value for key, value in goal.items()),
        f"broker {broker}, set to {dict(goal)},",
    )


def _restore_topics(cluster: Cluster, added: Mapping[str, Mapping[str, Collection[str]]]) -> dict[str, str]:
    """Take our entries out of the lists of topics, and delete lists that have no others; all topics together.

    Returns:
        The topics that still have some, with the reason.
    """
    own = {topic: {key: set(items) for key, items in lists.items() if items} for topic, lists in added.items()}
    try:
        there = {tp.topic for tp in cluster.partitions(own)}  # else deleted meanwhile, and the settings with it
        pending = {topic: lists for topic, lists in own.items() if topic in there}
        standing = _lists(cluster, pending)
    except ClusterError as error:
        return dict.fromkeys(own, str(error))
    reason = f"it still shows our entries after {READ_BACK_SECONDS:.0f} s"
    try:
        cluster.alter_topic_configs(
            {
                topic: {
                    key: Entries(tuple(sorted(items)), out=True)
                    for key, items in lists.items()
                    if standing.get(topic, {}).get(key) != ALL_REPLICAS
                }
                for topic, lists in pending.items()
            }
        )
        left = _wait_until_out(cluster, pending)
        standing = _lists(cluster, pending)
        cluster.alter_topic_configs(
            {
                topic: {key: None for key in lists if key not in standing[topic]}
                for topic, lists in pending.items()
                if topic not in left and topic in standing
            }
        )
    except ClusterError as error:
        left, reason = _with_entries(pending, standing), str(error)
    return dict.fromkeys(left, reason)


def _lists(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    found = cluster.topic_configs(topics, REPLICA_LISTS)
    return {topic: {key: value.value for key, value in lists.items()} for topic, lists in found.items()}


def _with_entries(
    own: Mapping[str, Mapping[str, set[str]]], standing: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, set[str]]]:
    """The topics whose lists have entries of ours; those that do not show their lists count too."""
    return {
        topic: lists
        for topic, lists in own.items()
        if topic not in standing or any(set(entries(standing[topic].get(key))) & items for key, items in lists.items())
    }


def _wait_until_out(cluster: Cluster, own: Mapping[str, Mapping[str, set[str]]]) -> dict[str, Mapping[str, set[str]]]:
    """Wait until no list shows our entries; returns the topics that still do."""
    deadline = cluster.clock.monotonic() + READ_BACK_SECONDS
    left = _with_entries(own, _lists(cluster, own))
    while left and cluster.clock.monotonic() < deadline:
        cluster.clock.sleep(0.2)
        left = _with_entries(left, _lists(cluster, left))
    return left


def _read_back(
    clock: Clock, read: Callable[[], Mapping[str, str]], is_right: Callable[[Mapping[str, str]], bool], where: str
) -> None:
    """Wait until the cluster shows what was set: it reaches the brokers a moment after the controller took it."""
    deadline = clock.monotonic() + READ_BACK_SECONDS
    while not is_right(standing := read()):
        if clock.monotonic() > deadline:
            raise ClusterError(f"{where} still shows {standing} after {READ_BACK_SECONDS:.0f} s")
        clock.sleep(0.2)
