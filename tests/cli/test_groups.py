"""``kafka-rebalance groups`` shows how each group shares its partitions, and how far behind it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.artifacts import SNAPSHOT, Artifacts, read_groups
from rebalance_lib.cli.group_listing import GroupLine, group_lines, member_lines
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups, TopicPartition
from sandbox import Sandbox
from tests.kafka_groups import Consumers, commit, settled
from tests.waiting import wait_for


@pytest.fixture(scope="module")
def kafka():
    """A cluster of these tests alone: groups leave Kafka's topic of offsets behind."""
    with Sandbox(brokers=1, racks=0) as sandbox:
        yield sandbox


def member(name, partitions, group="billing", state="Stable"):
    """A member of a group that reads ``orders``; None for partitions that are not known."""
    assignment = None if partitions is None else [{"topic": "orders", "partitions": partitions}] if partitions else []
    told = {"client_id": "c", "host": "h", "topics": ["orders"], "assignment": assignment}
    return {"group": group, "type": "classic", "state": state, "assignor": "range", "member": name, **told}


def alone(group, state):
    """A group without members."""
    return {"group": group, "type": "classic", "state": state}


def groups(members, committed=()):
    names = GROUP_OFFSETS.names
    return Groups(
        pa.Table.from_pylist(members, schema=GROUP_MEMBERS),
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in committed], schema=GROUP_OFFSETS),
    )


FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_three_members_share_two_partitions_and_one_is_idle():
    found = groups(
        [member("a", [0]), member("b", [1]), member("c", [])],
        [("billing", "orders", 0, 10), ("billing", "orders", 1, 7)],
    )
    (line,) = group_lines(found, {FIRST: 10, SECOND: 10})
    assert line == GroupLine("billing", "classic", "Stable", "range", 3, 1, 2, 0, 1, 1, lag=3)
    assert [(one.member, one.partitions) for one in member_lines(found)] == [
        ("a", ["orders-0"]),
        ("b", ["orders-1"]),
        ("c", []),
    ]


def test_a_group_that_is_rebalancing_has_members_and_no_figures():
    found = groups([member("a", None, state="PreparingRebalance"), member("b", [1], state="PreparingRebalance")])
    (line,) = group_lines(found, {})
    assert (line.members, line.partitions, line.least, line.most, line.idle) == (2, None, None, None, None)
    assert [one.partitions for one in member_lines(found)] == [None, ["orders-1"]]


def test_of_a_group_that_may_not_be_described_nothing_is_known_and_of_an_empty_one_there_is_nothing():
    unknown, empty = group_lines(groups([alone("a", "Unknown"), alone("b", "Empty")]), {})
    assert (unknown.members, unknown.topics, unknown.partitions, unknown.idle, unknown.lag) == (None,) * 5
    assert (empty.members, empty.topics, empty.partitions, empty.idle, empty.lag) == (0, 0, 0, 0, None)


def test_a_lag_is_known_if_the_ends_of_all_partitions_are():
    found = groups([alone("a", "Empty")], [("a", "orders", 0, 10), ("a", "orders", 1, 7)])
    assert [line.lag for line in group_lines(found, {FIRST: 10})] == [None]
    assert [line.lag for line in group_lines(found, {FIRST: 4, SECOND: 9})] == [2]  # the first was emptied


def test_groups_are_shown_with_their_lag(ours, cluster, kafka, topic):
    name = topic("cli-groups", [[1], [1]], size=20_000)
    commit(kafka, "cli-late", name, {0: 2, 1: 1})
    with Consumers(kafka) as consumers:
        consumers.join("cli-reading", name, client_id="reader", group_instance_id="reader-1")
        settled(cluster, "cli-reading", members=1, partitions=2)
        shown = ours("groups")
        listed = ours("groups", "--output", "json")
        one = ours("groups", "--group", "cli-reading")
        told = ours("groups", "--group", "cli-reading", "--output", "json")
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["cli-late", "Empty", "-", "0", "1", "0", "-", "-", "0", "1"] in lines
    assert [line[:8] for line in lines if line[:1] == ["cli-reading"]] == [
        ["cli-reading", "Stable", "range", "1", "1", "2", "2", "2"]
    ]
    assert "Members" not in shown.out
    found = {group["group"]: (group["state"], group["partitions"]) for group in listed.json["groups"]}
    assert (found["cli-late"], found["cli-reading"]) == (("Empty", 0), ("Stable", 2))
    assert "members" not in listed.json
    assert "cli-late" not in one.out
    assert f"{name}-0,{name}-1" in one.out
    assert [group["group"] for group in told.json["groups"]] == ["cli-reading"]
    (reader,) = told.json["members"]
    assert (reader["client_id"], reader["instance"], reader["topics"]) == ("reader", "reader-1", [name])
    assert reader["partitions"] == [f"{name}-0", f"{name}-1"]


def test_a_group_that_is_not_there_is_an_error(ours):
    answer = ours("groups", "--group", "cli-nothing")
    assert answer.code == 1
    assert "no consumer group cli-nothing" in answer.err


def test_a_snapshot_keeps_the_groups(ours, kafka, topic, tmp_path):
    commit(kafka, "cli-kept", topic("cli-kept", [[1]]), {0: 0})
    assert ours("snapshot", "--out", tmp_path).code == 0
    kept = read_groups(Artifacts(tmp_path.as_uri()) / SNAPSHOT)
    assert "cli-kept" in kept.members["group"].to_pylist()


def test_a_plan_that_adds_partitions_is_told_to_each_group_that_it_touches(ours, cluster, kafka, topic, tmp_path):
    name, other = topic("cli-grows", [[1], [1], [1]]), topic("cli-stays", [[1]])
    plan = tmp_path / "plan.json"
    plan.write_text(format_plan(Plan.from_assignment({TopicPartition(name, 3): [1], TopicPartition(name, 4): [1]})))
    commit(kafka, "cli-elsewhere", other, {0: 0})
    with Consumers(kafka) as consumers:
        for _ in range(2):
            consumers.join("cli-growing", name, client_id="reader")
        settled(cluster, "cli-growing", members=2, partitions=3)

        def told(*words):
            return ours("groups", "--reassignment-json-file", plan, *words)

        # A member may rejoin at any time, and the group then has no shares for a moment.
        of_group = ["2", "3", "→", "5", "1-2", "→", "2-3", "0", "→", "0", "1", "0", "0", "0"]
        wait_for(lambda: [line[2:-1] for line in of_growing(told())], [of_group])
        of_members = [["2", "3", "2"], ["1", "2", "0"]]
        wait_for(lambda: [line[-3:] for line in of_growing(told("--group", "cli-growing"))][1:], of_members)
        wait_for(lambda: growing_shares(told("--output", "json").json), (1, 0, [(2, 3), (1, 2)]))
        shown = told()
    assert "cli-elsewhere" not in shown.out
    assert "Members" not in shown.out


def of_growing(shown):
    """The lines about the group that grows, in words."""
    return [line.split() for line in shown.out.splitlines() if line.split()[:1] == ["cli-growing"]]


def growing_shares(document):
    """How many partitions change hands, how many members are idle, and what each member has before and after.

    None while a member rejoins: the group has no shares then.
    """
    for group in document["groups"]:
        if group["group"] == "cli-growing" and group["shares"] is not None:
            shares = [(share["before"], share["after"]) for share in group["shares"]]
            return group["change_hands"], group["idle_after"], shares
    return None
