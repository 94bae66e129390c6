"""What a cluster's columns must keep, found over whole columns and told about one entry.

    brokers      at least one; ids of 0 or more, each once; a rack and a broker set are not empty
    capacity     more than 0 of each resource that it names
    targets, add, remove   brokers of the list, each once; targets are not empty, none of them is to be removed
    partitions   a name that a topic can have, a number of 0 or more, each partition once
    replicas     at least one; brokers of the list, each once
    leader       one of the replicas
    size         0 or more; all replicas together fit in 62 bits
    write_rate, read_rate   finite, 0 or more

Example: of the partitions ``foo-0 on [1, 2]`` and ``foo-1 on [3, 3]``, with three brokers, the message is
``partition entry 1 (foo-1): replicas is [3, 3]: broker 3 is listed twice; list each broker once``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology.loads import RATES
from rebalance_lib.topology.naming import partition_name, shown, topic_problem
from rebalance_lib.topology.snapshot import CAPACITY
from rebalance_lib.topology.texts import encode_texts

BROKER = pa.struct(
    [
        pa.field("id", pa.int32()),
        pa.field("rack", pa.string()),
        pa.field("capacity", CAPACITY),
        pa.field("broker_set", pa.string()),
        pa.field("cordoned", pa.bool_()),
    ]
)
PARTITION = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("replicas", pa.list_(pa.int32())),
        pa.field("size", pa.int64()),
        pa.field("write_rate", pa.float64()),
        pa.field("read_rate", pa.float64()),
        pa.field("leader", pa.int32()),
    ]
)
CLUSTER_SCHEMA = pa.schema(
    [
        pa.field("brokers", pa.list_(BROKER)),
        pa.field("targets", pa.list_(pa.int32())),
        pa.field("add", pa.list_(pa.int32())),
        pa.field("remove", pa.list_(pa.int32())),
        pa.field("partitions", pa.list_(PARTITION)),
    ]
)
REMARKS = ("scenario", "seed", "rf")
_MOST_BYTES = 1 << 62


def check_cluster(document: pa.Table) -> None:
    """Refuse a document, one row in the schema, that is no cluster; the message names the first entry in fault."""
    ids = _check_brokers(document["brokers"][0].as_py())
    for name in ("targets", "add", "remove"):
        _check_listed(name, document[name][0].as_py(), ids)
    targets, leaving = (document[name][0].as_py() or [] for name in ("targets", "remove"))
    if document["targets"][0].as_py() == []:
        raise InvalidInputError("targets is empty: list the brokers that may hold replicas, or leave targets out")
    if both := sorted(set(targets) & set(leaving)):
        raise InvalidInputError(f"broker {both[0]} is in targets and in remove: take it out of one of them")
    partitions = document["partitions"].chunk(0).flatten()
    if len(partitions):
        _check_partitions(partitions)
        _check_replicas(partitions, np.array(sorted(ids), np.int32))
        _check_leaders(partitions)
        _check_sizes(partitions)
        _check_rates(partitions)


def leads(partitions: Any, brokers: NDArray[np.int32], row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """By replica, given with its broker and the row of its partition: whether the partition's ``leader`` names it."""
    named: NDArray[np.int32] = pc.fill_null(partitions.field("leader"), -1).to_numpy()
    found: NDArray[np.bool_] = brokers == named[row]
    return found


def partition_order(partitions: Any) -> NDArray[np.int64] | None:
    """How to sort partitions by topic and number; None if they are."""
    keys = _keys(partitions)
    return None if np.all(keys[1:] > keys[:-1]) else np.argsort(keys, kind="stable")


def _keys(partitions: Any) -> NDArray[np.int64]:
    topic, topics = encode_texts(partitions.field("topic"))
    rank = np.empty(len(topics), np.int64)
    rank[pc.array_sort_indices(topics).to_numpy()] = np.arange(len(rank))
    keys: NDArray[np.int64] = (rank[topic] << 32) + partitions.field("partition").to_numpy()
    return keys


def _check_brokers(brokers: list[dict[str, Any]]) -> set[int]:
    if not brokers:
        raise InvalidInputError("brokers is empty: list all brokers of the cluster")
    ids: set[int] = set()
    for entry, broker in enumerate(brokers):
        id_ = broker["id"]
        if id_ < 0:
            raise InvalidInputError(
                f"broker entry {entry}: id is {id_}: a broker's id is 0 or more; give such a number"
            )
        if id_ in ids:
            raise InvalidInputError(f"broker entry {entry}: broker {id_} is listed twice; keep one of the two")
        for name in ("rack", "broker_set"):
            if broker[name] == "":
                raise InvalidInputError(f'broker entry {entry} ({id_}): {name} is "": name it, or leave {name} out')
        _check_capacity(f"broker entry {entry} ({id_})", broker["capacity"])
        ids.add(id_)
    return ids


def _check_capacity(where: str, capacity: dict[str, float | None] | None) -> None:
    for name, value in (capacity or {}).items():
        if value is not None and not 0 < value < math.inf:
            raise InvalidInputError(
                f"{where}: capacity.{name} is {shown(value)}: give a finite number above 0, or leave {name} out"
            )


def _check_listed(name: str, listed: list[int] | None, ids: set[int]) -> None:
    seen: set[int] = set()
    for place, broker in enumerate(listed or []):
        if broker not in ids:
            raise InvalidInputError(
                f"{name}[{place}] is {broker}: brokers has no such id; add it there or leave it out"
            )
        if broker in seen:
            raise InvalidInputError(f"{name}[{place}] is {broker}, which is listed already; list each broker once")
        seen.add(broker)


def _refuse(partitions: Any, entry: int, field: str, problem: str) -> InvalidInputError:
    row = partitions[entry].as_py()
    name = partition_name(row["topic"], row["partition"])
    return InvalidInputError(f"partition entry {entry} ({name}): {field} is {shown(row[field])}: {problem}")


def _check_partitions(partitions: Any) -> None:
    topic, topics = encode_texts(partitions.field("topic"))
    problems = [topic_problem(name) for name in topics.to_pylist()]
    if any(problems):
        bad = np.array([problem is not None for problem in problems])[topic]
        entry = int(np.argmax(bad))
        raise _refuse(partitions, entry, "topic", problems[topic[entry]] or "")
    negative = partitions.field("partition").to_numpy() < 0
    if negative.any():
        problem = "partitions are numbered from 0; give such a number"
        raise _refuse(partitions, int(np.argmax(negative)), "partition", problem)
    order = partition_order(partitions)
    if order is None:
        return
    keys = _keys(partitions)[order]
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        entry, earlier = min((int(order[place + 1]), int(order[place])) for place in again)
        problem = f"entry {earlier} has this partition already; keep one of the two"
        raise _refuse(partitions, entry, "partition", problem)


def _check_replicas(partitions: Any, ids: NDArray[np.int32]) -> None:
    lists = partitions.field("replicas")
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    if (empty := lengths == 0).any():
        problem = "a partition has at least one replica; list the brokers that hold it"
        raise _refuse(partitions, int(np.argmax(empty)), "replicas", problem)
    brokers = lists.flatten().to_numpy()
    row = np.repeat(np.arange(len(lengths)), lengths)
    place = np.minimum(np.searchsorted(ids, brokers), len(ids) - 1)
    unknown = ids[place] != brokers
    if unknown.any():
        at = int(np.argmax(unknown))
        problem = f"brokers has no {brokers[at]}; add it there, or give brokers of the cluster"
        raise _refuse(partitions, int(row[at]), "replicas", problem)
    _check_repeated(partitions, row, brokers)


def _check_repeated(partitions: Any, row: NDArray[np.int64], brokers: NDArray[np.int32]) -> None:
    keys = (row << 32) + brokers
    keys.sort()
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        entry, broker = int(keys[again[0]] >> 32), int(keys[again[0]] & 0xFFFFFFFF)
        raise _refuse(partitions, entry, "replicas", f"broker {broker} is listed twice; list each broker once")


def _check_leaders(partitions: Any) -> None:
    leader = partitions.field("leader")
    if leader.null_count == len(leader):
        return
    lists = partitions.field("replicas")
    row = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
    found = np.zeros(len(lists), np.bool_)
    found[row[leads(partitions, lists.flatten().to_numpy(), row)]] = True
    missing = pc.is_valid(leader).to_numpy(zero_copy_only=False) & ~found
    if missing.any():
        problem = "it is none of the replicas; give the one that leads now, or leave leader out"
        raise _refuse(partitions, int(np.argmax(missing)), "leader", problem)


def _check_rates(partitions: Any) -> None:
    for name in RATES:
        rate = partitions.field(name)
        if rate.null_count == len(rate):
            continue
        values = pc.fill_null(rate, 0.0).to_numpy()
        if (wrong := ~((values >= 0) & (values < np.inf))).any():
            problem = "give 0 or more bytes per second, or leave it out"
            raise _refuse(partitions, int(np.argmax(wrong)), name, problem)


def _check_sizes(partitions: Any) -> None:
    size = partitions.field("size").to_numpy()
    if (negative := size < 0).any():
        raise _refuse(partitions, int(np.argmax(negative)), "size", "give 0 or more bytes")
    lengths = pc.list_value_length(partitions.field("replicas")).to_numpy()
    if float(np.dot(size.astype(np.float64), lengths)) >= _MOST_BYTES:
        entry = int(np.argmax(size))
        raise _refuse(partitions, entry, "size", "all replicas together have more bytes than 62 bits can count")
