"""A cluster's JSON is read as it is meant, by both readers alike, or refused by name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import current_assignment
from rebalance_lib.topology import REPLICAS, Broker, TopicPartition, cluster_json, parse_cluster
from rebalance_lib.topology.cluster_entries import read_entries

FOO_0 = {"topic": "foo", "partition": 0, "replicas": [2, 1], "size": 10}
BROKERS = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3}]


def cluster(**changes):
    document = {"brokers": BROKERS, "partitions": [FOO_0], **changes}
    return {key: value for key, value in document.items() if value is not ...}


def read(document):
    return parse_cluster(json.dumps(document).encode())


def refusal(document):
    with pytest.raises(InvalidInputError) as caught:
        parse_cluster(document if isinstance(document, bytes) else json.dumps(document).encode())
    return str(caught.value)


def test_a_small_cluster_by_hand():
    found = read(cluster(targets=[1, 2], add=[3], remove=[], seed=1, scenario="expand", rf=2))
    assert (found.targets, found.add, found.remove) == ((1, 2), (3,), ())
    assert found.snapshot.alive_brokers() == [Broker(1, "a"), Broker(2, "b"), Broker(3)]
    assert found.snapshot.replicas.schema == REPLICAS
    first, second = found.snapshot.replicas.to_pylist()
    assert (first["broker"], first["position"], first["leader"], first["size_bytes"]) == (2, 0, True, 10)
    assert (second["broker"], second["position"], second["leader"], second["log_dir"]) == (1, 1, False, None)


def test_what_is_left_out_says_nothing():
    found = read(cluster())
    assert (found.targets, found.add, found.remove) == (None, (), ())


def test_partitions_and_brokers_in_any_order_give_the_same_snapshot():
    entries = [{**FOO_0, "topic": topic, "partition": number} for topic in ("a", "b") for number in (0, 1)]
    sorted_one, other = (
        read(cluster(partitions=entries)),
        read(cluster(partitions=entries[::-1], brokers=BROKERS[::-1])),
    )
    assert sorted_one.snapshot.replicas.equals(other.snapshot.replicas)
    assert sorted_one.snapshot.brokers.equals(other.snapshot.brokers)


def test_kafkas_own_topics_are_internal():
    entries = [{**FOO_0, "topic": topic} for topic in ("__consumer_offsets", "orders")]
    rows = read(cluster(partitions=entries)).snapshot.replicas
    assert rows["internal"].to_pylist() == [True, True, False, False]


NAMES = st.from_regex(r"[a-z._-]{3,6}", fullmatch=True)
IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True)


@st.composite
def clusters(draw):
    ids = draw(IDS)
    racks = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3))
    keys = draw(st.lists(st.tuples(NAMES, st.integers(0, 2**31 - 1)), max_size=6, unique=True))
    replicas = st.lists(st.sampled_from(ids), min_size=1, unique=True)
    return {
        "brokers": [{"id": id_, "rack": draw(racks)} for id_ in ids],
        "targets": draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)),
        "partitions": [
            {"topic": t, "partition": p, "replicas": draw(replicas), "size": draw(st.integers(0, 2**50))}
            for t, p in keys
        ],
    }


@given(clusters(), st.sampled_from([None, 1]))
def test_what_was_written_is_read_back(document, indent):
    found = parse_cluster(json.dumps(document, indent=indent, ensure_ascii=False).encode())
    assert {broker.id: broker.rack for broker in found.snapshot.alive_brokers()} == {
        broker["id"]: broker["rack"] for broker in document["brokers"]
    }
    assert current_assignment(found.snapshot).as_dict() == {
        TopicPartition(entry["topic"], entry["partition"]): tuple(entry["replicas"]) for entry in document["partitions"]
    }
    sizes = {(row["topic"], row["partition"]): row["size_bytes"] for row in found.snapshot.replicas.to_pylist()}
    assert sizes == {(entry["topic"], entry["partition"]): entry["size"] for entry in document["partitions"]}


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2**33), st.floats(), st.text(max_size=2), st.just([]))


@given(
    clusters(),
    st.sampled_from(["brokers", "targets", "partitions", "id", "rack", "topic", "replicas", "size", "?"]),
    VALUES,
)
def test_both_readers_agree(document, key, value):
    part = next((one for one in (document, *document["brokers"], *document["partitions"]) if key in one), document)
    part[key] = value
    data = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    quick = cluster_json._read_columns(data)
    try:
        exact = read_entries(data)
    except InvalidInputError:
        assert quick is None
    else:
        assert quick is None or quick.equals(exact)


def test_an_ordinary_file_needs_no_second_reading(monkeypatch):
    monkeypatch.setattr(cluster_json, "read_entries", None)
    assert read(cluster(targets=[1], add=[], remove=[3])).remove == (3,)
    assert len(read(cluster(brokers=[{"id": 1, "rack": None}, {"id": 2}])).snapshot.alive_brokers()) == 2


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1; give one JSON object"),
        (b"\xff{}", "byte 0 is not UTF-8"),
        (b'{"brokers": [], "brokers": []}', 'the key "brokers" is twice'),
        (b'{"brokers": NaN}', "NaN is no JSON"),
        ([], "the file is [], not a JSON object"),
        (cluster(brokers=...), "the file has no brokers"),
        (cluster(partitions=...), "the file has no partitions"),
        (cluster(remvoe=[1]), 'the file has the key "remvoe"; remove it, or use one of brokers, partitions, targets'),
        (cluster(brokers={}), "brokers is {}, not a list"),
        (cluster(brokers=[]), "brokers is empty"),
        (cluster(brokers=[7]), "broker entry 0 is 7, not an object"),
        (cluster(brokers=[{"rack": "a"}]), "broker entry 0 has no id"),
        (cluster(brokers=[{"id": "1"}]), 'broker entry 0: id is "1", not an integer of 32 bits'),
        (cluster(brokers=[{"id": -1}]), "broker entry 0: id is -1"),
        (cluster(brokers=[*BROKERS, {"id": 1}]), "broker entry 3: broker 1 is listed twice"),
        (cluster(brokers=[{"id": 1, "rack": 5}]), "broker entry 0: rack is 5, not a string"),
        (cluster(brokers=[{"id": 1, "rack": ""}]), 'broker entry 0 (1): rack is ""'),
        (cluster(brokers=[{"id": 1, "host": "h"}]), 'broker entry 0 has the key "host"'),
        (cluster(targets=[]), "targets is empty"),
        (cluster(targets=[9]), "targets[0] is 9: brokers has no such id"),
        (cluster(targets=5), "targets is 5, not a list"),
        (cluster(add=[1.0]), "add[0] is 1.0, not an integer"),
        (cluster(add=[3, 3]), "add[1] is 3, which is listed already"),
        (cluster(targets=[1, 2], remove=[2]), "broker 2 is in targets and in remove"),
        (cluster(partitions=5), "partitions is 5, not a list"),
        (cluster(partitions=[None]), "partition entry 0 is null, not an object"),
        (cluster(partitions=[{**FOO_0, "topic": 5}]), "partition entry 0 (5-0): topic is 5, not a string"),
        (
            cluster(partitions=[{**FOO_0, "topic": "a b"}]),
            'partition entry 0 (a b-0): topic is "a b": a topic\'s name has',
        ),
        (cluster(partitions=[{**FOO_0, "topic": "\ud800"}]), "half of a surrogate pair"),
        (
            cluster(partitions=[{**FOO_0, "partition": True}]),
            "(foo-True): partition is true, not an integer of 32 bits",
        ),
        (cluster(partitions=[{**FOO_0, "partition": -1}]), "(foo--1): partition is -1: partitions are numbered from 0"),
        (cluster(partitions=[FOO_0, FOO_0]), "entry 1 (foo-0): partition is 0: entry 0 has this partition already"),
        (cluster(partitions=[{**FOO_0, "replicas": []}]), "replicas is []: a partition has at least one replica"),
        (cluster(partitions=[{**FOO_0, "replicas": [1, 9]}]), "replicas is [1, 9]: brokers has no 9"),
        (cluster(partitions=[{**FOO_0, "replicas": [1, 1]}]), "broker 1 is listed twice; list each broker once"),
        (cluster(partitions=[{**FOO_0, "replicas": [None]}]), "replicas[0] is null, not an integer"),
        (cluster(partitions=[{**FOO_0, "replicas": 1}]), "replicas is 1, not a list"),
        (cluster(partitions=[{**FOO_0, "size": -1}]), "size is -1: give 0 or more bytes"),
        (cluster(partitions=[{**FOO_0, "size": 1.5}]), "size is 1.5, not an integer of 64 bits"),
        (cluster(partitions=[{**FOO_0, "size": 2**62}]), "more bytes than 62 bits can count"),
        (cluster(partitions=[{**FOO_0, "leader": 1}]), 'has the key "leader"'),
        (cluster(partitions=[{"topic": "foo", "partition": 0, "replicas": [1]}]), "entry 0 (foo-0) has no size"),
    ],
)
def test_what_is_no_cluster_is_refused_by_name(document, message):
    assert message in refusal(document)
