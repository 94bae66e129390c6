"""Plans worked out on Spark: the ones that one machine works out, for any number of clusters, and never a wrong one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Run
from rebalance_lib.history import write_rates
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.jobs.checks import Written, load_snapshots, violations
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request, candidates
from rebalance_lib.report import write_choice
from rebalance_lib.topology import TopicPartition
from tests.history.samples import EXAMPLE, moment, write
from tests.planner.clusters import cluster

REQUESTS = {
    "balance": Request(Mode.BALANCE),
    "a budget": Request(Mode.BALANCE, byte_budget=20 * 2**30),
    "shards": Request(Mode.BALANCE, shards=3),
    "drain": Request(Mode.DRAIN, brokers=(6,)),
    "leaders": Request(Mode.LEADERS),
    "topics": Request(Mode.TOPICS, topics=("t0000*",), excluded_topics=("t00003",)),
    "replication factor": Request(Mode.REPLICATION_FACTOR, topics=("t00001",), replication_factor=2),
    "partitions": Request(Mode.PARTITIONS, topics=("t00001",), partitions=300),
}


def skewed(seed, partitions=240):
    return generate(Parameters(scenario="skew", partitions=partitions, brokers=6, seed=seed)).snapshot()


def run_of(directory, snapshot):
    run = Run((directory if isinstance(directory, Artifacts) else Artifacts.at(directory)).uri)
    run.write_snapshot(snapshot)
    return run


@pytest.mark.parametrize("name", REQUESTS)
def test_spark_and_one_machine_work_out_the_same_plans(name, spark, tmp_path):
    request, snapshot = REQUESTS[name], skewed(3)
    run = run_of(tmp_path, snapshot)
    state = job.prepare(run.uri, Request.from_dict(request.as_dict()), Pace(throttle=10**6))
    job.compute(spark, [state])
    assert state.errors == ()
    here = {one.name: one.plan.digest for one in candidates(ClusterModel.of(snapshot), request)}
    assert {name: one["digest"] for name, one in run.summary()["candidates"].items()} == here
    assert run.plan().digest == next(iter(here.values()))
    assert not run.summary()["rates_known"]
    assert run.summary()["pace"]["throttle"] == 10**6


def test_a_fleet_is_planned_at_once_and_each_cluster_stands_alone(spark, tmp_path):
    runs = [run_of(tmp_path / str(seed), skewed(seed, 60 * seed)) for seed in (1, 2, 3)]
    states = [job.prepare(run.uri, Request(Mode.DRAIN, brokers=(6,))) for run in runs]
    states[1].task = replace(states[1].task, request=Request(Mode.DRAIN, brokers=(6,), byte_budget=1))
    job.compute(spark, states)
    assert "must move, but the byte budget is 1" in states[1].errors[0]
    assert [run.artifacts.exists("plan") for run in runs] == [True, False, True]


def test_of_a_fleet_the_clusters_that_can_be_planned_are(spark, tmp_path, capsys):
    good, other = run_of(tmp_path / "good", skewed(1, 60)), run_of(tmp_path / "other", small())
    assert job.main(["--run", other.uri, "--run", good.uri, "--mode", "drain", "--brokers", "6"]) == 1
    assert good.artifacts.exists("plan")
    assert not other.artifacts.exists("plan")
    said = capsys.readouterr().err
    assert f"{other.uri}: unknown brokers [6]" in said
    assert "1 of 2 runs failed" in said


def test_of_a_fleet_a_damaged_run_is_named_and_the_others_are_planned(spark, tmp_path, capsys):
    good, damaged = (run_of(tmp_path / name, skewed(1, 60)) for name in ("good", "damaged"))
    taken = damaged.artifacts / "snapshot"
    table = taken.read_table("brokers.parquet").replace_schema_metadata({b"cluster_id": b"\xff"})
    taken.write_table("brokers.parquet", table)
    assert job.main(["--run", damaged.uri, "--run", good.uri, "--mode", "leaders"]) == 1
    assert (good.artifacts.exists("plan"), damaged.artifacts.exists("plan")) == (True, False)
    said = capsys.readouterr().err
    assert f"compute_placement: {damaged.uri}: it cannot be read: UnicodeDecodeError: " in said
    assert "1 of 2 runs failed" in said


def test_no_run_sees_history_from_after_its_snapshot(spark, tmp_path):
    history = Artifacts.at(tmp_path / "history")
    write(history, "c", EXAMPLE)
    moments = (moment(150).isoformat(), moment(450).isoformat(), "no time")
    runs = [
        run_of(tmp_path / str(number), replace(small(), cluster_id="c", taken_at=taken_at))
        for number, taken_at in enumerate(moments)
    ]
    states = [job.prepare(run.uri, Request(Mode.BALANCE)) for run in runs]
    job.write_rates(spark, states, history.uri, 24.0)
    early, late = (Artifacts(state.task.scratch).read_table("rates.parquet") for state in states[:2])
    assert early["write_rate"].to_pylist() == [10.0]
    assert late["write_rate"].to_pylist() == [pytest.approx(5.667, abs=0.001)]
    assert "'no time', which is no time" in states[2].errors[0]
    for run, state in zip(runs[:2], states, strict=False):
        here = write_rates(history, "c", run.snapshot().taken_at, 24.0)
        assert here == Artifacts(state.task.scratch).read_table("rates.parquet")


def small():
    return generate(Parameters(scenario="skew", partitions=12, brokers=3, seed=1)).snapshot()


def test_a_drain_may_crowd_a_rack_if_the_brokers_left_ask_for_it(spark, tmp_path):
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    run = run_of(tmp_path, cluster(racks, {"t-0": ([1, 2, 3, 4], 10)}).snapshot())
    state = job.prepare(run.uri, Request(Mode.DRAIN, brokers=(1,)))
    job.compute(spark, [state])
    assert state.errors == ()
    assert set(run.plan().as_dict()[TopicPartition("t", 0)]) == {2, 3, 4, 5}


def test_a_drain_of_some_topics_leaves_the_others(spark, tmp_path):
    snapshot = skewed(3)
    request = Request(Mode.DRAIN, brokers=(6,), excluded_topics=("t00001",))
    run = run_of(tmp_path, snapshot)
    state = job.prepare(run.uri, request)
    job.compute(spark, [state])
    assert state.errors == ()
    (here,) = candidates(ClusterModel.of(snapshot), request)
    assert run.plan().digest == here.plan.digest
    kept = run.summary()["replicas_kept"]["6"]
    assert f"Broker 6 keeps {kept} replicas of excluded topics" in (run.artifacts / "plan").read_text("review.md")
    run.artifacts.remove()
    one = written(tmp_path, request)
    rewrite(one, entries(one)[:1])
    assert "full: nothing-forgotten: " in found(spark, one, request)


def test_partitions_that_striping_leaves_for_their_racks_are_counted(spark, tmp_path):
    racks = {id_: "a" if id_ < 6 else "b" for id_ in range(1, 8)}
    snapshot = cluster(racks, {f"t-{p}": ([1, 2, 6, 7], 10) for p in range(14)}).snapshot()
    run, request = run_of(tmp_path, snapshot), Request(Mode.KAFKA)
    state = job.prepare(run.uri, request)
    job.compute(spark, [state])
    assert state.errors == ()
    (here,) = candidates(ClusterModel.of(snapshot), request)
    assert run.summary()["candidates"]["full"]["figures"]["partitions_kept"] == here.figures.partitions_kept > 0
    assert "left alone: Kafka's striping" in (run.artifacts / "plan").read_text("review.md")


def written(directory, request):
    """A good choice of plans, written where the checks look for it."""
    snapshot = skewed(5)
    run = run_of(directory, snapshot)
    model = ClusterModel.of(snapshot)
    staging = run.artifacts / "staged"
    write_choice(staging, Choice(model, request, candidates(model, request), {}))
    return Written(staging)


def found(spark, one, request):
    load_snapshots(spark, {0: Artifacts(one.staging.uri.removesuffix("/staged"))}, request)
    return "\n".join(violations(spark, {0: one}, request).get(0, []))


def entries(one):
    text = one.staging.read_text("candidates/full/plan.json")
    return json.loads(text)["partitions"]


def rewrite(one, listed):
    body = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in listed)
    one.staging.write_text("candidates/full/plan.json", f'{{"version":1,"partitions":[\n{body}\n]}}\n')


def twice_on_one_broker(listed):
    listed[0]["replicas"][1] = listed[0]["replicas"][0]


def unknown_broker(listed):
    listed[0]["replicas"][0] = 77


def unknown_partition(listed):
    listed[0]["partition"] = 100_000


def fewer_replicas(listed):
    listed[0]["replicas"].pop()


def one_rack(listed):
    listed[0]["replicas"] = [1, 4, 2]


def two_entries(listed):
    listed.append(listed[0])


BROKEN = {
    "distinct-brokers": twice_on_one_broker,
    "allowed-brokers": unknown_broker,
    "known-partitions": unknown_partition,
    "replication-factor": fewer_replicas,
    "rack-spread": one_rack,
    "one-entry": two_entries,
}


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_written_plan_that_breaks_a_rule_is_found_out(kind, spark, tmp_path, object_store):
    request = Request(Mode.BALANCE)
    place = Artifacts.at(tmp_path) if kind == "file" else object_store.bucket()
    several = {number: written(place / str(number), request) for number in range(len(BROKEN) + 1)}
    for number, breaks in enumerate(BROKEN.values()):
        listed = entries(several[number])
        breaks(listed)
        rewrite(several[number], listed)
    load_snapshots(spark, {number: place / str(number) for number in several}, request)
    said = {number: "\n".join(lines) for number, lines in violations(spark, several, request).items()}
    assert sorted(said) == list(range(len(BROKEN))), "the last one was left alone"
    for number, rule in enumerate(BROKEN):
        assert f"full: {rule}: " in said[number]
        assert "full: digest: " in said[number], "a file that was changed has another digest"
    assert "full: fullest-rack: " in said[list(BROKEN).index("rack-spread")]


def test_a_file_that_is_no_plan_is_found_out(spark, tmp_path):
    one = written(tmp_path, Request(Mode.BALANCE))
    text = one.staging.read_text("candidates/full/plan.json")
    one.staging.write_text("candidates/full/plan.json", text.replace('"partition":', '"part":', 1))
    assert "full: readable: the plan file cannot be read: " in found(spark, one, Request(Mode.BALANCE))


def test_asks_that_a_plan_does_not_meet_are_found_out(spark, tmp_path):
    request = Request(Mode.BALANCE)
    one = written(tmp_path, request)
    balanced = replace(request, byte_budget=1, excluded_brokers=(1, 2), excluded_topics=("t0000*",))
    said = found(spark, one, balanced)
    for rule in ("budgets", "excluded-brokers", "excluded-leaders", "chosen-topics"):
        assert f"full: {rule}: " in said
    assert "full: drained: " in found(spark, one, Request(Mode.DRAIN, brokers=(6,)))
    assert "full: leaders-only: " in found(spark, one, Request(Mode.LEADERS))
