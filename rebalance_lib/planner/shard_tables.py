"""Shards of a cluster as tables: what tasks that know nothing of one another are given, and what they hand on.

    stage    by                what comes in                                         what goes out
    1        cluster, shard    REPLICAS rows of the shard, BROKERS, loads            `totals_of`: TOTALS rows
    2        cluster           TOTALS rows of all shards                             `summed`, or SQL: sum by the keys
    3        cluster, shard    as in 1, and the cluster's TOTALS                     `shard_tables`: ShardTables
    4        cluster           REPLICAS rows and loads of the sample, BROKERS,       `joined`: model, scope, candidates
                               SHARD_ROWS and rests of all shards, TOTALS

A shard writes the entries of partitions outside of its sample itself, and the last stage those of the sample.

Rows of a shard must be sorted as those of a snapshot are: by topic, partition and position. Names of topics are looked
at nowhere but in the shard that has them: a request that names a topic which is nowhere fails in stage 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, find_sorted, partition_keys
from rebalance_lib.planner.broker_sums import FACTS, KEYS, SUMS, TOTALS, BrokerSums, facts_of, summed
from rebalance_lib.planner.candidates import Candidate, undominated
from rebalance_lib.planner.model import ClusterModel
from rebalance_lib.planner.names import FULL
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.rest import Rest
from rebalance_lib.planner.scope import Scope
from rebalance_lib.planner.shard_join import join_shards
from rebalance_lib.planner.shards import parts_of, plan_shard, rest_of, shard_of
from rebalance_lib.planner.workspace import Layout
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.request import Request
    from rebalance_lib.topology import Snapshot

__all__ = [
    "KEYS",
    "NOW",
    "SHARD_ROWS",
    "SUMS",
    "TOTALS",
    "Joined",
    "ShardInput",
    "ShardTables",
    "joined",
    "shard_of",
    "shard_tables",
    "summed",
    "totals_of",
]

SHARD_ROWS = pa.schema(
    [
        pa.field("candidate", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("brokers", pa.list_(pa.int32()), nullable=False),  # ids, the leader first
        pa.field("log_dirs", pa.list_(pa.string()), nullable=False),  # paths; null where it is not known
    ]
)
"""Where a candidate puts the replicas of a partition; only of partitions that it changes."""


NOW = "now"  # beside the names of candidates: the cluster as it is


@dataclass(frozen=True, eq=False)
class ShardInput:
    """Some partitions of a cluster: all its brokers, the replicas of these partitions alone, and their loads."""

    snapshot: Snapshot  # replicas sorted by topic, partition and position
    loads: pa.Table | None = None  # see `ClusterModel.with_loads`; None if nothing is known


@dataclass(frozen=True, eq=False)
class ShardTables:
    """What a shard hands on, and what it has to write of its other partitions."""

    sample: pa.Table  # topic, partition: whose REPLICAS rows and loads the last stage needs; sorted as the shard's rows
    placements: pa.Table  # SHARD_ROWS of the sample
    rests: Mapping[str, bytes]  # what all other partitions add up to: as they are under `NOW`, and by candidate
    others: dict[str, Outcome]  # by candidate: what it does to them


@dataclass(frozen=True, eq=False)
class Joined:
    """A cluster planned in shards: the sample, what all others add up to, and the plans."""

    model: ClusterModel  # of the sample; its `rest` is that of all shards
    scope: Scope
    candidates: Sequence[Candidate]
    origins: Mapping[str, str]  # by candidate: the name that shards had for it


def totals_of(shard: ShardInput, request: Request) -> pa.Table:
    """What the rows of one shard add up to: TOTALS rows, to be summed over all shards of the cluster."""
    model = ClusterModel.of(shard.snapshot, shard.loads)
    nothing = BrokerSums.of(model.select(np.empty(0, np.int64))[0], np.empty(0, np.bool_))
    movable = Scope.of(model, replace(request, brokers=(), allowed_brokers=(), excluded_brokers=()), nothing).movable
    sums = BrokerSums.of(model, movable, facts_of(shard.snapshot, shard.loads))
    return summed([sums.to_table(model.broker_ids, model.log_dirs.paths)])


def shard_tables(shard: ShardInput, request: Request, totals: pa.Table, count: int) -> ShardTables:
    """Plan one shard of ``count``, for every candidate of the request.

    Args:
        shard: Its rows.
        request: As for the whole cluster; its ``shards`` are not looked at.
        totals: TOTALS of the whole cluster, a row for each key, in any order.
        count: How many shards there are.
    """
    model = _model(shard, totals)
    sums = BrokerSums.from_table(totals, model)
    scope = Scope.of(model, request, sums)
    plan = plan_shard(model, scope, request, sums, count)
    sample = pa.table({"topic": _topics(model, plan.sample), "partition": model.partition[plan.sample]})
    placements = [_rows(name, part) for name, part in parts_of(model, scope, plan, plan.sample).items()]
    others = parts_of(model, scope, plan, plan.others)
    rests = {name: rest_of(model, request, part, after=True).to_bytes() for name, part in others.items()}
    rests[NOW] = rest_of(model, request, others[FULL]).to_bytes()
    return ShardTables(sample, pa.concat_tables(placements), rests, others)


def joined(
    sample: ShardInput,
    request: Request,
    totals: pa.Table,
    placements: pa.Table,
    rests: Mapping[str, Iterable[bytes]],
) -> Joined:
    """The plans of all shards put together, and what they left uneven evened out; see `shard_tables`.

    Args:
        sample: The rows of the samples of all shards.
        request: As for the whole cluster.
        totals: TOTALS of the whole cluster.
        placements: The SHARD_ROWS of all shards, in any order.
        rests: What each shard added up, in the order of shards.
    """
    model, summed_up = _model(sample, totals), {name: Rest.sum(map(Rest.from_bytes, rests[name])) for name in rests}
    rest = summed_up.pop(NOW)
    model = replace(model, rest=replace(rest, sums=rest.sums.with_facts(_others(sample, totals, rest))))
    scope = Scope.of(model, request)
    placed = {
        name: (_layout(model, placements.filter(pc.field("candidate") == name)), after)
        for name, after in summed_up.items()
    }
    found = join_shards(model, scope, request, placed)
    candidates = [Candidate(name, Outcome(model, scope, placement)) for name, placement in found.items()]
    origins = {id(one.outcome): one.name for one in candidates}
    chosen = undominated(candidates, request)
    return Joined(model, scope, chosen, {one.name: origins[id(one.outcome)] for one in chosen})


def _others(sample: ShardInput, totals: pa.Table, rest: Rest) -> dict[str, int]:
    """The facts of partitions that are not in the sample."""
    own = facts_of(sample.snapshot, sample.loads)
    facts = {name: (pc.sum(totals[name]).as_py() or 0) - own[name] for name in FACTS if name in own}
    return {**facts, "offline": rest.sums.total("offline")}


def _model(part: ShardInput, totals: pa.Table) -> ClusterModel:
    """Some partitions of a cluster, with all brokers of it, and loads known if any partition's are."""
    held = totals.group_by("broker").aggregate([("bytes", "sum")])
    held_bytes = dict(zip(held["broker"].to_pylist(), held["bytes_sum"].to_pylist(), strict=True))
    model = ClusterModel.of(part.snapshot, part.loads, held_bytes)
    none = np.zeros(model.partitions)
    known = {name: bool(pc.sum(totals[name]).as_py()) for name in ("write_known", "read_known", "size_known")}
    return replace(
        model,
        write_rate=none if known["write_known"] and model.write_rate is None else model.write_rate,
        read_rate=none if known["read_known"] and model.read_rate is None else model.read_rate,
        expected_size=model.size if known["size_known"] and model.expected_size is None else model.expected_size,
    )


def _topics(model: ClusterModel, rows: NDArray[np.int64]) -> pa.ChunkedArray:
    return decode_texts(model.topic[rows], pa.array(model.topics, pa.string()))


def _rows(name: str, part: Outcome) -> pa.Table:
    """As SHARD_ROWS: what a candidate changes."""
    model, layout, rows = part.model, part.placement.layout, part.changed
    lists = Lists(layout.offsets, np.arange(layout.offsets[-1], dtype=np.int32)).take(rows)
    offsets, slots = pa.array(lists.offsets, pa.int32()), lists.values
    log_dir, paths = layout.log_dir[slots], pa.array(model.log_dirs.paths, pa.string())
    columns: list[Any] = [
        pa.repeat(pa.scalar(name), len(rows)),
        _topics(model, rows),
        pa.array(model.partition[rows], pa.int32()),
        pa.ListArray.from_arrays(offsets, pa.array(model.broker_ids[layout.broker[slots]], pa.int32())),
        pa.ListArray.from_arrays(offsets, paths.take(pa.array(log_dir, pa.int32(), mask=log_dir < 0))),
    ]
    return pa.table(columns, schema=SHARD_ROWS)


def _layout(model: ClusterModel, rows: pa.Table) -> Layout:
    """The model's replicas, those of these SHARD_ROWS as they say."""
    own = pa.table({"topic": _topics(model, np.arange(model.partitions)), "partition": model.partition})
    known, wanted = partition_keys(own, rows)
    order = np.argsort(known, kind="stable")
    found = order[find_sorted(known[order], wanted)]
    lists = Lists.from_column(rows["brokers"])
    if not np.array_equal(lists.lengths, model.replication_factor[found]):
        raise ValueError("rows of a shard do not fit the replicas of its sample")
    slots = np.repeat(model.offsets[found], lists.lengths) + np.arange(len(lists.values)) - lists.offsets[lists.rows]
    broker, log_dir = model.broker.copy(), model.log_dir.copy()
    broker[slots] = np.searchsorted(model.broker_ids, lists.values)
    log_dir[slots] = _log_dirs(model, broker[slots], rows["log_dirs"])
    layout = Layout(model.offsets, broker, model.size[model.slot_partition], log_dir)
    held = Lists(model.offsets, broker).position_in(Lists(model.offsets, model.broker))
    return replace(layout, bytes=np.where(held >= 0, model.bytes[held], layout.bytes))


def _log_dirs(model: ClusterModel, broker: NDArray[np.int32], column: pa.ChunkedArray) -> NDArray[np.int32]:
    """By slot: the number of the log dir that has this path on its broker; -1 where it is not known."""
    encoded = pc.list_flatten(column).combine_chunks().dictionary_encode()
    path = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    rank = {name: number for number, name in enumerate(encoded.dictionary.to_pylist())}
    place = np.full((model.brokers, len(rank) + 1), -1, np.int32)
    owner = np.repeat(np.arange(model.brokers), np.diff(model.log_dirs.offsets))
    for at, (b, name) in enumerate(zip(owner.tolist(), model.log_dirs.paths, strict=True)):
        place[b, rank.get(name, -1)] = at
    place[:, -1] = -1
    found: NDArray[np.int32] = place[broker, path]
    return found
