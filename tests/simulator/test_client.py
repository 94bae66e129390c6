from __future__ import annotations

import inspect
from random import Random

import pytest

from rebalance_lib.cluster import Cluster, ConfigValue, Entries, RefusedError, Replica, ReplicaLogDir
from rebalance_lib.cluster.requests import SilentError
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import Broker, TopicPartition
from simulator.client import SimulatedClient
from simulator.cluster import NewPartition, SimulatedCluster
from simulator.configs import LEADER_RATE, LEADER_REPLICAS
from simulator.processes import Scheduler
from simulator.requests import SimulatedRequests

MB = 1_000_000.0
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class World:
    """Three brokers, and topic t with two partitions on brokers 1 and 2."""

    def __init__(self):
        self.scheduler, self.cluster = Scheduler(), SimulatedCluster()
        self.scheduler.on_advance.append(self.cluster.advance)
        for broker in (1, 2, 3):
            self.cluster.add_broker(broker, f"rack-{broker}", log_dirs={"/d0": 1e12, "/d1": 1e12})
        self.cluster.create_topic("t", [NewPartition((1, 2), 1000 * MB), NewPartition((1, 2), 1000 * MB)])

    def spawn(self, function, seed=1):
        process = self.scheduler.spawn(
            "executor", lambda: function(SimulatedClient(self.cluster, process, Random(seed)))
        )
        return process

    def run(self, function, seed=1):
        """Run a function with a client of its own, to its end; returns what it returns, and keeps how long it took."""
        started = self.scheduler.now
        process = self.spawn(lambda client: (function(client), self.scheduler.now), seed)
        self.scheduler.run(until=started + 600.0)
        if process.error is not None:
            raise process.error
        answer, ended = process.result
        self.seconds = ended - started
        return answer


@pytest.fixture
def world():
    return World()


def test_it_has_the_methods_of_the_real_client_with_the_same_arguments():
    methods = {
        name: method
        for name, method in inspect.getmembers(SimulatedClient, inspect.isfunction)
        if not name.startswith("_") and not hasattr(SimulatedRequests, name)
    }
    assert {"reassign", "describe_log_dirs", "alter_broker_configs", "partitions"} <= methods.keys()
    for name, method in methods.items():
        assert inspect.signature(method) == inspect.signature(getattr(Cluster, name)), name


def test_a_request_takes_milliseconds_and_counts_as_a_call(world):
    process = world.spawn(lambda client: (client.partitions(["t"]), client.reassignments()))
    world.scheduler.run(until=1.0)
    assert process.calls == 2
    assert process.finished


def test_it_says_of_the_cluster_what_is_true(world):
    world.cluster.kill_broker(3)
    world.cluster.foreign_reassign(T0, (1, 3))
    assert world.run(lambda client: client.alive_brokers()) == {1: Broker(1, "rack-1"), 2: Broker(2, "rack-2")}
    assert world.run(lambda client: client.registered_brokers()) == {1, 2, 3}
    state = world.run(lambda client: client.partitions(["t", "unknown"]))[T0]
    assert (state.replicas, state.in_sync, state.leader) == ((1, 3, 2), {1, 2}, 1)
    assert state.topic_id == world.cluster.partitions[T0].topic_id
    [reassignment] = world.run(lambda client: client.reassignments([T0])).values()
    assert (reassignment.adding, reassignment.removing, reassignment.target) == ((3,), (2,), (1, 3))
    assert world.run(lambda client: client.reassignments([T1])) == {}


def test_metadata_may_go_back_in_time_from_one_request_to_the_next(world):
    world.cluster.set_metadata_lag(2, 4.0)
    world.cluster.set_metadata_lag(3, 4.0)
    world.scheduler.at(10.0, lambda: world.cluster.foreign_reassign(T0, (1, 3)))
    world.scheduler.run(until=10.0)
    seen = world.run(lambda client: [client.partitions(["t"])[T0].replicas for _ in range(20)])
    changes = [one for number, one in enumerate(seen) if number == 0 or one != seen[number - 1]]
    assert {*seen} == {(1, 2), (1, 3, 2)}
    assert len(changes) > 2


def test_the_view_of_a_broker_stands_still_when_its_lag_grows():
    cluster = World().cluster
    cluster.advance(0.0, 10.0)
    views = [cluster.metadata.view(1, 10.0)]
    cluster.set_metadata_lag(1, 4.0)
    views += [cluster.metadata.view(1, now) for now in (11.0, 13.0, 15.0)]
    assert views == [10.0, 10.0, 10.0, 11.0]


def test_a_lost_answer_leaves_the_request_applied(world):
    world.cluster.network.lose("reassign", applied=True)
    with pytest.raises(ClusterError, match="timed out") as raised:
        world.run(lambda client: client.reassign({T0: (1, 3)}, attempts=1))
    assert not isinstance(raised.value, RefusedError)
    assert T0 in world.cluster.reassignments() or world.cluster.state(T0).replicas == (1, 3)
    [request] = world.cluster.requests
    assert (request.applied, request.answered, request.changes) == (True, False, {T0: (1, 3)})


def test_a_lost_request_leaves_nothing(world):
    world.cluster.network.lose("reassign", applied=False, reset=True)
    with pytest.raises(ClusterError, match="reset"):
        world.run(lambda client: client.reassign({T0: (1, 3)}, attempts=1))
    assert world.cluster.reassignments() == {}
    assert [request.applied for request in world.cluster.requests] == [False]


def test_a_client_that_insists_sends_a_request_again_whose_answer_was_lost(world):
    world.cluster.network.lose("reassign", applied=True)
    world.run(lambda client: client.reassign({T0: (1, 3)}))
    assert [(one.applied, one.answered) for one in world.cluster.requests] == [(True, False), (True, True)]
    assert 15.2 < world.seconds < 15.5


def test_one_partition_is_refused_and_the_others_are_applied(world):
    world.cluster.network.refuse(T0, "ThrottlingQuotaExceededError", until=100.0)
    with pytest.raises(RefusedError) as raised:
        world.run(lambda client: client.reassign({T0: (1, 3), T1: (1, 3), TopicPartition("gone", 0): (1,)}))
    assert raised.value.refused == {
        T0: "ThrottlingQuotaExceededError",
        TopicPartition("gone", 0): "UnknownTopicOrPartitionError",
    }
    assert [*world.cluster.reassignments()] in ([T1], [])
    world.scheduler.run(until=100.0)
    world.cluster.network.accept(T0)
    world.run(lambda client: client.reassign({T0: (1, 3)}))


def test_a_cancel_of_what_has_ended_is_done_and_a_target_that_is_not_registered_is_refused(world):
    world.run(lambda client: client.reassign({T0: None}))
    with pytest.raises(RefusedError, match="t-0: InvalidReplicationAssignmentError"):
        world.run(lambda client: client.reassign({T0: (1, 9)}))


def test_without_an_active_controller_a_single_attempt_fails_and_a_client_that_insists_waits(world):
    world.cluster.fail_controller(2.0)
    with pytest.raises(ClusterError, match="NotControllerError"):
        world.run(lambda client: client.reassign({T0: (1, 3)}, attempts=1))
    world.cluster.fail_controller(2.0)
    assert world.run(lambda client: client.reassignments()) == {}
    assert world.seconds > 1.0


def test_expired_credentials_fail_every_request_until_they_are_renewed(world):
    world.cluster.network.credentials_expired_until = 30.0
    for request in (
        lambda client: client.partitions(),
        lambda client: client.describe_log_dirs([1]),
        lambda client: client.reassign({T0: (1, 3)}),
    ):
        with pytest.raises(ClusterError, match="credentials have expired"):
            world.run(request)
    world.cluster.network.credentials_expired_until = 0.0
    world.run(lambda client: client.partitions())


def test_brokers_asked_side_by_side_cost_one_deadline_and_then_none_for_a_while(world):
    world.cluster.hang_broker(2)
    world.cluster.network.log_dirs_delay[3] = 60.0

    def ask(client):
        first = client.describe_log_dirs([1, 2, 3]), world.scheduler.now
        return *first, client.describe_log_dirs([1, 2, 3]), world.scheduler.now

    first, after_first, second, after_second = world.run(ask)
    assert first.keys() == second.keys() == {1}
    assert 10.0 <= after_first < 10.1
    assert after_second - after_first < 0.1


def test_a_broker_that_is_slow_to_describe_its_log_dirs_answers_late(world):
    world.cluster.network.log_dirs_delay[2] = 5.0
    assert world.run(lambda client: client.describe_log_dirs([1, 2])).keys() == {1, 2}
    assert 5.0 <= world.seconds < 5.2
    assert world.run(lambda client: client.log_dirs(2))[0].path == "/d0"


def test_a_broker_that_hangs_costs_its_time_out_for_each_attempt_and_is_then_left_alone(world):
    world.cluster.hang_broker(2)

    def ask(client):
        times = [world.scheduler.now]
        for _ in range(2):
            with pytest.raises(SilentError):
                client.log_dirs(2, attempts=2)
            times.append(world.scheduler.now)
        return times

    start, first, second = world.run(ask)
    assert first - start == pytest.approx(30.2, abs=0.2)
    assert second == first


def test_log_dirs_show_replicas_their_copies_and_what_is_left(world):
    world.cluster.alter_replica_log_dir(Replica("t", 0, 1), "/d1")
    found = world.run(lambda client: client.replica_log_dirs([1], [T0]))
    assert found == {Replica("t", 0, 1): ReplicaLogDir("/d0", "/d1")}
    [d0, d1] = world.run(lambda client: client.log_dirs(2))
    assert [held.partition for held in d0.replicas] == [T0]
    assert (d0.total_bytes, d0.usable_bytes) == (10**12, 10**12 - 10**9)
    assert d1.usable_bytes == 10**12 - 10**9


def test_a_log_dir_is_noted_for_a_replica_that_is_not_there_yet(world):
    replica = Replica("t", 0, 3)
    assert world.run(lambda client: client.alter_replica_log_dirs({replica: "/d1"})) == [replica]
    world.cluster.foreign_reassign(T0, (1, 3))
    assert world.run(lambda client: client.replica_log_dirs([3])) == {replica: ReplicaLogDir("/d1", None)}
    assert world.run(lambda client: client.alter_replica_log_dirs({replica: "/d1"})) == []


def test_topic_configurations_are_appended_to_and_topics_that_are_gone_are_left_out(world):
    world.run(lambda client: client.alter_topic_configs({"t": {LEADER_REPLICAS: Entries(("0:1", "0:2"))}}))
    world.scheduler.run(until=5.0)
    found = world.run(lambda client: client.topic_configs(["t", "gone"], [LEADER_REPLICAS]))
    assert found == {"t": {LEADER_REPLICAS: ConfigValue("0:1,0:2", "DYNAMIC_TOPIC_CONFIG")}}
    with pytest.raises(ClusterError, match="topic gone: UnknownTopicOrPartitionError"):
        world.run(lambda client: client.alter_topic_configs({"gone": {LEADER_REPLICAS: None}, "t": {}}))


def test_broker_configurations_are_changed_where_a_broker_answers_and_survive_its_death(world):
    world.cluster.kill_broker(3)
    changes = {1: {LEADER_RATE: "1000"}, 3: {LEADER_RATE: "1000"}}
    assert world.run(lambda client: client.alter_broker_configs(changes)) == {3: "no answer within 10 s"}
    world.cluster.kill_broker(1)
    world.cluster.start_broker(1)
    found = world.run(lambda client: client.broker_configs([1, 2, 3], [LEADER_RATE]))
    assert found == {1: {LEADER_RATE: ConfigValue("1000", "DYNAMIC_BROKER_CONFIG")}, 2: {}}


def test_a_change_that_was_sent_to_a_broker_that_hangs_may_be_applied_when_it_goes_on():
    applied = set()
    for seed in range(10):
        world = World()
        world.cluster.hang_broker(2)
        assert world.run(lambda client: client.alter_broker_configs({2: {LEADER_RATE: "1"}}), seed).keys() == {2}
        assert world.cluster.configs.brokers.get(2) is None
        world.cluster.resume_broker(2)
        applied.add(bool(world.cluster.configs.brokers.get(2)))
    assert applied == {True, False}


def test_a_preferred_leader_is_elected_where_it_is_in_sync(world):
    world.cluster.kill_broker(1)
    world.cluster.start_broker(1)
    refused = world.run(lambda client: client.elect_preferred_leaders([T0, T1]))
    world.scheduler.run(until=world.scheduler.now + 5.0)
    refused = refused and world.run(lambda client: client.elect_preferred_leaders([T0, T1]))
    assert refused == {}
    assert world.cluster.state(T0).leader == 1
    world.cluster.kill_broker(1)
    refused = world.run(lambda client: client.elect_preferred_leaders([T0]))
    assert refused == {T0: "PreferredLeaderNotAvailableError"}


def test_partitions_are_created_or_only_validated(world):
    world.run(lambda client: client.create_partitions("t", 3, [[3, 1]], validate_only=True))
    assert len(world.cluster.partitions) == 2
    with pytest.raises(ClusterError, match="InvalidReplicationAssignmentError"):
        world.run(lambda client: client.create_partitions("t", 3, [[3]]))
    world.run(lambda client: client.create_partitions("t", 3, [[3, 1]]))
    assert world.cluster.state(TopicPartition("t", 2)).replicas == (3, 1)
    with pytest.raises(ClusterError, match="InvalidPartitionsError"):
        world.run(lambda client: client.create_partitions("t", 3, []))


def test_a_process_that_is_killed_after_its_request_leaves_it_applied_and_not_answered(world):
    process = world.spawn(lambda client: client.reassign({T0: (1, 3)}))
    process.kill_at_call(1, after=True)
    world.scheduler.run(until=5.0)
    [request] = world.cluster.requests
    assert (process.alive, request.applied, request.answered) == (False, True, False)


def trace(seed):
    world = World()
    lines = []
    world.cluster.on_transition.append(lambda time, change: lines.append(f"{time!r} {change}"))
    world.scheduler.at(3.0, lambda: world.cluster.hang_broker(2))
    world.scheduler.at(20.0, lambda: world.cluster.resume_broker(2))
    world.cluster.network.lose(None, applied=True, count=3)

    def work(client):
        client.reassign({T0: (1, 3), T1: (3, 2)})
        for _ in range(20):
            lines.append(f"{world.scheduler.now!r} {client.partitions()} {client.describe_log_dirs([1, 2, 3])}")
            client.clock.sleep(1.0)

    world.run(work, seed)
    return "\n".join(lines + [str(request) for request in world.cluster.requests])


def test_the_same_seed_gives_the_same_trace_byte_for_byte():
    assert trace(7) == trace(7)
    assert trace(7) != trace(8)
