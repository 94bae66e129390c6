"""Kafka's reassignment JSON is read strictly and printed as Kafka's own tool reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan import PlanEntry, format_plan, parse_plan, reassignment_json
from rebalance_lib.plan.plan import Plan
from tests.plan.strategies import entry_lists

FOO_0 = '{"topic":"foo","partition":0,"replicas":[1,2]}'


def document(*entries):
    return f'{{"version":1,"partitions":[{",".join(entries)}]}}'


def refusal(text):
    with pytest.raises(PlanFormatError) as caught:
        parse_plan(text)
    return str(caught.value)


def test_the_worked_example_is_read_and_printed_back():
    text = """{"version":1,"partitions":[
{"topic":"foo","partition":0,"replicas":[1,2]},
{"topic":"foo","partition":1,"replicas":[2,3],"log_dirs":["/data/a","any"]}
]}
"""
    plan = parse_plan(text)
    assert list(plan) == [
        PlanEntry("foo", 0, (1, 2)),
        PlanEntry("foo", 1, (2, 3), ("/data/a", "any")),
    ]
    assert format_plan(plan) == text


def test_what_kafkas_generate_prints_is_read():
    text = (
        '{"version":1,"partitions":[{"topic":"foo","partition":1,"replicas":[2,3],"log_dirs":["any","any"]},'
        '{"topic":"foo","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}\n'
    )
    assert list(parse_plan(text)) == [PlanEntry("foo", 0, (1, 2)), PlanEntry("foo", 1, (2, 3))]


@pytest.mark.parametrize(
    ("replicas", "partitions"),
    [
        pytest.param([[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1]], [0, 1, 2], id="my_topic_name"),
        pytest.param([[3, 9, 2], [2, 6, 4], [5, 3, 8]], [19, 26, 27], id="__consumer_offsets"),
    ],
)
def test_indented_documents_of_the_operators_manuals_are_read(replicas, partitions, request):
    topic = request.node.callspec.id
    entries = [
        {"topic": topic, "partition": partition, "replicas": brokers}
        for partition, brokers in zip(partitions, replicas, strict=True)
    ]
    plan = parse_plan(json.dumps({"version": 1, "partitions": entries}, indent=4))
    assert [(entry.partition, list(entry.replicas)) for entry in plan] == list(zip(partitions, replicas, strict=True))


def test_an_empty_plan_is_a_plan():
    plan = parse_plan(document())
    assert len(plan) == 0
    assert format_plan(plan) == '{"version":1,"partitions":[]}\n'


def test_bytes_are_read_as_utf_8():
    assert parse_plan(document(FOO_0).encode()) == parse_plan(document(FOO_0))
    assert "byte 1 is not UTF-8" in refusal(b"{\xff}")


def test_a_topic_with_null_in_its_name_is_an_ordinary_topic():
    assert [entry.topic for entry in parse_plan(document('{"topic":"null","partition":0,"replicas":[1]}'))] == ["null"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("null", "the document is null, not a JSON object"),
        ("[]", "the document is [], not a JSON object"),
        (document(FOO_0) + "{}", "not JSON: Extra data at line 1"),
        ("\ufeff" + document(FOO_0), "not JSON"),
        ("[" * 100_000, "not JSON that Kafka reads"),
        ('{"version":1,"partitions":[' + "[" * 100_000, "not JSON that Kafka reads"),
        ('{"version":1,"partitions":NaN}', "partitions is NaN, not a list"),
        (document('{"topic":"foo","partition":NaN,"replicas":[1]}'), "partition is NaN, not an integer of 32 bits"),
        (f"Current partition replica assignment\n{document(FOO_0)}", "keep only the JSON line"),
        ('{"partitions":[]}', "the document has no version"),
        ('{"version":2,"partitions":[]}', "version is 2, the only one that Kafka reads is 1"),
        ('{"version":"1","partitions":[]}', 'version is "1"'),
        ('{"version":true,"partitions":[]}', "version is true"),
        ('{"version":1.0,"partitions":[]}', "version is 1.0"),
        ('{"version":1}', "the document has no partitions"),
        ('{"version":1,"partitions":{}}', "partitions is {}, not a list"),
        ('{"version":1,"partitions":null}', "partitions is null, not a list"),
        ('{"version":1,"partitions":[],"topics":[]}', 'the document has the key "topics"'),
        ('{"version":1,"version":1,"partitions":[]}', 'the key "version" is twice'),
    ],
)
def test_a_document_of_another_form_is_refused(text, said):
    assert said in refusal(text)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("7", "entry 1 is 7, not an object"),
        ("null", "entry 1 is null, not an object"),
        ("{}", "entry 1 has no topic"),
        ('{"topic":"bar","replicas":[1]}', "entry 1 has no partition"),
        ('{"topic":"bar","partition":4}', "entry 1 (bar-4) has no replicas"),
        (
            '{"topic":"bar","partition":4,"replicas":[1],"log_dir":["/d"]}',
            'entry 1 (bar-4) has the key "log_dir"',
        ),
        ('{"topic":"bar","topic":"baz","partition":4,"replicas":[1]}', 'the key "topic" is twice'),
        ('{"topic":7,"partition":4,"replicas":[1]}', "entry 1 (7-4): topic is 7, not a string"),
        (
            '{"topic":"bar","partition":"4","replicas":[1]}',
            'entry 1 (bar-4): partition is "4", not an integer',
        ),
        ('{"topic":"bar","partition":true,"replicas":[1]}', "partition is true, not an integer"),
        ('{"topic":"bar","partition":4.0,"replicas":[1]}', "partition is 4.0, not an integer"),
        ('{"topic":"bar","partition":null,"replicas":[1]}', "partition is null, not an integer"),
        (
            '{"topic":"bar","partition":2147483648,"replicas":[1]}',
            "partition is 2147483648, not an integer of 32",
        ),
        (
            '{"topic":"bar","partition":-1,"replicas":[1]}',
            "entry 1 (bar--1): partition is -1: partitions are",
        ),
        ('{"topic":"bar","partition":4,"replicas":1}', "entry 1 (bar-4): replicas is 1, not a list"),
        ('{"topic":"bar","partition":4,"replicas":null}', "entry 1 (bar-4): replicas is null, not a list"),
        ('{"topic":"bar","partition":4,"replicas":[]}', "entry 1 (bar-4): replicas is []: a partition needs"),
        (
            '{"topic":"bar","partition":4,"replicas":[1,"2"]}',
            'entry 1 (bar-4): replicas[1] is "2", not an integer',
        ),
        ('{"topic":"bar","partition":4,"replicas":[true]}', "replicas[0] is true, not an integer"),
        ('{"topic":"bar","partition":4,"replicas":[null]}', "replicas[0] is null, not an integer"),
        ('{"topic":"bar","partition":4,"replicas":[-1]}', "entry 1 (bar-4): replicas is [-1]: a broker's id"),
        (
            '{"topic":"bar","partition":4,"replicas":[3,1,3]}',
            "replicas is [3, 1, 3]: broker 3 is listed twice",
        ),
        (FOO_0, "entry 1 (foo-0): partition is 0: entry 0 has this partition already"),
        ('{"topic":"bar","partition":4,"replicas":[1],"log_dirs":null}', "log_dirs is null, not a list"),
        (
            '{"topic":"bar","partition":4,"replicas":[1],"log_dirs":[]}',
            "log_dirs is []: there are 1 replicas",
        ),
        ('{"topic":"bar","partition":4,"replicas":[1],"log_dirs":["/a","/b"]}', "give one log dir for each"),
        ('{"topic":"bar","partition":4,"replicas":[1],"log_dirs":["data"]}', 'absolute path or "any"'),
        ('{"topic":"bar","partition":4,"replicas":[1],"log_dirs":[1]}', "log_dirs[0] is 1, not a string"),
        (
            '{"topic":"bar","partition":4,"replicas":[1],"log_dirs":[null]}',
            "log_dirs[0] is null, not a string",
        ),
        ('{"topic":"bar","partition":4,"replicas":[1],"log_dirs":["/\\ud800"]}', "half of a surrogate pair"),
        ('{"topic":"","partition":4,"replicas":[1]}', 'topic is "": no topic can have this name'),
        ('{"topic":".","partition":4,"replicas":[1]}', 'topic is ".": no topic can have this name'),
        ('{"topic":"..","partition":4,"replicas":[1]}', 'topic is "..": no topic can have this name'),
        ('{"topic":"b r","partition":4,"replicas":[1]}', 'topic is "b r": a topic\'s name has only letters'),
        (
            '{"topic":"bar\\n","partition":4,"replicas":[1]}',
            'topic is "bar\\n": a topic\'s name has only letters',
        ),
        (f'{{"topic":"{"x" * 250}","partition":4,"replicas":[1]}}', "at most 249 characters, this has 250"),
    ],
)
def test_an_entry_that_kafka_would_refuse_or_ignore_is_named(entry, said):
    assert said in refusal(document(FOO_0, entry))


def test_the_longest_legal_topic_name_is_read():
    assert len(parse_plan(document(f'{{"topic":"{"x" * 249}","partition":4,"replicas":[1]}}'))) == 1


@given(entry_lists)
def test_parse_of_print_is_identity(entries):
    plan = parse_plan(json.dumps({"version": 1, "partitions": entries}))
    assert parse_plan(format_plan(plan)) == plan
    assert parse_plan(format_plan(plan).encode()) == plan


@given(entry_lists)
def test_what_is_printed_says_what_the_plan_says(entries):
    printed = json.loads(format_plan(parse_plan(json.dumps({"version": 1, "partitions": entries}))))
    assert printed["version"] == 1
    expected = [
        {key: value for key, value in entry.items() if key != "log_dirs" or set(value) != {"any"}} for entry in entries
    ]
    assert printed["partitions"] == sorted(expected, key=lambda entry: (entry["topic"], entry["partition"]))


odd_values = st.sampled_from([None, True, 1.0, "1", -1, 2**31, [], [1, 1], [None], {}, "", "a b", ["any"], ["x"]])
odd_entries = st.dictionaries(st.sampled_from(["topic", "partition", "replicas", "log_dirs", "x"]), odd_values)


@given(entry_lists, st.lists(odd_entries | odd_values, max_size=1), st.sampled_from([None, 0, 2]))
def test_both_readers_agree_on_what_is_a_plan(entries, odd, indent):
    text = json.dumps({"version": 1, "partitions": [*entries, *odd]}, indent=indent)
    quick = reassignment_json._read_columns(text)
    if quick is not None:
        careful = reassignment_json._read_entries(text)
        assert quick.to_pylist() == careful.to_pylist()


@given(entry_lists.filter(bool))
def test_ordinary_documents_take_the_quick_reader(entries):
    text = json.dumps(
        {
            "version": 1,
            "partitions": [{**entry, "log_dirs": ["any"] * len(entry["replicas"])} for entry in entries],
        }
    )
    table = reassignment_json._read_columns(text)
    assert table is not None
    assert Plan.from_table(table) == parse_plan(text)
