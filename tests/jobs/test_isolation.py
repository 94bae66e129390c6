"""One bad cluster of a fleet stops nobody: it fails with its reason, and all others are published, in one job."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import LoadOptions
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.jobs.dataflow import RunState, isolate, plan_runs
from rebalance_lib.jobs.rows import Past, PlanTask
from rebalance_lib.jobs.session import another_session
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Mode, Request
from tests.history.samples import EXAMPLE, write
from tests.jobs.test_plans import run_of, skewed, small

REQUEST = Request(Mode.DRAIN, brokers=(6,))


def test_five_ways_to_break_a_cluster_each_with_its_reason(spark, tmp_path, capsys):
    @dataclass(frozen=True, slots=True)
    class Killing(Pace):
        """Its worker is killed while the plan is written, as for its memory."""

        def as_dict(self):
            os.kill(os.getpid(), signal.SIGKILL)

    history = Artifacts.at(tmp_path / "history")
    write(history, "torn", EXAMPLE)
    (file, *_) = sorted((history.path).rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    taken_at = file.stem.replace("Z", "+00:00")
    runs = {name: run_of(tmp_path / name, skewed(3, 60)) for name in ("first", "last", "snapshot", "killed")}
    runs["planner"] = run_of(tmp_path / "planner", small())  # it has no broker 6
    runs["history"] = run_of(tmp_path / "torn", replace(skewed(3, 60), cluster_id="torn", taken_at=taken_at))
    runs["storage"] = run_of(deep(tmp_path), skewed(3, 60))
    damage(runs["snapshot"].artifacts / "snapshot", "replicas.parquet")
    past = Past(history.uri, LoadOptions())
    states = [job.run_state(number, run.uri, REQUEST, Pace(), past) for number, run in enumerate(runs.values())]
    killed = states[list(runs).index("killed")]
    killed.task = replace(killed.task, pace=Killing())
    plan_runs(another_session(spark), states, lambda _line: None)
    found = dict(zip(runs, states, strict=True))
    published = [name for name, run in runs.items() if run.artifacts.exists("plan")]
    assert published == ["first", "last"] == [name for name, state in found.items() if state.published]
    assert job.report(states) == 1
    said = capsys.readouterr().err
    assert "5 of 7 runs failed" in said
    for name, reason in {
        "snapshot": "replicas.parquet",
        "killed": "a worker died over it, most likely for want of memory",
        "planner": "unknown brokers [6]",
        "history": f"{file.name} is no Parquet file",
        "storage": "cannot be written: File name too long",
    }.items():
        (error,) = found[name].errors
        assert reason in error
        assert f"compute_placement: {runs[name].uri}: {error}" in said


def deep(directory):
    """A directory so deep that a snapshot can be written there, and a plan cannot."""
    for _ in range((4040 - len(str(directory))) // 201):
        directory /= "d" * 200
    return directory / ("d" * (4040 - len(str(directory)) - 1))


def damage(directory, name):
    """Its footer is whole: only who reads the rows finds out."""
    data = directory.read_bytes(name)
    directory.write_bytes(name, data[:4] + bytes(400) + data[404:])


def test_work_that_fails_for_one_run_is_done_for_all_others_in_few_rounds():
    runs = [RunState(number, PlanTask(f"file:///{number}", REQUEST, "")) for number in range(100)]
    rounds = []

    def work(some):
        rounds.append(len(some))
        if any(run.number == 37 for run in some):
            raise RuntimeError("Job aborted due to stage failure: Python worker exited unexpectedly (crashed)")
        for run in some:
            run.published = True

    isolate(work, runs)
    assert [run.number for run in runs if not run.published] == [37]
    assert ["a worker died over it" in error for error in runs[37].errors] == [True]
    assert len(rounds) < 16


def test_what_fails_for_everybody_is_not_tried_for_each_of_them():
    runs = [RunState(number, PlanTask(f"file:///{number}", REQUEST, "")) for number in range(300)]
    rounds = []

    def work(some):
        rounds.append(len(some))
        raise RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")

    isolate(work, runs)
    assert {error for run in runs for error in run.errors} == {
        "Spark failed: ModuleNotFoundError: No module named 'pyarrow'"
    }
    assert [len(run.errors) for run in runs] == [1] * 300
    assert len(rounds) < 16


def test_what_fails_for_three_runs_for_reasons_of_their_own_fails_no_other():
    runs = [RunState(number, PlanTask(f"file:///{number}", REQUEST, "")) for number in range(100)]

    def work(some):
        for run in some:
            if run.number < 3:
                raise RuntimeError(
                    "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
                    f"  File 'files.py', line 1\nOSError: run {run.number} is torn\n\n\tat org.apache.spark\n"
                )

    isolate(work, runs)
    assert [run.errors for run in runs[:3]] == [[f"Spark failed: OSError: run {number} is torn"] for number in range(3)]
    assert not any(run.errors for run in runs[3:])
