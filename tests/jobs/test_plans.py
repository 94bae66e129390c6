"""Plans worked out on Spark: the ones that one machine works out, for any number of clusters, and never a wrong one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Run
from rebalance_lib.history import LoadOptions, Statistic, planned_loads
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.jobs.dataflow import plan_runs
from rebalance_lib.jobs.rows import Past
from rebalance_lib.jobs.session import another_session
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.report import write_choice
from rebalance_lib.topology import BrokerSets, TopicPartition
from rebalance_lib.topology.load_facts import LoadFacts
from tests.history.samples import EXAMPLE, READ_EXAMPLE, Row, moment, write
from tests.jobs.planning import plan_on_spark, violations
from tests.object_store import SECRET
from tests.planner.clusters import Host, cluster

LONG = pytest.mark.long  # they differ from the others in what the planner does, or in the rule that is broken
REQUESTS = [
    pytest.param(Request(Mode.BALANCE, byte_budget=20 * 2**30), id="a budget", marks=LONG),
    pytest.param(Request(Mode.BALANCE, shards=3), id="shards"),
    pytest.param(Request(Mode.DRAIN, brokers=(6,), excluded_topics=("t00001",)), id="drain"),
    pytest.param(Request(Mode.LEADERS), id="leaders", marks=LONG),
    pytest.param(Request(Mode.DEMOTE, brokers=(6,)), id="demote", marks=LONG),
    pytest.param(Request(Mode.TOPICS, topics=("t0000*",), excluded_topics=("t00003",)), id="topics", marks=LONG),
    pytest.param(
        Request(Mode.REPLICATION_FACTOR, topics=("t00001",), replication_factor=2), id="replication factor", marks=LONG
    ),
]


def skewed(seed, partitions=240):
    return generate(Parameters(scenario="skew", partitions=partitions, brokers=6, seed=seed)).snapshot()


def run_of(directory, snapshot):
    run = Run((directory if isinstance(directory, Artifacts) else Artifacts.at(directory)).uri)
    run.write_snapshot(snapshot)
    return run


@pytest.mark.parametrize("request_", REQUESTS)
def test_spark_and_one_machine_work_out_the_same_plans(request_, spark, tmp_path):
    snapshot = skewed(3)
    run = run_of(tmp_path, snapshot)
    (state,) = plan_on_spark(spark, [run], Request.from_dict(request_.as_dict()), Pace(throttle=10**6))
    assert state.errors == []
    here = {one.name: one.plan.digest for one in candidates(ClusterModel.of(snapshot), request_)}
    assert {name: one["digest"] for name, one in run.summary()["candidates"].items()} == here
    assert run.plan().digest == next(iter(here.values()))
    assert not run.summary()["rates_known"]
    assert run.summary()["pace"]["throttle"] == 10**6
    if request_.mode is Mode.DRAIN:
        kept = run.summary()["replicas_kept"]["6"]
        assert f"Broker 6 keeps {kept} replicas of excluded topics" in (run.artifacts / "plan").read_text("review.md")


@LONG
def test_log_dirs_are_drained_and_what_stays_in_one_is_found(spark, tmp_path):
    host = Host(disks={"/a": None, "/b": None})
    before = cluster(
        {1: host, 2: replace(host, cordoned=("/a", "/b"))}, {"orders-0": ([1, 2], 5), "orders-1": ([2, 1], 5)}
    )
    run, request = run_of(tmp_path, before.snapshot()), Request(Mode.DRAIN_LOG_DIRS, log_dirs=("1:/a",))
    (state,) = plan_on_spark(spark, [run], request)
    assert state.errors == []
    assert before.after(run.plan()).bytes_by_disk() == {(1, "/b"): 10, (2, "/a"): 10}
    other = Request(Mode.DRAIN_LOG_DIRS, log_dirs=("1:/b",))
    found = violations(spark, {0: Artifacts.at(tmp_path) / "plan"}, other)
    assert any("drained-log-dirs: orders-0: a log dir of broker 1" in line for line in found[0])


def test_everything_of_a_job_may_be_in_an_object_store(spark, object_store, capfd):
    bucket = object_store.bucket()
    run, history = in_a_store(bucket)
    assert job.main(["--run", run.uri, "--mode", "drain", "--brokers", "6", "--history", history.uri]) == 0
    is_planned_in_a_store(run, Request(Mode.DRAIN, brokers=(6,)))
    assert SECRET not in "".join(capfd.readouterr())


def in_a_store(bucket):
    """A run and a history of its cluster in a bucket."""
    run, history, snapshot = run_of(bucket / "runs" / "one", skewed(3)), bucket / "history", skewed(3)
    leaders = snapshot.replicas.filter(snapshot.replicas["leader"]).select(["topic", "partition", "broker"]).to_pylist()
    for at, more in ((-3600, 0), (0, 7200)):  # what came in the hour before the snapshot
        rows = [Row(*leader.values(), True, 10_000, 0, 10_000 + more) for leader in leaders]
        write(history, snapshot.cluster_id, {at: rows})
    return run, history


def is_planned_in_a_store(run, request):
    """The history was read, the plans are there, and nothing else is."""
    assert run.summary()["rates_known"]
    here = candidates(ClusterModel.of(skewed(3)), request)
    assert set(run.summary()["candidates"]) == {one.name for one in here}
    assert run.plan().digest in (run.artifacts / "plan").read_text("review.md")
    assert run.artifacts.names() == ["plan", "snapshot"], "what it needed on its way is gone"


def test_a_fleet_is_planned_at_once_and_each_cluster_stands_alone(spark, tmp_path):
    runs = [run_of(tmp_path / str(seed), skewed(seed, 60 * seed)) for seed in (1, 2, 3)]
    states = [job.run_state(number, run.uri, Request(Mode.DRAIN, brokers=(6,))) for number, run in enumerate(runs)]
    states[1].task = replace(states[1].task, request=Request(Mode.DRAIN, brokers=(6,), byte_budget=1))
    plan_runs(another_session(spark), states, lambda _line: None)
    assert "must move, but the byte budget is 1" in states[1].errors[0]
    assert [run.artifacts.exists("plan") for run in runs] == [True, False, True]


def test_of_a_fleet_the_clusters_that_can_be_planned_are_and_the_others_are_named(spark, tmp_path, capsys):
    good, damaged = (run_of(tmp_path / name, skewed(1, 60)) for name in ("good", "damaged"))
    other = run_of(tmp_path / "other", small())
    taken = damaged.artifacts / "snapshot"
    table = taken.read_table("brokers.parquet").replace_schema_metadata({b"cluster_id": b"\xff"})
    taken.write_table("brokers.parquet", table)
    runs = ["--run", "nope://run", *(word for run in (other, damaged, good) for word in ("--run", run.uri))]
    assert job.main([*runs, "--mode", "drain", "--brokers", "6"]) == 1
    assert [run.artifacts.exists("plan") for run in (good, damaged, other)] == [True, False, False]
    said = capsys.readouterr().err
    assert f"compute_placement: {other.uri}: unknown brokers [6]" in said
    assert f"compute_placement: {damaged.uri}: UnicodeDecodeError: " in said
    assert "compute_placement: nope://run: " in said
    assert "3 of 4 runs failed" in said


def test_no_run_sees_history_from_after_its_snapshot(spark, tmp_path):
    history = Artifacts.at(tmp_path / "history")
    write(history, "c", EXAMPLE)
    moments = (moment(150).isoformat(), moment(450).isoformat(), "no time")
    runs = [
        run_of(tmp_path / str(number), replace(small(), cluster_id="c", taken_at=taken_at))
        for number, taken_at in enumerate(moments)
    ]
    states = plan_on_spark(spark, runs, Request(Mode.BALANCE), past=Past(history.uri, LoadOptions()))
    early, late = (loads_of(run) for run in runs[:2])
    assert early["write_rate"].to_pylist() == [10.0]
    assert late["write_rate"].to_pylist() == [pytest.approx(5.667, abs=0.001)]
    assert "'no time', which is no time" in states[2].errors[0]
    for run in runs[:2]:
        assert planned_loads(history, "c", run.snapshot().taken_at) == loads_of(run)


def loads_of(run):
    return (run.artifacts / "plan").read_table("rates.parquet")


@pytest.mark.parametrize(
    "options",
    [
        LoadOptions(6.0, Statistic.P95, 7.0),
        pytest.param(LoadOptions(), marks=LONG),
        pytest.param(LoadOptions(statistic=Statistic.LAST), marks=LONG),
    ],
)
def test_spark_gives_a_run_the_loads_that_one_process_gives(options, spark, tmp_path):
    history = Artifacts.at(tmp_path / "history")
    write(history, "c", {at: [*rows, *EXAMPLE[at]] for at, rows in READ_ROWS.items()})
    run = run_of(tmp_path / "run", replace(small(), cluster_id="c", taken_at=moment(300).isoformat()))
    plan_on_spark(spark, [run], Request(Mode.BALANCE), past=Past(history.uri, options))
    found = loads_of(run)
    here = planned_loads(history, "c", run.snapshot().taken_at, options)
    assert found.equals(here)
    assert LoadFacts.of(found) == LoadFacts.of(here)
    assert LoadFacts.of(found).groups_reset == ("billing",)


READ_ROWS = {at: [row._replace(topic="read") for row in rows] for at, rows in READ_EXAMPLE.items()}


@pytest.mark.parametrize("words", [["--horizon", "nan"], ["--window", "0"]])
def test_loads_that_make_no_sense_cost_no_spark(tmp_path, capsys, words):
    run = run_of(tmp_path, small())
    assert job.main(["--run", run.uri, "--mode", "balance", "--history", "file:///nowhere", *words]) == 1
    assert "compute_placement: the " in capsys.readouterr().err


def small():
    return generate(Parameters(scenario="skew", partitions=12, brokers=3, seed=1)).snapshot()


@LONG
def test_a_drain_may_crowd_a_rack_if_the_brokers_left_ask_for_it(spark, tmp_path):
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    run = run_of(tmp_path, cluster(racks, {"t-0": ([1, 2, 3, 4], 10)}).snapshot())
    (state,) = plan_on_spark(spark, [run], Request(Mode.DRAIN, brokers=(1,)))
    assert state.errors == []
    assert set(run.plan().as_dict()[TopicPartition("t", 0)]) == {2, 3, 4, 5}


@LONG
def test_partitions_that_striping_leaves_for_their_racks_are_counted(spark, tmp_path):
    racks = {id_: "a" if id_ < 6 else "b" for id_ in range(1, 8)}
    snapshot = cluster(racks, {f"t-{p}": ([1, 2, 6, 7], 10) for p in range(14)}).snapshot()
    run, request = run_of(tmp_path, snapshot), Request(Mode.KAFKA)
    (state,) = plan_on_spark(spark, [run], request)
    assert state.errors == []
    (here,) = candidates(ClusterModel.of(snapshot), request)
    assert run.summary()["candidates"]["full"]["figures"]["partitions_kept"] == here.figures.partitions_kept > 0
    assert "left alone: Kafka's striping" in (run.artifacts / "plan").read_text("review.md")


@LONG
def test_broker_sets_are_kept_and_what_leaves_one_is_found(spark, tmp_path):
    sets = {"x": {"brokers": [1, 2, 3], "topics": ["t0000[13]"]}, "y": [4, 5, 6]}
    snapshot = BrokerSets.from_dict(sets).apply(skewed(3, 60))
    model = ClusterModel.of(snapshot)
    run, request = run_of(tmp_path / "right", snapshot), Request(Mode.BALANCE, shards=2)
    (state,) = plan_on_spark(spark, [run], request)
    assert state.errors == []
    assert run.plan().digest == candidates(model, request)[0].plan.digest
    elsewhere = replace(model, sets=None)
    one = run_of(tmp_path / "wrong", snapshot)
    staging = one.artifacts / "staged"
    write_choice(staging, Choice(elsewhere, request, candidates(elsewhere, request)[:1], {}))
    assert "full: broker-sets: " in found(spark, staging, request)


@cache
def good_choice(request):
    """A cluster, and the first of the plans for it."""
    snapshot = skewed(5)
    model = ClusterModel.of(snapshot)
    return snapshot, Choice(model, request, candidates(model, request)[:1], {})


def written(directory, request):
    """A good plan, written where the checks look for it."""
    snapshot, choice = good_choice(request)
    run = run_of(directory, snapshot)
    staging = run.artifacts / "staged"
    write_choice(staging, choice)
    return staging


def found(spark, one, request):
    return "\n".join(violations(spark, {0: one}, request).get(0, []))


def entries(one):
    text = one.read_text("candidates/full/plan.json")
    return json.loads(text)["partitions"]


def rewrite(one, listed):
    body = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in listed)
    one.write_text("candidates/full/plan.json", f'{{"version":1,"partitions":[\n{body}\n]}}\n')


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


@pytest.mark.parametrize("kind", ["file", pytest.param("s3", marks=pytest.mark.long)])
def test_a_written_plan_that_breaks_a_rule_is_found_out(kind, spark, tmp_path, object_store):
    request = Request(Mode.BALANCE)
    place = Artifacts.at(tmp_path) if kind == "file" else object_store.bucket()
    several = {number: written(place / str(number), request) for number in range(len(BROKEN) + 2)}
    for number, breaks in enumerate(BROKEN.values()):
        listed = entries(several[number])
        breaks(listed)
        rewrite(several[number], listed)
    no_plan, untouched, in_shards = range(len(BROKEN), len(BROKEN) + 3)
    text = several[no_plan].read_text("candidates/full/plan.json")
    several[no_plan].write_text("candidates/full/plan.json", text.replace('"partition":', '"part":', 1))
    several[in_shards] = several[list(BROKEN).index("rack-spread")]
    found = violations(spark, several, request, {in_shards: 2})
    assert found.pop(in_shards) == found[list(BROKEN).index("rack-spread")]
    said = {number: "\n".join(lines) for number, lines in found.items()}
    assert sorted(said) == [*range(len(BROKEN)), no_plan]
    assert untouched not in said
    for number, rule in enumerate(BROKEN):
        assert f"full: {rule}: " in said[number]
        assert "full: digest: " in said[number], "a file that was changed has another digest"
    assert "full: fullest-rack: " in said[list(BROKEN).index("rack-spread")]
    assert "full: readable: the plan file cannot be read: " in said[no_plan]


@LONG
def test_asks_that_a_plan_does_not_meet_are_found_out(spark, tmp_path):
    one = written(tmp_path / "balance", Request(Mode.BALANCE))
    asked = Request(Mode.BALANCE, byte_budget=1, excluded_brokers=(1, 2), excluded_topics=("t0000*",))
    said = found(spark, one, asked)
    for rule in ("budgets", "excluded-brokers", "excluded-leaders", "chosen-topics"):
        assert f"full: {rule}: " in said
    assert "full: leaders-only: " in found(spark, one, Request(Mode.LEADERS))
    drain = Request(Mode.DRAIN, brokers=(6,))
    one = written(tmp_path / "drain", drain)
    (first, *_) = entries(one)
    first["replicas"][0] = 6
    rewrite(one, [first])
    said = found(spark, one, drain)
    assert "full: drained: " in said
    assert "full: nothing-forgotten: " in said
