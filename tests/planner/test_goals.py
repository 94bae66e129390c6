"""A list of goals: read strictly, the first counting the most, each with its verdict; and hot topics spread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

import rebalance_lib
from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.goals import GOALS
from rebalance_lib.planner.request import DEFAULT_GOALS, OWN_TOLERANCE
from tests.planner.clusters import cluster, planned, topic


def verdicts(before, request):
    one = planned(before, request)
    return {verdict.goal: verdict for verdict in one.outcome.verdicts(request)}


def test_every_goal_that_can_be_asked_for_has_a_verdict():
    assert {*DEFAULT_GOALS, *OWN_TOLERANCE} <= set(GOALS)


def test_tolerances_are_the_goals_own_or_follow_from_the_request():
    request = Request(Mode.BALANCE, goals=("leaders=0.2", "disk", "network_in"), tolerance=0.02)
    assert request.goal_tolerances == {"leaders": 0.2, "disk": 0.02, "network_in": 0.06}
    assert [request.weight_of(name) for name in ("leaders", "disk", "network_in", "replicas")] == [1, 0.5, 0.25, 0]


@pytest.mark.parametrize(
    ("goals", "complaint"),
    [
        (("disks",), "there is no goal 'disks': use some of disk, network_in"),
        (("disk", "disk=0.1"), "goals name disk twice"),
        (("disk=-1",), "goal 'disk=-1': give a tolerance of 0 to 10"),
        (("disk=nan",), "goal 'disk=nan': give a tolerance"),
    ],
)
def test_a_wrong_list_is_refused(goals, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        Request(Mode.BALANCE, goals=goals)


def test_a_hot_topic_that_one_broker_leads_is_spread():
    lists = [[1, 2, 3]] * 6 + [[2, 3, 1]] * 6 + [[3, 1, 2]] * 6
    hot, others = topic("hot", lists[:6], 1), topic("others", lists[6:] * 2, 1)
    before = cluster({1: "a", 2: "b", 3: "c"}, {**hot, **others})
    after = before.after(planned(before, Request(Mode.LEADERS)).plan)
    led = [held.replicas[0] for name, held in after.partitions.items() if name.topic == "hot"]
    assert max(led.count(broker) for broker in (1, 2, 3)) <= 3


def test_after_a_failure_survivors_share_what_the_dead_broker_led():
    before = cluster({1: "a", 2: "b", 3: "c"}, topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 8, 1))
    found = verdicts(before, Request(Mode.LEADERS))["failover"]
    assert found.before == pytest.approx(16 / 12)
    assert found.after == pytest.approx(1.0)
    untouched = verdicts(before, Request(Mode.LEADERS, goals=("leaders",)))
    assert "failover" not in untouched


def test_a_goal_that_is_left_out_moves_nothing():
    snapshot = generate(Parameters(scenario="skew", partitions=300, brokers=9)).snapshot()
    one = candidates(ClusterModel.of(snapshot), Request(Mode.BALANCE, goals=("leaders",)))[0]
    assert one.figures.replicas_moved == 0
    assert one.figures.leaders_moved > 0


def test_a_goal_that_is_not_met_says_why():
    before = cluster({1: "a", 2: "b"}, topic("orders", [[1]], 100))
    disk = verdicts(before, Request(Mode.BALANCE))["disk"]
    assert not disk.met
    assert disk.why.startswith("broker 1 has the most for its share")


@pytest.mark.parametrize(
    ("partitions", "options", "said"),
    [
        (200, {}, True),
        (200, {"polish": 0.001}, False),  # it has looked already
        (200, {"byte_budget": 10}, False),
        (20, {}, False),  # planned exactly
        (200, {"mode": Mode.LEADERS}, False),
    ],
)
def test_polish_is_named_only_where_it_looks_further(partitions, options, said):
    sizes = [100 if number == 0 else 1 for number in range(partitions)]  # one of them is larger than a share
    before = cluster([1, 2, 3, 4], topic("orders", [[1]] * partitions, sizes))
    found = verdicts(before, Request(**{"mode": Mode.BALANCE, "goals": ("disk",)} | options))["disk"]
    assert not found.met
    assert ("--polish looks further" in found.why) == said


def test_an_edit_of_any_loop_leads_to_another_cache(tmp_path):
    code = "from rebalance_lib.planner.compiled.cache import digest; print(digest())"
    copytree(Path(rebalance_lib.__file__).parent, tmp_path / "rebalance_lib", ignore=lambda *_: ["__pycache__"])

    def digest():
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    before = digest()
    assert digest() == before
    moves = tmp_path / "rebalance_lib" / "planner" / "compiled" / "moves.py"
    moves.write_text(moves.read_text().replace("SCAN_LIMIT = 128", "SCAN_LIMIT = 127"))
    assert digest() != before
