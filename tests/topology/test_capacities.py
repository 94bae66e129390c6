"""What people say about brokers is read as they mean it, or refused by name, and goes into the snapshot."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import BROKERS, BrokerSets, Capacities, parse_cluster
from rebalance_lib.topology.capacities import sets_by_topic

GB = 10**9
SECTION = {
    "default": {"network_in": 1.25 * GB, "network_out": 1.25 * GB, "cpu": 16},
    "racks": {"b": {"network_out": 2.5 * GB}},
    "brokers": {7: {"disk": 16_000 * GB}},
}


TOPIC = {"topic": "t", "partition": 0, "replicas": [1], "size": 1}


def snapshot(**of_seven):
    brokers = [{"id": 1, "rack": "a"}, {"id": 2}, {"id": 7, "rack": "b", **of_seven}]
    return parse_cluster(json.dumps({"brokers": brokers, "partitions": [TOPIC]}).encode()).snapshot


def capacities(found):
    return dict(zip(found.brokers["broker"].to_pylist(), found.brokers["capacity"].to_pylist(), strict=True))


def test_a_broker_beats_its_rack_and_a_rack_the_default():
    found = Capacities.from_dict(SECTION).apply(snapshot())
    assert found.brokers.schema == BROKERS
    default = {"disk": None, "network_in": 1.25 * GB, "network_out": 1.25 * GB, "cpu": 16.0}
    assert capacities(found) == {
        1: default,
        2: default,
        7: default | {"disk": 16_000 * GB, "network_out": 2.5 * GB},
    }


def test_what_a_clusters_json_says_of_a_broker_beats_racks_and_not_what_is_said_of_the_broker():
    given = snapshot(capacity={"disk": 5, "network_out": 6, "cpu": 7})
    found = capacities(Capacities.from_dict(SECTION).apply(given))[7]
    assert found == {"disk": 16_000 * GB, "network_in": 1.25 * GB, "network_out": 6, "cpu": 7}


@pytest.mark.parametrize("section", [None, {}, {"default": None, "brokers": {}}])
def test_what_nobody_says_is_not_known(section):
    assert capacities(Capacities.from_dict(section).apply(snapshot())) == {1: None, 2: None, 7: None}


def test_ids_may_be_text_as_in_json():
    assert Capacities.from_dict(json.loads(json.dumps(SECTION))) == Capacities.from_dict(SECTION)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], "capacities is []: give an object with default, racks or brokers"),
        ({"broker": {}}, 'capacities has the key "broker": use some of default, racks, brokers'),
        ({"default": 5}, "capacities.default is 5: give an object with disk, network_in, network_out or cpu"),
        ({"default": {"ram": 5}}, 'capacities.default has the key "ram": use some of disk, network_in,'),
        ({"default": {"disk": 1.5}}, "capacities.default.disk is 1.5: give bytes as an integer above 0"),
        ({"default": {"disk": 2**62}}, "capacities.default.disk is 4611686018427387904: give bytes"),
        ({"racks": {"a": {"cpu": 0}}}, "capacities.racks.a.cpu is 0: give a number above 0, or leave it out"),
        ({"racks": {"a": {"cpu": "4"}}}, 'capacities.racks.a.cpu is "4": give a number above 0'),
        ({"racks": {"a": {"cpu": True}}}, "capacities.racks.a.cpu is true: give a number above 0"),
        ({"racks": []}, "capacities.racks is []: give an object with a name for each rack"),
        ({"brokers": {1: {"network_in": float("nan")}}}, "capacities.brokers.1.network_in is NaN: give a number"),
        ({"brokers": {1: {"network_in": float("inf")}}}, "capacities.brokers.1.network_in is Infinity"),
        ({"brokers": {1: {"network_in": None}}}, "capacities.brokers.1.network_in is null"),
        ({"brokers": {"x": {}}}, 'capacities.brokers has "x": give the id of a broker'),
        ({"brokers": {-1: {}}}, "capacities.brokers has -1: give the id of a broker"),
        ({"brokers": {1: {}, "1": {}}}, "capacities.brokers has the same id as a number and as text"),
        ({"brokers": {9: {"cpu": 1}}}, "capacities.brokers has 9: the cluster has no such broker; remove it, or"),
        ({"racks": {"z": {"cpu": 1}}}, "capacities.racks has 'z': the cluster has no such rack, it has a, b"),
    ],
)
def test_what_are_no_capacities_of_the_cluster_is_refused_by_name(section, message):
    with pytest.raises(InvalidInputError) as caught:
        Capacities.from_dict(section).apply(snapshot())
    assert message in str(caught.value)


def test_brokers_of_a_set_have_its_name():
    found = BrokerSets.from_dict({"payments": [1], "logs": [7]}).apply(snapshot())
    assert found.brokers["broker_set"].to_pylist() == ["payments", None, "logs"]
    assert found.brokers.schema == BROKERS
    assert BrokerSets.from_dict({}).apply(found).brokers["broker_set"].to_pylist() == ["payments", None, "logs"]


def test_a_set_may_name_its_topics():
    sets = {"payments": {"brokers": [1], "topics": ["pay*", "orders"]}, "logs": [7]}
    found = BrokerSets.from_dict(sets).apply(snapshot())
    assert found.brokers["broker_set"].to_pylist() == ["payments", None, "logs"]
    assert found.brokers["broker_set_topics"].to_pylist() == [["pay*", "orders"], None, None]
    assert sets_by_topic(found.brokers, ["pay", "orders", "other"]) == {"pay": "payments", "orders": "payments"}
    assert BrokerSets.from_dict({"payments": [1]}).apply(found).brokers == found.brokers
    renamed = BrokerSets.from_dict({"other": [1]}).apply(found).brokers
    assert renamed["broker_set_topics"].to_pylist() == [None, None, None]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([1], "broker_sets is [1]: give an object with a name for each set"),
        ({"a": []}, "broker_sets.a is []: give a list of broker ids"),
        ({"a": 1}, "broker_sets.a is 1: give a list of broker ids"),
        ({"": [1]}, 'broker_sets has the name "": give a set\'s name as text'),
        ({5: [1]}, "broker_sets has the name 5: give a set's name as text"),
        ({"a": [1, "b"]}, 'broker_sets.a has "b": give the id of a broker'),
        ({"a": [1, 1]}, "broker_sets.a is [1, 1]: list each broker once"),
        ({"a": [1, 2], "b": [2]}, "broker_sets.b has broker 2, which is in a: keep it in one of the two"),
        ({"a": [9]}, "broker_sets.a has 9: the cluster has no such broker"),
        ({"a": {"topics": ["t"]}}, "broker_sets.a.brokers is null: give a list of broker ids"),
        ({"a": {"brokers": [1], "topic": []}}, 'broker_sets.a has the key "topic": use some of brokers, topics'),
        ({"a": {"brokers": [1], "topics": "t"}}, 'broker_sets.a.topics is "t": give a list of names or patterns'),
        (
            {"a": {"brokers": [1], "topics": ["t*"]}, "b": {"brokers": [7], "topics": ["*"]}},
            "topic t is in two broker sets: a has it by 't*', b by '*'; change one of the two",
        ),
    ],
)
def test_what_are_no_sets_of_the_cluster_is_refused_by_name(section, message):
    with pytest.raises(InvalidInputError) as caught:
        BrokerSets.from_dict(section).apply(snapshot())
    assert message in str(caught.value)
