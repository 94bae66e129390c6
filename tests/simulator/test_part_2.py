"""What was mended in the executor, point by point: a schedule in which nothing goes wrong, and does without the mend.

The points are those of the issue that brought the simulator. The schedules are in ``schedules/part_2``: each names the
point, the planted fault that switches its mend off, and the invariant that is violated then. Points about cost, and
what no invariant judges, have a test of their own below. `docs/reliability.md` has the table.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_lib.execution import stall_remedy
from rebalance_lib.execution.throttles.maintain import ThrottleMaintainer
from rebalance_lib.plan.pace import MOVES_IN_CLUSTER, Pace
from rebalance_lib.plan.waves import Move, Waves
from rebalance_lib.topology import TopicPartition
from simulator.client import SimulatedClient
from simulator.cluster import SimulatedCluster
from simulator.configs import FOLLOWER_RATE
from simulator.operator import Said
from simulator.running import run_schedule
from simulator.schedule import Schedule
from simulator.shape import Fault, PartitionShape, Planned, TopicShape
from tests.simulator.planted import PLANTS, planted
from tests.simulator.small import MB, SMALL

SCHEDULES = sorted((Path(__file__).parent / "schedules" / "part_2").glob("*.json"))


@pytest.mark.parametrize("path", SCHEDULES, ids=[path.stem for path in SCHEDULES])
def test_a_schedule_fails_without_its_mend_and_only_then(path):
    kept = json.loads(path.read_text())
    schedule = Schedule.from_dict(kept["schedule"])
    assert run_schedule(schedule).violations == []
    with planted(kept["plant"]):
        assert kept["invariant"] in {one.name for one in run_schedule(schedule).violations}


def test_each_point_that_an_invariant_can_judge_has_a_schedule():
    points = {int(path.name[:2]) for path in SCHEDULES}
    assert points == {1, 2, 3, 4, 5, 6, 7, 11, 12}
    assert {json.loads(path.read_text())["plant"] for path in SCHEDULES} <= PLANTS.keys()


# Point 8: a hung broker does not make every check write throttles again.


@pytest.mark.parametrize(("by_what_is_new", "often"), [(True, False), (False, True)])
def test_a_hung_broker_does_not_have_throttles_written_at_every_check(play, monkeypatch, by_what_is_new, often):
    if not by_what_is_new:
        maintain = ThrottleMaintainer.maintain

        def all_again(self, moves, within, rates, alive):
            maintain(self, moves, within, rates, alive)
            if self._lacking(moves, within, rates, alive):
                self.prepare(moves, within, rates, alive)

        monkeypatch.setattr(ThrottleMaintainer, "maintain", all_again)
    slow = replace(SMALL, settings={**SMALL.settings, "throttle": 2 * MB, "give_up_after": 600})
    hung = replace(slow, faults=(Fault(0.0, "broker_hangs", {"broker": 2, "seconds": 150.0}),))
    calm, troubled = (
        sum(request.name.startswith("alter_") for request in play(schedule).cluster.requests)
        for schedule in (slow, hung)
    )
    assert (troubled > calm + 6) is often, (calm, troubled)


# Point 9: by default, the moves of a whole cluster are capped.


def test_of_thirty_thousand_small_moves_a_thousand_begin():
    moves = [Move(TopicPartition("t", number), number % 100, (100 + number % 100,), 1000) for number in range(30_000)]
    assert len(Waves(Pace(), moves).begin()) == MOVES_IN_CLUSTER == 1000


# Point 10: what a poll reads grows with the moves under way, not with the cluster.


def test_polls_describe_as_many_partitions_in_a_large_cluster_as_in_a_small_one(play, monkeypatch):
    described = SimulatedClient.partitions
    read = []

    def counted(self, topics=None):
        found = described(self, topics)
        read.append((topics is None, len(found)))
        return found

    monkeypatch.setattr(SimulatedClient, "partitions", counted)
    others = tuple(TopicShape(f"o{number}", 1, (PartitionShape((1,), MB, 0),) * 20) for number in range(20))
    large = replace(SMALL, shape=replace(SMALL.shape, topics=(*SMALL.shape.topics, *others)))
    counts = {}
    for name, schedule in (("small", SMALL), ("large", large)):
        read.clear()
        seconds = play(schedule).scheduler.now
        counts[name] = max(count for whole, count in read if not whole)
        assert sum(whole for whole, _ in read) <= 2 + seconds / 30
    assert counts["large"] == counts["small"] == 2


# Point 11: a throttle that was raised for a stall goes back when what stalled has ended.


def test_a_throttle_that_was_raised_goes_back(play):
    partitions = (PartitionShape((1, 2, 3), 100 * MB, 0), PartitionShape((1, 2, 3), 20 * MB, 2 * MB))
    schedule = replace(
        SMALL,
        shape=replace(SMALL.shape, topics=(TopicShape("t", 2, partitions),)),
        settings={**SMALL.settings, "throttle_ceiling": 40 * MB, "give_up_after": 600},
        faults=(Fault(2.0, "request_throttle", {"part": 0.1}),),
    )
    rates = [
        changes[4][FOLLOWER_RATE]
        for request in play(schedule).cluster.requests
        if request.name == "alter_broker_configs" and FOLLOWER_RATE in (changes := request.changes).get(4, {})
    ]
    raised = max(rates, key=lambda rate: int(rate or 0))
    assert int(raised) > 10 * MB or len(set(rates)) > 2, rates
    assert rates[-2:] == [str(MB), None], rates


# Point 14: copies that pay back what they fetched at once have not stalled.


@pytest.mark.parametrize(("allowed", "stalls"), [(True, False), (False, True)])
def test_copies_that_rest_because_of_their_throttle_have_not_stalled(play, monkeypatch, allowed, stalls):
    seen = []
    take = Said.on_report

    def noted(self, report):
        seen.extend(report.stalls)
        take(self, report)

    monkeypatch.setattr(Said, "on_report", noted)
    monkeypatch.setattr("simulator.world.SimulatedCluster", lambda **options: SimulatedCluster(bursts=True, **options))
    if not allowed:
        monkeypatch.setattr(stall_remedy, "allowed_rests", lambda *_: {})
    topic = TopicShape("t", 1, (PartitionShape((1,), 5 * MB, 0),) * 10)
    play(
        replace(
            SMALL,
            shape=replace(SMALL.shape, topics=(topic,)),
            plan=tuple(Planned("t", number, (4,)) for number in range(10)),
            settings={"throttle": MB},
            interval=3.0,
        )
    )
    assert bool(seen) is stalls
