"""Throttles are set for a whole plan at once, and afterwards exactly what was set before is set again."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import DriftError, InvalidInputError
from rebalance_lib.execution import restore_stale_throttles
from rebalance_lib.execution.plan_status import read_status
from rebalance_lib.execution.throttles.apply import apply_throttle
from rebalance_lib.execution.throttles.config import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
)
from rebalance_lib.execution.throttles.restore import restore_throttles
from rebalance_lib.execution.throttles.saved import DAMAGED, SAVED, stale_throttles
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.everywhere import set_broker, set_topic, wait_for_lists, wait_for_rates

NOTHING = {"value": None, "source": None, "set": []}


@pytest.fixture
def artifacts(tmp_path):
    return Artifacts(tmp_path.as_uri())


@pytest.fixture
def throttle(cluster, artifacts):
    """Throttle the move of partition 0 of a topic to other brokers."""

    def apply(topic, origin, target, rate=1_000_000):
        plan, before = (Plan.from_assignment({TopicPartition(topic, 0): replicas}) for replicas in (target, origin))
        return apply_throttle(cluster, plan, read_status(cluster, plan, before), rate, artifacts)

    return apply


def at(rate):
    return dict.fromkeys(RATES, str(rate))


def test_senders_and_receivers_are_throttled_and_nothing_is_left(cluster, topic, throttle, artifacts):
    name = topic("throttle-plain", [[1, 2]])
    throttle(name, [1, 2], [2, 3])
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"})
    wait_for_rates(cluster, {**dict.fromkeys((1, 2, 3), at(1_000_000)), 4: {}})
    restored = restore_throttles(cluster, artifacts)
    assert (restored.topics, restored.brokers, restored.left) == ([name], [1, 2, 3], {})
    wait_for_lists(cluster, name, {})
    wait_for_rates(cluster, {broker: {} for broker in (1, 2, 3, 4)})


def test_what_somebody_else_set_is_merged_and_stays(cluster, topic, throttle, artifacts):
    name = topic("throttle-merge", [[1, 2], [2, 3]])
    set_topic(cluster, name, {LEADER_REPLICAS: "1:2,0:1"})
    set_broker(cluster, 1, {LEADER_RATE: "777"})
    throttle(name, [1, 2], [2, 3])
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "1:2,0:1,0:2", FOLLOWER_REPLICAS: "0:3"})
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(1_000_000)))
    restore_throttles(cluster, artifacts)
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "1:2,0:1"})
    wait_for_rates(cluster, {1: {LEADER_RATE: "777"}})
    set_broker(cluster, 1, {LEADER_RATE: None})


def test_a_star_is_left_as_it_is(cluster, topic, throttle, artifacts):
    name = topic("throttle-star", [[1, 2]])
    set_topic(cluster, name, {LEADER_REPLICAS: "*"})
    throttle(name, [1, 2], [2, 3])
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "0:3"})
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(1_000_000)))
    restore_throttles(cluster, artifacts)
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "*"})


def test_a_second_try_with_another_rate_forgets_nothing(cluster, topic, throttle, artifacts):
    name = topic("throttle-again", [[1, 2]])
    set_broker(cluster, 2, {FOLLOWER_RATE: "5"})
    throttle(name, [1, 2], [2, 3])
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(1_000_000)))
    throttle(name, [1, 2], [2, 3], rate=2_000_000)
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"})
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(2_000_000)))
    restore_throttles(cluster, artifacts)
    assert restore_throttles(cluster, artifacts).topics == []
    wait_for_lists(cluster, name, {})
    wait_for_rates(cluster, {2: {FOLLOWER_RATE: "5"}})
    set_broker(cluster, 2, {FOLLOWER_RATE: None})


def test_entries_that_came_meanwhile_stay(cluster, topic, throttle, artifacts):
    name = topic("throttle-meanwhile", [[1, 2], [2, 3]])
    throttle(name, [1, 2], [2, 3])
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(1_000_000)))
    set_topic(cluster, name, {LEADER_REPLICAS: "0:1,0:2,1:3"})
    restore_throttles(cluster, artifacts)
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "1:3"})


def test_a_change_of_order_needs_no_throttle(cluster, topic, throttle):
    name = topic("throttle-order", [[1, 2]])
    assert throttle(name, [1, 2], [2, 1]).brokers == []


def test_without_saved_values_nothing_is_touched(cluster, artifacts):
    restored = restore_throttles(cluster, artifacts)
    assert (restored.topics, restored.brokers, restored.left) == ([], [], {})


def test_saved_values_of_another_cluster_are_refused(cluster, artifacts):
    artifacts.write_json(SAVED, {"cluster_id": "another", "topics": {}, "brokers": {"1": {LEADER_RATE: NOTHING}}})
    with pytest.raises(DriftError, match="cluster another"):
        restore_throttles(cluster, artifacts)


def test_a_rate_that_would_stop_replication_is_refused(topic, throttle):
    name = topic("throttle-zero", [[1, 2]])
    with pytest.raises(InvalidInputError, match="above 0"):
        throttle(name, [1, 2], [2, 3], rate=0)


def test_stale_throttles_of_a_dead_run_are_restored_before_the_next(cluster, topic, throttle, artifacts, tmp_path):
    name = topic("throttle-dead-run", [[1, 2]])
    throttle(name, [1, 2], [2, 3])
    wait_for_lists(cluster, name, {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"})
    wait_for_rates(cluster, dict.fromkeys((1, 2, 3), at(1_000_000)))
    other = Artifacts.at(tmp_path / "runs") / "of-another-cluster"
    other.write_json(SAVED, {"cluster_id": "another", "topics": {}, "brokers": {"1": {LEADER_RATE: NOTHING}}})
    (Artifacts.at(tmp_path / "runs") / "dead").write_json(SAVED, artifacts.read_json(SAVED))
    restored = restore_stale_throttles(cluster, Artifacts.at(tmp_path / "runs"))
    assert [(uri.rsplit("/", 1)[1], what.topics) for uri, what in restored.items()] == [("dead", [name])]
    wait_for_lists(cluster, name, {})
    assert stale_throttles(other) == ["broker 1"]
    assert restore_stale_throttles(cluster, Artifacts.at(tmp_path / "nothing here")) == {}


@pytest.mark.parametrize("content", ["", "{", "{}", "null"])
def test_a_damaged_file_of_a_dead_run_is_set_aside_and_stops_no_other(cluster, tmp_path, content):
    runs = Artifacts.at(tmp_path / "runs")
    (runs / "damaged").write_text(SAVED, content)
    (runs / "stale").write_json(
        SAVED, {"cluster_id": cluster.cluster_id(), "topics": {}, "brokers": {"1": {LEADER_RATE: NOTHING}}}
    )
    restored = {uri.rsplit("/", 1)[1]: what for uri, what in restore_stale_throttles(cluster, runs).items()}
    assert (restored["stale"].brokers, restored["stale"].left) == ([1], {})
    assert "are damaged" in restored["damaged"].left[SAVED]
    assert (runs / "damaged").files() == [DAMAGED]
    assert restore_stale_throttles(cluster, runs) == {}
