"""A cluster in one JSON file, which any program can write that knows brokers and partitions.

    {"brokers": [{"id": 1, "rack": "a", "capacity": {"disk": 4000000000000, "network_out": 1250000000}},
                 {"id": 2, "rack": "b", "broker_set": "payments"}, {"id": 3, "cordoned": true}],
     "targets": [1, 2, 3], "add": [3], "remove": [],
     "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1], "size": 1048576,
                     "leader": 1, "write_rate": 2000, "read_rate": 6000}]}

``brokers`` has them all, alive, with their racks where they have one; ``capacity`` is ``disk`` in bytes, ``network_in``
and ``network_out`` in bytes per second, ``cpu`` in cores. ``targets`` are those that may be given replicas,
``add`` the new ones and ``remove`` those to be emptied; each of the three may be left out. The first of ``replicas`` is
the preferred leader, ``leader`` the one that leads now, if another; ``size`` is the bytes of one replica, the rates are
bytes per second. ``scenario``, ``seed`` and ``rf`` may stand there and say nothing. Any other key, a broker that is not
listed, a partition given twice and the like are refused by name.

There are two readers, as for plans: Arrow's takes a million partitions in seconds and is believed only if it found
nothing odd; what it does not take is read again entry by entry, which either works or says why not. Both lead to the
same columns, and what these must keep is checked once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import json as arrow_json

from rebalance_lib.topology.cluster_entries import read_entries
from rebalance_lib.topology.cluster_faults import (
    CLUSTER_SCHEMA,
    PARTITION,
    REMARKS,
    check_cluster,
    leads,
    partition_order,
)
from rebalance_lib.topology.groups import Groups
from rebalance_lib.topology.loads import LOADS, RATES
from rebalance_lib.topology.snapshot import BROKERS, REPLICAS, Snapshot
from rebalance_lib.topology.texts import decode_texts, encode_texts

LARGEST_PIECE = 1 << 28  # bytes read at once: Arrow's offsets and blocks count in 32 bits
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_SPACE = b" \t\r\n"
_REMARKS = [pa.field(name, pa.string() if name == "scenario" else pa.int64()) for name in REMARKS]
_PARTITIONS = re.compile(rb'"partitions"[ \t\r\n]*:[ \t\r\n]*\[')
_LISTS = ("targets", "add", "remove")
_REQUIRED = ("topic", "partition", "replicas", "size")


@dataclass(frozen=True, slots=True, eq=False)
class ClusterFile:
    """A snapshot, and what the file says about brokers, groups and rates; None where it says nothing.

    ``loads`` has the schema `LOADS`, and a row for each partition with a rate.
    """

    snapshot: Snapshot
    targets: tuple[int, ...] | None
    add: tuple[int, ...]
    remove: tuple[int, ...]
    groups: Groups | None = None
    loads: pa.Table | None = None


def parse_cluster(data: bytes) -> ClusterFile:
    """Read a cluster; raises InvalidInputError, naming the entry, for anything that is none."""
    document = _read_columns(data)
    if document is None:
        document = read_entries(data)
    check_cluster(document)
    listed = {name: document[name][0].as_py() for name in _LISTS}
    partitions = _sorted_partitions(document)
    return ClusterFile(
        snapshot=Snapshot("", "", _brokers(document), _replicas(partitions)),
        targets=None if listed["targets"] is None else tuple(listed["targets"]),
        add=tuple(listed["add"] or ()),
        remove=tuple(listed["remove"] or ()),
        loads=_loads(partitions),
    )


def _read_columns(data: bytes) -> pa.Table | None:
    """The document, read by Arrow, or None if anything about it is out of the ordinary."""
    content = data.strip(_SPACE)
    if not (content.startswith(b"{") and content.endswith(b"}")) or b"\\" in content or not _is_utf8(content):
        return None
    if len(content) >= LARGEST_PIECE:
        document = _read_pieces(content)
    else:
        document = _read_one(content, pa.schema([*CLUSTER_SCHEMA, *_REMARKS]))
    if document is None:
        return None
    document = document.select(CLUSTER_SCHEMA.names)
    return None if _has_gaps(document) or _has_infinities(document) else document


def _read_one(content: bytes | memoryview, schema: pa.Schema) -> pa.Table | None:
    """One JSON object as a table of one row, or None if it is none in this schema."""
    try:
        documents = arrow_json.read_json(
            pa.BufferReader(content),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(content) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowException, OverflowError):
        return None
    return documents.combine_chunks() if documents.num_rows == 1 else None


def _read_pieces(content: bytes) -> pa.Table | None:
    """A document too large for one piece of Arrow's: what is around the partitions, and these piece by piece.

    Cut is behind entries of partitions, which have no object in them. Each piece must read as a list of partitions, and
    what is around them as a cluster without any: together they then are the document, wherever it was cut. Topics are
    codes, since there may be more than 2 GiB of their names.
    """
    around, cuts = _cut(content)
    document = None if around is None else _read_one(around, pa.schema([*CLUSTER_SCHEMA, *_REMARKS]))
    if document is None or document["partitions"].null_count or len(document["partitions"].chunk(0).flatten()):
        return None
    view, pieces = memoryview(content), list[pa.Table]()
    for begin, end in pairwise(cuts):
        text = view[begin:end].tobytes()
        if pieces:  # it begins behind an entry
            text = text.lstrip(_SPACE)
            if not text.startswith(b","):
                return None
            text = text[1:]
        piece = _read_one(b"".join((b'{"partitions":[', text, b"]}")), pa.schema([CLUSTER_SCHEMA.field("partitions")]))
        if piece is None or piece["partitions"].null_count:
            return None
        rows = piece["partitions"].chunk(0).flatten()
        if rows.null_count:
            return None
        columns = [rows.field(field.name) for field in PARTITION]
        pieces.append(pa.table([columns[0].dictionary_encode(), *columns[1:]], names=[one.name for one in PARTITION]))
    rows = pa.concat_tables(pieces).unify_dictionaries().combine_chunks()
    entries = pa.StructArray.from_arrays([column.chunk(0) for column in rows.columns], rows.column_names)
    lists = pa.ListArray.from_arrays(pa.array([0, len(entries)], pa.int32()), entries)
    return document.set_column(document.column_names.index("partitions"), "partitions", lists)


def _cut(content: bytes) -> tuple[bytes | None, list[int]]:
    """The document without its partitions, and where the pieces of these begin and end; None if it is not clear."""
    found = _PARTITIONS.search(content)
    end = content.rfind(b"}", 0, len(content) - 1) + 1  # of the last entry, if partitions come last
    if found is None or end <= found.end() or content[end:].lstrip(_SPACE)[:1] != b"]":
        return None, []
    cuts = [found.end()]
    while cuts[-1] < end:
        behind = content.find(b"}", min(cuts[-1] + LARGEST_PIECE, end) - 1, end) + 1
        cuts.append(behind or end)
    return content[: cuts[0]] + content[end:], cuts


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _has_gaps(document: pa.Table) -> bool:
    """Whether a value that must be there is missing or null, which Arrow does not tell apart."""
    if any(document[name].null_count for name in ("brokers", "partitions")):
        return True
    brokers, partitions = (document[name].chunk(0).flatten() for name in ("brokers", "partitions"))
    columns = [brokers.field("id"), *(partitions.field(name) for name in _REQUIRED)]
    values = [partitions.field("replicas").flatten(), *(document[name].chunk(0).flatten() for name in _LISTS)]
    return any(column.null_count for column in [brokers, partitions, *columns, *values])


def _has_infinities(document: pa.Table) -> bool:
    """Whether a number is NaN or too large, which JSON does not have and Arrow reads all the same."""
    brokers, partitions = (document[name].chunk(0).flatten() for name in ("brokers", "partitions"))
    capacity = brokers.field("capacity")
    columns = [
        *(capacity.field(name) for name in ("network_in", "network_out", "cpu")),
        *(partitions.field(name) for name in RATES),
    ]
    return any(not pc.all(pc.is_finite(one)).as_py() for one in columns if one.null_count < len(one))


def _brokers(document: pa.Table) -> pa.Table:
    said = ("rack", "capacity", "broker_set", "cordoned")
    rows = [
        {
            "broker": row["id"],
            "host": "",
            "port": 0,
            "alive": True,
            "log_dirs": [],
            **{name: row[name] for name in said},
        }
        for row in document["brokers"][0].as_py()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["broker"]), schema=BROKERS)


def _sorted_partitions(document: pa.Table) -> Any:
    partitions = document["partitions"].chunk(0).flatten()
    order = partition_order(partitions)
    return partitions if order is None else partitions.take(pa.array(order))


def _loads(partitions: Any) -> pa.Table | None:
    rates = [partitions.field(name) for name in RATES]
    if all(rate.null_count == len(rate) for rate in rates):
        return None
    topic = decode_texts(*encode_texts(partitions.field("topic")))
    table = pa.table([topic, partitions.field("partition"), *rates], schema=LOADS)
    return table.filter(pc.or_(*(pc.is_valid(rate) for rate in rates))) if all(r.null_count for r in rates) else table


def _replicas(partitions: Any) -> pa.Table:
    lists = partitions.field("replicas")
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    row = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    topic, topics = encode_texts(partitions.field("topic"))
    internal = pc.is_in(topics, value_set=pa.array(INTERNAL_TOPICS)).to_numpy(zero_copy_only=False)
    codes = topic[row]
    no = pa.array(np.zeros(len(row), np.bool_))
    columns = {
        "topic": decode_texts(codes, topics),
        "partition": _column(partitions, "partition")[row],
        "position": position.astype(np.int16),
        "broker": lists.flatten(),
        "leader": _leads(partitions, lists.flatten().to_numpy(), row, position),
        "in_sync": pa.array(np.ones(len(row), np.bool_)),
        "adding": no,
        "removing": no,
        "internal": internal[codes],
        "size_bytes": _column(partitions, "size")[row],
        "log_dir": pa.nulls(len(row), pa.string()),
        "start_offset": pa.nulls(len(row), pa.int64()),
        "end_offset": pa.nulls(len(row), pa.int64()),
        "min_insync_replicas": pa.nulls(len(row), pa.int16()),
    }
    return pa.table(columns, schema=REPLICAS)


def _leads(
    partitions: Any, brokers: NDArray[np.int32], row: NDArray[np.int64], position: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """By replica: whether it leads now, the first one where the file does not say."""
    leader = partitions.field("leader")
    first: NDArray[np.bool_] = position == 0
    if leader.null_count == len(leader):
        return first
    unsaid = pc.is_null(leader).to_numpy(zero_copy_only=False)[row]
    found: NDArray[np.bool_] = np.where(unsaid, first, leads(partitions, brokers, row))
    return found


def _column(partitions: Any, name: str) -> NDArray[Any]:
    values: NDArray[Any] = partitions.field(name).to_numpy()
    return values
