"""Look at the consumer groups of a live cluster once, and write down what is there.

A broker lists the groups that it coordinates, and nobody else can describe them: each broker is asked for its own, many
groups in one request, so that 5,000 groups cost some 50 requests. Errors are of single groups: one that this user may
not describe is there all the same, as Unknown. kafka-python's calls end at the first such error, or make words of it,
so the messages are read here.

There are two types of group. Of a classic one, Kafka passes on what its clients tell each other, in bytes of their own:
a member whose bytes make no sense has no topics and no partitions here. Of one of type consumer (KIP-848), the broker
itself knows all of it.

Example: broker 1 lists ``billing`` (classic) and ``audit`` (consumer), broker 2 lists ``connect-sink`` (of Connect).
Broker 1 is then asked for ``billing``, for ``audit``, and for the offsets of both, and broker 2 for nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import sleep
from typing import Any

import pyarrow as pa
from kafka.errors import GroupIdNotFoundError, NoError, for_code
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from rebalance_lib.cluster.client import Cluster
from rebalance_lib.cluster.messages import ConsumerGroupDescribeRequest
from rebalance_lib.errors import ClusterError
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups
from rebalance_lib.topology.groups import CLASSIC, CONSUMER, UNKNOWN

ATTEMPTS = 5  # while groups go from one coordinator to another
BATCH = 200  # groups in one request: the answer has all their members
PROTOCOLS = ("consumer", "")  # of consumers, and of what only commits offsets; others do not read partitions by group
PATTERN = "pattern"  # of topics, that a member subscribes to; only on the way to a row
VERSION_BYTES = 2  # before what members tell each other
STABLE, DEAD = "Stable", "Dead"

Row = dict[str, Any]


def take_groups(cluster: Cluster) -> Groups:
    """Every consumer group with its members and committed offsets, in order.

    A group that this user may not describe is one row with the state Unknown, and so is one that its coordinator still
    loads at the last attempt. Topics that this user may not describe have no offsets. The groups of a broker that has
    just died are missing for the moment that another one needs to take them over.

    Raises:
        ClusterError: A broker that is alive did not answer, or is older than Kafka 3.0.
    """
    for attempt in range(1, ATTEMPTS + 1):
        alive = cluster.alive_brokers().keys()
        try:
            groups, silent = _groups_of(cluster, alive)
        except ClusterError:
            if cluster.alive_brokers().keys() >= alive:
                raise
        else:
            if not silent or attempt == ATTEMPTS:
                return groups
        sleep(0.2 * 2**attempt)  # others coordinate the groups now, or will soon
    raise ClusterError("brokers went away, one after the other, while they were asked for their groups; try again")


def groups_or_none(cluster: Cluster, tell: Callable[[str], object]) -> Groups | None:
    """The groups, or None where they cannot be read, and why is told: a snapshot is of use without them."""
    try:
        return take_groups(cluster)
    except ClusterError as error:
        tell(f"the snapshot is without consumer groups: {error}")
        return None


def _groups_of(cluster: Cluster, brokers: Iterable[int]) -> tuple[Groups, set[str]]:
    """The groups, and those among them of which their coordinators will tell in a moment: here they are Unknown."""
    # A group that moved while brokers were asked is on two lists: it is where it was seen last.
    listed = {group: (broker, kind) for broker in sorted(brokers) for group, kind in _listed(cluster, broker).items()}
    members: list[Row] = []
    offsets: list[Row] = []
    silent: set[str] = set()
    for broker in sorted({broker for broker, _ in listed.values()}):
        here = sorted(group for group, (coordinator, _) in listed.items() if coordinator == broker)
        for begin in range(0, len(here), BATCH):
            batch = here[begin : begin + BATCH]
            for kind in (CLASSIC, CONSUMER):
                own = [group for group in batch if listed[group][1] == kind]
                members += _members(cluster, broker, kind, own, silent)
            offsets += _offsets(cluster, broker, batch, silent)
    members = [row for row in members if row["group"] not in silent]
    members += [_unknown(group, listed[group][1]) for group in silent]
    members.sort(key=lambda row: (row["group"], row["member"] or ""))
    offsets.sort(key=lambda row: (row["group"], row["topic"], row["partition"]))
    groups = Groups(
        members=pa.Table.from_pylist(members, schema=GROUP_MEMBERS),
        offsets=pa.Table.from_pylist(offsets, schema=GROUP_OFFSETS),
    )
    return groups, silent


def _listed(cluster: Cluster, broker: int) -> dict[str, str]:
    """The consumer groups that a broker coordinates, with their types; brokers before Kafka 3.8 know only one type."""
    listed = {
        entry["group_id"]: (entry.get("group_type") or CLASSIC).lower()
        for entry in cluster.coordinated_groups(broker)
        if entry["protocol_type"] in PROTOCOLS
    }
    return {group: kind for group, kind in listed.items() if kind in (CLASSIC, CONSUMER)}


def _members(cluster: Cluster, broker: int, kind: str, groups: list[str], silent: set[str]) -> list[Row]:
    """The rows of these groups of one type: one per member, or one for a group without."""
    if not groups:
        return []
    request, of_member = (
        (DescribeGroupsRequest(groups=groups), _classic_member)
        if kind == CLASSIC
        else (ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), _consumer_member)
    )
    answer = cluster.ask_broker(f"broker {broker} did not describe its groups", broker, request)
    rows: list[Row] = []
    for group in answer.groups:
        if group.error_code == GroupIdNotFoundError.errno or group.group_state == DEAD:
            continue  # it is gone since it was listed
        row = _unknown(group.group_id, kind)
        if not _is_told(group, silent):
            rows.append(row)
            continue
        row["state"] = group.group_state
        assignor = group.protocol_data if kind == CLASSIC else group.assignor_name
        row["assignor"] = assignor if group.members and assignor else None
        rows += _matched([row | of_member(member, group.group_state) for member in group.members]) or [row]
    return rows


def _unknown(group: str, kind: str) -> Row:
    return {"group": group, "type": kind, "state": UNKNOWN, "member": None}


def _is_told(group: Any, silent: set[str]) -> bool:
    """Whether a broker told of a group; those that it will tell of in a moment are noted as silent."""
    if group.error_code == NoError.errno:
        return True
    if for_code(group.error_code).retriable:
        silent.add(group.group_id)
    return False


def _classic_member(member: Any, state: str) -> Row:
    subscription = _decoded(ConsumerProtocolSubscription, member.member_metadata, _subscribed)
    assignment = _decoded(ConsumerProtocolAssignment, member.member_assignment, _assigned)
    if state == STABLE and not member.member_assignment:
        assignment = []  # some assignors leave out whom they give nothing; else the group is still at it
    topics, rack = subscription or (None, None)
    return {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),  # as Java writes an address that has no name
        "instance": member.group_instance_id,
        "rack": rack,
        "topics": topics,
        "assignment": assignment,
    }


def _consumer_member(member: Any, _: str) -> Row:
    return {
        "member": member.member_id,
        "client_id": member.client_id,
        "host": member.client_host.removeprefix("/"),
        "instance": member.instance_id,
        "rack": member.rack_id or None,
        "topics": sorted(set(member.subscribed_topic_names)),
        "assignment": _assignment(member.assignment.topic_partitions, "topic_name"),
        PATTERN: member.subscribed_topic_regex or None,
    }


def _matched(rows: list[Row]) -> list[Row]:
    """The members of a group whose broker assigns; whoever subscribes to a pattern has the topics that match it.

    Kafka does not tell which those are. All that a member with the same pattern has partitions of are among them.
    """
    matching: dict[str, set[str]] = {}
    for row in rows:
        if pattern := row.get(PATTERN):
            matching.setdefault(pattern, set()).update(entry["topic"] for entry in row["assignment"])
    told = []
    for row in rows:
        pattern = row.pop(PATTERN, None)
        told.append(row | {"topics": sorted({*row["topics"], *matching[pattern]})} if pattern else row)
    return told


def _subscribed(subscription: Any) -> tuple[list[str], str | None]:
    topics: set[str] = set(subscription.topics)
    if not all(isinstance(topic, str) for topic in topics):
        raise ValueError("a topic has no name")
    return sorted(topics), subscription.rack_id or None


def _assigned(assignment: Any) -> list[Row]:
    return _assignment(assignment.assigned_partitions, "topic")


def _assignment(entries: Iterable[Any], topic: str) -> list[Row]:
    """What a member has; its numbers are those of clients, who may tell anything."""
    named: dict[str, set[int]] = {}
    for entry in entries:
        name = getattr(entry, topic)
        if not isinstance(name, str):
            raise ValueError("a topic has no name")
        named.setdefault(name, set()).update(entry.partitions)
    if any(number < 0 for numbers in named.values() for number in numbers):
        raise ValueError("a partition has a number below 0")
    return [{"topic": name, "partitions": sorted(numbers)} for name, numbers in sorted(named.items()) if numbers]


def _decoded(kind: Any, raw: bytes | None, read: Callable[[Any], Any]) -> Any:
    """What members told each other; None where there is nothing, or it is in no form that makes sense.

    Some clients name a version whose fields they do not send: the first fields are the same in all versions.
    """
    if not raw:
        return None
    data = bytes(raw)
    for version, readable in ((None, data), (0, data[VERSION_BYTES:])):
        with suppress(struct.error, ValueError, TypeError, AttributeError, IndexError, EOFError):
            return read(kind.decode(readable, version=version, header=version is None))
    return None


def _offsets(cluster: Cluster, broker: int, groups: list[str], silent: set[str]) -> list[Row]:
    """The rows of all that these groups have committed."""
    wanted = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    # Before version 8, a request is for one group; from version 10 on, topics have no names.
    request = OffsetFetchRequest(groups=wanted, min_version=8, max_version=9)
    answer = cluster.ask_broker(f"broker {broker} did not tell the offsets of its groups", broker, request)
    return [
        {
            "group": group.group_id,
            "topic": topic.name,
            "partition": partition.partition_index,
            "committed": partition.committed_offset,
        }
        for group in answer.groups
        if _is_told(group, silent)
        for topic in group.topics
        for partition in topic.partitions
        if partition.error_code == NoError.errno and partition.committed_offset >= 0
    ]
