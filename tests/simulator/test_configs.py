from __future__ import annotations

from rebalance_lib.cluster.values import ConfigValue, Entries
from simulator.configs import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, MIN_ISR, Configs


def test_append_adds_what_is_missing_and_subtract_removes_and_leaves_an_empty_value_that_counts_as_none():
    configs = Configs()
    configs.alter_topic("t", {LEADER_REPLICAS: Entries(("0:1", "0:2", "0:1"))}, 0.0)
    configs.alter_topic("t", {LEADER_REPLICAS: Entries(("0:2", "1:1"))}, 0.0)
    assert configs.topics["t"] == {LEADER_REPLICAS: "0:1,0:2,1:1"}
    configs.alter_topic("t", {LEADER_REPLICAS: Entries(("0:1", "0:2", "1:1", "7:7"), out=True)}, 0.0)
    assert configs.topics["t"] == {LEADER_REPLICAS: ""}
    assert configs.topic_values("t", [LEADER_REPLICAS]) == {}


def test_the_controller_refuses_a_list_that_mixes_the_star_with_replicas_and_changes_nothing():
    configs = Configs()
    configs.alter_topic("t", {LEADER_REPLICAS: "*"}, 0.0)
    refused = configs.alter_topic("t", {FOLLOWER_REPLICAS: "0:2", LEADER_REPLICAS: Entries(("0:1",))}, 1.0)
    assert refused is not None
    assert refused.startswith("InvalidConfigurationError")
    assert configs.topics["t"] == {LEADER_REPLICAS: "*"}


def test_a_value_of_a_broker_comes_from_the_first_place_that_has_one():
    configs = Configs()
    sources = []
    for change in (
        lambda: configs.static.update({1: {LEADER_RATE: "1"}}),
        lambda: configs.default.update({LEADER_RATE: "2"}),
        lambda: configs.alter_broker(1, {LEADER_RATE: "3"}, 0.0),
        lambda: configs.alter_broker(1, {LEADER_RATE: None}, 1.0),
    ):
        change()
        value = configs.broker_values(1, [LEADER_RATE])[LEADER_RATE]
        sources.append((value.value, value.source))
        assert configs.rate(1, LEADER_RATE) == float(value.value)
    assert sources == [
        ("1", "STATIC_BROKER_CONFIG"),
        ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("3", "DYNAMIC_BROKER_CONFIG"),
        ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    ]


def test_a_configuration_can_be_seen_as_it_was():
    configs = Configs()
    configs.alter_topic("t", {LEADER_REPLICAS: "0:1"}, 10.0)
    configs.alter_topic("t", {LEADER_REPLICAS: None}, 20.0)
    seen = [configs.topic_values("t", [LEADER_REPLICAS], time) for time in (9.0, 10.0, 19.9, 20.0)]
    value = {LEADER_REPLICAS: ConfigValue("0:1", "DYNAMIC_TOPIC_CONFIG")}
    assert seen == [{}, value, value, {}]


def test_a_topic_has_kafkas_default_where_nothing_is_set():
    assert Configs().topic_values("t", [MIN_ISR]) == {MIN_ISR: ConfigValue("1", "DEFAULT_CONFIG")}
