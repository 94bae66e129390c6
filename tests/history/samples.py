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
