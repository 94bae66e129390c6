"""Our commands and Kafka's own tool read each other's files and reach the same state."""

from __future__ import annotations

import json

from rebalance_lib.execution.throttles.config import ALL_RATES, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, RATES
from rebalance_lib.plan import parse_plan
from rebalance_lib.topology import TopicPartition
from tests.cli.conftest import SLOW
from tests.everywhere import set_broker, set_topic
from tests.waiting import wait_for


def at(rate):
    return dict.fromkeys(RATES, str(rate))


def topics_file(tmp_path, topic):
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}), encoding="utf-8")
    return path


def test_generated_here_executed_there_verified_by_both(ours, theirs, topic, tmp_path, look):
    name = topic("drop-ours", [[1, 2], [2, 1]], size=100_000)
    plan = tmp_path / "plan.json"
    generated = ours(
        "generate", "--topics-to-move-json-file", topics_file(tmp_path, name), "--broker-list", "3,4", "--out", plan
    )
    assert generated.code == 0
    headings = ["Current partition replica assignment", "Proposed partition reassignment configuration"]
    lines = generated.out.splitlines()
    assert [lines[0], lines[3]] == headings
    assert parse_plan(lines[4]) == parse_plan(plan.read_text())
    target = {tp.partition: list(brokers) for tp, brokers in parse_plan(plan.read_text()).as_dict().items()}
    assert {broker for brokers in target.values() for broker in brokers} == {3, 4}

    started = theirs("--execute", "--reassignment-json-file", plan, "--throttle", 10_000_000)
    assert f"Successfully started partition reassignments for {name}-0,{name}-1" in started
    look.moved(name, target)
    look.rates(dict.fromkeys((1, 2, 3, 4), at(10_000_000)))
    assert theirs("--verify", "--reassignment-json-file", plan, "--preserve-throttles").count("is completed.") == 2
    verified = ours("verify", "--reassignment-json-file", plan)
    assert verified.code == 0
    assert verified.out.count("is completed.") == 2
    look.unthrottled(name)


def test_generated_there_executed_here_verified_by_both(ours, theirs, topic, tmp_path, look):
    name = topic("drop-theirs", [[1, 2], [2, 1]], size=100_000)
    set_broker(look.cluster, 1, {LEADER_RATE: "777000"})
    set_topic(look.cluster, name, {LEADER_REPLICAS: "1:1"})
    generated = theirs("--generate", "--topics-to-move-json-file", topics_file(tmp_path, name), "--broker-list", "3,4")
    plan = tmp_path / "plan.json"
    plan.write_text(generated.strip().splitlines()[-1], encoding="utf-8")
    target = {tp.partition: list(brokers) for tp, brokers in parse_plan(plan.read_text()).as_dict().items()}

    assert ours("execute", "--reassignment-json-file", plan, "--throttle", 10_000_000).code == 0
    look.moved(name, target)
    look.rates(dict.fromkeys((1, 2, 3, 4), at(10_000_000)))
    assert theirs("--verify", "--reassignment-json-file", plan, "--preserve-throttles").count("is completed.") == 2
    assert ours("verify", "--reassignment-json-file", plan).code == 0
    look.lists(name, {LEADER_REPLICAS: "1:1"})
    look.rates({1: {LEADER_RATE: "777000"}})
    set_broker(look.cluster, 1, {LEADER_RATE: None})


def test_started_here_cancelled_there(ours, theirs, topic, plan, look):
    name = topic("drop-cancel-theirs", [[1]], size=1_000_000)
    path = plan({name: {0: [2]}})
    ours("execute", "--reassignment-json-file", path, "--throttle", SLOW)
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    look.rates(dict.fromkeys((1, 2), at(SLOW)))
    look.replicas(name, {0: [2, 1]})
    said = theirs("--cancel", "--reassignment-json-file", path)
    assert f"Successfully cancelled partition reassignment for: {name}-0" in said
    look.moved(name, {0: [1]})
    verified = ours("verify", "--reassignment-json-file", path)
    assert verified.code == 4
    assert f"no active reassignment of partition {name}-0, but replica set is 1 rather than 2." in verified.out
    assert ours("cancel", "--reassignment-json-file", path).code == 0
    look.unthrottled(name)


def test_log_dirs_go_both_ways(ours, theirs, topic, plan, look):
    name = topic("drop-log-dirs", [[1, 2]], size=200_000)
    before = look.log_dirs(name, (1, 2, 3))
    other = look.other_log_dir(before[0, 1])
    target = {(0, 1): other, (0, 3): other.replace("broker-1", "broker-3")}
    path = plan({name: {0: {"replicas": [1, 3], "log_dirs": [target[0, 1], target[0, 3]]}}})
    limits = ("--throttle", 50_000_000, "--replica-alter-log-dirs-throttle", 50_000_000)
    started = ours("execute", "--reassignment-json-file", path, *limits)
    assert started.code == 0
    assert f"moving log directory to {other} for replica {name}-0 with broker 1" in started.out
    rates = dict.fromkeys(ALL_RATES, "50000000")
    look.rates({1: rates, 2: at(50_000_000), 3: rates})
    assert ours("verify", "--reassignment-json-file", path, "--wait", "--preserve-throttles").code == 0
    look.moved(name, {0: [1, 3]})
    wait_for(lambda: look.log_dirs(name, (1, 2, 3)), target)  # what broker 2 had is deleted in its own time
    said = theirs("--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert said.count("completed successfully.") == 2
    assert ours("verify", "--reassignment-json-file", path).code == 0
    look.unthrottled(name)

    rollback = path.with_name("plan.json.state") / "rollback.json"
    theirs("--execute", "--reassignment-json-file", rollback)
    look.moved(name, {0: [1, 2]})
    assert ours("verify", "--reassignment-json-file", rollback, "--wait").code == 0
    wait_for(lambda: look.log_dirs(name, (1, 2, 3)), before)


def test_a_throttle_set_there_and_changed_here_is_gone_in_the_end(ours, topic, plan, look):
    name, cluster = topic("drop-adopt", [[1]], size=1_000_000), look.cluster
    path = plan({name: {0: [2]}})
    # What Kafka's tool sets, as test_cancel_beside_run looks at it.
    set_topic(cluster, name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    for broker in (1, 2):
        set_broker(cluster, broker, at(SLOW))
    cluster.reassign({TopicPartition(name, 0): [2]})
    look.replicas(name, {0: [2, 1]})
    faster = ours("execute", "--reassignment-json-file", path, "--additional", "--throttle", 50_000_000)
    assert faster.code == 0
    look.rates(dict.fromkeys((1, 2), at(50_000_000)))
    assert ours("verify", "--reassignment-json-file", path, "--wait").code == 0
    look.unthrottled(name)
