"""verify: how it ends, and what it does with throttles."""

from __future__ import annotations

from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, RATES
from tests.cli.conftest import SLOW
from tests.everywhere import set_broker, set_topic


def test_still_moving_ends_with_3_and_is_told_to_programs(ours, topic, plan, look):
    name = topic("verify-moving", [[1]], size=1_000_000)
    path = plan({name: {0: [2]}})
    ours("execute", "--reassignment-json-file", path, "--throttle", SLOW)
    look.replicas(name, {0: [2, 1]})
    answer = ours("verify", "--reassignment-json-file", path, "--output", "json")
    assert (answer.code, answer.json["verdict"]) == (3, "not finished")
    assert answer.json["partitions"] == [
        {
            "topic": name,
            "partition": 0,
            "status": "moving",
            "replicas": [2, 1],
            "in_sync": [1],
            "target": [2],
            "message": f"Reassignment of partition {name}-0 is still in progress.",
        }
    ]
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    look.rates(dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    assert ours("cancel", "--reassignment-json-file", path).code == 0


def test_a_wrong_replica_set_ends_with_4_and_its_throttles_stay(ours, topic, plan, cluster, look):
    name = topic("verify-wrong", [[1, 2]])
    set_topic(cluster, name, {LEADER_REPLICAS: "0:1"})
    path = plan({name: {0: [3, 2]}})
    answer = ours("verify", "--reassignment-json-file", path)
    assert answer.code == 4
    assert f"no active reassignment of partition {name}-0, but replica set is 1,2 rather than 3,2." in answer.out
    look.lists(name, {LEADER_REPLICAS: "0:1"})


def test_another_order_is_wrong_too(ours, topic, plan):
    name = topic("verify-order", [[1, 2]])
    answer = ours("verify", "--reassignment-json-file", plan({name: {0: [2, 1]}}), "--output", "json")
    assert (answer.code, answer.json["verdict"]) == (4, "wrong")


def test_a_topic_that_is_gone_is_wrong(ours, plan):
    answer = ours("verify", "--reassignment-json-file", plan({"verify-gone": {0: [1]}}))
    assert (answer.code, "verify-gone-0 does not exist." in answer.out) == (4, True)


def test_without_saved_values_only_the_plans_own_entries_leave(ours, topic, plan, cluster, look):
    name = topic("verify-clear", [[1, 2], [2, 1]])
    set_topic(cluster, name, {LEADER_REPLICAS: "0:1,0:2,1:2", FOLLOWER_REPLICAS: "0:3"})
    for broker in (1, 2):
        set_broker(cluster, broker, dict.fromkeys(RATES, "5000"))
    path = plan({name: {0: [1, 2]}})
    preserved = ours("verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert preserved.code == 0
    look.lists(name, {LEADER_REPLICAS: "0:1,0:2,1:2", FOLLOWER_REPLICAS: "0:3"})
    look.rates(dict.fromkeys((1, 2), dict.fromkeys(RATES, "5000")))
    answer = ours("verify", "--reassignment-json-file", path, "--output", "json")
    assert answer.json["throttles"] == {"restored": {"topics": [name], "brokers": [1, 2]}, "left": {}, "kept": None}
    look.lists(name, {LEADER_REPLICAS: "1:2"})
    look.rates({})


def test_a_plan_executed_without_a_throttle_leaves_those_of_others(ours, topic, plan, cluster, look):
    name = topic("verify-others", [[1, 2]])
    set_topic(cluster, name, {LEADER_REPLICAS: "0:1"})
    set_broker(cluster, 1, {LEADER_RATE: "777"})
    path = plan({name: {0: [2, 1]}})
    assert ours("execute", "--reassignment-json-file", path, "--wait").code == 0
    look.moved(name, {0: [2, 1]})
    assert ours("verify", "--reassignment-json-file", path).code == 0
    look.lists(name, {LEADER_REPLICAS: "0:1"})
    look.rates({1: {LEADER_RATE: "777"}})
    set_broker(cluster, 1, {LEADER_RATE: None})


def test_a_log_dir_that_nobody_moves_to_is_wrong(ours, topic, plan, look):
    name = topic("verify-log-dir", [[1]], size=10_000)
    held = look.log_dirs(name, (1,))[0, 1]
    other = look.other_log_dir(held)
    path = plan({name: {0: {"replicas": [1], "log_dirs": [other]}}})
    answer = ours("verify", "--reassignment-json-file", path, "--output", "json")
    assert answer.code == 4
    assert [(move["status"], move["current"]) for move in answer.json["log_dirs"]] == [("not moving", held)]
