"""What Kafka would refuse in a plan, found over whole columns and described for one entry.

The rules, each as a fault with the field it is about:

    topic      letters, digits, ``.``, ``_`` and ``-``; at most 249 of them; neither ``.`` nor ``..``
    partition  0 or more, and each partition of a topic only once
    replicas   at least one broker, ids of 0 or more, no broker twice
    log_dirs   absent, or one for each replica, each an absolute path or ``any``

A table is looked at column by column. The first entry with a fault is reported, with its place in the
table, since that is what a person can look up in the file that it came from.

Example: of the entries ``foo-0 on [1, 2]`` and ``foo-1 on [3, 3]`` the fault is::

    entry 1 (foo-1): replicas is [3, 3]: broker 3 is listed twice; list each broker once
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.columns import Lists, list_lengths, one_chunk, partition_keys
from rebalance_lib.topology.naming import partition_name, shown, topic_problem
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

ANY_LOG_DIR = "any"


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why Kafka would not take a plan."""

    entry: int
    partition: str
    field: str
    value: object
    problem: str

    def __str__(self) -> str:
        return f"entry {self.entry} ({self.partition}): {self.field} is {shown(self.value)}: {self.problem}"


def log_dir_problem(log_dir: str | None) -> str | None:
    """Why Kafka would not take this as a replica's log dir, or None if it would."""
    if log_dir is None or not (log_dir == ANY_LOG_DIR or log_dir.startswith("/")):
        return f'a log dir is an absolute path or "{ANY_LOG_DIR}"; write one of these for {shown(log_dir)}'
    return None


def first_fault(table: pa.Table) -> Fault | None:
    """The fault of the earliest entry of a table in the plan's schema; None if Kafka would take it."""
    return min(_faults(table), key=lambda fault: fault.entry, default=None)


def _faults(table: pa.Table) -> Iterator[Fault]:
    for field in ("topic", "partition", "replicas"):
        missing = np.flatnonzero(table[field].is_null().to_numpy())
        if len(missing):
            yield _fault(table, int(missing[0]), field, "it is missing; give it a value")
            return
    yield from _topic_faults(table)
    yield from _partition_faults(table)
    yield from _replica_faults(table)
    yield from _log_dir_faults(table)


def _fault(table: pa.Table, entry: int, field: str, problem: str) -> Fault:
    row = table.slice(entry, 1).to_pylist()[0]
    return Fault(entry, partition_name(row["topic"], row["partition"]), field, row[field], problem)


def _topic_faults(table: pa.Table) -> Iterator[Fault]:
    codes, topics = encode_texts(table["topic"])
    problems = [topic_problem(topic) for topic in topics.to_pylist()]
    bad = np.array([problem is not None for problem in problems], dtype=np.bool_)
    if bad.any():
        entry = int(np.argmax(bad[codes]))
        yield _fault(table, entry, "topic", problems[codes[entry]] or "")


def _partition_faults(table: pa.Table) -> Iterator[Fault]:
    negative = one_chunk(table["partition"]).to_numpy(zero_copy_only=False) < 0
    if negative.any():
        problem = "partitions are numbered from 0; give such a number"
        yield _fault(table, int(np.argmax(negative)), "partition", problem)
    keys = partition_keys(table)[0]
    if np.all(keys[1:] > keys[:-1]):
        return
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(again):
        entry, earlier = min((int(order[place + 1]), int(order[place])) for place in again)
        problem = f"entry {earlier} has this partition already; keep one of the two"
        yield _fault(table, entry, "partition", problem)


def _replica_faults(table: pa.Table) -> Iterator[Fault]:
    column = one_chunk(table["replicas"])
    empty = list_lengths(column) == 0
    if empty.any():
        problem = "a partition needs at least one replica; list the brokers that shall hold it"
        yield _fault(table, int(np.argmax(empty)), "replicas", problem)
    brokers = column.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    replicas = Lists.from_lengths(list_lengths(column), brokers)
    negative = brokers < 0
    if negative.any():
        entry = int(replicas.rows[np.argmax(negative)])
        yield _fault(table, entry, "replicas", "a broker's id is a number of 0 or more; give such numbers")
    repeated = replicas.repeated()
    if len(repeated):
        problem = f"broker {brokers[repeated[0]]} is listed twice; list each broker once"
        yield _fault(table, int(replicas.rows[repeated[0]]), "replicas", problem)


def _log_dir_faults(table: pa.Table) -> Iterator[Fault]:
    column = one_chunk(table["log_dirs"])
    if column.null_count == len(column):
        return
    given = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = list_lengths(column)
    replicas = list_lengths(one_chunk(table["replicas"]))
    uneven = given & (lengths != replicas)
    if uneven.any():
        entry = int(np.argmax(uneven))
        problem = f"there are {replicas[entry]} replicas; give one log dir for each, or leave log_dirs out"
        yield _fault(table, entry, "log_dirs", problem)
    encoded = column.flatten().dictionary_encode(null_encoding="encode")
    problems = [log_dir_problem(log_dir) for log_dir in encoded.dictionary.to_pylist()]
    bad = np.array([problem is not None for problem in problems], dtype=np.bool_)
    if bad.any():
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        value = int(np.argmax(bad[codes]))
        entry = int(Lists.from_lengths(lengths, codes).rows[value])
        yield _fault(table, entry, "log_dirs", problems[codes[value]] or "")
