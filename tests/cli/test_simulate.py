"""simulate: what a plan would do, and when, from files alone."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from rebalance_lib.artifacts import RATES, Artifacts
from rebalance_lib.cli import main
from rebalance_lib.execution import Run
from tests.reassignment.test_simulation import cluster

MB = 10**6
CLUSTER = {
    "brokers": [{"id": 1}, {"id": 2}, {"id": 3}],
    "partitions": [
        {"topic": name, "partition": 0, "replicas": [1], "size": size}
        for name, size in (("a", 100 * MB), ("b", 50 * MB), ("c", 30 * MB))
    ],
}


def entries(**targets):
    return [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in targets.items()]


@pytest.fixture
def simulate(tmp_path):
    """Run ``simulate`` on the cluster above, or on another snapshot."""

    def run(*arguments, partitions=None, snapshot=None):
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": partitions or entries(a=[2], b=[3], c=[3])}))
        (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
        place = snapshot or tmp_path / "cluster.json"
        words = ["simulate", "--snapshot", place, "--reassignment-json-file", plan, *arguments]
        answer = CliRunner().invoke(main, list(map(str, words)), prog_name="kafka-rebalance")
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        return answer

    return run


def test_people_read_time_waves_log_dirs_brokers_and_assumptions(simulate):
    answer = simulate("--throttle", 10 * MB, "--moves-in", 1)
    assert answer.exit_code == 0, answer.stderr
    assert "3 partitions change and 180 MB are copied in 20 s" in answer.stdout
    for words in ("Waves", "left after it", "Log dirs", "Brokers", "- Removed replicas stay", "min.insync.replicas"):
        assert words in answer.stdout


def test_programs_read_one_object(simulate):
    found = json.loads(simulate("--throttle", 10 * MB, "--moves-in", 1, "--output", "json").stdout)
    assert found["seconds"] == pytest.approx(20, rel=0.05)
    assert [wave["partitions"] for wave in found["waves"]] == [2, 1]
    assert {one["broker"]: one["bytes_after"] for one in found["log_dirs"]} == {1: 0, 2: 100 * MB, 3: 80 * MB}
    assert (found["overflows"], found["at_min_isr"], found["exact"]) == (False, None, True)


def test_a_cap_of_0_is_no_limit(simulate):
    found = json.loads(simulate("--moves-in", 0, "--moves-out", 0, "--output", "json").stdout)
    assert [wave["partitions"] for wave in found["waves"]] == [3]


def test_a_log_dir_that_would_overflow_is_a_warning(simulate, tmp_path):
    run = Run((tmp_path / "run").as_uri())
    run.write_snapshot(cluster({("a", 0): ([1], 5_000)}, brokers=2, usable=4_000))
    answer = simulate("--disk-reserve", 0, partitions=entries(a=[2]), snapshot=tmp_path / "run")
    assert answer.exit_code == 0
    assert "Warning: log dir /d of broker 2 would overflow: it lacks 1 kB" in answer.stdout
    found = simulate("--output", "json", partitions=entries(a=[2]), snapshot=tmp_path / "run")
    assert json.loads(found.stdout)["overflows"]


def test_what_must_stay_free_counts_as_taken(simulate, tmp_path):
    run = Run((tmp_path / "run").as_uri())
    run.write_snapshot(cluster({("a", 0): ([1], 3_500)}, brokers=2, usable=4_000))  # of 20,000
    options = ("--output", "json", "--disk-reserve")
    found = {
        reserve: json.loads(simulate(*options, reserve, partitions=entries(a=[2]), snapshot=tmp_path / "run").stdout)
        for reserve in (0.0, 0.05)
    }
    assert [found[reserve]["overflows"] for reserve in found] == [False, True]
    told = simulate(partitions=entries(a=[2]), snapshot=tmp_path / "run").stdout
    assert "would overflow with 5% of it kept free: it lacks 500 B" in told


def test_write_rates_beside_the_plan_are_counted(simulate, tmp_path):
    options = ("--throttle", 10 * MB, "--output", "json")
    without = json.loads(simulate(*options, partitions=entries(a=[2])).stdout)
    rates = {"topic": ["a"], "partition": pa.array([0], pa.int32()), "write_rate": [4.0 * MB], "write_rate_p95": [9.0]}
    Artifacts.at(tmp_path).write_table(RATES, pa.table(rates))
    known = json.loads(simulate(*options, partitions=entries(a=[2])).stdout)
    assert known["seconds"] > 1.5 * without["seconds"]
    assert known["never"]["count"] == 0
    slow = simulate("--throttle", 2 * MB)
    assert (
        "3 partitions change and 180 MB are copied, but the plan never finishes at a throttle of 2 MB/s" in slow.stdout
    )
    assert "(a-0); a throttle of 4.5 MB/s (4500000) would do" in slow.stdout
    assert json.loads(simulate("--throttle", 2 * MB, "--output", "json").stdout)["seconds"] is None
    assert json.loads(simulate("--throttle", 4_500_000, "--output", "json").stdout)["seconds"] > 0


def test_a_candidate_counts_with_the_rates_of_its_plan_or_those_of_the_clusters_json(tmp_path):
    rows = [{"topic": "a", "partition": 0, "replicas": [1], "size": 100 * MB, "write_rate": 4 * MB}]
    brokers = [{"id": 1, "capacity": {"disk": 10**12}}, {"id": 2, "capacity": {"disk": 50 * MB}}]
    (tmp_path / "cluster.json").write_text(json.dumps({"brokers": brokers, "partitions": rows}))
    plan = tmp_path / "plan" / "candidates" / "full" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text(json.dumps({"version": 1, "partitions": entries(a=[2])}))

    def simulated():
        words = ["simulate", "--snapshot", str(tmp_path / "cluster.json"), "--reassignment-json-file", str(plan)]
        return CliRunner().invoke(main, [*words, "--throttle", str(2 * MB)]).stdout

    assert "never finishes" in simulated()
    assert "Warning: the disk of broker 2 would overflow" in simulated()
    rates = {"topic": ["a"], "partition": pa.array([0], pa.int32()), "write_rate": [1.0], "write_rate_p95": [1.0]}
    Artifacts.at(tmp_path / "plan").write_table(RATES, pa.table(rates))
    assert "never finishes" not in simulated()


def test_a_plan_that_changes_nothing_is_told(simulate):
    assert "Nothing to do" in simulate(partitions=entries(a=[1])).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--throttle", "0"], 1, "throttle is 0"),
        (["--moves-in", "-1"], 2, "--moves-in"),
        (["--order", "random"], 2, "--order"),
    ],
)
def test_a_wrong_pace_is_refused(simulate, arguments, code, words):
    answer = simulate(*arguments)
    assert (answer.exit_code, words in answer.stderr) == (code, True), answer.stderr


def test_a_plan_for_another_cluster_is_refused(simulate):
    answer = simulate(partitions=entries(x=[1]))
    assert answer.exit_code == 1
    assert "x-0 is in the plan but not in the snapshot" in answer.stderr
