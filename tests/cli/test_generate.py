"""generate: Kafka's checks, and a proposal that either tool can execute."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.plan import parse_plan


@pytest.fixture
def topics(tmp_path):
    def write(*names):
        path = tmp_path / "topics.json"
        path.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}), encoding="utf-8")
        return path

    return write


REFUSED = {
    "broker twice": (["untouched"], "1,2,1", 1, "Broker list contains duplicate entries: [1]"),
    "no number": (["untouched"], "1,x", 2, "not a list of broker ids such as 0,1,2"),
    "topic twice": (["untouched"] * 2, "1,2", 1, "entry 0 has this topic already"),
    "unknown topic": (["no-such-topic"], "1,2", 1, "Topic no-such-topic not found."),
    "too few brokers": (["untouched"], "1", 1, "The target replication factor of 2 cannot be reached"),
    "all dead": (["untouched"], "98,99", 1, "none of the brokers [98, 99] is alive"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.usefixtures("untouched")
def test_what_kafka_would_refuse_is_refused(ours, topics, case):
    names, brokers, code, message = REFUSED[case]
    answer = ours("generate", "--topics-to-move-json-file", topics(*names), "--broker-list", brokers)
    assert (answer.code, answer.out) == (code, "")
    assert message in answer.err


def test_racks_are_spread_over_unless_they_are_disabled(ours, topic, topics):
    # Brokers 1 and 4 are in rack-1: with racks, no partition has both.
    name = topic("generate-racks", [[1, 2]] * 12)
    options = ("--topics-to-move-json-file", topics(name), "--broker-list", "1,2,4", "--output", "json", "--seed", 1)
    aware, unaware = ours("generate", *options), ours("generate", *options, "--disable-rack-aware")
    together = [
        sum({1, 4} == set(entry["replicas"]) for entry in answer.json["proposed"]["partitions"])
        for answer in (aware, unaware)
    ]
    assert together[0] == 0
    assert together[1] > 0
    assert ours("generate", *options).json["proposed"] == aware.json["proposed"]


def test_a_dead_broker_is_left_out_and_named(ours, topic, topics, tmp_path):
    name = topic("generate-dead", [[1, 2]])
    out = tmp_path / "plan.json"
    answer = ours(
        "generate",
        "--topics-to-move-json-file",
        topics(name),
        "--broker-list",
        "3,4,99",
        "--out",
        out,
        "--output",
        "json",
    )
    assert (answer.code, answer.json["brokers_left_out"], answer.json["replicas_moved"]) == (0, [99], 2)
    assert parse_plan(out.read_text()) == parse_plan(json.dumps(answer.json["proposed"]))
    assert "not alive: [99]" in answer.err
