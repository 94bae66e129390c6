"""A cluster's JSON is read as it is meant, by both readers alike, or refused by name."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import current_assignment
from rebalance_lib.topology import LOADS, REPLICAS, Broker, TopicPartition, cluster_json, parse_cluster
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


def test_what_brokers_can_take_is_kept_as_it_is_given():
    capacity = {"disk": 4 * 10**12, "network_in": 1250000000, "network_out": 1.5e9, "cpu": 16}
    brokers = [
        {"id": 2, "capacity": capacity, "broker_set": "payments", "cordoned": False},
        {"id": 1, "capacity": {"disk": 5}, "cordoned": True},
        {"id": 3, "capacity": None, "broker_set": None, "cordoned": None},
    ]
    for indent in (None, 1):
        table = parse_cluster(json.dumps(cluster(brokers=brokers), indent=indent).encode()).snapshot.brokers
        assert table["broker"].to_pylist() == [1, 2, 3]
        nothing = dict.fromkeys(capacity)
        assert table["capacity"].to_pylist() == [{**nothing, "disk": 5}, capacity, None]
        assert table["broker_set"].to_pylist() == [None, "payments", None]
        assert table["cordoned"].to_pylist() == [True, False, None]
        assert table["log_dirs"].to_pylist() == [[], [], []]


def test_who_leads_now_may_be_another_than_the_first_replica():
    entries = [{**FOO_0, "partition": number} for number in range(3)]
    entries[1]["leader"] = 1
    rows = read(cluster(partitions=entries[::-1])).snapshot.replicas
    assert rows["leader"].to_pylist() == [True, False, False, True, True, False]
    assert rows["broker"].to_pylist() == [2, 1] * 3


def test_rates_are_a_table_of_the_partitions_that_have_one():
    entries = [{**FOO_0, "partition": number} for number in range(4)]
    entries[3]["write_rate"] = 0
    entries[1] |= {"write_rate": 2.5, "read_rate": 2**60}
    entries[0] |= {"write_rate": None, "read_rate": 1e3}
    loads = read(cluster(partitions=entries[::-1])).loads
    assert loads.schema == LOADS
    assert loads.to_pylist() == [
        {"topic": "foo", "partition": 0, "write_rate": None, "read_rate": 1000.0},
        {"topic": "foo", "partition": 1, "write_rate": 2.5, "read_rate": float(2**60)},
        {"topic": "foo", "partition": 3, "write_rate": 0.0, "read_rate": None},
    ]


def test_without_rates_there_are_no_loads():
    assert read(cluster()).loads is None
    assert read(cluster(partitions=[{**FOO_0, "write_rate": None}])).loads is None
    assert read(cluster(partitions=[])).loads is None


NAMES = st.from_regex(r"[a-z._-]{3,6}", fullmatch=True)
IDS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True)

RATES = st.floats(0, 1e300) | st.integers(0, 2**60)
CAPACITIES = st.fixed_dictionaries(
    {},
    optional={
        "disk": st.none() | st.integers(1, 2**62),
        **dict.fromkeys(("network_in", "network_out", "cpu"), st.none() | RATES.filter(bool)),
    },
)
OF_BROKERS = st.fixed_dictionaries(
    {},
    optional={
        "capacity": st.none() | CAPACITIES,
        "broker_set": st.none() | NAMES,
        "cordoned": st.none() | st.booleans(),
    },
)


@st.composite
def clusters(draw):
    ids = draw(IDS)
    racks = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3))
    keys = draw(st.lists(st.tuples(NAMES, st.integers(0, 2**31 - 1)), max_size=6, unique=True))
    replicas = st.lists(st.sampled_from(ids), min_size=1, unique=True)
    rates = st.fixed_dictionaries({}, optional=dict.fromkeys(("write_rate", "read_rate"), st.none() | RATES))
    partitions = [
        {"topic": t, "partition": p, "replicas": draw(replicas), "size": draw(st.integers(0, 2**50)), **draw(rates)}
        for t, p in keys
    ]
    for entry in partitions:
        if draw(st.booleans()):
            entry["leader"] = draw(st.none() | st.sampled_from(entry["replicas"]))
    return {
        "brokers": [{"id": id_, "rack": draw(racks), **draw(OF_BROKERS)} for id_ in ids],
        "targets": draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)),
        "partitions": partitions,
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
    given = {entry["id"]: entry for entry in document["brokers"]}
    for row in found.snapshot.brokers.to_pylist():
        entry = given[row["broker"]]
        assert (row["broker_set"], row["cordoned"]) == (entry.get("broker_set"), entry.get("cordoned"))
        expected = entry.get("capacity")
        assert row["capacity"] == (
            None if expected is None else {name: as_kept(name, expected) for name in row["capacity"]}
        )
    leaders = {(r["topic"], r["partition"]): r["broker"] for r in found.snapshot.replicas.to_pylist() if r["leader"]}
    rates = {} if found.loads is None else {(r["topic"], r["partition"]): r for r in found.loads.to_pylist()}
    for entry in document["partitions"]:
        key = entry["topic"], entry["partition"]
        assert leaders[key] == (entry["replicas"][0] if entry.get("leader") is None else entry["leader"])
        for name in ("write_rate", "read_rate"):
            assert rates.get(key, {}).get(name) == (None if entry.get(name) is None else float(entry[name]))
    sizes = {(row["topic"], row["partition"]): row["size_bytes"] for row in found.snapshot.replicas.to_pylist()}
    assert sizes == {(entry["topic"], entry["partition"]): entry["size"] for entry in document["partitions"]}


def as_kept(name, capacity):
    """A capacity as the snapshot keeps it: bytes of disks whole, all else with the precision of a rate."""
    value = capacity.get(name)
    return value if value is None or name == "disk" else float(value)


KEYS = [
    *("brokers", "targets", "partitions", "id", "rack", "capacity", "broker_set", "cordoned", "disk", "cpu"),
    *("topic", "partition", "replicas", "size", "write_rate", "leader", "?"),
]
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-2, 2**33), st.floats(), st.text(max_size=2), st.just([]))


@given(
    clusters(),
    st.sampled_from(KEYS),
    VALUES,
)
@example(cluster(partitions=[{**FOO_0, "write_rate": 1}]), "write_rate", float("nan"))
@example(cluster(brokers=[{"id": 1, "capacity": {"cpu": 1}}]), "cpu", float("inf"))
@example(cluster(brokers=[{"id": 1, "capacity": {"cpu": 1}}]), "cpu", 10**400)
def test_both_readers_agree(document, key, value):
    capacities = [broker.get("capacity") or {} for broker in document["brokers"]]
    parts = (document, *document["brokers"], *document["partitions"], *capacities)
    part = next((one for one in parts if key in one), document)
    part[key] = value
    data = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    quick = cluster_json._read_columns(data)
    try:
        exact = read_entries(data)
    except InvalidInputError:
        assert quick is None
    else:
        assert quick is None or quick.equals(exact)


@given(clusters(), st.sampled_from([None, 1]), st.integers(1, 400))
def test_a_large_file_is_read_in_pieces_to_the_same_cluster(document, indent, size):
    data = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    expected = parse_cluster(data)
    with mock.patch.object(cluster_json, "LARGEST_PIECE", size):
        found = parse_cluster(data)
        quick = cluster_json._read_columns(data)
    assert found.snapshot.replicas.equals(expected.snapshot.replicas)
    assert found.snapshot.brokers.equals(expected.snapshot.brokers)
    assert found.loads == expected.loads
    plain = b"\\" not in data and document["partitions"]
    assert quick is not None or not plain


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (cluster(partitions=[FOO_0, FOO_0]), "entry 1 (foo-0): partition is 0: entry 0 has this partition already"),
        (cluster(partitions=[{**FOO_0, "topic": "a b"}]), 'entry 0 (a b-0): topic is "a b": a topic'),
        (cluster(partitions=[FOO_0, {**FOO_0, "partition": None}]), "(foo-None): partition is null, not an integer"),
        (cluster(partitions=[FOO_0, None]), "partition entry 1 is null, not an object"),
        (cluster(partitions=[FOO_0, FOO_0 | {"isr": []}]), 'has the key "isr"'),
        (b'{"brokers": [{"id": 1}], "partitions": [{}]}]}', "not JSON: Extra data at line 1"),
        (b'{"brokers": [{"id": 1}], "partitions": [{"topic": "a"},,{"topic": "b"}]}', "not JSON: Expecting value"),
        (b'{"brokers": [{"id": 1}], "partitions": [{"topic": "a"} {"topic": "b"}]}', "not JSON: Expecting ','"),
        (b'{"brokers": [{"id": 1}], "partitions": [{"topic": "a"},]}', "not JSON: "),
    ],
)
def test_what_is_wrong_in_a_large_file_is_named_too(document, message, monkeypatch):
    monkeypatch.setattr(cluster_json, "LARGEST_PIECE", 30)
    assert message in refusal(document)


def test_a_large_file_with_partitions_first_is_read_entry_by_entry(monkeypatch):
    monkeypatch.setattr(cluster_json, "LARGEST_PIECE", 30)
    document = {"partitions": [FOO_0, {**FOO_0, "partition": 1}], "brokers": BROKERS}
    assert cluster_json._read_columns(json.dumps(document).encode()) is None
    assert read(document).snapshot.replicas.num_rows == 4


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
        (b'{"brokers": NaN, "partitions": []}', "the file: brokers is NaN, not a list"),
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
        (cluster(partitions=[{**FOO_0, "isr": 1}]), 'has the key "isr"; remove it, or use one of topic, partition,'),
        (cluster(partitions=[{**FOO_0, "leader": 3}]), "(foo-0): leader is 3: it is none of the replicas"),
        (cluster(partitions=[{**FOO_0, "leader": "2"}]), '(foo-0): leader is "2", not an integer of 32 bits'),
        (cluster(partitions=[{**FOO_0, "write_rate": -1}]), "(foo-0): write_rate is -1.0: give 0 or more bytes per"),
        (cluster(partitions=[{**FOO_0, "read_rate": "1"}]), '(foo-0): read_rate is "1", not a number; write one'),
        (cluster(partitions=[{**FOO_0, "read_rate": True}]), "(foo-0): read_rate is true, not a number"),
        (cluster(partitions=[{**FOO_0, "read_rate": 10**400}]), "give a number of 64 bits"),
        (
            b'{"brokers": [{"id": 1, "capacity": {"cpu": NaN}}], "partitions": []}',
            "broker entry 0: capacity.cpu is NaN, not a number",
        ),
        (
            cluster(partitions=[{**FOO_0, "write_rate": float("nan")}]),
            "partition entry 0 (foo-0): write_rate is NaN, not a number; write one",
        ),
        (
            cluster(partitions=[{**FOO_0, "size": float("nan")}]),
            "partition entry 0 (foo-0): size is NaN, not an integer of 64 bits",
        ),
        (cluster(partitions=[{**FOO_0, "read_rate": float("inf")}]), "(foo-0): read_rate is Infinity"),
        (
            b'{"brokers": [{"id": 1, "capacity": {"cpu": 1e999}}], "partitions": []}',
            "broker entry 0 (1): capacity.cpu is Infinity: give a finite number above 0, or leave cpu out",
        ),
        (cluster(brokers=[{"id": 1, "capacity": 5}]), 'capacity is 5, not an object; write {"disk": ..., "network_in"'),
        (cluster(brokers=[{"id": 1, "capacity": {"ram": 5}}]), 'broker entry 0: capacity has the key "ram"; remove it'),
        (cluster(brokers=[{"id": 1, "capacity": {"disk": 1.5}}]), "capacity.disk is 1.5, not an integer of 64 bits"),
        (cluster(brokers=[{"id": 1, "capacity": {"cpu": "4"}}]), 'capacity.cpu is "4", not a number'),
        (
            cluster(brokers=[{"id": 1, "capacity": {"disk": 0}}]),
            "broker entry 0 (1): capacity.disk is 0: give a finite",
        ),
        (cluster(brokers=[{"id": 1, "capacity": {"network_in": -1}}]), "capacity.network_in is -1.0: give a finite"),
        (cluster(brokers=[{"id": 1, "broker_set": ""}]), 'broker entry 0 (1): broker_set is "": name it'),
        (cluster(brokers=[{"id": 1, "broker_set": 1}]), "broker entry 0: broker_set is 1, not a string"),
        (cluster(brokers=[{"id": 1, "cordoned": 1}]), "broker entry 0: cordoned is 1: write true or false"),
        (cluster(partitions=[{"topic": "foo", "partition": 0, "replicas": [1]}]), "entry 0 (foo-0) has no size"),
    ],
)
def test_what_is_no_cluster_is_refused_by_name(document, message):
    assert message in refusal(document)
