"""What strikes: one function for each kind of fault, with a name in words.

Each does to the world what happens in real life, and notes in the ledger what an executor can not be blamed for.
Faults that last end by themselves after ``seconds``. What others do to throttles and reassignments is done to the truth
of the cluster, without a client of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from rebalance_lib.topology import TopicPartition
from simulator import outsiders
from simulator.cluster import NewPartition
from simulator.configs import MIN_ISR
from simulator.shape import Fault

if TYPE_CHECKING:
    from simulator.world import World

REFUSAL = "InvalidReplicationAssignmentError"
BOTH_COPIES = "throttles."  # how the names of both copies begin
FAR = 1e9


def strike(world: World, fault: Fault, struck: Counter[str]) -> None:
    """Let a fault strike, unless everything is over; count it if it did anything."""
    if world.supervisor.done:
        return
    world.note("fault", str(fault))
    if FAULTS[fault.kind](world, **fault.args) is not False:
        struck[fault.kind] += 1


# Brokers and the controller


def broker_dies(world: World, broker: int, seconds: float, clean: bool) -> bool | None:
    """A broker dies, is fenced, and comes back later."""
    if not world.cluster.brokers[broker].up or broker in world.ledger.gone:
        return False
    world.cluster.kill_broker(broker)
    world.later(seconds, lambda: _returns(world, broker, clean=clean))
    return None


def _returns(world: World, broker: int, *, clean: bool) -> None:
    if broker not in world.ledger.gone:
        world.note("fault", f"broker returns (broker {broker})")
        world.cluster.start_broker(broker, clean=clean)
        world.ledger.returned[broker] = world.scheduler.now


def broker_never_returns(world: World, broker: int, unregistered: bool) -> None:
    """A broker dies for good; perhaps it is removed from the cluster, too."""
    world.ledger.gone.add(broker)
    if unregistered:
        world.ledger.unregistered.add(broker)
        world.cluster.unregister_broker(broker)
    else:
        world.cluster.kill_broker(broker)


def broker_hangs(world: World, broker: int, seconds: float) -> bool | None:
    """A broker stays alive for the controller, and answers nobody."""
    if not world.cluster.brokers[broker].working:
        return False
    world.cluster.hang_broker(broker)
    world.later(seconds, lambda: _resumes(world, broker))
    return None


def _resumes(world: World, broker: int) -> None:
    world.note("fault", f"broker resumes (broker {broker})")
    world.cluster.resume_broker(broker)
    world.ledger.returned[broker] = world.scheduler.now


def log_dir_fails(world: World, broker: int, log_dir: str) -> bool | None:
    """A log dir fails, for good; a broker that has no other stops."""
    if log_dir not in world.cluster.brokers[broker].log_dirs:
        return False
    world.cluster.fail_log_dir(broker, log_dir)
    if not world.cluster.brokers[broker].up:
        world.ledger.gone.add(broker)
    return None


def log_dirs_slow(world: World, broker: int, seconds: float, delay: float) -> None:
    """A broker takes its time to answer DescribeLogDirs."""
    world.cluster.network.log_dirs_delay[broker] = delay
    world.later(seconds, lambda: world.cluster.network.log_dirs_delay.pop(broker, None))


def log_dirs_silent(world: World, broker: int, seconds: float) -> None:
    """A broker never answers DescribeLogDirs, and everything else."""
    log_dirs_slow(world, broker, seconds, float("inf"))


def controller_fails_over(world: World, seconds: float) -> None:
    """No controller is active for a while."""
    world.cluster.fail_controller(seconds)
    world.ledger.trouble(world.scheduler.now + seconds)


# Requests


def answer_lost(world: World, what: str, reset: bool) -> None:
    """The answer to the next request of a kind is lost, after the request was applied."""
    _lose(world, what, applied=True, reset=reset)


def request_lost(world: World, what: str, reset: bool) -> None:
    """The next request of a kind is lost on its way."""
    _lose(world, what, applied=False, reset=reset)


def _lose(world: World, what: str, *, applied: bool, reset: bool) -> None:
    until = world.calm_at + 1.0
    world.cluster.network.lose(None if what == "any" else what, applied=applied, reset=reset, until=until)
    world.ledger.trouble(world.scheduler.now)


def partition_refused(world: World, topic: str, partition: int, seconds: float) -> None:
    """The controller refuses new replicas of one partition."""
    until = world.scheduler.now + seconds
    world.cluster.network.refuse(TopicPartition(topic, partition), REFUSAL, until)


def partition_always_refused(world: World, topic: str, partition: int) -> None:
    """The controller refuses new replicas of one partition, whatever anybody waits for."""
    world.cluster.network.refuse(TopicPartition(topic, partition), REFUSAL)


def credentials_expire(world: World, seconds: float) -> None:
    """Every request fails until somebody renews the credentials."""
    network, until = world.cluster.network, world.scheduler.now + seconds
    network.credentials_expired_until = max(network.credentials_expired_until, until)
    world.ledger.trouble(until)


# Storage


def storage_fails(world: World, seconds: float, what: str) -> None:
    """The storage of the run's records fails for a while."""
    until = world.scheduler.now + seconds
    world.disk.fail({"reads": "read", "writes": "write", "both": "both"}[what], until=until)
    world.ledger.trouble(until)
    world.ledger.storage_broken = True


def storage_fails_forever(world: World, what: str) -> None:
    """The storage of the run's records fails until the run is over and somebody replaces it."""
    world.disk.fail({"writes": "write", "both": "both"}[what])
    world.ledger.trouble(FAR)
    world.ledger.storage_broken = world.ledger.storage_dead = True


def file_torn(world: World, name: str, how: str) -> bool | None:
    """A file is cut, or empty; of saved throttles, which are kept twice, one copy or both."""
    paths = [path for path in sorted(world.disk.files) if f"/{name}" in path]
    if not paths:
        return False
    for path in paths if name == BOTH_COPIES else paths[-1:]:
        world.disk.tear(path, 0.6 if how == "cut" else 0.0)
        world.note("fault", f"{path} is {how}")
    world.ledger.storage_broken = True
    world.ledger.throttles_torn |= name == BOTH_COPIES
    world.ledger.requests_torn |= name == "requests"
    return None


# Processes and clocks


def process_killed(world: World, after_calls: int, applied: bool, restart_after: float) -> bool | None:
    """A process of the run is killed at one of its next calls, before it has an effect or after."""
    working = world.supervisor.working
    if not working:
        return False
    process = working[0]
    process.kill_at_call(process.calls + after_calls, after=applied)
    world.supervisor.restart_after(restart_after)
    return None


def machine_crashes(world: World, restart_after: float) -> bool | None:
    """All processes are killed, and what was not synced to disk is lost or damaged."""
    working = world.supervisor.working
    if not working:
        return False
    for process in working:
        process.kill()
    world.supervisor.restart_after(restart_after)
    damaged = world.disk.crash(world.scheduler.now, world.rng)
    for path in damaged:
        world.note("fault", f"{path} is damaged")
    world.ledger.storage_broken |= bool(damaged)
    return None


def process_hangs(world: World, seconds: float) -> bool | None:
    """A process of the run is stopped for a while, as a machine that swaps stops it."""
    working = world.supervisor.working
    if not working:
        return False
    working[0].hang(world.scheduler.now + seconds)
    world.ledger.stopped.append((world.scheduler.now, world.scheduler.now + seconds))
    world.ledger.trouble(world.scheduler.now + seconds)
    return None


def second_executor(world: World) -> bool | None:
    """Somebody starts the same run a second time, or Airflow takes a triggerer for dead that is not."""
    if not world.supervisor.working:
        return False
    world.supervisor.second()
    return None


def clock_steps(world: World, by: float) -> None:
    """The wall clock of all machines is set to another time."""
    world.clock_offset += by
    world.ledger.clocks_changed = True
    for clock in world.clocks:
        clock.offset += by


def clocks_differ(world: World, by: float) -> None:
    """Processes that are started from now on see another wall clock, as those on another machine do."""
    world.clock_offset += by
    world.ledger.clocks_changed = True


# Topics


def topic_deleted(world: World, topic: str) -> bool | None:
    """A topic is deleted."""
    if not world.cluster.controller_active or not world.cluster.topic_partitions(topic):
        return False
    world.cluster.delete_topic(topic)
    world.ledger.deleted[topic] = world.scheduler.now
    world.ledger.lost_list(topic, world.scheduler.now)
    return None


def topic_recreated(world: World, topic: str, seconds: float, same: bool, planned: bool = False) -> bool | None:
    """A topic is deleted, and created again under the same name, on the same brokers, on others, or as planned."""
    if topic_deleted(world, topic) is False:
        return False
    world.later(seconds, lambda: _create_again(world, topic, same=same, planned=planned))
    return None


def _create_again(world: World, topic: str, *, same: bool, planned: bool) -> None:
    shape = world.schedule.shape.topic(topic)
    alive = sorted(broker for broker, one in world.cluster.brokers.items() if one.working)
    partitions = []
    targets = {one.partition: one.replicas for one in world.schedule.plan if one.topic == topic} if planned else {}
    for number, one in enumerate(shape.partitions):
        wanted = targets.get(number, one.replicas if same else tuple(reversed(one.replicas)))
        replicas = tuple(broker for broker in wanted if broker in alive)
        partitions.append(NewPartition(replicas or tuple(alive[:1]), one.size / 2, float(one.write_rate)))
    if world.cluster.topic_partitions(topic) or not alive:
        return
    world.note("fault", f"topic is created again (topic {topic})")
    for tp in world.cluster.create_topic(topic, partitions, {MIN_ISR: str(shape.min_isr)}):
        world.ledger.foreign_touched[tp] = world.scheduler.now
        # What is written since does not count against caps: of a new topic, since it was created.
        world.first_sizes[tp] = min(world.first_sizes.get(tp, 0), int(partitions[tp.partition].size))
    world.ledger.recreated[topic] = world.scheduler.now
    world.ledger.deleted.pop(topic, None)


def partitions_added(world: World, topic: str, count: int) -> bool | None:
    """A topic gets more partitions."""
    alive = sorted(broker for broker, one in world.cluster.brokers.items() if one.working)
    if not world.cluster.topic_partitions(topic) or not alive:
        return False
    world.cluster.add_partitions(topic, [NewPartition(tuple(alive[:1]), 1_000_000.0) for _ in range(count)])
    return None


def topic_config_changed(world: World, topic: str, min_isr: int) -> bool | None:
    """Somebody changes the min ISR of a topic."""
    if world.cluster.alter_topic_config(topic, {MIN_ISR: str(min_isr)}) is not None:
        return False
    for tp in world.cluster.topic_partitions(topic):
        world.ledger.isr_shrunk[tp] = world.scheduler.now
    return None


FAULTS: dict[str, Callable[..., bool | None]] = {
    function.__name__: function
    for function in (
        broker_dies,
        broker_never_returns,
        broker_hangs,
        log_dir_fails,
        log_dirs_slow,
        log_dirs_silent,
        controller_fails_over,
        answer_lost,
        request_lost,
        partition_refused,
        partition_always_refused,
        credentials_expire,
        storage_fails,
        storage_fails_forever,
        file_torn,
        process_killed,
        machine_crashes,
        process_hangs,
        second_executor,
        clock_steps,
        clocks_differ,
        topic_deleted,
        topic_recreated,
        partitions_added,
        topic_config_changed,
        outsiders.foreign_reassignment,
        outsiders.foreign_cancel,
        outsiders.foreign_verify,
        outsiders.foreign_throttle_set,
        outsiders.foreign_throttle_deleted,
        outsiders.request_cancel,
        outsiders.request_rollback,
        outsiders.request_throttle,
        outsiders.request_pause,
        outsiders.request_caps,
        outsiders.request_window,
        outsiders.request_order,
        outsiders.request_exclude_topics,
        outsiders.request_max_run_time,
    )
}
