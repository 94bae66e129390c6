"""The executor in a simulated cluster: what no invariant judges, each with the trouble that shows it."""

import json
from dataclasses import replace

import pytest

from rebalance_lib.topology import TopicPartition
from simulator.client import SimulatedClient
from simulator.cluster import SimulatedCluster
from simulator.configs import REPLICA_LISTS
from simulator.shape import Fault, PartitionShape, Planned, TopicShape
from simulator.world import BEGIN, World
from tests.simulator.small import MB, SMALL, T0, T1


def with_settings(schedule, **settings):
    """The same schedule with other settings."""
    return replace(schedule, settings={**schedule.settings, **settings})


SLOW = with_settings(SMALL, throttle=2 * MB)  # a minute and more


@pytest.mark.parametrize("leave_moves", [False, True])
def test_a_cancel_that_was_requested_cancels_moves_also_of_a_run_that_was_to_leave_them(play, leave_moves):
    schedule = with_settings(SLOW, cancel_on_failure=not leave_moves)
    world = play(replace(schedule, faults=(Fault(8.0, "request_cancel", {}),)))
    cancelled = {
        tp for one in world.cluster.requests if one.name == "reassign" for tp in one.changes if not one.changes[tp]
    }
    assert cancelled == {T0, T1}
    assert world.cluster.reassignments() == {}


TWO_TOPICS = replace(
    SMALL,
    shape=replace(SMALL.shape, topics=(*SMALL.shape.topics, TopicShape("u", 2, (PartitionShape((1, 2), 50 * MB, 0),)))),
    plan=(*SMALL.plan, Planned("u", 0, (2, 3))),
)


def refuse_to_alter(monkeypatch, topic, since=0.0):
    """The controller refuses to alter the configuration of a topic, as an alter policy makes it do."""
    alter = SimulatedCluster.alter_topic_config

    def altered(self, name, changes):
        return "PolicyViolationError" if name == topic and self.now >= since else alter(self, name, changes)

    monkeypatch.setattr(SimulatedCluster, "alter_topic_config", altered)


def hide_configs(monkeypatch, topic):
    """This user is not allowed to read the configuration of a topic."""
    read = SimulatedClient.topic_configs

    def shown(self, topics, keys):
        return {name: found for name, found in read(self, topics, keys).items() if name != topic}

    monkeypatch.setattr(SimulatedClient, "topic_configs", shown)


@pytest.mark.parametrize("moves_in_cluster", [1, 100])
@pytest.mark.parametrize(
    ("trouble", "reason"), [(refuse_to_alter, "PolicyViolationError"), (hide_configs, "is this user allowed to?")]
)
def test_a_topic_whose_configuration_is_out_of_reach_is_set_aside_and_the_rest_completes(
    play, monkeypatch, trouble, reason, moves_in_cluster
):
    trouble(monkeypatch, "u")
    world = play(with_settings(TWO_TOPICS, moves_in_cluster=moves_in_cluster))
    run = world.supervisor.run
    [(aside, words)] = run.said.set_aside.items()
    assert aside == TopicPartition("u", 0)
    assert words.startswith("the throttle of topic u could not be set: ")
    assert reason in words
    assert run.not_at_target == {aside}
    assert (run.last_error, run.said.left) == ("", {})
    assert run.ended_at < 300.0  # not after all the time in which a cluster may be unreachable


def test_a_topic_that_takes_no_more_changes_keeps_its_entries_and_no_other_does(monkeypatch):
    refuse_to_alter(monkeypatch, "u", since=15.0)  # when its move is under way
    world = World(TWO_TOPICS)
    world.scheduler.on_event.append(world.supervisor.poll)
    world.scheduler.at(BEGIN, lambda: world.supervisor.start(world.job))
    world.scheduler.run(until=300.0)
    [run] = world.supervisor.runs
    assert (run.ended, run.last_error, run.not_at_target) == (True, "", set())
    assert list(run.said.left) == ["topic u"]
    assert "PolicyViolationError" in run.said.left["topic u"]
    assert not any(world.cluster.configs.topics["t"].get(key) for key in REPLICA_LISTS)


def test_moves_that_were_cancelled_are_recorded_though_a_hung_broker_may_still_copy_between_log_dirs(play):
    shape = replace(SLOW.shape, brokers=tuple(replace(one, log_dirs=(1000 * MB,) * 2) for one in SLOW.shape.brokers))
    schedule = replace(
        SLOW,
        shape=shape,
        plan=(Planned("t", 0, (4, 5, 6)), Planned("t", 1, (1, 2, 4), ("any", "/d1", "any"))),
        faults=(Fault(8.0, "broker_hangs", {"broker": 2, "seconds": 600.0}), Fault(9.0, "request_cancel", {})),
    )
    world = play(schedule)
    audit = json.loads(next(data for path, data in world.disk.files.items() if path.endswith("/audit.json")))
    between_brokers = {move["partition"]: move["cancelled_by"] for move in audit["moves"] if move["replica"] is None}
    assert between_brokers == {"t-0": "the clean-up", "t-1": "the clean-up"}


TWO_LOG_DIRS = replace(
    SMALL,
    shape=replace(SMALL.shape, brokers=tuple(replace(one, log_dirs=(1000 * MB,) * 2) for one in SMALL.shape.brokers)),
    settings={"log_dir_throttle": MB, "moves_in_cluster": 1, "give_up_after": 60},  # a copy takes 100 s
)


def test_no_copy_between_log_dirs_of_an_excluded_topic_begins_and_the_one_under_way_ends(play):
    wanted = {T0: "/d1", T1: "/d0"}  # each is in the other one
    plan = tuple(Planned(*tp, (1, 2, 3), (path, "any", "any")) for tp, path in wanted.items())
    world = play(replace(TWO_LOG_DIRS, plan=plan, faults=(Fault(8.0, "request_exclude_topics", {"topic": "t"}),)))
    moved = {tp for tp, path in wanted.items() if world.cluster.partitions[tp].logs[1].path == path}
    assert len(moved) == 1
    [(aside, reason)] = world.supervisor.run.said.set_aside.items()
    assert {aside} == {T0, T1} - moved
    assert reason.startswith("exclude_topics ['t'] requested by")


@pytest.mark.parametrize("throttle", [2 * MB, None])
def test_a_clean_up_logs_which_moves_it_does_not_cancel_and_why_with_and_without_a_throttle(play, throttle):
    lost = (Fault(3.0, "broker_never_returns", {"broker": 1, "unregistered": False}), Fault(4.0, "request_cancel", {}))
    shape = replace(
        SMALL.shape,
        brokers=tuple(replace(one, nic=MB) for one in SMALL.shape.brokers),
        topics=(TopicShape("t", 1, (PartitionShape((1,), 100 * MB, 0),)),),
    )
    world = play(
        with_settings(replace(SMALL, shape=shape, plan=(Planned("t", 0, (4,)),), faults=lost), throttle=throttle)
    )
    [line] = [line for line in world.supervisor.run.said.messages if "were not cancelled" in line]
    assert line.startswith("1 moves under way were not cancelled and go on (t-0): t-0 must not be cancelled")
    assert set(world.cluster.reassignments()) == {T0}
