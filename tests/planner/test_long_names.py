"""Topic names of 249 characters, so many that their text is more than Arrow counts in 32 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.report import publish_choice
from rebalance_lib.topology import REPLICAS
from rebalance_lib.topology.texts import MOST_BYTES, decode_texts, encode_texts
from tests.planner.clusters import cluster

LONGEST = 249


def long_names(partitions, copies):
    """Topics of a thousand partitions, each with replicas on all brokers, and all of them led by the first."""
    rows = partitions * copies
    partition = np.repeat(np.arange(partitions), copies)
    position = np.tile(np.arange(copies), partitions)
    topics = pa.array([f"t{number:05}".ljust(LONGEST, "x") for number in range(-(-partitions // 1000))], pa.string())
    columns = {
        "topic": decode_texts((partition // 1000).astype(np.int32), topics),
        "partition": (partition % 1000).astype(np.int32),
        "position": position.astype(np.int16),
        "broker": position.astype(np.int32),
        "leader": position == 0,
        "in_sync": np.ones(rows, np.bool_),
        "size_bytes": np.ones(rows, np.int64),
    }
    flags = dict.fromkeys(("adding", "removing", "internal"), np.zeros(rows, np.bool_))
    known = {**columns, **flags}
    arrays = [known.get(field.name, pa.nulls(rows, field.type)) for field in REPLICAS]
    snapshot = cluster(range(copies)).snapshot()
    return replace(snapshot, replicas=pa.table(dict(zip(REPLICAS.names, arrays, strict=True)), schema=REPLICAS))


@pytest.mark.parametrize(
    ("partitions", "copies"), [(2000, 3), pytest.param(150_000, 60, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_cluster_is_planned_checked_and_written_whatever_the_length_of_its_names(partitions, copies, tmp_path):
    snapshot = long_names(partitions, copies)
    assert (snapshot.replicas["topic"].nbytes > MOST_BYTES) == (partitions > 2000)
    model, request = ClusterModel.of(snapshot), Request(Mode.LEADERS, goals=("leaders",))
    offered = candidates(model, request)
    check_candidates(model, request, offered)
    plan = offered[0].plan
    assert len(plan) > partitions // 2
    out = Artifacts.at(tmp_path / "plan")
    publish_choice(out, Choice(model, request, offered, {}), Pace())
    assert len(out.read_bytes("plan.json")) > len(plan) * LONGEST


def test_names_are_gathered_in_chunks_that_arrow_can_count():
    texts = pa.array(["a" * LONGEST, "b" * LONGEST], pa.string())
    codes = np.array([0, 1, 1, 0, 1], np.int32)
    found = decode_texts(codes, texts, most_bytes=2 * LONGEST)
    assert [len(chunk) for chunk in found.chunks] == [2, 2, 1]
    again, names = encode_texts(found)
    assert names.take(pa.array(again)).to_pylist() == found.to_pylist()
