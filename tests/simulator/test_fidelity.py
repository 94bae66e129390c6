"""The comparison of simulator and cluster: what is played, what counts as the same end, and one schedule on both."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from simulator.fidelity import __main__ as command
from simulator.fidelity.answers import REQUESTS, differing_answers, simulated_answers
from simulator.fidelity.director import Director
from simulator.fidelity.end_state import EndState, differences, reason
from simulator.fidelity.real import RealCluster
from simulator.fidelity.scenes import (
    AFTER,
    BEFORE,
    BROKERS,
    KINDS,
    MOMENTS,
    MOST_PARTITIONS,
    MOVING,
    PAUSED,
    SMALLEST,
    Strike,
    draw_scene,
)
from simulator.fidelity.simulated import play_simulated

SEEDS = range(1, 101)
KILLED = 33  # of the test on a real cluster: any seed will do, the strike is given there


def struck(seed, *strikes):
    """The scene of a seed, with these strikes in the place of its own."""
    return replace(draw_scene(seed), strikes=strikes)


def first(scene):
    """The first partition that is planned."""
    return scene.schedule.plan[0]


# What is played


def test_a_scene_is_one_that_a_sandbox_bears():
    for seed in SEEDS:
        schedule = draw_scene(seed).schedule
        partitions = [one for topic in schedule.shape.topics for one in topic.partitions]
        assert tuple(broker.id for broker in schedule.shape.brokers) == BROKERS
        assert 2 <= len(partitions) <= MOST_PARTITIONS
        assert all(SMALLEST <= one.size < 1_000_000 and not one.write_rate for one in partitions)
        assert len({one.size for one in partitions}) == len(partitions), "both sides order moves by size"
        assert all(topic.name.startswith(f"f{seed}-") for topic in schedule.shape.topics)
        assert not schedule.prior.static, "a properties file would stay for the next scene"
        assert not schedule.prior.default


def test_a_seed_gives_the_same_scene_each_time_and_it_is_plain_data():
    assert draw_scene(7) == draw_scene(7)
    json.dumps([draw_scene(7).schedule.as_dict(), [strike.args for strike in draw_scene(7).strikes]])


def test_a_scene_has_two_strikes_at_most_in_the_order_of_their_moments_and_a_hundred_have_every_kind():
    scenes = [draw_scene(seed) for seed in SEEDS]
    for scene in scenes:
        places = [MOMENTS.index(strike.moment) for strike in scene.strikes]
        assert len(places) <= 2
        assert places == sorted(places)
        assert all(strike.moment in KINDS[strike.kind].moments for strike in scene.strikes)
    assert {strike.kind for scene in scenes for strike in scene.strikes} == KINDS.keys()
    assert any(not scene.strikes for scene in scenes)


def test_the_director_can_make_every_kind_of_fault():
    assert all(callable(getattr(Director, f"_{kind}")) for kind in KINDS)


# What is compared


def test_two_ends_that_are_alike_do_not_differ():
    end = EndState(partitions={"t-0": "[1, 2]"}, run={"ended": "completed"})
    assert differences(end, replace(end)) == []


def test_each_difference_is_named_with_both_sides():
    simulated = EndState(partitions={"t-0": "[1, 2]", "t-1": "[1]"}, rates={"broker 1 leader": "1000"})
    real = EndState(partitions={"t-0": "[1, 2], not in sync on [2]", "t-1": "[1]"}, set_aside={"t-1": "drift"})
    assert differences(simulated, real) == [
        "partitions t-0: simulated [1, 2], real [1, 2], not in sync on [2]",
        "rates broker 1 leader: simulated 1000, real -",
        "set_aside t-1: simulated -, real drift",
    ]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["somebody else moved it"], "moved by others"),
        (["it did not advance for 20 s: no reason found", "it did not advance for 240 s: x"], "did not advance"),
        (["brokers [4], which are to receive it, are down"], "receiver is down"),
        (["waited 3.5 s for 2 brokers", "waited 12 s for 3 brokers"], "waited n s for n brokers"),
    ],
)
def test_reasons_are_compared_by_their_kind_not_by_their_numbers(texts, kind):
    assert {reason(text) for text in texts} == {kind}


# The play, in the simulator


def test_without_a_fault_the_plan_is_reached_and_nothing_is_left():
    scene = struck(10)
    end = play_simulated(scene)
    assert end.run == {"ended": "completed", "completed": "True"}
    assert end.moving, "the first moves were held"
    planned = {str(one.topic_partition): str(list(one.replicas)) for one in scene.schedule.plan}
    assert {name: end.partitions[name] for name in planned} == planned
    assert (end.reassignments, end.set_aside, end.left) == ({}, {}, {})


def test_the_same_scene_ends_alike_each_time():
    scene = struck(10, Strike(MOVING, "process_killed"))
    assert differences(play_simulated(scene), play_simulated(scene)) == []


def test_a_cancelled_run_moves_nothing_and_leaves_no_throttle():
    scene = struck(10, Strike(MOVING, "request_cancel"))
    end = play_simulated(scene)
    shape = scene.schedule.shape
    assert end.run["ended"] == "cancelled"
    for name in end.moving:
        topic, _, number = name.rpartition("-")
        assert end.partitions[name] == str(list(shape.partition(topic, int(number)).replicas))
    assert end.rates == {
        f"broker {broker} {key}": rate
        for broker, rates in scene.schedule.prior.rates.items()
        for key, rate in rates.items()
    }


def test_a_broker_that_returns_late_is_missing_at_the_end():
    scene = struck(10)
    broker = first(scene).replicas[0]
    end = play_simulated(struck(10, Strike(BEFORE, "broker_dies", {"broker": broker, "returns": "late"})))
    assert end.run != {"ended": "completed", "completed": "True"}
    assert any(f"not in sync on [{broker}]" in where for where in end.partitions.values())


def test_what_others_do_after_the_run_stays():
    strike = Strike(AFTER, "foreign_throttle_set", {"broker": 2, "rate": 5_000_011})
    end = play_simulated(struck(10, strike))
    assert {rate for name, rate in end.rates.items() if name.startswith("broker 2 ")} == {"5000011"}


def test_a_run_that_is_paused_goes_on_when_it_is_resumed():
    settings = {**draw_scene(10).schedule.settings, "moves_in_cluster": 1}
    scene = struck(10, Strike(PAUSED, "process_killed"))
    scene = replace(scene, schedule=replace(scene.schedule, settings=settings))
    assert play_simulated(scene).run == {"ended": "completed", "completed": "True"}


# Single requests


def test_the_simulator_answers_every_request_of_the_comparison():
    found = simulated_answers()
    assert found.keys() == REQUESTS.keys()
    assert found["append to *"].startswith("refuses: InvalidConfigurationError")
    assert found["subtract what is not there"].startswith("answers None")
    assert found["set a negative rate"].startswith("refuses: InvalidRequestError")
    assert found["log dir of a replica that is not there yet"].startswith("answers [Replica")
    assert found["log dir of a replica of an unknown topic"].startswith("refuses: UnknownTopicOrPartitionError")


# The command


def test_the_help_teaches(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["fidelity", "--help"])
    with pytest.raises(SystemExit):
        command.main()
    text = capsys.readouterr().out
    assert "--only 17" in text
    assert "Exit code 1" in text


def test_a_difference_is_printed_and_counted(capsys):
    scene = struck(10)

    class Unlike:
        def play(self, scene, say):
            return replace(play_simulated(scene), run={"ended": "incomplete", "completed": "False"})

    tally = command.Tally()
    command._play(Unlike(), scene, tally, lambda _: None)
    assert list(tally.differing) == [10]
    assert "run ended: simulated completed, real incomplete" in capsys.readouterr().out
    assert "1 with differences: seeds [10]" in tally.table()


# On a real cluster


@pytest.mark.long
def test_a_real_cluster_ends_in_the_same_state():
    command.CONTEXT.set_forkserver_preload(["simulator.fidelity.process"])
    scene = struck(KILLED, Strike(MOVING, "process_killed"))
    with RealCluster() as cluster:
        assert differing_answers(cluster) == []
        assert differences(play_simulated(scene), cluster.play(scene)) == []
