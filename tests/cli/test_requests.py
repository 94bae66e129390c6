"""pause, resume and adjust: what people ask of a run while it is under way, and when nobody would hear it."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.requests import user_name
from rebalance_lib.clock import SYSTEM
from rebalance_lib.execution import Job
from rebalance_lib.execution.records.execution import BACKUP, EXECUTION, note_begin
from rebalance_lib.execution.records.journal import REQUEST, read_journal
from rebalance_lib.execution.requests import read_requests
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.cli.conftest import invoke
from tests.waiting import wait_for


@pytest.fixture
def state(tmp_path):
    """The artifacts of a plan that is being executed, by what its files say; its lock is free."""
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}', encoding="utf-8")
    artifacts = Artifacts.at(tmp_path / "plan.json.state")
    plan = Plan.from_assignment({TopicPartition("foo", 0): [2]})
    note_begin(Job(plan, plan, "a cluster", artifacts), {}, SYSTEM, in_stages=False)
    return artifacts


def test_a_run_is_paused_changed_and_resumed_and_what_was_excluded_is_set_aside(start_run, topic, plan, look, ours):
    cluster = look.cluster
    name = topic("requests", [[1], [1]], size=1_000_000)
    path = plan({name: {0: [2], 1: [2]}})
    state = path.with_name("plan.json.state")
    running = start_run(path, "--moves-in-cluster", "1", "--output", "json")
    [first] = wait_for(cluster.reassignments)
    second = 1 - first.partition
    paused = invoke("pause", path)
    assert (paused.code, "At its next check" in paused.out) == (0, True), paused.err
    wait_for(lambda: _noted(state), ["pause"])
    assert invoke("adjust", state, "--throttle", 90_000_000, "--moves-in-cluster", 0).code == 0
    wait_for(cluster.reassignments, {})  # the one that was under way has ended
    look.replicas(name, {first.partition: [2], second: [1]})
    assert cluster.reassignments() == {}  # and no other began
    assert invoke("adjust", state.as_uri(), "--exclude-topics", name).code == 0
    resumed = invoke("resume", path)
    assert (resumed.code, "begins moves again" in resumed.out) == (0, True)
    printed, logged = running.communicate(timeout=180)
    assert running.returncode == 4, logged
    ended = json.loads(printed)
    assert (ended["completed"], list(ended["set_aside"])) == (False, [f"{name}-{second}"])
    assert f"requested by {user_name()}" in ended["set_aside"][f"{name}-{second}"]
    assert "Run the plan again to go on with them." in ended["verdict"]
    assert "MB/s for each broker, the busiest receives " in logged  # what the throttle allows, beside what was measured
    assert f"pause requested by {user_name()} at " in logged
    look.unthrottled(name)
    late = invoke("pause", path)
    assert (late.code, "no run is under way" in late.err) == (1, True)
    assert ours("run", "--reassignment-json-file", path, "--interval", 0.2).code == 0
    look.moved(name, {0: [2], 1: [2]})


def _noted(state) -> list[str]:
    return [event["kind"] for event in read_journal(Artifacts.at(state)) if event["event"] == REQUEST]


@pytest.mark.parametrize("place", ["plan.json", "plan.json.state", "uri"])
def test_a_run_is_named_by_its_plan_its_directory_or_its_uri(state, tmp_path, place):
    named = state.uri if place == "uri" else tmp_path / place
    with state.locked():
        answer = invoke(
            "adjust", named, "--throttle", 5, "--window", "", "--exclude-topics", "a,b-*", "--output", "json"
        )
    assert answer.code == 0, answer.err
    assert answer.json["run"] == state.uri
    asked = [(str(one.kind), one.value, one.by) for one in read_requests(state)]
    assert asked == [
        ("throttle", 5, user_name()),
        ("window", "", user_name()),
        ("exclude_topics", ["a", "b-*"], user_name()),
    ]


@pytest.mark.parametrize("command", ["pause", "resume", "adjust"])
def test_a_request_that_the_next_run_would_take_is_refused(state, tmp_path, command):
    words = [command, tmp_path / "plan.json", *(["--moves-in", 3] if command == "adjust" else [])]
    free = invoke(*words)
    assert (free.code, "no run is under way" in free.err, "kafka-rebalance run" in free.err) == (1, True, True)
    state.remove_files([EXECUTION, BACKUP])
    with state.locked():  # by a run that has not begun yet, or by another command
        early = invoke(*words)
    assert (early.code, "has not begun yet" in early.err) == (1, True)
    never = invoke(command, tmp_path / "other.json", *words[2:])
    assert (never.code, "there is no " in never.err) == (1, True)
    assert read_requests(state) == []


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 2),
        (("--throttle", 0), 2),
        (("--moves-in", -1), 2),
        (("--order", "random"), 2),
        (("--exclude-topics", ","), 2),
        (("--throttle", 5, "--window", "25:00"), 1),
        (("--throttle", 5, "--max-run-time", "nan"), 1),
        (("--max-run-time", -1), 1),
    ],
)
def test_a_change_that_no_run_could_use_is_refused_and_with_it_all_others(state, tmp_path, options, code):
    with state.locked():
        answer = invoke("adjust", tmp_path / "plan.json", *options)
    assert answer.code == code, answer.out
    assert read_requests(state) == []
