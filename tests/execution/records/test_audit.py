"""The record says what happened: cancelled moves, copies between log dirs, moves that ended between processes."""

from __future__ import annotations

from rebalance_lib.execution import Executor
from rebalance_lib.execution.records.audit import moves
from rebalance_lib.execution.records.journal import BEGAN, CANCELLED, ENDED, Journal, read_journal
from tests.execution.running import settings


def event(kind, at, **facts):
    began = {"from": [1], "to": [2], "log_dirs": {}, "bytes": 1} if kind == BEGAN else {}
    return {"at": at, "event": kind, "partition": "foo-0", **began, **facts}


def test_a_cancelled_move_ends_when_it_is_cancelled():
    journal = [event(BEGAN, "1"), event(CANCELLED, "2", by="the clean-up"), event(BEGAN, "8"), event(ENDED, "9")]
    assert [(m["began"], m["ended"], m["cancelled_by"]) for m in moves(journal)] == [
        ("1", "2", "the clean-up"),
        ("8", "9", None),
    ]


def test_copies_of_two_replicas_between_log_dirs_are_two_moves():
    journal = [
        event(BEGAN, "1", replica="foo-0-1"),
        event(BEGAN, "2", replica="foo-0-2"),
        event(ENDED, "3", replica="foo-0-1"),
        event(ENDED, "4", replica="foo-0-2"),
    ]
    assert [(m["partition"], m["began"], m["ended"]) for m in moves(journal)] == [
        ("foo-0", "1", "3"),
        ("foo-0", "2", "4"),
    ]


def test_a_move_that_ended_between_two_processes_has_an_end_in_the_record(cluster, topic, make_job):
    name = topic("record-between", [[2]])
    job = make_job(cluster, name, [[2]])
    first = Journal(job.artifacts)
    first.note(BEGAN, partition=f"{name}-0", **{"from": [1], "to": [2]}, log_dirs={}, bytes=7)
    first.flush()
    executor = Executor(cluster, job, settings())
    for _ in range(2):
        executor.check()
    (move,) = moves(read_journal(job.artifacts))
    assert move["ended"] > move["began"]
    assert [one["event"] for one in read_journal(job.artifacts)].count(ENDED) == 1
