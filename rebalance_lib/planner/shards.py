"""A cluster balanced in parts: shards that know nothing of one another, and a last pass over a sample of them.

Goal:
    A cluster too large for one process is planned by several, and is as even afterwards as if one had planned it.

Algorithm:
    Whole topics are dealt to k shards by a hash of their names, very large ones in chunks of partitions: a random split
    in which every shard has all brokers, as in POP (Narayanan et al., SOSP 2021). A shard knows its own partitions, and
    of all others what each broker holds, see ``broker_sums``. To it the cluster is k times as small as it is: disks,
    networks, budgets and shares are a kth. A broker has at the start, whatever the shard happens to have of it:

        above its band    share / k + what it has too much * what the shard holds of its load
        below its band    share / k - a part of what it lacks, so that all lacks together are what is too much
        within its band   a kth of its load

    So no shard has to give what it does not have, what it happens to have more of than others makes no work, and a
    cluster in balance is in balance to every shard. What each shard brings within a band is within it in the whole
    cluster, since loads and bands add up. What survivors inherit of a dead broker is left for the end.

    Numbers are whole, and replicas have sizes: something is left. For that a shard hands on a sample of its partitions,
    of a size that does not grow with the cluster: most from brokers that it leaves above their bands, the others at
    random. All other partitions are where each candidate has put them, and are added up, see ``rest``. The samples are
    brought together and corrected, see ``shard_join``.

Example:
    Two brokers hold 30 and 10, in two shards 18 + 12 and 4 + 6. The share is 20 each. To the first shard they hold 10 +
    10 * 18 / 30 = 16 and 4, to the second 14 and 6: they move 6 and 4, which leaves 20 and 20.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.diff import LARGEST_MOVES
from rebalance_lib.planner.broker_sums import BrokerSums, GivenLoads
from rebalance_lib.planner.compiled.compare import compare, rack_spread
from rebalance_lib.planner.goals import View
from rebalance_lib.planner.goals.failover import groups_of, inherited_loads
from rebalance_lib.planner.goals.racks import in_too_few_racks
from rebalance_lib.planner.model import NO_LIMIT
from rebalance_lib.planner.names import FULL, LEADERS, names, request_for
from rebalance_lib.planner.order import MOST_BROKERS, order_lists
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.rebalance import bands, crosses_racks, level_once, shares_of
from rebalance_lib.planner.request import Mode
from rebalance_lib.planner.resources import Resource
from rebalance_lib.planner.rest import Changes, Rest, Topics
from rebalance_lib.planner.scope import Scope, matched_patterns
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, at_present
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request

    Ints = NDArray[np.int64]

SHARDED = frozenset({Mode.BALANCE, Mode.EXPAND, Mode.TOPICS})
PARTITIONS_OF_A_SHARD = 1_000_000
"""By default: with rows of 75 characters a topic it takes 1.4 KB a partition to plan one, on top of 0.3 GB for the
program and of the rows themselves, 0.4 KB once in Arrow and once on the way (``python -m bench.shards --memory
50000:1000,250000:1000``). That comes to 2.5 GB for a million, of the 3 GB that a Python worker has by default.
"""
SAMPLE = 1 << 16  # partitions of all shards that are brought together
WANTED = 8.0  # times as often as any other is a partition of a broker above its band in the sample
CHUNK = 1 << 14  # consecutive partitions of a topic that stay together


@dataclass(frozen=True, eq=False)
class ShardPlan:
    """Where each candidate puts the partitions of a shard, and which of them are its sample."""

    placements: Mapping[str, Placement]  # by candidate, of all partitions of the shard
    sample: Ints  # where these partitions are in the shard's model, in its order
    others: Ints


def cut_up(request: Request, partitions: int) -> Request:
    """The request with as many shards as it asks for, or as many as fit small workers."""
    wanted = request.shards or -(-partitions // PARTITIONS_OF_A_SHARD)
    return replace(request, shards=max(1, min(wanted, partitions)))


def shard_count(request: Request, partitions: int, *, sets: bool) -> int:
    """How many shards a cluster is planned in: 1 where it must be seen as a whole."""
    whole = sets or request.mode not in SHARDED or request.min_topic_leaders or request.leader_racks
    return 1 if whole else cut_up(request, partitions).shards


def shard_of(topics: pa.ChunkedArray | pa.Array, partitions: NDArray[np.integer], count: int) -> NDArray[np.int32]:
    """By row: its shard, 0 up to ``count``; the same in every process. A topic is in one shard unless it is huge."""
    code, texts = encode_texts(topics)
    return shards_of_topics(hashes_of_topics(texts.to_pylist())[code], partitions, count)


def hashes_of_topics(topics: Iterable[str]) -> NDArray[np.uint64]:
    """By topic: a hash of its name, the same in every process."""
    return np.array([zlib.crc32(topic.encode()) for topic in topics], np.uint64)


def shards_of_topics(hashes: NDArray[np.uint64], partitions: NDArray[np.integer], count: int) -> NDArray[np.int32]:
    """The same from the hash of each row's topic."""
    # Fibonacci hashing: the upper bits of the product depend on all bits of both.
    mixed = (hashes + (partitions // CHUNK).astype(np.uint64) * np.uint64(0x9E3779B1)) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(count)).astype(np.int32)


def plan_shard(model: ClusterModel, scope: Scope, request: Request, totals: BrokerSums, count: int) -> ShardPlan:
    """Every candidate of the request, for one of so many shards.

    Args:
        model: The shard's partitions, and all brokers.
        scope: Of this model and the whole cluster's totals.
        request: As for the whole cluster.
        totals: What brokers hold in the whole cluster.
        count: How many shards there are.
    """
    own = BrokerSums.of(model, scope.movable)
    cluster = replace(model, rest=Rest(totals + own * -1.0)).at_horizon()
    own, totals = (own, totals) if model.expected_size is None else (own.at_horizon(), totals.at_horizon())
    rows = np.argsort(-cluster.size, kind="stable")  # partitions are walked through by size, as in mode balance
    nothing = replace(cluster.select(rows[:0])[0], rest=Rest(totals))
    no_scope = replace(scope, movable=scope.movable[:0])
    whole = Workspace.of(nothing, no_scope, request, Layout.of(nothing), nothing.leader)
    part = replace(_divided(cluster, count), rest=_part_of_rest(whole, own, count))
    by_size, slots = part.select(rows)
    scope_by_size = replace(scope, movable=scope.movable[rows])
    placements, above = {}, np.zeros(model.brokers, np.bool_)
    for name in names(request):
        asked = _part_of_request(request_for(nothing, no_scope, request, name), count)
        work = Workspace.of(by_size, scope_by_size, asked, Layout.of(by_size), by_size.leader)
        work = work if name == LEADERS else level_once(work)[0]
        above |= _above(work) if name == FULL else False
        placed = order_lists(work, once=name == LEADERS)
        layout = with_slots(Layout.of(part), slots, placed.layout)
        placements[name] = at_present(model, Placement(cluster, layout, layout.broker[layout.offsets[:-1]]))
    sampled = np.zeros(model.partitions, np.bool_)
    sampled[_sample(model, scope, placements, above, -(-SAMPLE // count))] = True
    return ShardPlan(placements, *(np.flatnonzero(chosen) for chosen in (sampled, ~sampled)))


def _above(work: Workspace) -> NDArray[np.bool_]:
    """By broker: whether it has more of something than its band allows, and may give."""
    shares = shares_of(work)
    pursued = [one for one in work.resources if work.request.weight_of(one)]
    found = np.zeros(work.model.brokers, np.bool_)
    for one in pursued:
        found |= work.load(one) > bands(work, shares, one)[1]
    return found & work.scope.gives


def _sample(
    model: ClusterModel, scope: Scope, placements: Mapping[str, Placement], above: NDArray[np.bool_], size: int
) -> Ints:
    """The partitions for the join: those that copy the most, and of the others so many, most from brokers `above`."""
    largest = [_largest(model, placement) for placement in placements.values()]
    broker = placements[FULL].layout.broker
    wanted = np.zeros(model.partitions, np.bool_)
    wanted[model.slot_partition[above[broker]]] = True
    drawn = np.random.default_rng(size).random(model.partitions) / np.where(wanted, WANTED, 1.0)
    movable = np.flatnonzero(scope.movable)
    if len(movable) > size:
        movable = movable[np.argpartition(drawn[movable], size)[:size]]
    return np.concatenate([*largest, movable])


def _largest(model: ClusterModel, placement: Placement) -> Ints:
    """The partitions that copy the most bytes, which a summary names."""
    layout = placement.layout
    arrives = compare(model.offsets, model.broker, model.log_dir, layout.offsets, layout.broker, layout.log_dir)[0]
    copied = model.size * np.bincount(model.slot_partition, arrives, minlength=model.partitions).astype(np.int64)
    return np.argsort(-copied, kind="stable")[:LARGEST_MOVES]


def _part_of_request(request: Request, count: int) -> Request:
    """A part of the budgets, and without the goal of what survivors inherit: that is left to the join."""
    goals = tuple(f"{name}={tolerance!r}" for name, tolerance in request.goal_tolerances.items() if name != "failover")
    byte_budget, move_budget = (
        None if one is None else one // count for one in (request.byte_budget, request.move_budget)
    )
    return replace(request, goals=goals, byte_budget=byte_budget, move_budget=move_budget, polish=0.0)


def _part_of_rest(whole: Workspace, own: BrokerSums, count: int) -> Rest:
    """What the others must hold for a shard to have its part of what brokers have too much and too little.

    Args: `whole` has no partitions, and the totals of the cluster as its rest.
    """
    model = whole.model
    totals = model.rest.sums if model.rest is not None else own
    view = View(model, whole.scope, whole.request, whole.layout)
    shares = shares_of(whole)
    shares |= {one: view.share(one) for one in view.resources if one not in shares}
    everyone = np.zeros(model.brokers, np.int64)
    loads = {}
    for one, share in shares.items():
        group = everyone if not one.of_replicas or crosses_racks(whole) else np.maximum(model.rack, 0)
        load, mine = totals.load(model, one), own.load(model, one)
        low, high = bands(whole, shares, one)
        holds = np.divide(mine, load, out=np.zeros_like(mine), where=load > high)
        gives = np.maximum(0, load - share) * np.where(load > high, holds, 1 / count)
        lacks, near = np.maximum(0, share - load), load >= low
        takes = np.where(near, lacks / count, 0.0)
        given, taken, lacking = (np.bincount(group, values) for values in (gives, takes, np.where(near, 0.0, lacks)))
        part = np.divide(np.maximum(0, given - taken), lacking, out=np.zeros_like(given), where=lacking > 0)
        part_of_load = share / count + gives - np.where(near, takes, part[group] * lacks)
        if one in {Resource.REPLICAS, Resource.LEADERS}:  # towards the share: what is within its band must stay so
            part_of_load = np.where(gives > 0, np.floor(part_of_load), np.ceil(part_of_load))
        loads[one] = part_of_load - mine
    parts = totals * (1 / count) + own * -1.0
    return Rest(GivenLoads(parts.broker, parts.log_dir, parts.factor, parts.columns, loads))


def _divided(model: ClusterModel, count: int) -> ClusterModel:
    """The cluster with a part of its disks and networks."""
    dirs = model.log_dirs
    total, usable = (np.where(one < NO_LIMIT, one // count, one) for one in (dirs.total, dirs.usable))
    networks = {one: model.capacity[one] / count for one in NETWORKS if one in model.capacity}
    return replace(model, log_dirs=replace(dirs, total=total, usable=usable), capacity={**model.capacity, **networks})


NETWORKS = (Resource.NETWORK_IN, Resource.NETWORK_OUT)


def with_slots(layout: Layout, slots: Ints, part: Layout) -> Layout:
    """A layout with those of a part in place of some of its slots."""
    broker, held, log_dir = layout.broker.copy(), layout.bytes.copy(), layout.log_dir.copy()
    broker[slots], held[slots], log_dir[slots] = part.broker, part.bytes, part.log_dir
    return Layout(layout.offsets, broker, held, log_dir)


def parts_of(model: ClusterModel, scope: Scope, plan: ShardPlan, rows: Ints) -> dict[str, Outcome]:
    """By candidate: what it does to some partitions of a shard."""
    part, slots = model.select(rows)
    of_part, found = replace(scope, movable=scope.movable[rows]), {}
    for name, placement in plan.placements.items():
        layout = placement.layout
        own = Layout(part.offsets, layout.broker[slots], layout.bytes[slots], layout.log_dir[slots])
        found[name] = Outcome(part, of_part, Placement(part, own, placement.leader[rows]))
    return found


def rest_of(model: ClusterModel, request: Request, part: Outcome, *, after: bool = False) -> Rest:
    """What the partitions of a part of a model add up to, as they are or `after` its placement."""
    held, scope = part.model, part.scope
    changes = Changes()
    if after:
        layout = part.placement.layout
        held = replace(held, broker=layout.broker, bytes=part.bytes_after, log_dir=layout.log_dir)
        changes = Changes.of(part)
    view = View(held, scope, request, Layout.of(held))
    inherited: dict[str, NDArray[np.float64]] = {}
    if model.brokers <= MOST_BROKERS and view.stays.sum() > 1:
        for name, group in groups_of(view).items():
            inherited |= {f"{name} {one}": table for one, table in inherited_loads(view, group).items()}
    racks, fullest = rack_spread(held.offsets, held.broker, held.rack)
    return Rest(
        BrokerSums.of(held, scope.movable, {"offline": scope.offline}),
        inherited,
        _wide_topics(model, held, int(view.stays.sum())),
        in_too_few_racks(view) if model.has_racks else 0,
        len(held.broker) - int(racks.sum()) + int(fullest.sum()),
        matched_patterns(model.topics, request),
        changes,
    )


def _wide_topics(model: ClusterModel, part: ClusterModel, brokers: int) -> Topics:
    """Leaders and replicas of topics that may have as many of them as there are brokers.

    Partitions are numbered from 0: the last one's number says how many there are, wherever the others are.
    """
    widest, factor = (np.zeros(len(model.topics), np.int64) for _ in range(2))
    np.maximum.at(widest, model.topic, model.partition + 1)
    np.maximum.at(factor, model.topic, model.replication_factor)
    here = np.bincount(part.topic, minlength=len(model.topics)) > 0
    wide = np.flatnonzero((widest * factor >= brokers) & here)
    row = np.full(len(model.topics), -1)
    row[wide] = np.arange(len(wide))
    tables = []
    for topic, broker in ((part.topic, part.leader), (part.topic[part.slot_partition], part.broker)):
        counted = row[topic] >= 0
        cells = np.bincount(row[topic[counted]] * model.brokers + broker[counted], minlength=len(wide) * model.brokers)
        tables.append(cells.reshape(len(wide), model.brokers).astype(np.int32))
    return Topics([model.topics[number] for number in wide.tolist()], *tables)
