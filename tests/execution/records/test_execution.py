"""When a run began, and its topics' ids: two copies on the disk, one of which is enough."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM
from rebalance_lib.cluster import PartitionMetadata
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.records.execution import BACKUP, EXECUTION, note_begin, note_end, read_execution
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

FOO = TopicPartition("foo", 0)


@pytest.fixture
def begin(tmp_path):
    """Begin, or go on with, a plan that moves foo-0, whose topic has this id now."""
    plan = Plan.from_assignment({FOO: [2]})
    job = Job(plan, plan, "a cluster", Artifacts.at(tmp_path))

    def note(topic_id, *, in_stages=False):
        live = {FOO: PartitionMetadata((1,), frozenset({1}), 1, internal=False, topic_id=topic_id)}
        return note_begin(job, live, SYSTEM, in_stages=in_stages)

    return note


@pytest.mark.parametrize("name", [EXECUTION, BACKUP])
@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b"null", b"\xff\xfe\x00", None])
def test_a_topic_keeps_its_id_where_one_copy_is_damaged(begin, tmp_path, name, damage):
    began = begin("first")
    (tmp_path / name).unlink()
    if damage is not None:
        (tmp_path / name).write_bytes(damage)
    assert read_execution(Artifacts.at(tmp_path)) == began
    assert begin("second") == began


def test_both_copies_are_whole_again_when_the_run_goes_on(begin, tmp_path):
    began = begin("first")
    (tmp_path / EXECUTION).write_bytes(b"{")
    begin("second", in_stages=True)
    (tmp_path / BACKUP).write_bytes(b"{")
    again = begin("third")
    assert (again.topic_ids, again.started_at, again.in_stages) == (began.topic_ids, began.started_at, True)


def test_ids_are_taken_anew_where_both_copies_are_damaged_or_the_run_has_ended(begin, tmp_path):
    begin("first")
    for name in (EXECUTION, BACKUP):
        (tmp_path / name).write_bytes(b"{")
    assert begin("second").topic_ids == {"foo": "second"}
    note_end(Artifacts.at(tmp_path))
    assert begin("third").topic_ids == {"foo": "third"}
