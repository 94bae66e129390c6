"""The digest is that of what Kafka would do, not of the file's bytes."""

import hashlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.plan import format_plan, parse_plan
from tests.plan.strategies import entry_lists


def digest_by_hand(entries):
    """The canonical form as the module describes it, written with nothing but the standard library."""
    canonical = []
    for entry in sorted(entries, key=lambda entry: (entry["topic"], entry["partition"])):
        fields = {key: entry[key] for key in ("topic", "partition", "replicas")}
        if set(entry.get("log_dirs", ["any"])) != {"any"}:
            fields["log_dirs"] = entry["log_dirs"]
        canonical.append(fields)
    text = json.dumps({"version": 1, "partitions": canonical}, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def digest(entries, **style):
    return parse_plan(json.dumps({"version": 1, "partitions": entries}, **style)).digest


def test_the_worked_example():
    canonical = b'{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]}]}'
    expected = "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert digest([{"topic": "foo", "partition": 0, "replicas": [1, 2]}]) == expected


@given(entry_lists)
def test_an_auditor_computes_the_same_digest_without_this_package(entries):
    assert digest(entries) == digest_by_hand(entries)


@settings(max_examples=25)
@given(entry_lists)
def test_a_plan_that_was_written_to_a_file_has_the_same_digest(entries):
    plan = parse_plan(json.dumps({"version": 1, "partitions": entries}))
    format_plan(plan)
    assert plan.digest == digest_by_hand(entries)


@given(entry_lists, st.randoms(use_true_random=False))
def test_order_of_entries_and_keys_and_white_space_do_not_count(entries, random):
    shuffled = [dict(random.sample(list(entry.items()), len(entry))) for entry in entries]
    random.shuffle(shuffled)
    assert digest(shuffled, indent=3) == digest(entries)


def test_no_log_dirs_and_any_log_dir_are_the_same():
    entry = {"topic": "foo", "partition": 0, "replicas": [1, 2]}
    assert digest([entry]) == digest([entry | {"log_dirs": ["any", "any"]}])
    assert digest([entry]) != digest([entry | {"log_dirs": ["any", "/data"]}])


def test_the_order_of_replicas_counts():
    entry = {"topic": "foo", "partition": 0}
    assert digest([entry | {"replicas": [1, 2]}]) != digest([entry | {"replicas": [2, 1]}])


def test_a_digest_names_its_algorithm():
    assert digest([]).startswith("sha256:")
    assert len(digest([])) == len("sha256:") + 64
