"""Histories for tests, written as rows of ``topic partition broker leader size start end`` at some second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

from rebalance_lib.history import HISTORY, append_sample

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    topic: str
    partition: int
    broker: int
    leader: bool
    size: int | None
    start: int | None
    end: int | None
    committed: dict[str, int] | None = None  # by group; None: groups were not listed


def moment(seconds):
    return MIDNIGHT + timedelta(seconds=seconds)


def window(end, start=0):
    return moment(start), moment(end)


def sample(rows, seconds):
    columns = list(zip(*rows, strict=True)) or [[]] * len(Row._fields)
    named = dict(zip(Row._fields, columns, strict=True))
    return pa.table(
        {
            "taken_at": [moment(seconds)] * len(rows),
            "topic": named["topic"],
            "partition": named["partition"],
            "position": pa.nulls(len(rows), pa.int16()),
            "broker": named["broker"],
            "leader": named["leader"],
            "size_bytes": named["size"],
            "start_offset": named["start"],
            "end_offset": named["end"],
            "log_dir": pa.nulls(len(rows), pa.string()),
            "committed": [
                None
                if row.committed is None or not row.leader
                else [{"group": g, "offset": n} for g, n in row.committed.items()]
                for row in rows
            ],
        },
        schema=HISTORY,
    )


def write(history, cluster_id, by_second):
    for seconds, rows in by_second.items():
        append_sample(history, cluster_id, sample(rows, seconds), moment(seconds))


EXAMPLE = {
    0: [Row("orders", 0, 1, True, 1000, 0, 10)],
    100: [Row("orders", 0, 1, True, 2000, 0, 20)],
    200: [Row("orders", 0, 1, True, 1500, 10, 25)],
    300: [Row("orders", 0, 1, True, 100, 0, 1)],
    400: [Row("orders", 0, 1, True, 300, 0, 3)],
}
READ_EXAMPLE = {
    at: [Row("orders", 0, 1, True, 10_000, 0, 100, committed)]
    for at, committed in {
        0: {"billing": 10},
        100: {"billing": 30, "audit": 5},
        200: {"billing": 40, "audit": 25},
        300: {"billing": 20, "audit": 35},
    }.items()
}
