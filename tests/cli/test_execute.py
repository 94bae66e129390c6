"""execute: what is refused, and what is kept."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_REPLICAS, RATES
from tests.cli.conftest import SLOW, UNTOUCHED

ENTRY = {"topic": "untouched", "partition": 0, "replicas": [1, 2]}


def at(rate):
    return dict.fromkeys(RATES, str(rate))


def document(*entries):
    return json.dumps({"version": 1, "partitions": list(entries)})


REFUSED = {
    "empty": (document(), [], "Partition reassignment list cannot be empty"),
    "unknown broker": (document(ENTRY | {"replicas": [1, 99]}), [], "Unknown broker id 99"),
    "unknown topic": (document(ENTRY | {"topic": "no-such-topic"}), [], "Topic no-such-topic not found."),
    "unknown partition": (document(ENTRY | {"partition": 7}), [], "Unable to find partition: untouched-7"),
    "partition twice": (document(ENTRY, ENTRY), [], "entry 0 has this partition already"),
    "broker twice": (document(ENTRY | {"replicas": [1, 1]}), [], "broker 1 is listed twice"),
    "no replicas": (document(ENTRY | {"replicas": []}), [], "at least one replica"),
    "too few log dirs": (
        document(ENTRY | {"log_dirs": ["any"]}),
        [],
        "there are 2 replicas; give one log dir for each",
    ),
    "unknown key": (document(ENTRY | {"logdirs": []}), [], "which Kafka would ignore"),
    "replication factor": (
        document(ENTRY | {"replicas": [3]}),
        ["--disallow-replication-factor-change"],
        "untouched-0: The replication factor is changed from 2 to 1",
    ),
    "throttle": (document(ENTRY | {"replicas": [3, 4]}), ["--throttle", 0], "0 bytes/s would stop replication"),
    "no JSON": ("{", [], "not JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kafka_would_refuse_is_refused_before_anything_is_changed(ours, untouched, tmp_path, look, case):
    text, options, message = REFUSED[case]
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    answer = ours("execute", "--reassignment-json-file", path, *options, "--output", "json")
    assert answer.code == 1
    assert message in answer.json["error"]
    assert message in answer.err
    look.moved(untouched, dict(enumerate(UNTOUCHED)))
    assert not (tmp_path / "plan.json.state").exists()


def test_a_plan_that_cannot_be_read_is_named(ours, tmp_path):
    answer = ours("execute", "--reassignment-json-file", tmp_path / "none.json")
    assert answer.code == 1
    assert "none.json cannot be read: No such file" in answer.err


def test_the_way_back_is_printed_and_kept(ours, topic, plan, look):
    name = topic("execute-back", [[1, 2]], size=10_000)
    held = look.log_dirs(name, (1, 2))
    path = plan({name: {0: [3, 4]}})
    answer = ours("execute", "--reassignment-json-file", path, "--output", "json", "--wait")
    assert (answer.code, answer.json["verdict"], answer.json["submitted"]) == (0, "reached", [f"{name}-0"])
    rollback = path.with_name("plan.json.state") / "rollback.json"
    entry = {"topic": name, "partition": 0, "replicas": [1, 2], "log_dirs": [held[0, 1], held[0, 2]]}
    assert json.loads(rollback.read_text())["partitions"] == [entry]
    assert answer.json["rollback"]["partitions"] == [entry]

    look.moved(name, {0: [3, 4]})
    again = ours("execute", "--reassignment-json-file", path)
    assert "Nothing to start" in again.out
    assert json.loads(rollback.read_text())["partitions"] == [entry]
    assert ours("execute", "--reassignment-json-file", rollback, "--wait").code == 0
    look.moved(name, {0: [1, 2]})


def test_a_reassignment_under_way_is_refused_unless_it_is_additional(ours, topic, plan, look):
    name, other = topic("execute-first", [[1]], size=1_000_000), topic("execute-second", [[1, 2]])
    first, second = plan({name: {0: [2]}}), plan({other: {0: [3, 2]}}, "second.json")
    assert ours("execute", "--reassignment-json-file", first, "--throttle", SLOW).code == 0
    own = {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"}
    look.lists(name, own)
    look.rates(dict.fromkeys((1, 2), at(SLOW)))
    look.replicas(name, {0: [2, 1]})
    refused = ours("execute", "--reassignment-json-file", second)
    assert refused.code == 1
    assert "Cannot execute because there is an existing partition assignment.  Use --additional" in refused.err
    assert f"{name}-0" in refused.err

    # As with Kafka's tool, the rate given with --additional holds for what is under way too.
    assert ours("execute", "--reassignment-json-file", second, "--additional", "--throttle", 20_000).code == 0
    look.rates(dict.fromkeys((1, 2, 3), at(20_000)))
    look.lists(name, own)
    look.lists(other, {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"})

    # The second is done, but its rates are those of the first too.
    kept = ours("verify", "--reassignment-json-file", second, "--wait")
    assert (kept.code, "Throttles stay for now: 1 reassignments" in kept.err) == (3, True)
    look.rates(dict.fromkeys((1, 2, 3), at(20_000)))
    faster = ours("execute", "--reassignment-json-file", first, "--additional", "--throttle", 90_000_000)
    assert "Nothing to start" in faster.out
    assert ours("verify", "--reassignment-json-file", first, "--wait").code == 0
    assert ours("verify", "--reassignment-json-file", second).code == 0
    look.unthrottled(name, other)


def test_a_target_in_flight_is_replaced_and_the_senders_stay(ours, topic, plan, cluster, look):
    name = topic("execute-override", [[1]], size=1_000_000)
    first, second = plan({name: {0: [2]}}), plan({name: {0: [3]}}, "second.json")
    ours("execute", "--reassignment-json-file", first, "--throttle", SLOW)
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    look.rates(dict.fromkeys((1, 2), at(SLOW)))
    look.replicas(name, {0: [2, 1]})
    assert ours("execute", "--reassignment-json-file", second, "--additional", "--throttle", SLOW).code == 0
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2,0:3"})
    look.rates(dict.fromkeys((1, 2, 3), at(SLOW)))
    assert [entry.target for entry in cluster.reassignments().values()] == [(3,)]
    look.replicas(name, {0: [3, 1, 2]})
    wrong = ours("verify", "--reassignment-json-file", first)
    assert (wrong.code, "being reassigned to 3 rather than 2" in wrong.out) == (4, True)
    assert ours("cancel", "--reassignment-json-file", first).code == 0  # whichever is first, nothing is left
    assert ours("cancel", "--reassignment-json-file", second).code == 0
    look.unthrottled(name)


def test_back_to_the_originals_in_flight_is_a_cancel_and_then_the_order(ours, topic, plan, look):
    name = topic("execute-return", [[1, 2]], size=1_000_000)
    there, back = plan({name: {0: [3, 4]}}), plan({name: {0: [2, 1]}}, "back.json")
    ours("execute", "--reassignment-json-file", there, "--throttle", SLOW)
    look.rates(dict.fromkeys((1, 2, 3, 4), at(SLOW)))
    look.replicas(name, {0: [3, 4, 1, 2]})
    answer = ours("execute", "--reassignment-json-file", back, "--additional", "--wait")
    assert (answer.code, "its reassignment was cancelled" in answer.out) == (0, True)
    look.moved(name, {0: [2, 1]})
    assert ours("cancel", "--reassignment-json-file", there).code == 0
    look.unthrottled(name)


def test_a_target_that_the_controller_would_never_end_is_reached(ours, topic, plan, look):
    name = topic("execute-stuck", [[1, 2]], size=1_000_000)
    path = plan({name: {0: [3, 4]}})
    assert ours("execute", "--reassignment-json-file", path, "--throttle", SLOW).code == 0
    look.rates(dict.fromkeys((1, 2, 3, 4), at(SLOW)))
    look.replicas(name, {0: [3, 4, 1, 2]})
    path = plan({name: {0: [1, 3]}}, "other.json")
    answer = ours("execute", "--reassignment-json-file", path, "--additional")
    assert answer.code == 0
    assert "its reassignment was cancelled first" in answer.out
    ours("cancel", "--reassignment-json-file", plan({name: {0: [3, 4]}}))
    assert ours("execute", "--reassignment-json-file", path, "--additional").code == 0
    assert ours("verify", "--reassignment-json-file", path, "--wait").code == 0
    look.moved(name, {0: [1, 3]})


def test_a_file_written_anew_is_another_plan(ours, topic, plan, look):
    name = topic("execute-anew", [[1, 2]])
    path = plan({name: {0: [2, 1]}})
    assert ours("execute", "--reassignment-json-file", path, "--wait").code == 0
    look.moved(name, {0: [2, 1]})
    path = plan({name: {0: [1, 2]}})
    again = ours("execute", "--reassignment-json-file", path, "--output", "json")
    assert again.json["rollback"]["partitions"][0]["replicas"] == [2, 1]
    assert ours("verify", "--reassignment-json-file", path, "--wait").code == 0
    assert len(list(path.with_name("plan.json.state").glob("rollback-*.json"))) == 1


def test_a_log_dir_that_is_not_there_is_refused_before_anything_is_changed(ours, topic, plan, look):
    name = topic("execute-no-dir", [[1, 2]])
    path = plan({name: {0: {"replicas": [1, 3], "log_dirs": ["any", "/no/such/dir"]}}})
    refused = ours("execute", "--reassignment-json-file", path, "--throttle", 1_000_000)
    assert refused.code == 1
    assert f"{name}-0-3: broker 3 has no log dir /no/such/dir" in refused.err
    look.unthrottled(name)
