"""create-assignment: a new topic's placement, in both of Kafka's forms."""

from __future__ import annotations

import pytest

from rebalance_lib.placement import assign_replicas, format_replica_assignment
from rebalance_lib.topology import Broker

SIZE = ("--partitions", 6, "--replication-factor", 3)


def test_striping_from_a_fixed_start_is_kafkas(ours, tmp_path):
    out = tmp_path / "new.json"
    answer = ours(
        "create-assignment", "--topic", "new", *SIZE, "--strategy", "striped", "--start-index", 0, "--out", out
    )
    brokers = [Broker(1, "rack-1"), Broker(2, "rack-2"), Broker(3, "rack-3"), Broker(4, "rack-1")]
    text = format_replica_assignment(assign_replicas(brokers, 6, 3, start_index=0))
    assert answer.code == 0
    assert f"--replica-assignment {text}\n" in answer.out
    assert '{"topic":"new","partition":0,"replicas":[1,' in answer.out
    assert out.read_text().startswith('{"version":1,"partitions":[')


def test_kafka_takes_the_text_as_it_is(ours, kafka, topic, look):
    answer = ours("create-assignment", "--topic", "create-new", *SIZE, "--seed", 7, "--output", "json")
    replicas = [[int(word) for word in entry.split(":")] for entry in answer.json["replica_assignment"].split(",")]
    topic("create-new", replicas)
    look.replicas("create-new", dict(enumerate(replicas)))
    again = ours("create-assignment", "--topic", "create-new", *SIZE)
    assert (again.code, "already exists" in again.err) == (1, True)


def test_racks_may_be_left_out(ours):
    options = ("--strategy", "striped", "--start-index", 0, "--rack-mode", "disabled", "--output", "json")
    answer = ours("create-assignment", "--topic", "new", "--partitions", 4, "--replication-factor", 2, *options)
    assert answer.json["replica_assignment"] == "1:2,2:3,3:4,4:1"


def test_a_placement_by_hand_is_checked(ours):
    good = ours("create-assignment", "--topic", "new", "--replica-assignment", "1:2,2:3", "--output", "json")
    assert [entry["replicas"] for entry in good.json["reassignment"]["partitions"]] == [[1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--replica-assignment", "1:2,3"), 1, "Partition 1 has different replication factor"),
        (("--replica-assignment", "1:1"), 1, "may not contain duplicate entries: 1"),
        (("--replica-assignment", "1:9"), 1, "Some brokers specified for partition id 0 are not available"),
        ((*SIZE, "--broker-list", "1,9"), 1, "Unknown broker id 9"),
        (("--partitions", 1, "--replication-factor", 9), 1, "The target replication factor of 9 cannot be reached"),
        (("--partitions", 1), 2, "go together"),
        ((), 2, "give --partitions and --replication-factor, or --replica-assignment"),
        ((*SIZE, "--start-index", 1), 2, "--start-index is striping's"),
    ],
)
def test_what_cannot_be_placed_is_refused(ours, options, code, message):
    answer = ours("create-assignment", "--topic", "new", *options)
    assert (answer.code, message in answer.err) == (code, True), answer.err
