"""Each entry of a plan as one JSON object, written by whole columns.

A million entries are a million short strings that Arrow can join by itself. Two facts make this safe: a
topic's legal characters need no escaping, and there are few different log dirs, so each of them is escaped
once. The result is ASCII, so that no reader's character set can change it.

Example: ``foo-0`` on brokers 1 and 2 is ``{"topic":"foo","partition":0,"replicas":[1,2]}``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import list_lengths, one_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS_AT_A_TIME = 1 << 17


def entry_texts(entries: pa.Table, separator: str) -> Iterator[str]:
    """The entries of a valid plan as JSON objects, many at a time with a separator between; keys in Kafka's order."""
    for start in range(0, entries.num_rows, _ROWS_AT_A_TIME):
        texts = _texts(entries.slice(start, _ROWS_AT_A_TIME))
        every = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
        yield pc.binary_join(every, separator)[0].as_py()


def _texts(entries: pa.Table) -> Any:
    topic, partition = one_chunk(entries["topic"]), one_chunk(entries["partition"])
    replicas, log_dirs = one_chunk(entries["replicas"]), one_chunk(entries["log_dirs"])
    parts = [
        '{"topic":"',
        topic,
        '","partition":',
        partition.cast(pa.string()),
        ',"replicas":[',
        _joined(replicas, replicas.flatten().cast(pa.string())),
        _log_dirs_key(log_dirs),
        _joined(log_dirs, _escaped(log_dirs.flatten())),
        "]}",
    ]
    return pc.binary_join_element_wise(*parts, "")


def _joined(lists: Any, values: Any) -> Any:
    """The values of each list with commas between; an empty text for a null list."""
    ends = pc.cumulative_sum(pa.array(list_lengths(lists), pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pc.binary_join(pa.ListArray.from_arrays(offsets, values), ",")


def _log_dirs_key(log_dirs: Any) -> Any:
    return pc.if_else(log_dirs.is_valid(), '],"log_dirs":[', "")


def _escaped(log_dirs: Any) -> Any:
    encoded = log_dirs.dictionary_encode()
    quoted = pa.array([json.dumps(log_dir) for log_dir in encoded.dictionary.to_pylist()], pa.string())
    return quoted.take(encoded.indices)
