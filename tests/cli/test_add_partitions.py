"""add-partitions: shown first, added only when asked."""

from __future__ import annotations

import pytest

from rebalance_lib.placement import add_partitions
from rebalance_lib.topology import Broker
from tests.cli.conftest import UNTOUCHED

BROKERS = [Broker(1, "rack-1"), Broker(2, "rack-2"), Broker(3, "rack-3"), Broker(4, "rack-1")]


def test_they_are_shown_and_then_added_where_they_were_shown(ours, topic, look):
    name = topic("add-more", [[2, 3], [3, 1]])
    options = ("--topic", name, "--partitions", 5, "--output", "json")
    shown = ours("add-partitions", *options)
    assert (shown.code, shown.json["executed"]) == (0, False)
    look.replicas(name, {0: [2, 3], 1: [3, 1]})
    expected = add_partitions(name, {0: [2, 3], 1: [3, 1]}, BROKERS, 5)
    assert {entry["partition"]: entry["replicas"] for entry in shown.json["added"]["partitions"]} == expected
    added = ours("add-partitions", *options, "--execute")
    assert added.json == shown.json | {"executed": True}
    look.moved(name, {0: [2, 3], 1: [3, 1], **expected})


def test_they_are_added_by_hand(ours, topic, look):
    name = topic("add-hand", [[2, 3]])
    by_hand = ("--replica-assignment", "2:3,4:1,1:2")
    assert ours("add-partitions", "--topic", name, "--partitions", 3, *by_hand, "--execute").code == 0
    look.moved(name, {0: [2, 3], 1: [4, 1], 2: [1, 2]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--partitions", 1), "would not be an increase"),
        (("--partitions", 3, "--replica-assignment", "1:2"), "Attempted to add 1 additional partition(s), but only 0"),
        (("--partitions", 3, "--replica-assignment", "1:2,2:3,9:1"), "are not available"),
    ],
)
def test_what_kafka_would_refuse_is_refused(ours, untouched, look, options, message):
    answer = ours("add-partitions", "--topic", untouched, *options, "--execute")
    assert (answer.code, message in answer.err) == (1, True), answer.err
    look.replicas(untouched, dict(enumerate(UNTOUCHED)))


def test_an_unknown_topic_is_named(ours):
    answer = ours("add-partitions", "--topic", "no-such-topic", "--partitions", 2)
    assert (answer.code, "Topic no-such-topic not found." in answer.err) == (1, True)
