"""Restore the throttle configurations of a run, so that exactly what was set before is set again.

Of each topic's list only the run's own entries leave; of each broker's rates only those that the run set. Whatever
somebody else put there meanwhile is theirs, and stays. A broker that others' throttled moves use now keeps our rate, if
there was none before: without it their moves would run free. It stays saved, and goes with the next restore.

Where a rate was inherited, from a default of the cluster or from the broker's file, ours is deleted, and the inherited
one shows again: that is what was set before.

A broker that is down keeps its configuration until it is back: it is skipped, named, and stays saved. One that is not
even registered any more is gone for good, and forgotten. What a run left because its machine died is found by its saved
file, and restored before the next snapshot or run, unless moves of that run are still under way: they need their
throttle. A saved file that is damaged is set aside and named, and stops nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, ConfigValue, Entries, Reassignment
from rebalance_lib.cluster.values import DYNAMIC
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution.metadata_lag import LAG_SECONDS
from rebalance_lib.execution.plan_status import listing
from rebalance_lib.execution.throttles.config import (
    ALL_REPLICAS,
    alter_lists,
    current_throttles,
    dynamic_rates,
    entries,
    fresh_configs,
    plan_rates,
    replica_lists,
    throttled_partitions,
)
from rebalance_lib.execution.throttles.saved import (
    DAMAGED,
    SAVED,
    DamagedThrottlesError,
    SavedThrottles,
    read_saved,
    set_aside_damaged,
    stale_throttles,
)
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

STATE = ".state"  # how the directory beside a plan's file ends
READ_BACK_SECONDS = 15.0
READ_AGAIN_SECONDS = 0.5
SILENT = "it does not answer; run the restore again when it does"
DOWN = "not alive; run the restore again when it is back"

Goal = dict[str, str | None]  # a broker's rates as they shall be; None for not set


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored, what could not be, with the reason, and the brokers that keep a rate of somebody else's."""

    topics: list[str] = field(default_factory=list)
    brokers: list[int] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    foreign: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"restored on {len(self.topics)} topics and brokers {self.brokers}"
        if self.foreign:
            text += f"; brokers {self.foreign} keep a rate that somebody else set"
        reasons: dict[str, list[str]] = {}
        for where, reason in self.left.items():
            reasons.setdefault(reason, []).append(where)
        return text + "".join(f"; left on {', '.join(places)}: {reason}" for reason, places in reasons.items())


def restore_throttles(cluster: Cluster, artifacts: Artifacts) -> Restored:
    """Restore what was set before the run; what cannot be reached now stays saved, and is listed.

    Raises:
        DriftError: The saved values are another cluster's.
        DamagedThrottlesError: They cannot be read.
    """
    restored = Restored()
    if not stale_throttles(artifacts):
        return restored
    saved = SavedThrottles(artifacts, cluster.cluster_id())
    _restore_brokers(cluster, saved, restored)
    own = {topic: {key: entry["added"] for key, entry in lists.items()} for topic, lists in saved.topics.items()}
    left = _restore_topics(cluster, own)
    restored.left.update({f"topic {topic}": reason for topic, reason in left.items()})
    restored.topics.extend(topic for topic in own if topic not in left)
    _forget(restored, [f"topic {topic}" for topic in restored.topics], lambda: saved.forget_topics(restored.topics))
    return restored


def _restore_brokers(cluster: Cluster, saved: SavedThrottles, restored: Restored) -> None:
    alive, registered = set(cluster.alive_brokers()), cluster.registered_brokers()
    reassignments = cluster.reassignments()
    needed = _used_by_others(cluster, saved, reassignments)
    moving = {broker for entry in reassignments.values() for broker in entry.replicas}
    noted = saved.brokers
    keys = sorted({key for rates in noted.values() for key in rates})
    current = _doubted_again(cluster, noted, fresh_configs(cluster, sorted(noted.keys() & alive), keys), keys)
    goals: dict[int, Goal] = {}
    for broker, rates in noted.items():
        where = f"broker {broker}"
        if broker not in registered:
            goals[broker] = {}  # it is gone for good, and its configuration with it
        elif broker not in current:
            restored.left[where] = SILENT if broker in alive else DOWN
        else:
            back = _goal(rates, current[broker], used=broker in needed)
            if back.kept:
                restored.left[where] = "throttled moves of others use it; restore again when they have ended"
            elif back.foreign and broker in moving:
                # Whoever set it may have found ours there, and put that back in the end.
                restored.left[where] = (
                    "somebody else set another rate, and moves under way use it; restore again when they have ended"
                )
            elif back.foreign:
                restored.foreign.append(broker)
            goals[broker] = back.goal
    failed = _set_rates(cluster, goals)
    restored.left.update({f"broker {broker}": reason for broker, reason in failed.items()})
    done = [broker for broker in goals if f"broker {broker}" not in restored.left]
    restored.brokers.extend(broker for broker in done if broker not in restored.foreign and broker in registered)
    if done:
        _forget(restored, [f"broker {broker}" for broker in done], lambda: saved.forget_brokers(done))


def _doubted_again(
    cluster: Cluster,
    noted: Mapping[int, Mapping[str, Mapping[str, Any]]],
    current: dict[int, dict[str, ConfigValue]],
    keys: Sequence[str],
) -> dict[int, dict[str, ConfigValue]]:
    """Read brokers that show a rate of somebody else again: one that lags may not show yet that ours replaced it."""
    deadline = cluster.clock.monotonic() + LAG_SECONDS
    while True:
        doubted = [broker for broker in sorted(current) if _goal(noted[broker], current[broker], used=False).foreign]
        if not doubted or cluster.clock.monotonic() > deadline:
            return current
        cluster.clock.sleep(READ_AGAIN_SECONDS)
        current = current | fresh_configs(cluster, doubted, keys)


def _forget(restored: Restored, places: Iterable[str], forget: Callable[[], None]) -> None:
    """What was restored leaves the saved file; where that cannot be written, the rest is restored all the same."""
    try:
        forget()
    except RebalanceError as error:
        restored.left.update(dict.fromkeys(places, f"it was restored, but that could not be recorded: {error}"))


def restore_stale_throttles(cluster: Cluster, runs: Artifacts, *, alive: Collection[str] = ()) -> dict[str, Restored]:
    """Restore what the run in this directory, or runs below it, left on this cluster because they died; by run.

    Args:
        cluster: The cluster.
        runs: The directory.
        alive: The URIs of runs that are known to be alive, and are left alone.
    """
    cluster_id = cluster.cluster_id()
    found: dict[str, Restored] = {}
    for run in (runs, *_subdirectories(runs)):
        if run.uri in alive:
            continue
        try:
            saved = read_saved(run)
        except DamagedThrottlesError as error:
            set_aside_damaged(run)
            found[run.uri] = Restored(left={SAVED: f"{error}. It is kept as {DAMAGED}"})
            continue
        if saved and (saved["topics"] or saved["brokers"]) and saved["cluster_id"] == cluster_id:
            found[run.uri] = _restore_dead(cluster, run, cluster_id)
    return found


def _restore_dead(cluster: Cluster, run: Artifacts, cluster_id: str) -> Restored:
    """Restore what one run left, unless it lives, or its moves do."""
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


def _subdirectories(runs: Artifacts) -> Iterator[Artifacts]:
    """The directories of runs in this one, and those beside plans within them."""
    for name in runs.directories():
        yield runs / name
        if name.endswith(STATE):
            yield from _subdirectories(runs / name)


def clear_throttles(cluster: Cluster, plan: Plan) -> Restored:
    """Remove what throttles a plan that another tool started, where nothing is known of what was set before.

    Only the plan's own entries leave the topics' lists; the rates are deleted, as that tool would. Rates go first: if
    this ends half way, the entries still tell that there is something to clear.
    """
    restored = Restored()
    throttle = current_throttles(cluster, plan)
    keys = plan_rates(plan, replicas=bool(throttle.replicas))
    failed = _set_rates(cluster, {broker: dict.fromkeys(keys) for broker in throttle.brokers})
    restored.left.update({f"broker {broker}": reason for broker, reason in failed.items()})
    restored.brokers.extend(broker for broker in throttle.brokers if broker not in failed)
    left = _restore_topics(cluster, throttle.replicas)
    restored.left.update({f"topic {topic}": reason for topic, reason in left.items()})
    restored.topics.extend(topic for topic in throttle.replicas if topic not in left)
    return restored


def _used_by_others(
    cluster: Cluster, saved: SavedThrottles, reassignments: Mapping[TopicPartition, Reassignment]
) -> set[int]:
    """The brokers of throttled reassignments under way that are not this run's."""
    own = saved.partitions
    others = {tp: entry for tp, entry in reassignments.items() if tp not in own}
    if not others:
        return set()
    return {broker for tp in throttled_partitions(cluster, others) for broker in others[tp].replicas}


@dataclass(frozen=True, slots=True)
class _Back:
    """What a broker's rates shall be; whether one of ours is kept, because others need it, and one is another's."""

    goal: Goal
    kept: bool
    foreign: bool


def _goal(rates: Mapping[str, Mapping[str, Any]], current: Mapping[str, ConfigValue], *, used: bool) -> _Back:
    goal: Goal = {}
    kept = foreign = False
    for key, entry in rates.items():
        value = current[key].value if key in current and current[key].dynamic else None
        before = entry["value"] if entry["source"] in DYNAMIC and not entry.get("shared") else None
        if value is not None and value not in (*entry["set"], entry["value"]):
            foreign = True
        elif before is None and used and value is not None:
            kept = True
        else:  # also where it shows already: what a broker shows may lag
            goal[key] = before
    return _Back(goal, kept, foreign)


def _set_rates(cluster: Cluster, goals: Mapping[int, Goal]) -> dict[int, str]:
    """Set these rates, and wait until the brokers show them; returns the brokers that do not, with the reason."""
    changes = {broker: goal for broker, goal in goals.items() if goal}
    if not changes:
        return {}
    failed = cluster.alter_broker_configs(changes)
    waiting = {broker: goal for broker, goal in changes.items() if broker not in failed}
    deadline = cluster.clock.monotonic() + READ_BACK_SECONDS
    while waiting:
        found = dynamic_rates(cluster, sorted(waiting), sorted({key for goal in waiting.values() for key in goal}))
        waiting = {
            broker: goal
            for broker, goal in waiting.items()
            if broker not in found or any(found[broker].get(key) != value for key, value in goal.items())
        }
        if waiting and cluster.clock.monotonic() > deadline:
            late = f"it does not show what was set after {READ_BACK_SECONDS:.0f} s"
            return failed | dict.fromkeys(waiting, late)
        if waiting:
            cluster.clock.sleep(0.2)
    return failed


def _restore_topics(cluster: Cluster, added: Mapping[str, Mapping[str, Collection[str]]]) -> dict[str, str]:
    """Take our entries out of the lists of topics, and delete lists that have no others; all topics together.

    Returns:
        The topics that still have some, with the reason.
    """
    own = {topic: {key: set(items) for key, items in lists.items() if items} for topic, lists in added.items()}
    own = {topic: lists for topic, lists in own.items() if lists}
    if not own:
        return {}
    try:
        there = {tp.topic for tp in cluster.partitions(own)}  # else deleted meanwhile, and its configuration with it
        pending = {topic: lists for topic, lists in own.items() if topic in there}
        current = replica_lists(cluster, pending)
        refused = alter_lists(
            cluster,
            {
                topic: {
                    key: Entries(tuple(sorted(items)), out=True)
                    for key, items in lists.items()
                    if current.get(topic, {}).get(key) != ALL_REPLICAS
                }
                for topic, lists in pending.items()
            },
        )
        pending = {topic: lists for topic, lists in pending.items() if topic not in refused}
        left = _wait_until_out(cluster, pending)
        current = replica_lists(cluster, pending)
        refused |= alter_lists(
            cluster,
            {
                topic: {key: None for key in lists if key not in current[topic]}
                for topic, lists in pending.items()
                if topic not in left and topic in current
            },
        )
    except ClusterError as error:
        return dict.fromkeys(own, str(error))
    return refused | dict.fromkeys(left, f"it still shows our entries after {READ_BACK_SECONDS:.0f} s")


def _with_entries(
    own: Mapping[str, Mapping[str, set[str]]], current: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, set[str]]]:
    """The topics whose lists have entries of ours; those that do not show their lists count too."""
    return {
        topic: lists
        for topic, lists in own.items()
        if topic not in current or any(set(entries(current[topic].get(key))) & items for key, items in lists.items())
    }


def _wait_until_out(cluster: Cluster, own: Mapping[str, Mapping[str, set[str]]]) -> dict[str, Mapping[str, set[str]]]:
    """Wait until no list shows our entries; returns the topics that still do."""
    deadline = cluster.clock.monotonic() + READ_BACK_SECONDS
    left = _with_entries(own, replica_lists(cluster, own))
    while left and cluster.clock.monotonic() < deadline:
        cluster.clock.sleep(0.2)
        left = _with_entries(left, replica_lists(cluster, left))
    return left
