"""Every consumer group is read with its members and its offsets, whoever assigns its partitions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import JoinGroupRequest, OffsetFetchRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from rebalance_lib.artifacts import SNAPSHOT, read_groups
from rebalance_lib.cluster import Cluster, groups_or_none, take_groups
from rebalance_lib.cluster import groups as reading
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution import Run
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS
from sandbox import Sandbox
from tests.kafka_groups import QUICK_HEARTBEATS, Consumers, commit, coordinator, groups_when, rows, settled
from tests.waiting import wait_for

PASSWORD = "planted-Pa55word"  # noqa: S105
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    **QUICK_HEARTBEATS,
}


@pytest.fixture(scope="module")
def kafka():
    """A cluster of these tests alone: groups leave Kafka's topic of offsets behind."""
    with Sandbox(brokers=2, racks=2, users={"reader": PASSWORD}, config=CONFIG) as sandbox:
        yield sandbox


@pytest.fixture
def consumers(kafka, topic):
    with Consumers(kafka) as joined:
        yield joined


def offsets(groups, group):
    return {
        (row["topic"], row["partition"]): row["committed"]
        for row in groups.offsets.to_pylist()
        if row["group"] == group
    }


def wait_for_offsets(cluster, group, expected):
    groups_when(cluster, group, lambda groups: offsets(groups, group) == expected)


def assigned(row):
    return [(entry["topic"], entry["partitions"]) for entry in row["assignment"]]


def join_by_hand(kafka, cluster, group, *, kind, metadata, assignment):
    """Make a group of one member that tells these bytes, and is told those, as a client of any kind may.

    Without an assignment, the group stays in the middle of its rebalance.
    """
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="own", metadata=metadata)
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=45_000,
        member_id="",
        protocol_type=kind,
        protocols=[protocol],
        max_version=3,
    )

    def answered():
        broker = coordinator(kafka, group)
        return broker, cluster.ask_broker("no join", broker, join)

    broker, joined = wait_for(answered, lambda answer: answer[1].error_code == 0)
    if assignment is None:
        return
    told = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[told],
        max_version=2,
    )
    assert cluster.ask_broker("no sync", broker, sync).error_code == 0


def test_the_members_of_a_group_share_its_partitions(cluster, topic, consumers):
    name = topic("groups-shared", [[1], [2], [1]], size=20_000)
    for number in (1, 2):
        consumers.join("shared", name, client_id=f"client-{number}")
    found = settled(cluster, "shared", members=2, partitions=3)
    assert [row["member"] for row in found] == sorted(row["member"] for row in found)
    assert {row["client_id"] for row in found} == {"client-1", "client-2"}
    common = {(row["type"], row["assignor"], row["host"], row["instance"], row["rack"]) for row in found}
    assert common == {("classic", "range", "127.0.0.1", None, None)}
    assert [row["topics"] for row in found] == [[name], [name]]
    assert sorted(pair for row in found for pair in assigned(row)) == [(name, [0, 1]), (name, [2])]


def test_a_static_member_has_its_instance_id_and_a_member_too_many_has_no_partition(cluster, topic, consumers):
    name = topic("groups-static", [[1]])
    for instance in ("static-1", "static-2"):
        consumers.join("static", name, group_instance_id=instance)
    found = settled(cluster, "static", members=2, partitions=1)
    assert {row["instance"]: assigned(row) for row in found} == {"static-1": [(name, [0])], "static-2": []}


def test_what_only_commits_offsets_is_a_group_without_members(cluster, kafka, topic):
    name = topic("groups-offsets", [[1], [2], [1]], size=20_000)
    commit(kafka, "offsets", name, {2: 1, 0: 2})
    found = take_groups(cluster)
    (row,) = rows(found, "offsets")
    assert (row["type"], row["state"], row["member"]) == ("classic", "Empty", None)
    assert list(offsets(found, "offsets").items()) == [((name, 0), 2), ((name, 2), 1)]


def reads_all(cluster, group, topic, protocol):
    """The one member of a group of Java's console consumer, which has read all of its topic's three partitions."""
    (row,) = settled(cluster, group, members=1, partitions=3)
    assert (row["type"], row["client_id"], row["host"]) == (protocol, "console-consumer", "127.0.0.1")
    assert (row["topics"], assigned(row)) == ([topic], [(topic, [0, 1, 2])])
    wait_for_offsets(cluster, group, {(topic, index): 2 for index in range(3)})
    return row


def test_what_a_group_has_read_stays_when_its_members_have_left(cluster, topic, consumers):
    name = topic("groups-left", [[1], [2], [1]], size=20_000)
    consumers.join_java("left", name, client_rack="rack-2", auto_commit_interval_ms="100")
    row = reads_all(cluster, "left", name, "classic")
    assert (row["assignor"], row["rack"], row["instance"]) == ("range", "rack-2", None)
    consumers.close()
    (row,) = settled(cluster, "left", members=0, state="Empty")
    assert (row["type"], row["assignor"], row["topics"], row["assignment"]) == ("classic", None, None, None)
    assert offsets(take_groups(cluster), "left") == {(name, index): 2 for index in range(3)}


def test_a_member_whose_broker_assigns_tells_its_rack_and_its_instance(cluster, topic, consumers):
    name = topic("groups-consumer", [[1], [2], [1]], size=20_000)
    own = {"group_protocol": "consumer", "group_instance_id": "java-1", "client_rack": "rack-2"}
    consumers.join_java("java-consumer", name, auto_commit_interval_ms="100", **own)
    row = reads_all(cluster, "java-consumer", name, "consumer")
    assert (row["assignor"], row["rack"], row["instance"]) == ("uniform", "rack-2", "java-1")


def test_groups_of_connect_are_no_consumer_groups(cluster, kafka):
    join_by_hand(kafka, cluster, "connect", kind="connect", metadata=b"", assignment=b"")
    assert "connect" in [entry["group_id"] for entry in cluster.coordinated_groups(coordinator(kafka, "connect"))]
    assert rows(take_groups(cluster), "connect") == []


def test_a_member_whose_bytes_make_no_sense_is_there_without_topics(cluster, kafka):
    join_by_hand(kafka, cluster, "nonsense", kind="consumer", metadata=b"\x00\x03\xff", assignment=b"\x00\x00\x7f")
    (row,) = rows(take_groups(cluster), "nonsense")
    assert (row["state"], row["assignor"], row["topics"], row["assignment"]) == ("Stable", "own", None, None)


NULL = b"\xff\xff\xff\xff"  # in place of an array
ONE = b"\x00\x00\x00\x01"
VERSION = b"\x00\x00"


@pytest.mark.parametrize(
    ("metadata", "assignment"),
    [
        (VERSION + ONE + b"\xff\xff" + NULL, VERSION + NULL + NULL),
        (VERSION + NULL + NULL, VERSION + ONE + b"\x00\x01t" + ONE + NULL + NULL),
        (VERSION + NULL + NULL, VERSION + ONE + b"\x00\x01t" + NULL + NULL),
        (VERSION + NULL + NULL, VERSION + ONE + b"\xff\xff" + ONE + b"\x00\x00\x00\x02" + NULL),
    ],
    ids=["a topic without a name, no list of topics", "no list, a partition below 0", "no lists", "a nameless topic"],
)
def test_what_a_member_tells_that_cannot_be_is_left_out(metadata, assignment):
    """Brokers pass on what clients tell each other, whatever it is."""
    told = {"member_id": "m", "client_id": "c", "client_host": "/h", "group_instance_id": None}
    member = SimpleNamespace(**told, member_metadata=metadata, member_assignment=assignment)
    row = reading._classic_member(member, "Stable")
    assert (row["topics"], row["assignment"], row["rack"]) == (None, None, None)


def test_a_topic_that_an_assignment_names_twice_has_the_partitions_of_both():
    two, three = (b"\x00\x01t" + ONE + bytes([0, 0, 0, number]) for number in (2, 3))
    again = b"\x00\x01t" + ONE + b"\x00\x00\x00\x02"
    raw = VERSION + b"\x00\x00\x00\x03" + three + two + again + NULL
    found = reading._decoded(ConsumerProtocolAssignment, raw, reading._assigned)
    assert found == [{"topic": "t", "partitions": [2, 3]}]


def test_in_the_middle_of_a_rebalance_nothing_is_told_of_members_but_offsets_are(cluster, kafka, topic):
    name = topic("groups-between", [[1]])
    commit(kafka, "between", name, {0: 3})
    subscription = ConsumerProtocolSubscription(version=0, topics=[name], user_data=b"").encode()
    join_by_hand(kafka, cluster, "between", kind="consumer", metadata=subscription, assignment=None)
    found = take_groups(cluster)
    (row,) = rows(found, "between")
    assert (row["state"], row["assignor"]) == ("CompletingRebalance", None)
    assert (row["topics"], row["assignment"]) == (None, None)
    assert offsets(found, "between") == {(name, 0): 3}


def test_members_with_one_pattern_have_all_topics_that_any_of_them_has():
    def member(topics, assigned, pattern):
        assignment = [{"topic": topic, "partitions": [0]} for topic in assigned]
        return {"topics": topics, "assignment": assignment, reading.PATTERN: pattern}

    found = reading._matched([member([], ["a"], "x"), member(["b"], ["b"], None), member(["c"], [], "x")])
    assert [row["topics"] for row in found] == [["a"], ["b"], ["a", "c"]]
    assert not any(reading.PATTERN in row for row in found)


LOADING = 14  # COORDINATOR_LOAD_IN_PROGRESS


def let_load(monkeypatch, group, request, times):
    """Let its broker answer so many times that it is still loading this group; returns how often it was asked."""
    ask, asked = Cluster.ask_broker, []

    def answered(self, what, broker, message):
        answer = ask(self, what, broker, message)
        for one in answer.groups:
            if isinstance(message, request) and one.group_id == group:
                asked.append(broker)
                one.error_code = LOADING if len(asked) <= times else one.error_code
        return answer

    monkeypatch.setattr(Cluster, "ask_broker", answered)
    monkeypatch.setattr(reading, "sleep", lambda _: None)
    return asked


def test_a_group_that_is_just_taken_over_is_asked_for_again(cluster, kafka, topic, monkeypatch):
    name = topic("groups-loaded", [[1]])
    commit(kafka, "loaded", name, {0: 3})
    asked = let_load(monkeypatch, "loaded", DescribeGroupsRequest, times=2)
    found = take_groups(cluster)
    assert [row["state"] for row in rows(found, "loaded")] == ["Empty"]
    assert offsets(found, "loaded") == {(name, 0): 3}
    assert len(asked) == 3


@pytest.mark.parametrize("request_", [DescribeGroupsRequest, OffsetFetchRequest])
def test_a_group_whose_coordinator_goes_on_loading_is_unknown_and_the_others_are_there(
    cluster, kafka, topic, monkeypatch, request_
):
    name = topic("groups-loading", [[1]])
    for group in ("loading", "beside"):
        commit(kafka, group, name, {0: 3})
    let_load(monkeypatch, "loading", request_, times=1_000)
    found = take_groups(cluster)
    assert [(row["state"], row["member"]) for row in rows(found, "loading")] == [("Unknown", None)]
    assert [row["state"] for row in rows(found, "beside")] == ["Empty"]
    assert offsets(found, "beside") == {(name, 0): 3}
    listed = found.members["group"].to_pylist()
    assert listed == sorted(listed)


def test_a_subscription_that_names_a_newer_version_than_it_has_is_read(cluster, kafka):
    old = ConsumerProtocolSubscription(version=0, topics=["orders"], user_data=b"").encode()
    join_by_hand(kafka, cluster, "misnamed", kind="consumer", metadata=b"\x00\x01" + old[2:], assignment=b"")
    (row,) = rows(take_groups(cluster), "misnamed")
    assert (row["topics"], row["assignment"]) == (["orders"], [])


def test_many_groups_are_asked_for_a_few_at_a_time(cluster, kafka, topic, monkeypatch):
    name = topic("groups-many", [[1]])
    names = [f"many-{number}" for number in range(5)]
    for group in names:
        commit(kafka, group, name, {0: 0})
    monkeypatch.setattr(reading, "BATCH", 2)
    found = take_groups(cluster)
    assert [group for group in found.members["group"].to_pylist() if group in names] == names
    assert [group for group in found.offsets["group"].to_pylist() if group in names] == names


def test_a_group_that_this_user_may_not_describe_is_unknown(cluster, kafka, topic):
    name = topic("groups-rights", [[1]])
    for group in ("rights-open", "rights-shut"):
        commit(kafka, group, name, {0: 0})
    allowed = [("CLUSTER", "kafka-cluster"), ("GROUP", "rights-open"), ("TOPIC", name)]
    with kafka.admin() as admin:
        admin.create_acls(
            [
                ACL(
                    "User:reader",
                    "*",
                    ACLOperation.DESCRIBE,
                    ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType[kind], resource),
                )
                for kind, resource in allowed
            ]
        )
    settings = {
        "bootstrap_servers": kafka.secure_servers("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "reader",
        "sasl_plain_password": PASSWORD,
    }
    expected = {"rights-open": "Empty", "rights-shut": "Unknown"}

    def is_so(groups):
        states = {row["group"]: row["state"] for row in groups.members.to_pylist() if row["group"] in expected}
        return (states, offsets(groups, "rights-open")) == (expected, {(name, 0): 0})

    with Cluster(settings) as limited:
        found = groups_when(limited, "rights-shut", is_so)  # the brokers hear of rights a moment later
    assert offsets(found, "rights-shut") == {}
    assert [row["state"] for row in rows(take_groups(cluster), "rights-shut")] == ["Empty"]


def test_the_groups_of_a_dead_coordinator_are_where_they_moved_to(cluster, kafka, topic):
    name = topic("groups-dead", [[1, 2]], size=20_000)
    commit(kafka, "orphan", name, {0: 1})
    dead = coordinator(kafka, "orphan")
    kafka.kill(dead)
    try:
        wait_for(cluster.alive_brokers, lambda alive: dead not in alive)
        settled(cluster, "orphan", members=0, state="Empty")  # a moment later, when another broker has taken over
        assert offsets(take_groups(cluster), "orphan") == {(name, 0): 1}
    finally:
        kafka.restart(dead)


def test_a_snapshot_does_without_groups_that_cannot_be_read(cluster, monkeypatch):
    def fail(_, broker):
        raise ClusterError(f"broker {broker} did not list its groups")

    monkeypatch.setattr(Cluster, "coordinated_groups", fail)
    told = []
    assert groups_or_none(cluster, told.append) is None
    assert told == ["the snapshot is without consumer groups: broker 1 did not list its groups"]


def test_groups_are_kept_with_the_snapshot_until_there_are_none(cluster, kafka, topic, tmp_path):
    run = Run(tmp_path.as_uri())
    assert read_groups(run.artifacts / SNAPSHOT) is None
    commit(kafka, "kept", topic("groups-kept", [[1]]), {0: 0})
    found = take_groups(cluster)
    assert (found.members.schema, found.offsets.schema) == (GROUP_MEMBERS, GROUP_OFFSETS)
    run.write_groups(found)
    again = read_groups(run.artifacts / SNAPSHOT)
    assert again.members.equals(found.members)
    assert again.offsets.equals(found.offsets)
    run.write_groups(None)
    assert read_groups(run.artifacts / SNAPSHOT) is None
