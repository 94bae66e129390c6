"""Planners are run by commands that read a cluster's JSON and leave a plan and its timings."""

from __future__ import annotations

import sys

import pytest

from bench import kernel_plan
from bench.clusters import SCENARIOS, Parameters, generate
from bench.measure import measure
from bench.peers import (
    MODES,
    KafkaGenerate,
    PeerUnavailableError,
    Rebalancer,
    Task,
    ThisKernel,
    ThisProject,
    Topicmappr,
    run,
    timings,
)
from bench.score import score
from rebalance_lib.plan import parse_plan


@pytest.mark.programs
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kafkas_generate_places_every_partition_on_the_targets(scenario, tmp_path):
    cluster = generate(Parameters(scenario=scenario, partitions=300, brokers=9, rates=True, capacities=True))
    cluster.write(tmp_path / "cluster.json")
    peer = KafkaGenerate()
    peer.install()
    measured = measure(peer.command(Task(tmp_path / "cluster.json", scenario, tmp_path)), limit=120)
    assert measured.error == ""
    figures = score(cluster, parse_plan((tmp_path / "plan.json").read_bytes()))
    assert figures["planned_partitions"] == 300
    assert figures["errors"] == {}
    assert figures["rack_violations"] == 0
    assert timings(tmp_path)["plan"] > 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_this_project_plans_in_the_mode_of_the_scenario(scenario, tmp_path):
    command = ThisProject().command(Task(tmp_path / "cluster.json", scenario, tmp_path))
    assert command[1:] == [
        *("plan", "--snapshot", str(tmp_path / "cluster.json")),
        *("--mode", MODES[scenario], "--out", str(tmp_path), "--engine", "local"),
    ]


def test_a_planner_that_tells_no_timings_has_none(tmp_path):
    assert timings(tmp_path) == {}
    (tmp_path / "summary.json").write_text('{"moves": 3}')
    assert timings(tmp_path) == {}


def test_an_installation_that_fails_says_why():
    with pytest.raises(PeerUnavailableError, match="no such version"):
        run([sys.executable, "-c", "import sys; print('trying'); sys.exit('no such version')"])
    with pytest.raises(PeerUnavailableError, match="No such file"):
        run(["no-such-program"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_kernel_alone_plans_in_the_mode_of_the_scenario(scenario, tmp_path):
    cluster = generate(Parameters(scenario=scenario, partitions=200, brokers=9, rates=True, capacities=True))
    cluster.write(tmp_path / "cluster.json")
    command = ThisKernel("again").command(Task(tmp_path / "cluster.json", scenario, tmp_path))
    kernel_plan.main(*command[3:])
    figures = score(cluster, parse_plan((tmp_path / "plan.json").read_bytes()))
    assert figures["errors"] == {}
    assert figures["rack_violations"] == 0
    assert timings(tmp_path)["plan_cpu"] > 0


@pytest.mark.programs
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_rebalancer_keeps_racks_and_empties_leaving_brokers(scenario, tmp_path):
    peer = Rebalancer("greedy")
    try:
        peer.install()
    except PeerUnavailableError as error:
        pytest.skip(str(error))
    cluster = generate(Parameters(scenario=scenario, partitions=300, brokers=9, rates=True, capacities=True))
    cluster.write(tmp_path / "cluster.json")
    measured = measure(peer.command(Task(tmp_path / "cluster.json", scenario, tmp_path, 60)), limit=60)
    assert measured.error == ""
    figures = score(cluster, parse_plan((tmp_path / "plan.json").read_bytes()))
    assert figures["errors"] == {}
    assert figures["rack_violations"] == 0
    assert timings(tmp_path)["plan_cpu"] > 0


def test_without_its_python_rebalancer_says_so(monkeypatch):
    monkeypatch.setattr("bench.peers.find_python", lambda version: None)
    with pytest.raises(PeerUnavailableError, match=r"Python 3\.12, which is not here"):
        Rebalancer("fast").install()


def test_topicmappr_is_never_run(monkeypatch):
    monkeypatch.setattr("bench.peers.run", lambda command: None)
    with pytest.raises(PeerUnavailableError, match="ZooKeeper"):
        Topicmappr().install()
