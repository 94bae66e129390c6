"""Whoever still carries out a run that was left elsewhere notices, and begins nothing more."""

from __future__ import annotations

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Executor, Settings, State, ask_to_cancel, leave
from rebalance_lib.execution.clean_up import Leaving, note_leaving
from tests.everywhere import wait_for_lists, wait_for_replicas


def test_the_way_out_is_noticed_by_those_who_began_before_it(tmp_path):
    run = Artifacts(tmp_path.as_uri())
    before = Leaving(run)
    assert not before.begun()
    note_leaving(run)
    assert before.begun()
    assert not Leaving(run).begun(), "who begins afterwards goes on"


def test_an_engine_elsewhere_neither_begins_nor_throttles_after_the_way_out(cluster, topic, make_job):
    name = topic("leaving-elsewhere", [[1, 2], [2, 1]])
    job = make_job(cluster, name, [[3, 4], [4, 3]])
    settings = Settings.from_dict({"throttle": 1_000_000})
    elsewhere = Executor(cluster, job, settings)
    leave(cluster, job, settings)
    report = elsewhere.check()
    assert report.state is State.CANCELLED
    assert "taken elsewhere" in report.holds[0]
    assert cluster.reassignments() == {}
    wait_for_lists(cluster, name, {})
    wait_for_replicas(cluster, name, {0: (1, 2), 1: (2, 1)})


def test_a_wish_to_cancel_ends_the_run_at_its_next_check(cluster, topic, make_job):
    name = topic("leaving-asked", [[1, 2]])
    job = make_job(cluster, name, [[3, 4]])
    engine = Executor(cluster, job, Settings())
    ask_to_cancel(job.artifacts, "ada")
    report = engine.check()
    assert report.state is State.CANCELLED
    assert report.holds[0].startswith("ada asked to cancel the run at ")
    assert cluster.reassignments() == {}


def test_a_way_out_that_is_taken_while_moves_are_chosen_is_told_as_the_reason(cluster, topic, make_job, monkeypatch):
    name = topic("leaving-chosen", [[1, 2]])
    job, choose = make_job(cluster, name, [[3, 4]]), Executor._choose

    def left_meanwhile(self, *arguments):
        note_leaving(job.artifacts)
        return choose(self, *arguments)

    monkeypatch.setattr(Executor, "_choose", left_meanwhile)
    report = Executor(cluster, job, Settings()).check()
    assert report.state is State.CANCELLED
    assert "taken elsewhere" in report.holds[0]
    assert cluster.reassignments() == {}
