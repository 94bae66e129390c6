"""One command at a time has a plan: cancel ends a run that is under way, and a second run is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.cancel import ended_run
from rebalance_lib.cli.options import PlanFile
from rebalance_lib.cli.requests import user_name
from rebalance_lib.execution import Kind
from rebalance_lib.execution.requests import read_requests
from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_REPLICAS, RATES
from rebalance_lib.file_lock import InUseError
from tests.cli.conftest import SLOW, invoke
from tests.waiting import wait_for

cancel_module = sys.modules[ended_run.__module__]  # the package exports a command of its name


def test_cancel_ends_a_run_that_is_under_way_and_both_say_who_cancelled_what(start_run, ours, topic, plan, look):
    cluster = look.cluster
    name = topic("beside-cancel", [[1], [1]], size=1_000_000)
    path = plan({name: {0: [2], 1: [2]}})
    running = start_run(path, "--moves-in-cluster", "1")
    [moving] = wait_for(cluster.reassignments)
    answer = ours("cancel", "--reassignment-json-file", path)
    assert answer.code == 0, answer.err
    assert "A run of this plan is under way" in answer.err
    assert f"The run of {path} cancelled 1 reassignment: {moving}" in answer.out
    assert "Throttle rates are as before on brokers 1,2" in answer.out
    assert "are active" not in answer.out  # which would say that there was nothing to cancel
    printed, logged = running.communicate(timeout=180)
    assert running.returncode == 4, logged
    assert f"The run was cancelled: cancel requested by {user_name()} at " in printed, logged
    assert cluster.reassignments() == {}
    look.unthrottled(name)
    look.replicas(name, {0: [1], 1: [1]})
    again = ours("run", "--reassignment-json-file", path, "--interval", 0.2)
    assert again.code == 0, again.err  # a cancel ends one run, not the plan


def test_cancel_after_a_run_that_was_killed_cancels_by_itself_and_ends_what_was_asked_of_it(
    start_run, ours, topic, plan, look
):
    name, cluster = topic("beside-killed", [[1]], size=1_000_000), look.cluster
    path = plan({name: {0: [2]}})
    running = start_run(path)
    wait_for(cluster.reassignments)
    assert invoke("pause", path).code == 0
    running.kill()
    running.wait()
    answer = ours("cancel", "--reassignment-json-file", path, "--output", "json")
    assert (answer.code, answer.json["cancelled"], answer.json["cancelled_by_run"]) == (0, [f"{name}-0"], [])
    look.unthrottled(name)
    look.moved(name, {0: [1]})
    again = ours("run", "--reassignment-json-file", path, "--interval", 0.2)
    assert again.code == 0, again.err  # and is not paused
    look.moved(name, {0: [2]})


def test_a_second_run_and_an_execute_of_the_same_plan_are_refused_at_once(start_run, ours, topic, plan, cluster):
    name = topic("beside-second", [[1]], size=1_000_000)
    path = plan({name: {0: [2]}})
    running = start_run(path)
    wait_for(cluster.reassignments)
    second = ours("run", "--reassignment-json-file", path)
    assert (second.code, "plan.json.state is in use" in second.err) == (1, True)
    execute = ours("execute", "--reassignment-json-file", path, "--additional", "--throttle", 90_000_000)
    assert (execute.code, "plan.json.state is in use" in execute.err) == (1, True)
    restore = ours("throttles", "--restore", path.with_name("plan.json.state"))
    assert (restore.code, "is in use" in restore.out) == (3, True)
    running.send_signal(signal.SIGHUP)  # as of a terminal that is closed
    _, logged = running.communicate(timeout=180)
    assert "1 moves under way were cancelled" in logged
    assert cluster.reassignments() == {}


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    state = Artifacts.at(tmp_path / "plan.json.state")
    script = (
        "import sys, time\nfrom rebalance_lib.artifacts import Artifacts\n"
        "with Artifacts(sys.argv[1]).locked(make=True):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, state.uri], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InUseError, match=r"plan\.json\.state is in use"), state.locked():
        pass
    os.kill(holder.pid, signal.SIGKILL)
    with state.locked(seconds=120):
        pass
    holder.wait()
    holder.stdout.close()


def test_where_nothing_was_kept_nothing_is_locked(tmp_path):
    state = Artifacts.at(tmp_path / "plan.json.state")
    with state.locked(), state.locked():
        pass
    assert not (tmp_path / "plan.json.state").exists()


def test_a_refused_try_leaves_nothing_that_the_next_would_go_by(ours, topic, plan, look):
    name = topic("beside-refused", [[1]])
    path = plan({name: {0: [9]}})
    refused = ours("run", "--reassignment-json-file", path)
    assert (refused.code, "target brokers [9] are not alive" in refused.err) == (1, True)
    state = path.with_name("plan.json.state")
    assert sorted(file.name for file in state.iterdir()) == ["lock"]


def test_what_another_tool_moves_is_listed_refused_and_cancelled_as_that_tool_would(theirs, ours, topic, plan, look):
    name = topic("beside-foreign", [[1]], size=1_000_000)
    path = plan({name: {0: [2]}})
    theirs("--execute", "--reassignment-json-file", path, "--throttle", SLOW)
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    look.rates(dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    look.replicas(name, {0: [2, 1]})
    assert name in ours("list").out
    refused = ours("run", "--reassignment-json-file", path)
    assert refused.code == 1
    assert f"reassignments of somebody else are under way ({name}-0)" in refused.err
    assert len(look.cluster.reassignments()) == 1
    cancelled = ours("cancel", "--reassignment-json-file", path)  # whoever began it
    assert (cancelled.code, f"for: {name}-0" in cancelled.out) == (0, True)
    assert ours("list").out.strip() == "No partition reassignments found."
    look.moved(name, {0: [1]})
    look.unthrottled(name)


@pytest.fixture
def plan_file(tmp_path):
    """A plan's file with a directory beside it, as a run leaves it."""
    (tmp_path / "plan.json.state").mkdir()
    return PlanFile(tmp_path / "plan.json")


def test_cancel_does_not_take_a_command_that_holds_the_lock_for_a_moment_for_a_run(plan_file):
    printed, held, state = [], threading.Event(), plan_file.state

    def probe():  # as pause, resume and adjust do, on a busy machine
        with state.locked():
            held.set()
            time.sleep(0.3)

    thread = threading.Thread(target=probe)
    thread.start()
    held.wait()
    with ended_run(plan_file, SimpleNamespace(remark=printed.append)) as run:
        assert (run, printed, read_requests(state)) == (None, [], [])
    thread.join()


def test_a_cancel_that_waits_for_too_long_says_that_it_stays_requested(plan_file, monkeypatch):
    monkeypatch.setattr(cancel_module, "RUN_ENDS_SECONDS", 0.5)
    monkeypatch.setattr(cancel_module, "PROBE_SECONDS", 0.0)
    state, printed = plan_file.state, []
    output = SimpleNamespace(remark=printed.append)
    with state.locked(), pytest.raises(InUseError) as raised, ended_run(plan_file, output):
        pass
    assert len(printed) == 1
    assert "has not ended within 0 s" in str(raised.value)
    assert "the request stays" in str(raised.value)
    assert "end it with kafka-rebalance cancel" not in str(raised.value)  # which this is
    assert [request.kind for request in read_requests(state)] == [Kind.CANCEL]
