"""What each log dir held at each moment of the history, and how much it can hold: what `capacity` is asked with.

A place is a log dir, a broker or a cluster. What it held is the sum of its replicas' sizes; replicas whose size was not
known then, since a broker or a log dir did not answer, are counted. What a place can hold is from a snapshot:

    total    bytes of its disks
    other    what else is on them: total - usable - replicas, at the time of the snapshot; taken to stay as it is

A disk that a person gave for a broker (`rebalance_lib.topology.capacities`) counts instead of its log dirs': it is
shared among them as their own sizes are, or evenly, and holds nothing else. A place of which not all log dirs are known
has no capacity.

Example: a log dir of 100 bytes, 55 usable, whose replicas have 40: 5 are others'. With 70 bytes of replicas it is at
75 %, and it passes 90 % with 85 bytes of replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import REPLICAS, Capacities, Snapshot

USAGE = pa.schema(
    [
        pa.field("taken_at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string()),  # null where it is not known
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("replicas", pa.int64(), nullable=False),
        pa.field("unknown", pa.int64(), nullable=False),  # of these, those without a size
    ]
)
LOG_DIRS = pa.schema(
    [
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("taken_at", pa.string(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string()),
        pa.field("total_bytes", pa.int64()),
        pa.field("other_bytes", pa.int64()),
    ]
)
PLACE = ["taken_at", "broker", "log_dir"]
SECOND = pa.timestamp("s", "UTC")  # how the history counts moments
ROWS = 1_000_000  # of a file that are summed at a time


def read_usage(history: Artifacts, name: str, moments: Sequence[datetime]) -> pa.Table:
    """What each log dir held, at those of these moments that a file of the history has, in `USAGE`.

    Args:
        history: The directory of the history.
        name: A file in it, of one moment or of a whole day.
        moments: Those that `dataset.files_between` lists for this file: others may be in another file, too.

    Raises:
        InvalidInputError: It is no Parquet file, or none of a history.
    """
    wanted = pa.array(moments, SECOND)
    try:
        with history.open_parquet(name) as file:
            batches = file.iter_batches(ROWS, columns=[*PLACE, "size_bytes"])
            parts = [_summed(_at(wanted, pa.Table.from_batches([batch]))) for batch in batches]
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InvalidInputError(f"{history.uri}/{name} cannot be read: {error}") from error
    whole = pa.concat_tables([USAGE.empty_table(), *parts]).group_by(PLACE, use_threads=False)
    sums = whole.aggregate([(column, "sum") for column in ("bytes", "replicas", "unknown")])
    return sums.rename_columns([*PLACE, "bytes", "replicas", "unknown"]).cast(USAGE)


def _at(moments: pa.Array, rows: pa.Table) -> pa.Table:
    """The rows of these moments: whole seconds, while rows may have fractions of them."""
    if missing := {*PLACE, "size_bytes"} - set(rows.column_names):
        raise KeyError(f"it has no column {min(missing)}")
    return rows.filter(pc.is_in(pc.cast(rows["taken_at"], SECOND, safe=False), value_set=moments))


def _summed(rows: pa.Table) -> pa.Table:
    unknown = pc.cast(pc.is_null(rows["size_bytes"]), pa.int64())
    rows = rows.append_column("unknown", unknown).set_column(3, "bytes", pc.fill_null(rows["size_bytes"], 0))
    sums = rows.group_by(PLACE, use_threads=False).aggregate(
        [("bytes", "sum"), ("broker", "count"), ("unknown", "sum")]
    )
    return sums.rename_columns([*PLACE, "bytes", "replicas", "unknown"]).cast(USAGE)


def read_log_dirs(snapshot: Artifacts, given: Capacities | None = None) -> pa.Table:
    """The log dirs of a snapshot's brokers in `LOG_DIRS`; a broker that has told none has one without a name.

    Args:
        snapshot: The directory of the snapshot.
        given: What a person said of the brokers' disks.

    Raises:
        InvalidInputError: The snapshot is damaged, or what was given is of brokers that it does not have.
    """
    read = Snapshot.from_tables(snapshot.read_table("brokers.parquet"), REPLICAS.empty_table())
    if given is not None:
        read = replace(read, brokers=given.apply(read).brokers)
    held = _held(snapshot)
    rows = [
        {"cluster": read.cluster_id, "taken_at": read.taken_at, "broker": broker["broker"], **one}
        for broker in read.brokers.select(["broker", "log_dirs", "capacity"]).to_pylist()
        for one in _of_broker(broker, held)
    ]
    return pa.Table.from_pylist(rows, schema=LOG_DIRS)


def _held(snapshot: Artifacts) -> dict[tuple[int, str], int]:
    with snapshot.open_parquet("replicas.parquet") as file:
        rows = file.read(["broker", "log_dir", "size_bytes"])
    sums = rows.group_by(["broker", "log_dir"], use_threads=False).aggregate([("size_bytes", "sum")]).to_pylist()
    return {(row["broker"], row["log_dir"]): row["size_bytes_sum"] or 0 for row in sums}


def _of_broker(broker: dict[str, Any], held: dict[tuple[int, str], int]) -> list[dict[str, Any]]:
    dirs = broker["log_dirs"]
    disk = (broker["capacity"] or {}).get("disk")
    if not dirs:
        return [{"log_dir": None, "total_bytes": disk, "other_bytes": 0}]
    if disk is not None:
        sizes = [one["total_bytes"] for one in dirs]
        parts = sizes if all(sizes) else [1] * len(dirs)
        shares = [disk * part // sum(parts) for part in parts]
        return [
            {"log_dir": one["path"], "total_bytes": share, "other_bytes": 0}
            for one, share in zip(dirs, shares, strict=True)
        ]
    return [
        {
            "log_dir": one["path"],
            "total_bytes": one["total_bytes"],
            "other_bytes": _other(one, held.get((broker["broker"], one["path"]), 0)),
        }
        for one in dirs
    ]


def _other(log_dir: dict[str, Any], held: int) -> int:
    total, usable = log_dir["total_bytes"], log_dir["usable_bytes"]
    return 0 if total is None or usable is None else max(0, total - usable - held)
