"""What others do while a run is under way: other tools with reassignments and throttles, and people with requests.

Other tools change the truth of the cluster, without a client of ours. People write requests where the run reads them;
what they asked for counts from the moment that it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rebalance_lib.cluster.values import Entries
from rebalance_lib.errors import RebalanceError
from rebalance_lib.topology import TopicPartition
from simulator import operator
from simulator.configs import RATES, REPLICA_LISTS
from simulator.ledger import Change
from simulator.operator import Place

if TYPE_CHECKING:
    from simulator.world import World

ASK_AGAIN_SECONDS = 10.0


# Other tools


def foreign_reassignment(world: World, topic: str, partition: int, replicas: list[int], throttled: bool) -> bool | None:
    """Another tool moves a partition; some do it with a throttle."""
    tp, now = TopicPartition(topic, partition), world.scheduler.now
    if tp not in world.cluster.partitions or any(not world.cluster.brokers[broker].up for broker in replicas):
        return False
    if not world.cluster.foreign_reassign(tp, replicas):
        return False
    world.ledger.own.pop(tp, None)
    world.ledger.foreign_touched[tp] = now
    if world.cluster.state(tp).reassigning:
        world.ledger.foreign[tp] = now
    if throttled:
        for broker in replicas:
            _foreign_entry(world, topic, f"{partition}:{broker}")
    return None


def foreign_cancel(world: World, topic: str, partition: int) -> bool | None:
    """Another tool cancels the reassignment of a partition, or of another of the plan."""
    wanted = TopicPartition(topic, partition)
    moving = sorted(world.cluster.reassignments())
    if not moving:
        return False
    tp = wanted if wanted in moving else moving[0]
    if not world.cluster.foreign_cancel(tp):
        return False
    world.ledger.foreign_touched[tp] = world.scheduler.now
    return None


def foreign_verify(world: World, topics: list[str]) -> bool | None:
    """``kafka-reassign-partitions --verify`` of others: it deletes the lists of its topics, and all rates."""
    now = world.scheduler.now
    existing = [topic for topic in topics if world.cluster.topic_partitions(topic)]
    if not world.cluster.foreign_delete_throttles(existing):
        return False
    for topic in existing:
        world.ledger.lost_list(topic, now)
    for broker, one in world.cluster.brokers.items():
        if one.working:
            world.ledger.set_rate(broker, None, now)
    return None


def foreign_throttle_set(world: World, broker: int = 0, rate: int = 0, topic: str = "", entry: str = "") -> bool | None:
    """Another tool sets the rates of a broker, or adds to the lists of a topic."""
    if topic:
        return None if _foreign_entry(world, topic, entry) else False
    if not world.cluster.brokers[broker].working:
        return False
    if not world.cluster.foreign_set_throttle({broker: dict.fromkeys(RATES, str(rate))}, {}):
        return False
    world.ledger.set_rate(broker, str(rate), world.scheduler.now)
    return None


def _foreign_entry(world: World, topic: str, entry: str) -> bool:
    configs, ledger = world.cluster.configs, world.ledger
    lists = configs.topics.get(topic, {})
    if not world.cluster.topic_partitions(topic) or "*" in lists.values() or not world.cluster.controller_active:
        return False
    for key in REPLICA_LISTS:
        if entry in lists.get(key, "").split(",") and entry not in ledger.entries.get((topic, key), ()):
            ledger.shared_entries.add((topic, entry))
    world.cluster.foreign_set_throttle({}, {topic: dict.fromkeys(REPLICA_LISTS, Entries((entry,)))})
    ledger.add_entry(topic, entry, world.scheduler.now)
    # Whether the run would want this very entry later on is not known: Kafka keeps no count of who added one.
    ledger.shared_entries.add((topic, entry))
    return True


def foreign_throttle_deleted(world: World, broker: int = 0, topic: str = "") -> bool | None:
    """Another tool deletes the rates of a broker, or the lists of a topic."""
    now = world.scheduler.now
    if topic:
        if not world.cluster.topic_partitions(topic) or not world.cluster.controller_active:
            return False
        world.cluster.foreign_set_throttle({}, {topic: dict.fromkeys(REPLICA_LISTS)})
        world.ledger.lost_list(topic, now)
        return None
    if not world.cluster.brokers[broker].working or not world.cluster.controller_active:
        return False
    world.cluster.alter_broker_config(broker, dict.fromkeys(RATES))
    world.ledger.set_rate(broker, None, now)
    return None


# People


def _ask(
    world: World, kind: str, value: object, noted: Callable[[float], None], *, insist: bool = False
) -> bool | None:
    """A person makes a request of the run; if it cannot be written down, they see that it failed, and may try again."""
    run = world.supervisor.run
    if run.ended or run.name != "run":
        return False

    def main(place: Place) -> None:
        operator.ask(place.storage, place.clock, kind, value)
        noted(world.scheduler.now)
        world.ledger.asked.append(kind)

    def tolerant(place: Place) -> None:
        try:
            main(place)
        except RebalanceError as error:
            world.note("person", f"could not ask for {kind}: {error}")
            if insist and not world.ledger.storage_dead:
                world.later(ASK_AGAIN_SECONDS, lambda: _ask(world, kind, value, noted, insist=True))

    world.spawn("person", run.directory, tolerant)
    return None


def request_cancel(world: World) -> bool | None:
    """A person ends the run."""

    def noted(now: float) -> None:
        world.ledger.cancelled_at = now

    return _ask(world, "cancel", None, noted)


def request_rollback(world: World) -> bool | None:
    """A person ends the run, and runs the way back when it has ended."""
    found = request_cancel(world)
    world.supervisor.wants_rollback = found is not False
    return found


def request_throttle(world: World, part: float) -> bool | None:
    """A person changes the throttle."""
    throttle = world.settings.pace.throttle
    if throttle is None:
        return False
    rate = max(100_000, int(throttle * part))
    return _ask(world, "throttle", rate, lambda now: world.ledger.throttle.append(Change(now, float(rate))))


def request_pause(world: World, seconds: float) -> bool | None:
    """A person pauses the run, and resumes it later."""

    def noted(now: float) -> None:
        world.ledger.paused.append((now, now + seconds))

    found = _ask(world, "pause", None, noted)
    if found is not False:
        world.later(
            seconds, lambda: _ask(world, "resume", None, lambda now: _ended(world.ledger.paused, now), insist=True)
        )
    return found


def _ended(periods: list[tuple[float, float]], now: float) -> None:
    """What somebody asked for is over now, whoever asked for it."""
    periods[:] = [(since, min(until, now)) for since, until in periods]


def request_caps(world: World, cap: str, value: int) -> bool | None:
    """A person changes a cap."""
    return _ask(world, cap, value, lambda now: world.ledger.caps.setdefault(cap, []).append(Change(now, float(value))))


def request_window(world: World, open: bool, seconds: float) -> bool | None:  # noqa: A002
    """A person sets a window that is closed now, and opens it later; or one that is open."""
    # Simulated time begins at midnight UTC.
    if open:
        return _ask(world, "window", "00:00-23:59", lambda now: _ended(world.ledger.closed, now), insist=True)

    def noted(now: float) -> None:
        world.ledger.closed.append((now, now + seconds))

    found = _ask(world, "window", "11:00-13:00", noted)
    if found is not False:
        world.later(seconds, lambda: request_window(world, open=True, seconds=0.0))
    return found


def request_order(world: World, order: str) -> bool | None:
    """A person changes the order of moves."""
    return _ask(world, "order", order, lambda _: None)


def request_exclude_topics(world: World, topic: str) -> bool | None:
    """A person takes a topic out of the run."""

    def noted(now: float) -> None:
        world.ledger.excluded[topic] = now

    return _ask(world, "exclude_topics", [topic], noted)


def request_max_run_time(world: World, limit: int) -> bool | None:
    """A person bounds the time of the run."""

    def noted(now: float) -> None:
        world.ledger.max_run_time.append(Change(now, float(limit)))

    return _ask(world, "max_run_time", limit, noted)
