"""What Prometheus answers is checked before it is believed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import RebalanceError
from rebalance_lib.history.prometheus_series import Labels, parse_matrix, parse_topics

BROKERS = {"kafka-1:7071": 1}


def series(topic="t", partition="0", instance="kafka-1:7071", values=((10, "5"),)):
    metric = {"topic": topic, "partition": partition, "instance": instance}
    return {"metric": metric, "values": [list(pair) for pair in values]}


def parsed(*found):
    table = parse_matrix({"resultType": "matrix", "result": list(found)}, Labels(), BROKERS)
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_values_of_this_clusters_brokers_are_rows():
    assert parsed(series(values=[(10, "5"), (20.2, "6e3")]), series(instance="other:1", topic="/")) == [
        (10, "t", 0, 1, 5),
        (20, "t", 0, 1, 6000),
    ]
    assert parsed() == []


def test_values_that_nothing_can_have_are_unknown():
    values = [(1, "NaN"), (2, "+Inf"), (3, "-1"), (4, "1e300"), (5, "0")]
    assert parsed(series(values=values)) == [(5, "t", 0, 1, 0)]


def test_of_two_series_of_one_replica_the_larger_counts():
    assert parsed(series(), series(values=[(10, "7")])) == [(10, "t", 0, 1, 7)]


def test_topics_are_those_with_a_value_above_zero_at_a_broker_of_this_cluster():
    summed = {"metric": {"instance": "kafka-1:7071"}, "values": [[10, "5"]]}
    found = [series(values=[(10, "5"), (20, "0")]), series(topic="u", values=[(20.2, "1"), (30, "NaN")]), summed]
    other = series(topic="v", instance="other:1")
    empty = series(topic="w", values=[(10, "0"), (20, "NaN")])
    matrix = {"resultType": "matrix", "result": [*found, other, empty]}
    assert parse_topics(matrix, Labels(), BROKERS) == {"t", "u"}
    with pytest.raises(RebalanceError, match="no topic's name"):
        parse_topics({"resultType": "matrix", "result": [series(topic="/")]}, Labels(), BROKERS)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (series(topic="../x"), "is '../x', which is no topic's name"),
        (series(topic=None), "no topic's name"),
        (series(topic="x" * 250), "no topic's name"),
        (series(partition="-1"), "of a series of t is '-1', which is no partition"),
        (series(partition="2147483648"), "no partition"),
        (series(partition="٣" * 10), "no partition"),
        (series(values=[(1, "many")]), "not pairs of a time and a number"),
        (series(values=[("NaN", "1")]), "not pairs of a time and a number"),
        (series(values=[(1,)]), "not pairs of a time and a number"),
        ({"metric": {}}, "a series without labels or values"),
        (7, "a series without labels or values"),
    ],
)
def test_what_prometheus_never_answers_is_refused(found, message):
    with pytest.raises(RebalanceError, match=message):
        parsed(found)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
found_series = st.fixed_dictionaries(
    {
        "metric": st.fixed_dictionaries({"topic": json, "partition": json, "instance": st.just("kafka-1:7071")}),
        "values": json | st.lists(st.lists(json, min_size=2, max_size=2), max_size=3),
    }
)


@given(
    json | st.fixed_dictionaries({"resultType": st.just("matrix"), "result": json | st.lists(found_series, max_size=3)})
)
def test_no_answer_whatever_breaks_the_reader(data):
    with suppress(RebalanceError):
        parse_matrix(data, Labels(), BROKERS)
