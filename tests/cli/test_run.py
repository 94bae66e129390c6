"""run: a plan from its first check to its last, and whatever interrupts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rebalance_lib.cli import main
from rebalance_lib.cli.options import PlanFile
from rebalance_lib.cli.output import Output
from rebalance_lib.cli.run import SIGNALS, Display, _signals
from rebalance_lib.execution.throttles.config import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, RATES
from tests.cli.conftest import SLOW
from tests.everywhere import set_topic
from tests.waiting import wait_for


def test_a_plan_is_executed_and_everything_else_is_as_before(ours, topic, plan, look, cluster):
    name = topic("run-cli", [[1, 2], [2, 1]], size=300_000)
    set_topic(cluster, name, {LEADER_REPLICAS: "7:1"})
    path = plan({name: {0: [3, 2], 1: [2, 3]}})
    options = ("--throttle", 3_000_000, "--interval", 0.2, "--moves-in", 1)
    answer = ours("run", "--reassignment-json-file", path, *options)
    assert answer.code == 0, answer.err
    assert "2 of 2 partitions are where the plan says." in answer.out
    look.moved(name, {0: [3, 2], 1: [2, 3]})
    look.lists(name, {LEADER_REPLICAS: "7:1"})
    look.rates({})
    record = json.loads((path.with_name("plan.json.state") / "audit.json").read_text(encoding="utf-8"))
    assert {move["partition"] for move in record["moves"]} == {f"{name}-0", f"{name}-1"}
    again = ours("run", "--reassignment-json-file", path, *options, "--output", "json")
    assert (again.code, again.json["partitions"]) == (0, {"done": 2})
    assert (again.json["completed"], again.json["set_aside"], again.json["cancelled_by"]) == (True, {}, None)
    assert again.json["verdict"] == "2 of 2 partitions are where the plan says."

    back = ours("run", "--reassignment-json-file", path.with_name("plan.json.state") / "rollback.json", *options)
    assert back.code == 0, back.err
    look.moved(name, {0: [1, 2], 1: [2, 1]})


def test_another_plan_than_the_approved_one_is_refused(ours, topic, plan):
    name = topic("run-approved", [[1]])
    answer = ours("run", "--reassignment-json-file", plan({name: {0: [2]}}), "--approved", "sha256:0")
    assert answer.code == 1
    assert "approved was sha256:0" in answer.err


def test_a_cluster_that_drifted_from_the_snapshot_is_refused(ours, topic, plan, tmp_path, look):
    name = topic("run-drifted", [[1]])
    assert ours("snapshot", "--out", tmp_path / "snapshot").code == 0
    path = plan({name: {0: [2]}})
    theirs = plan({name: {0: [3]}}, "other.json")
    assert ours("execute", "--reassignment-json-file", theirs, "--wait").code == 0
    look.moved(name, {0: [3]})
    answer = ours("run", "--reassignment-json-file", path, "--snapshot", tmp_path / "snapshot")
    assert answer.code == 1
    assert f"no longer where the snapshot saw them ({name}-0)" in answer.err
    look.moved(name, {0: [3]})


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "0.01", "soon"])
@pytest.mark.parametrize("option", ["--interval", "--give-up-after", "--max-run-time"])
def test_a_time_that_no_run_could_use_is_a_usage_error(option, seconds, plan):
    words = ["run", "--bootstrap-server", "127.0.0.1:1", "--reassignment-json-file", str(plan({"foo": {0: [1]}}))]
    answer = CliRunner().invoke(main, [*words, option, seconds])
    assert (answer.exit_code, f"Invalid value for '{option}'" in answer.stderr) == (2, True), answer.output


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_that_ends_a_process_is_taken_as_ctrl_c(number):
    with pytest.raises(KeyboardInterrupt), _signals():
        signal.raise_signal(number)


def test_ctrl_c_cancels_what_is_under_way_and_restores_the_throttles(kafka, topic, plan, look, cluster):
    name = topic("run-interrupted", [[1]], size=1_000_000)
    path = plan({name: {0: [2]}})
    words = ["run", "--bootstrap-server", kafka.bootstrap_servers, "--reassignment-json-file", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "rebalance_lib.cli", *words, "--throttle", str(SLOW), "--interval", "0.2"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(cluster.reassignments)
    process.send_signal(signal.SIGINT)
    _, logged = process.communicate(timeout=180)
    assert process.returncode == 1, logged
    assert "1 moves under way were cancelled" in logged
    assert cluster.reassignments() == {}
    look.unthrottled(name)
    look.moved(name, {0: [1]})


def test_throttles_of_a_killed_run_are_shown_and_restored(kafka, ours, topic, plan, look):
    name, cluster = topic("run-killed", [[1]], size=1_000_000), look.cluster
    path = plan({name: {0: [2]}})
    state = path.with_name("plan.json.state")
    words = ["run", "--bootstrap-server", kafka.bootstrap_servers, "--reassignment-json-file", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "rebalance_lib.cli", *words, "--throttle", str(SLOW), "--interval", "0.2"],
        stderr=subprocess.DEVNULL,
    )
    wait_for(cluster.reassignments)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    look.lists(name, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"})
    look.rates(dict.fromkeys((1, 2), dict.fromkeys(RATES, str(SLOW))))
    look.replicas(name, {0: [2, 1]})
    shown = ours("throttles", "--output", "json")
    assert shown.json["brokers"]["1"][LEADER_RATE] == {"value": str(SLOW), "source": "DYNAMIC_BROKER_CONFIG"}
    assert name in shown.json["topics"]
    kept = ours("throttles", "--restore", state)
    assert kept.code == 3  # its move goes on, and needs its throttle
    assert "of its moves are under way" in kept.out
    assert ours("run", "--reassignment-json-file", path, "--throttle", 90_000_000, "--interval", 0.2).code == 0
    look.unthrottled(name)
    look.moved(name, {0: [2]})
    nothing = ours("throttles", "--restore", state)
    assert (nothing.code, "Nothing to restore" in nothing.out) == (0, True)


def test_a_plan_that_was_executed_on_another_cluster_is_refused(ours, topic, plan):
    name = topic("run-elsewhere", [[1]])
    path = plan({name: {0: [2]}})
    assert ours("run", "--reassignment-json-file", path, "--interval", 0.2).code == 0
    owner = path.with_name("plan.json.state") / "owner.json"
    content = json.loads(owner.read_text(encoding="utf-8"))
    owner.write_text(json.dumps({**content, "cluster_id": "another"}), encoding="utf-8")
    answer = ours("run", "--reassignment-json-file", path)
    assert answer.code == 1
    assert "executed on cluster another" in answer.err


def test_places_are_for_restore_and_must_be_there(ours, tmp_path):
    assert ours("throttles", "--restore").code == 2
    assert ours("throttles", tmp_path).code == 2
    missing = ours("throttles", "--restore", tmp_path / "nothing")
    assert (missing.code, "is not there" in missing.err) == (1, True)


def test_on_a_terminal_a_run_begins_with_how_to_change_it(monkeypatch, capsys):
    with Display.shown(Output(as_json=False), PlanFile(Path("plan.json"))):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with Display.shown(Output(as_json=False), PlanFile(Path("plan.json"))):
        pass
    shown = capsys.readouterr().err.splitlines()[0]
    assert "kafka-rebalance pause plan.json" in shown
    assert "adjust plan.json --throttle" in shown
    assert "kafka-rebalance cancel" in shown
