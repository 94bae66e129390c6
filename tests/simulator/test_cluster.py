from __future__ import annotations

import pytest

from rebalance_lib.cluster.values import Entries, Replica
from rebalance_lib.topology import TopicPartition
from simulator.cluster import NewPartition, SimulatedCluster
from simulator.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    MIN_ISR,
)

MB = 1_000_000.0
T0 = TopicPartition("t", 0)


def cluster_of(*brokers, log_dirs=None, **options):
    cluster = SimulatedCluster(**options)
    for broker in brokers:
        cluster.add_broker(broker, log_dirs=log_dirs or {"/d0": 1e12}, nic=100 * MB)
    return cluster


def moving(size=1000 * MB, write_rate=0.0, **options):
    """Partition t-0 on broker 1 moves to broker 2."""
    cluster = cluster_of(1, 2, **options)
    cluster.create_topic("t", [NewPartition((1,), size, write_rate)])
    assert cluster.foreign_reassign(T0, (2,))
    return cluster


def advance(cluster, seconds):
    cluster.advance(cluster.now, cluster.now + seconds)


def throttle(cluster, rate, leader="0:1", follower="0:2"):
    cluster.foreign_set_throttle(
        {broker: {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)} for broker in (1, 2)},
        {"t": {LEADER_REPLICAS: leader, FOLLOWER_REPLICAS: follower}},
    )


def test_a_copy_is_as_fast_as_the_nic_and_then_the_reassignment_is_complete():
    cluster = moving()
    advance(cluster, 9.9)
    assert cluster.replica_bytes(T0, 2) == pytest.approx(990 * MB)
    assert cluster.state(T0).replicas == (2, 1)
    advance(cluster, 0.2)
    assert cluster.state(T0).replicas == cluster.state(T0).isr == (2,)


def test_a_write_rate_makes_the_copy_longer():
    cluster = moving(write_rate=50 * MB)
    advance(cluster, 19.9)
    assert cluster.state(T0).reassigning
    advance(cluster, 0.2)
    assert not cluster.state(T0).reassigning
    assert cluster.replica_bytes(T0, 2) == pytest.approx(2005 * MB)


def test_copies_share_the_nic_of_their_source():
    cluster = cluster_of(1, 2, 3)
    cluster.create_topic("t", [NewPartition((1,), 100 * MB), NewPartition((1,), 100 * MB)])
    cluster.foreign_reassign(T0, (2,))
    cluster.foreign_reassign(TopicPartition("t", 1), (3,))
    advance(cluster, 1.9)
    assert len(cluster.reassignments()) == 2
    advance(cluster, 0.2)
    assert cluster.reassignments() == {}


@pytest.mark.parametrize(
    ("leader", "follower", "rate"),
    [("0:1", "", 10), ("", "0:2", 10), ("*", "*", 10), ("0:2", "0:1", 100), ("1:1", "1:2", 100)],
)
def test_a_throttle_needs_a_rate_and_a_list_that_names_the_replica_on_its_side(leader, follower, rate):
    cluster = moving()
    throttle(cluster, int(10 * MB), leader, follower)
    advance(cluster, 5.0)
    assert cluster.replica_bytes(T0, 2) == pytest.approx(5 * rate * MB)


def test_a_rate_without_a_list_throttles_nothing_and_a_default_rate_counts():
    cluster = moving()
    cluster.configs.default[LEADER_RATE] = str(int(20 * MB))
    advance(cluster, 1.0)
    assert cluster.replica_bytes(T0, 2) == pytest.approx(100 * MB)
    cluster.alter_topic_config("t", {LEADER_REPLICAS: Entries(("0:1",))})
    advance(cluster, 1.0)
    assert cluster.replica_bytes(T0, 2) == pytest.approx(120 * MB)


def test_a_throttle_below_the_write_rate_never_lets_the_move_end():
    cluster = moving(size=10 * MB, write_rate=5 * MB)
    throttle(cluster, int(4 * MB))
    advance(cluster, 3600.0)
    assert cluster.state(T0).reassigning
    cluster.foreign_delete_throttles(["t"])
    advance(cluster, 300.0)
    assert not cluster.state(T0).reassigning


def test_replicas_in_sync_are_not_throttled():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1, 2), 10 * MB, write_rate=50 * MB)])
    throttle(cluster, 1000)
    advance(cluster, 100.0)
    assert cluster.state(T0).isr == (1, 2)


def test_throttled_fetches_show_their_progress_in_bursts():
    cluster = moving(bursts=True)
    throttle(cluster, int(1 * MB))
    advance(cluster, 9.0)
    [log_dir] = cluster.brokers[2].describe_log_dirs(None, cluster.now, bursts=True)
    assert [held.size for held in log_dir.replicas] == [0]
    advance(cluster, 2.0)
    [log_dir] = cluster.brokers[2].describe_log_dirs(None, cluster.now, bursts=True)
    assert log_dir.replicas[0].size >= 9 * MB


def test_a_broker_that_dies_leaves_the_isr_at_once_and_rejoins_when_it_has_caught_up():
    cluster = cluster_of(1, 2, 3)
    cluster.create_topic("t", [NewPartition((1, 2, 3), 10 * MB, write_rate=10 * MB)])
    cluster.kill_broker(1)
    assert (cluster.state(T0).isr, cluster.state(T0).leader) == ((2, 3), 2)
    advance(cluster, 90.0)
    cluster.start_broker(1)
    advance(cluster, 9.0)
    assert cluster.state(T0).isr == (2, 3)
    advance(cluster, 2.0)
    assert sorted(cluster.state(T0).isr) == [1, 2, 3]


def test_a_follower_that_hangs_leaves_the_isr_after_the_lag_time_if_anything_is_written():
    cluster = cluster_of(1, 2)
    busy, idle = cluster.create_topic("t", [NewPartition((1, 2), MB, 1000.0), NewPartition((1, 2), MB)])
    cluster.hang_broker(2)
    advance(cluster, 29.0)
    assert cluster.state(busy).isr == (1, 2)
    advance(cluster, 2.0)
    assert (cluster.state(busy).isr, cluster.state(idle).isr) == ((1,), (1, 2))
    cluster.resume_broker(2)
    advance(cluster, 1.0)
    assert sorted(cluster.state(busy).isr) == [1, 2]


def test_a_leader_that_hangs_goes_on_leading_and_nothing_is_copied_from_it():
    cluster = moving(write_rate=1000.0)
    cluster.hang_broker(1)
    advance(cluster, 300.0)
    assert (cluster.state(T0).leader, cluster.replica_bytes(T0, 2)) == (1, 0.0)
    cluster.resume_broker(1)
    advance(cluster, 30.0)
    assert cluster.state(T0).replicas == (2,)


def test_a_move_to_a_dead_broker_waits_for_it():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1,), MB)])
    cluster.kill_broker(2)
    assert cluster.foreign_reassign(T0, (2,))
    advance(cluster, 100.0)
    assert cluster.state(T0).reassigning
    cluster.start_broker(2)
    advance(cluster, 1.0)
    assert cluster.state(T0).replicas == (2,)


def test_a_broker_that_is_gone_cannot_be_a_target_and_is_listed_as_a_replica_still():
    cluster = cluster_of(1, 2, 3)
    cluster.create_topic("t", [NewPartition((1, 3), MB)])
    cluster.unregister_broker(3)
    assert not cluster.foreign_reassign(T0, (3, 2))
    assert cluster.state(T0).replicas == (1, 3)
    assert 3 not in cluster.controller.brokers.registered
    assert cluster.foreign_reassign(T0, (1, 2))


def test_the_log_of_a_removed_replica_takes_space_for_a_minute():
    cluster = moving(size=100 * MB)
    advance(cluster, 2.0)
    used = [cluster.brokers[1].describe_log_dirs(None, cluster.now)[0]]
    advance(cluster, 60.0)
    used.append(cluster.brokers[1].describe_log_dirs(None, cluster.now)[0])
    assert [1e12 - one.usable_bytes for one in used] == [100 * MB, 0]
    assert [one.replicas for one in used] == [[], []]


def test_a_log_dir_that_is_full_fails_and_its_replicas_leave_the_isr():
    cluster = cluster_of(1, 2, log_dirs={"/d0": 100 * MB, "/d1": 100 * MB})
    cluster.create_topic("t", [NewPartition((2,), 90 * MB, 0.0), NewPartition((1, 2), 50 * MB, MB)])
    cluster.foreign_reassign(T0, (1,))
    advance(cluster, 10.0)
    t1 = TopicPartition("t", 1)
    assert cluster.state(T0).replicas == (1,)
    cluster.brokers[2].log_dirs["/d1"].total = 55 * MB
    cluster.alter_broker_config(2, {})
    advance(cluster, 1.0)
    assert not cluster.brokers[2].log_dirs["/d1"].online
    assert cluster.state(t1).isr == (1,)
    offline = cluster.brokers[2].describe_log_dirs(None, cluster.now)[1]
    assert (offline.online, offline.total_bytes, offline.replicas) == (False, None, [])


def test_a_log_dir_that_fails_takes_the_lead_of_its_partitions_with_it_and_they_come_back_empty():
    cluster = cluster_of(1, 2, log_dirs={"/d0": 1e12, "/d1": 1e12})
    one, other = cluster.create_topic("t", [NewPartition((1, 2), 50 * MB), NewPartition((1, 2), 50 * MB)])
    cluster.fail_log_dir(1, "/d0")
    assert (cluster.state(one).leader, cluster.state(other).leader) == (2, 1)
    cluster.repair_log_dir(1, "/d0")
    assert cluster.replica_bytes(one, 1) == 0
    advance(cluster, 5.0)
    assert sorted(cluster.state(one).isr) == [1, 2]


def test_a_broker_whose_last_log_dir_fails_stops():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1, 2), MB)])
    cluster.fail_log_dir(1, "/d0")
    assert not cluster.brokers[1].up
    assert cluster.state(T0).leader == 2


def test_a_new_replica_goes_to_the_log_dir_with_the_fewest_or_to_the_one_that_was_noted():
    cluster = cluster_of(1, 2, log_dirs={"/d0": 1e12, "/d1": 1e12})
    cluster.create_topic("t", [NewPartition((1,), MB), NewPartition((1,), MB), NewPartition((2,), MB)])
    assert cluster.alter_replica_log_dir(Replica("t", 1, 2), "/d0") == "ReplicaNotAvailableError"
    cluster.foreign_reassign(T0, (2,))
    cluster.foreign_reassign(TopicPartition("t", 1), (2,))
    found = {name.partition: log.logs[2].path for name, log in cluster.brokers[2].partitions.items()}
    assert found == {2: "/d0", 0: "/d1", 1: "/d0"}


def test_a_replica_is_copied_to_another_log_dir_at_the_rate_of_its_throttle_and_swapped():
    cluster = cluster_of(1, log_dirs={"/d0": 1e12, "/d1": 1e12})
    cluster.create_topic("t", [NewPartition((1,), 100 * MB)])
    cluster.alter_broker_config(1, {LOG_DIR_RATE: str(int(10 * MB))})
    assert cluster.alter_replica_log_dir(Replica("t", 0, 1), "/d1") is None
    advance(cluster, 9.0)
    held = [dir_.replicas for dir_ in cluster.brokers[1].describe_log_dirs(None, cluster.now)]
    assert [(one.size, one.future) for [one] in held] == [(100 * MB, False), (90 * MB, True)]
    advance(cluster, 2.0)
    held = [dir_.replicas for dir_ in cluster.brokers[1].describe_log_dirs(None, cluster.now)]
    assert [len(replicas) for replicas in held] == [0, 1]


def test_to_name_the_log_dir_that_a_replica_is_in_cancels_its_copy():
    cluster = cluster_of(1, log_dirs={"/d0": 1e12, "/d1": 1e12})
    cluster.create_topic("t", [NewPartition((1,), 1000 * MB)])
    cluster.alter_replica_log_dir(Replica("t", 0, 1), "/d1")
    cluster.alter_replica_log_dir(Replica("t", 0, 1), "/d0")
    advance(cluster, 100.0)
    assert cluster.brokers[1].partitions[T0].logs[1].path == "/d0"
    assert cluster.alter_replica_log_dir(Replica("t", 0, 1), "/d9") == "LogDirNotFoundError"


def test_a_cancel_leaves_the_originals_and_one_of_nothing_is_refused():
    cluster = moving()
    advance(cluster, 3.0)
    assert cluster.foreign_cancel(T0)
    assert cluster.state(T0).replicas == (1,)
    assert T0 not in cluster.brokers[2].partitions
    assert cluster.alter_reassignments({T0: None}) == {T0: "NoReassignmentInProgressError"}


def test_while_the_controller_fails_over_nothing_is_decided_and_afterwards_all_of_it():
    cluster = moving(size=100 * MB)
    cluster.add_broker(3, log_dirs={"/d0": 1e12})
    cluster.fail_controller(10.0)
    cluster.kill_broker(3)
    advance(cluster, 9.0)
    assert cluster.state(T0).reassigning
    assert 3 in cluster.controller.brokers.alive
    advance(cluster, 2.0)
    assert not cluster.state(T0).reassigning
    assert 3 not in cluster.controller.brokers.alive


def test_a_topic_created_again_has_another_id_no_configuration_and_no_reassignment():
    cluster = moving()
    cluster.alter_topic_config("t", {LEADER_REPLICAS: "*"})
    before = cluster.partitions[T0].topic_id
    cluster.delete_topic("t")
    assert (cluster.reassignments(), cluster.brokers[1].partitions) == ({}, {})
    cluster.create_topic("t", [NewPartition((1,), MB)])
    assert len(before) == 22
    assert cluster.partitions[T0].topic_id != before
    assert cluster.configs.topic_values("t", [LEADER_REPLICAS]) == {}


def test_the_log_of_a_deleted_topic_leaves_a_dead_broker_when_it_is_back():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1, 2), MB)])
    cluster.kill_broker(2)
    cluster.delete_topic("t")
    cluster.create_topic("t", [NewPartition((1,), MB)])
    cluster.start_broker(2)
    assert cluster.brokers[2].partitions == {}


def test_more_partitions_continue_the_numbers_of_the_topic():
    cluster = moving()
    assert cluster.add_partitions("t", [NewPartition((1,)), NewPartition((2,))]) == [("t", 1), ("t", 2)]
    assert {partition.topic_id for partition in cluster.partitions.values()} == {cluster.partitions[T0].topic_id}


def test_min_isr_counts_for_the_controller_from_the_change_of_the_configuration_on():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1, 2), MB)], {MIN_ISR: "2"})
    cluster.kill_broker(2)
    assert cluster.state(T0).elr == (2,)
    cluster.start_broker(2)
    advance(cluster, 1.0)
    cluster.alter_topic_config("t", {MIN_ISR: "1"})
    cluster.kill_broker(2)
    assert cluster.state(T0).elr == ()


def test_nothing_is_written_below_min_isr():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1, 2), 5 * MB, MB)], {MIN_ISR: "2"})
    cluster.kill_broker(2)
    advance(cluster, 50.0)
    assert cluster.replica_bytes(T0, 1) == 5 * MB
    cluster.start_broker(2)
    advance(cluster, 10.1)
    assert cluster.replica_bytes(T0, 2) == pytest.approx(15 * MB, rel=0.01)


def test_a_partition_without_a_leader_is_led_again_by_the_broker_that_comes_back():
    cluster = cluster_of(1, 2)
    cluster.create_topic("t", [NewPartition((1,), 5 * MB, MB)])
    cluster.kill_broker(1)
    assert cluster.state(T0).leader is None
    advance(cluster, 50.0)
    cluster.start_broker(1)
    assert (cluster.state(T0).leader, cluster.replica_bytes(T0, 1)) == (1, 5 * MB)


def test_verify_of_another_tool_deletes_lists_of_its_topics_and_rates_of_all_brokers():
    cluster = moving()
    throttle(cluster, 1000)
    cluster.create_topic("other", [NewPartition((1,))], {LEADER_REPLICAS: "0:1"})
    assert cluster.foreign_delete_throttles(["t"])
    assert cluster.configs.topics["t"] == {}
    assert cluster.configs.topics["other"] == {LEADER_REPLICAS: "0:1"}
    assert cluster.configs.brokers == {1: {}, 2: {}}


@pytest.mark.parametrize("steps", [[300.0], [0.1] * 3000, [7.0] * 43])
def test_the_size_of_the_steps_of_time_changes_nothing(steps):
    cluster = cluster_of(1, 2, 3)
    cluster.create_topic("t", [NewPartition((1, 2), 500 * MB, MB), NewPartition((2,), 700 * MB, 2 * MB)])
    seen = []
    cluster.on_transition.append(lambda time, change: seen.append((round(time, 6), change.partition, change.after)))
    cluster.foreign_reassign(T0, (3, 2))
    cluster.foreign_reassign(TopicPartition("t", 1), (3,))
    for seconds in steps:
        advance(cluster, seconds)
    assert [(time, name.partition) for time, name, _ in seen] == [(0.0, 0), (0.0, 1), (10.204082, 0), (12.349021, 1)]
