"""What candidates do to consumer groups, worked out on Spark: as on one machine, for any number of clusters."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bench.clusters import Parameters, generate
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.assignors import STRATEGIES
from rebalance_lib.execution import Run
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.report import summarize, with_groups
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups
from tests.jobs.planning import plan_on_spark

OTHER, GROWS = "t00000", "t00001"
REQUESTS = {
    "balance": Request(Mode.BALANCE),
    "partitions": Request(Mode.PARTITIONS, topics=(GROWS,), partitions=60),
}


def cluster(seed):
    return generate(Parameters(scenario="skew", partitions=120, brokers=6, seed=seed)).snapshot()


def groups(snapshot, assignors=tuple(STRATEGIES)):
    """A group for each assignor, all of which read one topic, and one that only commits offsets.

    The first member of the sticky one subscribes to another topic as well.
    """
    counts = snapshot.replicas.group_by("topic").aggregate([("partition", "max")]).to_pylist()
    last = {row["topic"]: row["partition_max"] for row in counts}
    members = [{"group": "export", "type": "classic", "state": "Empty"}]
    for assignor in assignors:
        common = {"group": assignor, "type": "classic", "state": "Stable", "assignor": assignor}
        for place in range(3):
            has = {GROWS: [p for p in range(last[GROWS] + 1) if p % 3 == place]}
            if (assignor, place) == ("sticky", 0):
                has[OTHER] = list(range(last[OTHER] + 1))
            assignment = [{"topic": topic, "partitions": listed} for topic, listed in has.items() if listed]
            members.append({**common, "member": f"m{place}", "topics": list(has), "assignment": assignment})
    offsets = [{"group": "export", "topic": GROWS, "partition": last[GROWS], "committed": 1}]
    return Groups(
        pa.Table.from_pylist(members, schema=GROUP_MEMBERS), pa.Table.from_pylist(offsets, schema=GROUP_OFFSETS)
    )


def run_of(directory, snapshot, found=None):
    run = Run(Artifacts.at(directory).uri)
    run.write_snapshot(snapshot)
    run.write_groups(found)
    return run


@pytest.mark.parametrize("name", [pytest.param("balance", marks=pytest.mark.long), "partitions"])
def test_spark_and_one_machine_tell_the_same_of_each_group(name, spark, tmp_path):
    request, snapshot = REQUESTS[name], cluster(3)
    run = run_of(tmp_path, snapshot, groups(snapshot))
    (state,) = plan_on_spark(spark, [run], request)
    assert state.errors == []
    model = ClusterModel.of(snapshot)
    here = with_groups(Choice(model, request, candidates(model, request), {}), groups(snapshot))
    found = (run.artifacts / "plan").read_table("groups.parquet").to_pylist()
    assert found == here.impacts.to_pylist()
    told = {name: one["groups"] for name, one in run.summary()["candidates"].items()}
    assert told == {name: one["groups"] for name, one in summarize(here)["candidates"].items()}
    assert {name: one["digest"] for name, one in run.summary()["candidates"].items()} == {
        one.name: one.plan.digest for one in here.candidates
    }
    if request.mode is Mode.PARTITIONS:
        new_partitions_are_told(found, (run.artifacts / "plan").read_text("review.md"))


def new_partitions_are_told(found, review):
    """Each group rebalances, and has all that there is then."""
    rows = [row for row in found if row["rebalances"]]
    assert {row["assignor"] for row in rows} == set(STRATEGIES)
    for row in rows:
        assert row["partitions_after"] == row["partitions_before"] + 57  # it had 3
        assert sum(share["after"] for share in row["shares"]) == row["partitions_after"]
        assert row["remark"] is None
    assert "**Consumer groups**: of 5, 4 are touched; 4 rebalance" in review
    assert "Records with a key go to other partitions" in review


def cut_short(data):
    return data[: len(data) // 2]


def with_a_bad_page(data):
    """Its footer is whole: only who reads the rows finds out."""
    return data[:4] + bytes(len(data[4:200])) + data[200:]


DAMAGED = {
    "cut": ("group_members.parquet", cut_short),
    "page": ("group_members.parquet", with_a_bad_page),
    "offsets": ("group_offsets.parquet", with_a_bad_page),
}


def test_each_cluster_of_a_fleet_has_its_own_groups_and_is_planned_without_those_that_cannot_be_read(spark, tmp_path):
    snapshot = cluster(3)
    found = {
        "all": groups(snapshot),
        "some": groups(snapshot, ["range", "sticky"]),
        "nobody": Groups(GROUP_MEMBERS.empty_table(), GROUP_OFFSETS.empty_table()),
        "unknown": None,
        **dict.fromkeys(DAMAGED, groups(snapshot)),
    }
    runs = {name: run_of(tmp_path / name, snapshot, own) for name, own in found.items()}
    for name, (file, spoiled) in DAMAGED.items():
        kept = runs[name].artifacts / "snapshot"
        kept.write_bytes(file, spoiled(kept.read_bytes(file)))
    states = plan_on_spark(spark, runs.values(), Request(Mode.LEADERS))
    assert [state.errors for state in states] == [[]] * len(runs)
    told = {name: run.summary()["candidates"]["full"]["groups"] for name, run in runs.items()}
    read = {"all": 5, "some": 3, "nobody": 0, "unknown": None, **dict.fromkeys(DAMAGED)}
    assert {name: one and one["read"] for name, one in told.items()} == read
    assert (told["nobody"]["touched"], told["nobody"]["most"]) == (0, [])
    reviews = {name: (run.artifacts / "plan").read_text("review.md") for name, run in runs.items()}
    assert "Consumer groups" not in reviews["nobody"]
    assert not (runs["unknown"].artifacts / "plan").exists("groups.parquet")
    notes = dict(zip(runs, ("".join(state.notes) for state in states), strict=True))
    for name in ("unknown", *DAMAGED):
        assert "Consumer groups are not known" in reviews[name]
        without = f"{runs[name].uri} is planned without its consumer groups: they cannot be read"
        assert (without in notes[name]) == (name in DAMAGED)
