"""What a snapshot must keep before anything is planned from it, found over whole columns and told about one row.

    brokers      at least one; ids of 0 or more, each once
    log_dirs     each path once; no negative bytes, no more usable than total ones
    capacity     finite and above 0, where it is known
    replicas     partitions and sizes of 0 or more; all sizes together fit in 62 bits
    partition    its replicas have the positions 0, 1, 2 and so on; each broker holds one; at most one leads

Rows in another order than by topic, partition and position are sorted: whoever wrote them meant no harm. All else means
that the files are damaged, or not what a cluster can be, and a plan from them would be wrong without a word.

Example: the rows ``orders 0 0 on 2`` and ``orders 0 1 on 2`` are refused with
``replicas.parquet: orders-0 has two replicas on broker 2; take a new snapshot with kafka-rebalance snapshot``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology.naming import partition_name, shown
from rebalance_lib.topology.snapshot import Snapshot
from rebalance_lib.topology.texts import decode_texts, encode_texts

_ADVICE = "take a new snapshot with kafka-rebalance snapshot"
_MOST_BYTES = 1 << 62


def check_snapshot(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its rows sorted; raises InvalidInputError for the first row that no cluster can have."""
    brokers = snapshot.brokers
    _check_brokers(brokers.to_pylist())
    if np.any(np.diff(brokers["broker"].to_numpy()) < 0):
        brokers = brokers.sort_by("broker")
    return replace(snapshot, brokers=brokers, replicas=_checked_replicas(snapshot.replicas))


def _check_brokers(rows: list[dict[str, Any]]) -> None:
    if not rows:
        raise _refuse_broker("there are no brokers, so nothing can be placed")
    ids = Counter(row["broker"] for row in rows)
    for row in rows:
        id_ = row["broker"]
        if id_ < 0:
            raise _refuse_broker(f"broker {id_} has a negative id")
        if ids[id_] > 1:
            raise _refuse_broker(f"broker {id_} is listed {'twice' if ids[id_] == 2 else f'{ids[id_]} times'}")
        _check_log_dirs(id_, row["log_dirs"])
        for name, value in (row["capacity"] or {}).items():
            if value is not None and not 0 < value < math.inf:
                problem = f"broker {id_}: capacity.{name} is {shown(value)}"
                raise InvalidInputError(f"brokers.parquet: {problem}; give a finite number above 0, or null")


def _check_log_dirs(broker: int, log_dirs: list[dict[str, Any]]) -> None:
    paths: set[str] = set()
    for log_dir in log_dirs:
        path, total, usable = log_dir["path"], log_dir["total_bytes"], log_dir["usable_bytes"]
        where = f"broker {broker}, log dir {path}"
        if path in paths:
            raise _refuse_broker(f"{where} is listed twice")
        paths.add(path)
        for name, value in (("total_bytes", total), ("usable_bytes", usable)):
            if value is not None and value < 0:
                raise _refuse_broker(f"{where}: {name} is {value}, which is negative")
        if total is not None and usable is not None and usable > total:
            raise _refuse_broker(f"{where}: {usable} bytes are usable of a total of {total}")


def _refuse_broker(problem: str) -> InvalidInputError:
    return InvalidInputError(f"brokers.parquet: {problem}; {_ADVICE}")


@dataclass(frozen=True, eq=False)
class _Rows:
    """The columns of replicas that tell them apart, sorted; ``owner`` is the number of a row's partition."""

    topics: pa.Array[Any]
    topic: NDArray[np.int32]
    partition: NDArray[np.int32]
    position: NDArray[np.int16]
    broker: NDArray[np.int32]
    starts: NDArray[np.int64]
    owner: NDArray[np.int64]

    def refuse(self, row: int, problem: str) -> InvalidInputError:
        name = partition_name(self.topics[self.topic[row]].as_py(), self.partition[row])
        return InvalidInputError(f"replicas.parquet: {name} {problem}; {_ADVICE}")


def _checked_replicas(replicas: pa.Table) -> pa.Table:
    if not replicas.num_rows:
        return replicas
    topic, topics = encode_texts(replicas["topic"])
    rank = np.empty(len(topics), np.int64)
    rank[pc.array_sort_indices(topics).to_numpy()] = np.arange(len(topics))
    partition, position = replicas["partition"].to_numpy(), replicas["position"].to_numpy()
    keys = (rank[topic] << 32) + partition
    ahead = keys[1:] - keys[:-1]
    begins = ahead != 0
    if np.any((ahead < 0) | (~begins & (position[1:] < position[:-1]))):
        order = np.lexsort((position, keys))
        replicas = _reordered(replicas, order, topic, topics)
        topic, partition, position, keys = topic[order], partition[order], position[order], keys[order]
        begins = keys[1:] != keys[:-1]
    starts = np.flatnonzero(np.r_[True, begins])
    owner = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(keys)]))
    rows = _Rows(topics, topic, partition, position, replicas["broker"].to_numpy(), starts, owner)
    _check_numbers(rows, replicas["size_bytes"])
    _check_positions(rows)
    _check_holders(rows)
    _check_leaders(rows, replicas["leader"].to_numpy())
    return replicas


def _reordered(replicas: pa.Table, order: NDArray[np.int64], topic: NDArray[Any], topics: pa.Array[Any]) -> pa.Table:
    """The rows in this order; topics by their codes, since Arrow takes no more than 2 GiB of text at once."""
    columns = {
        name: decode_texts(topic[order], topics) if name == "topic" else replicas[name].take(pa.array(order))
        for name in replicas.column_names
    }
    return pa.table(columns, schema=replicas.schema)


def _check_numbers(rows: _Rows, size: pa.ChunkedArray) -> None:
    if (negative := rows.partition < 0).any():
        raise rows.refuse(int(np.argmax(negative)), "has a negative number")
    if size.null_count == len(size):
        return
    bytes_ = pc.fill_null(size, 0).to_numpy()
    if (negative := bytes_ < 0).any():
        row = int(np.argmax(negative))
        raise rows.refuse(row, f"has {bytes_[row]} bytes on broker {rows.broker[row]}, which is negative")
    if float(bytes_.sum(dtype=np.float64)) >= _MOST_BYTES:
        row = int(np.argmax(bytes_))
        raise rows.refuse(row, f"has {bytes_[row]} bytes, and all replicas more than 62 bits can count")


def _check_positions(rows: _Rows) -> None:
    expected = np.arange(len(rows.owner)) - rows.starts[rows.owner]
    if not (wrong := rows.position != expected).any():
        return
    row = int(np.argmax(wrong))
    found = int(rows.position[row])
    problem = "has two replicas" if found < expected[row] and found >= 0 else "has no replica"
    place = min(found, int(expected[row])) if found >= 0 else 0
    raise rows.refuse(row, f"{problem} at position {place}")


def _check_holders(rows: _Rows) -> None:
    keys = (rows.owner << 32) + rows.broker
    keys.sort()
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        owner, broker = int(keys[again[0]] >> 32), int(keys[again[0]] & 0xFFFFFFFF)
        raise rows.refuse(int(rows.starts[owner]), f"has two replicas on broker {broker}")


def _check_leaders(rows: _Rows, leader: NDArray[np.bool_]) -> None:
    led = np.flatnonzero(leader)
    again = np.flatnonzero(rows.owner[led][1:] == rows.owner[led][:-1])
    if len(again):
        first, second = led[again[0]], led[again[0] + 1]
        raise rows.refuse(int(first), f"has two leaders, brokers {rows.broker[first]} and {rows.broker[second]}")
