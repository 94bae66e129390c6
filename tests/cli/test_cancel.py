"""cancel: only the plan's partitions, and never into nothing."""

from __future__ import annotations

from rebalance_lib.execution.throttles.config import LOG_DIR_RATE, RATES
from rebalance_lib.topology import TopicPartition
from tests.cli.conftest import SLOW
from tests.waiting import wait_for


def test_nothing_under_way_is_said(ours, topic, plan):
    name = topic("cancel-none", [[1, 2]])
    answer = ours("cancel", "--reassignment-json-file", plan({name: {0: [3, 4]}}))
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "None of the specified partition reassignments are active.",
        "None of the specified partition moves are active.",
    ]


def test_only_partitions_of_the_plan_are_cancelled(ours, topic, plan, cluster, look):
    name = topic("cancel-some", [[1], [3]], size=1_000_000)
    both = plan({name: {0: [2], 1: [3, 2]}})
    one = plan({name: {1: [3, 2]}}, "one.json")
    ours("execute", "--reassignment-json-file", both, "--throttle", SLOW)
    rates = dict.fromkeys((1, 2, 3), dict.fromkeys(RATES, str(SLOW)))
    look.rates(rates)
    look.replicas(name, {0: [2, 1], 1: [3, 2]})
    answer = ours("cancel", "--reassignment-json-file", one, "--output", "json")
    assert answer.json["cancelled"] == [f"{name}-1"]  # an added replica alone, which Kafka's tool would not cancel
    assert (answer.code, answer.json["throttles"]["kept"]) == (3, "1 reassignments are under way that may need them")
    assert list(cluster.reassignments()) == [TopicPartition(name, 0)]
    kept = ours("cancel", "--reassignment-json-file", both, "--preserve-throttles")
    assert kept.code == 0
    look.rates(rates)
    look.replicas(name, {0: [1], 1: [3]})
    assert ours("cancel", "--reassignment-json-file", both).code == 0
    look.unthrottled(name)
    look.moved(name, {0: [1], 1: [3]})


def test_a_copy_between_log_dirs_is_cancelled(ours, topic, plan, look):
    name = topic("cancel-log-dir", [[1]], size=1_000_000)
    held = look.log_dirs(name, (1,))[0, 1]
    other = look.other_log_dir(held)
    path = plan({name: {0: {"replicas": [1], "log_dirs": [other]}}})
    ours("execute", "--reassignment-json-file", path, "--replica-alter-log-dirs-throttle", SLOW)
    look.rates({1: {LOG_DIR_RATE: str(SLOW)}})
    assert ours("verify", "--reassignment-json-file", path).code == 3
    answer = ours("cancel", "--reassignment-json-file", path, "--output", "json")
    assert (answer.code, answer.json["log_dirs"]) == (0, [f"{name}-0-1"])
    assert answer.json["throttles"]["restored"]["brokers"] == [1]
    wait_for(lambda: look.log_dirs(name, (1,)), {(0, 1): held})
