"""The planning job on Spark: Kafka's own striping, the same plan every time, nothing published that breaks a rule."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Run
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.placement import assign_replicas
from rebalance_lib.plan import current_assignment
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.topology import Broker, TopicPartition
from tests.topology.test_snapshot import snapshot_of

pytestmark = pytest.mark.usefixtures("spark")

BROKERS = [(1, "a", True), (2, "b", True), (3, "a", True), (4, "b", False)]
SNAPSHOT = snapshot_of(
    BROKERS,
    [
        (topic, partition, position, broker, position == 0, False, 100)
        for topic in ("orders", "payments")
        for partition in range(6)
        for position, broker in enumerate((1, 2))
    ],
)


@pytest.fixture
def run(tmp_path):
    run = Run(Artifacts.at(tmp_path / "a dir with ü and %20").uri)
    run.write_snapshot(SNAPSHOT)
    return run


def plan(run, *arguments):
    assert job.main(["--run", run.uri, "--mode", "kafka", *arguments]) == 0
    return run.plan()


def refusal(run, capsys, *arguments, mode=("--mode", "kafka")):
    assert job.main(["--run", run.uri, *mode, *arguments]) == 1
    assert not run.artifacts.exists("plan")
    return capsys.readouterr().err


def test_the_plan_is_kafkas_striping_and_that_of_one_machine_and_empty_where_all_is_as_planned(run, tmp_path):
    as_planned = Run((tmp_path / "as-planned").as_uri())
    as_planned.write_snapshot(snapshot_of([(1, None, True)], [("t", 0, 0, 1, True, False, 1)]))
    first = plan(run, "--seed", "7", "--run", as_planned.uri)
    (here,) = candidates(ClusterModel.of(SNAPSHOT), Request(Mode.KAFKA, seed=7))
    assert first.digest == here.plan.digest
    assert len(as_planned.plan()) == 0
    assert not any(4 in replicas for replicas in first.as_dict().values())
    placed = {**current_assignment(SNAPSHOT).as_dict(), **first.as_dict()}
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3, "a")]
    stripes = [
        [
            tuple(replicas)
            for replicas in assign_replicas(brokers, 6, 2, start_index=start, replica_shift=shift).values()
        ]
        for start in range(3)
        for shift in range(3)
    ]
    for topic in ("orders", "payments"):
        assert [placed[TopicPartition(topic, p)] for p in range(6)] in stripes


def test_topics_and_brokers_can_be_named(run):
    only = plan(run, "--topics", "orders", "--brokers", "2,3")
    assert {tp.topic for tp in only.as_dict()} == {"orders"}
    assert {broker for replicas in only.as_dict().values() for broker in replicas} == {2, 3}
    assert run.summary()["digest"] == only.digest
    assert only.digest in (run.artifacts / "plan").read_text("review.md")


def test_brokers_that_would_put_all_replicas_in_one_rack_are_refused(run, capsys):
    assert "would be in fewer racks than now" in refusal(run, capsys, "--brokers", "1,3")


def test_unknown_topics_are_named(run, capsys):
    assert "no topic is called 'nope'" in refusal(run, capsys, "--topics", "orders,nope")


def test_dead_and_unknown_brokers_are_named(run, capsys):
    assert "unknown brokers [9]" in refusal(run, capsys, "--brokers", "1,4,9")
    assert "brokers [4] are down" in refusal(run, capsys, "--brokers", "1,4")


def test_a_topic_under_reassignment_is_named(tmp_path, capsys):
    run = Run(tmp_path.as_uri())
    rows = [("t", 0, 0, 1, True, False, 1), ("t", 0, 1, 2, False, True, None)]
    run.write_snapshot(snapshot_of([(1, None, True), (2, None, True)], rows))
    assert "t-0 are being reassigned now" in refusal(run, capsys)


def test_a_missing_snapshot_is_named(tmp_path, capsys):
    run = Run((tmp_path / "nothing").as_uri())
    assert "brokers.parquet is missing" in refusal(run, capsys)


def test_what_is_no_request_is_refused(run, capsys):
    assert "a request has no field 'modes'" in refusal(run, capsys, "--request", '{"modes": "balance"}', mode=())
    assert "--request says it all" in refusal(run, capsys, "--request", '{"mode": "balance"}')


def test_without_a_mode_nothing_is_planned(run, capsys):
    message = "it is not said what to plan: give --mode, one of balance, expand, drain, "
    assert message in refusal(run, capsys, "--topics", "orders", mode=())
    assert "the mode of a request is None: give one of" in refusal(run, capsys, "--request", "{}", mode=())


def test_what_is_no_pace_is_refused(run, capsys):
    assert "a pace has no field 'speed'" in refusal(run, capsys, "--pace", '{"speed": 1}')
    assert "throttle is 0" in refusal(run, capsys, "--pace", '{"throttle": 0}')
