"""The topics-to-move JSON is read strictly, as Kafka's own tool takes it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan import parse_topics_to_move
from tests.plan.strategies import topics


def test_the_worked_example():
    text = '{"version":1,"topics":[{"topic":"foo"},{"topic":"bar"}]}\n'
    assert parse_topics_to_move(text) == ("foo", "bar")
    assert parse_topics_to_move(text.encode()) == ("foo", "bar")


@given(st.lists(topics, min_size=1, unique=True))
def test_topics_are_read_in_their_order(names):
    text = json.dumps({"version": 1, "topics": [{"topic": name} for name in names]})
    assert parse_topics_to_move(text) == tuple(names)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"version":1,"topic":[]}', "the document has no topics"),
        ('{"topics":[{"topic":"foo"}]}', "the document has no version"),
        ('{"version":2,"topics":[{"topic":"foo"}]}', "version is 2"),
        ('{"version":1,"topics":[{"topic":"foo"}],"partitions":[]}', 'has the key "partitions"'),
        ('{"version":1,"topics":"foo"}', 'topics is "foo", not a list'),
        ('{"version":1,"topics":[]}', "there is no topic to move"),
        ('{"version":1,"topics":["foo"]}', 'entry 0 is "foo", not an object'),
        ('{"version":1,"topics":[{"topic":"foo"},{}]}', "entry 1 has no topic"),
        ('{"version":1,"topics":[{"topic":7}]}', "entry 0: topic is 7, not a string"),
        ('{"version":1,"topics":[{"topic":"foo","partition":0}]}', 'entry 0 has the key "partition"'),
        (
            '{"version":1,"topics":[{"topic":"foo"},{"topic":"a b"}]}',
            'entry 1: topic is "a b": a topic\'s name',
        ),
        (
            '{"version":1,"topics":[{"topic":"foo"},{"topic":"foo"}]}',
            'entry 1: topic is "foo": entry 0 has this',
        ),
    ],
)
def test_what_kafka_would_refuse_or_ignore_is_refused(text, said):
    with pytest.raises(PlanFormatError) as caught:
        parse_topics_to_move(text)
    assert said in str(caught.value)
