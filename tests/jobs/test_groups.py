"""What candidates do to consumer groups, worked out on Spark: as on one machine, for any number of clusters."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Run
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request, candidates
from rebalance_lib.report import summarize, with_groups
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups

REQUESTS = {
    "balance": Request(Mode.BALANCE),
    "partitions": Request(Mode.PARTITIONS, topics=("t00001",), partitions=60),
}


def cluster(seed):
    return generate(Parameters(scenario="skew", partitions=120, brokers=6, seed=seed)).snapshot()


def groups(snapshot, number=3):
    """Groups that read one topic each, and one that only commits offsets."""
    counts = snapshot.replicas.group_by("topic").aggregate([("partition", "max")]).sort_by("topic").to_pylist()
    members, offsets = [], []
    for n, row in enumerate(counts[:number]):
        topic, last = row["topic"], row["partition_max"]
        for place, assignor in enumerate(("range", "sticky")):
            has = [p for p in range(last + 1) if p % 2 == place]
            members.append(
                {
                    "group": f"g{n}",
                    "type": "classic",
                    "state": "Stable",
                    "assignor": assignor,
                    "member": f"m{place}",
                    "topics": [topic],
                    "assignment": [{"topic": topic, "partitions": has}] if has else [],
                }
            )
        offsets.append({"group": "export", "topic": topic, "partition": last, "committed": 1})
    members.append({"group": "export", "type": "classic", "state": "Empty"})
    return Groups(
        pa.Table.from_pylist(members, schema=GROUP_MEMBERS), pa.Table.from_pylist(offsets, schema=GROUP_OFFSETS)
    )


def run_of(directory, snapshot, found=None):
    run = Run(Artifacts.at(directory).uri)
    run.write_snapshot(snapshot)
    run.write_groups(found)
    return run


@pytest.mark.parametrize("name", REQUESTS)
def test_spark_and_one_machine_tell_the_same_of_each_group(name, spark, tmp_path):
    request, snapshot = REQUESTS[name], cluster(3)
    run = run_of(tmp_path, snapshot, groups(snapshot))
    state = job.prepare(run.uri, request)
    job.compute(spark, [state])
    assert state.errors == ()
    model = ClusterModel.of(snapshot)
    here = with_groups(Choice(model, request, candidates(model, request), {}), groups(snapshot))
    assert (run.artifacts / "plan").read_table("groups.parquet").to_pylist() == here.impacts.to_pylist()
    told = {name: one["groups"] for name, one in run.summary()["candidates"].items()}
    assert told == {name: one["groups"] for name, one in summarize(here)["candidates"].items()}


def test_new_partitions_are_told_in_the_review_with_all_that_a_group_has_then(spark, tmp_path):
    snapshot = cluster(3)
    run = run_of(tmp_path, snapshot, groups(snapshot))
    state = job.prepare(run.uri, REQUESTS["partitions"])
    job.compute(spark, [state])
    (row,) = [r for r in (run.artifacts / "plan").read_table("groups.parquet").to_pylist() if r["rebalances"]]
    assert row["partitions_after"] == 60
    assert sum(share["after"] for share in row["shares"]) == 60
    review = (run.artifacts / "plan").read_text("review.md")
    assert "**Consumer groups**: of 4, 1 is touched; 1 rebalances" in review
    assert "Records with a key go to other partitions" in review


def test_a_cluster_without_groups_has_none_that_are_touched(spark, tmp_path):
    nobody = Groups(GROUP_MEMBERS.empty_table(), GROUP_OFFSETS.empty_table())
    run = run_of(tmp_path, cluster(1), nobody)
    job.compute(spark, [job.prepare(run.uri, Request(Mode.BALANCE))])
    told = run.summary()["candidates"]["full"]["groups"]
    assert (told["read"], told["touched"], told["most"]) == (0, 0, [])
    assert "Consumer groups" not in (run.artifacts / "plan").read_text("review.md")


def test_each_cluster_of_a_fleet_has_its_own_groups_and_one_without_says_so(spark, tmp_path):
    snapshots = [cluster(seed) for seed in (1, 2, 3)]
    found = [groups(snapshots[0], 1), None, groups(snapshots[2], 3)]
    runs = [run_of(tmp_path / str(n), *both) for n, both in enumerate(zip(snapshots, found, strict=True))]
    states = [job.prepare(run.uri, Request(Mode.BALANCE)) for run in runs]
    job.compute(spark, states)
    read = [run.summary()["candidates"]["full"]["groups"] for run in runs]
    assert [one and one["read"] for one in read] == [2, None, 4]
    assert not (runs[1].artifacts / "plan").exists("groups.parquet")
    assert "Consumer groups are not known" in (runs[1].artifacts / "plan").read_text("review.md")
