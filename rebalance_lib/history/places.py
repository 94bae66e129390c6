"""The forecast of one place, a log dir, a broker or a cluster, as a row; and what more brokers would postpone.

A moment in which more than `UNKNOWN` of a place's replicas had no size is none of its samples: the sum would be a step
that is none. A place without a sample in the last day of its cluster is told so, and has no forecast: its broker is
down, or holds nothing any more.

`n` more brokers are taken to be of the mean size of those there are, and to hold as much else: a cluster of `b` brokers
then has room for (b + n) / b of the bytes, once replicas are spread by capacity. A broker's row compares the day of the
cluster then with its own day now, which a broker that is fuller than others reaches sooner than the cluster.

Example: four brokers of 100 bytes hold 240 together, and 4 more each day. They pass 90 %, 360, in 30 days. With one
more, the limit is 450, in 52.5 days: 22.5 days later. A broker that would pass it in 10 days gains 42.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history.capacity import Forecast, Passing, forecast

_MOMENT = pa.timestamp("us", "UTC")
FORECASTS = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("scope", pa.string()),  # log_dir, broker or cluster
        pa.field("broker", pa.int32()),  # null: all of the cluster
        pa.field("log_dir", pa.string()),  # null: all of the broker
        pa.field("total_bytes", pa.int64()),  # null: not known, and with it fill and days
        pa.field("used_bytes", pa.int64()),  # by replicas, at the last sample
        pa.field("fill", pa.float64()),  # with what else is on the disks
        pa.field("growth_per_day", pa.float64()),  # bytes; null: too few samples
        pa.field("steps", pa.int32()),
        pa.field("samples", pa.int32()),
        pa.field("last_sample", _MOMENT),
        pa.field("passes_early", _MOMENT),  # the fill level; null: not within a year
        pa.field("passes_likely", _MOMENT),
        pa.field("passes_late", _MOMENT),
        pa.field("full_early", _MOMENT),
        pa.field("full_likely", _MOMENT),
        pa.field("full_late", _MOMENT),
        pa.field("passes_with_more", _MOMENT),  # likely, with more brokers
        pa.field("full_with_more", _MOMENT),
        pa.field("passes_postponed_days", pa.float64()),
        pa.field("full_postponed_days", pa.float64()),
        pa.field("note", pa.string()),  # why there are no days
    ]
)
UNKNOWN = 0.01
STALE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Question:
    """The fill level, as a part of the disk, and how many brokers might come."""

    fill: float = 0.9
    more_brokers: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.fill <= 1:
            raise InvalidInputError(f"the fill level is {self.fill}: give a part of the disk, above 0 and up to 1")
        if not 0 <= self.more_brokers <= 100_000:
            raise InvalidInputError(f"{self.more_brokers} more brokers: give a number from 0 to 100,000")


def forecast_place(samples: pa.Table, question: Question) -> pa.Table:
    """One row of `FORECASTS`, or none without a sample.

    Args:
        samples: A row for each moment: cluster, scope, broker, log_dir, taken_at, bytes, replicas, unknown, and in each
            the place's total_bytes, other_bytes and brokers, null where they are not known.
        question: What is asked.
    """
    unknown, replicas = (samples[name].to_numpy() for name in ("unknown", "replicas"))
    samples = samples.filter(pa.array(unknown <= UNKNOWN * replicas)).sort_by("taken_at")
    if not samples.num_rows:
        return FORECASTS.empty_table()
    last = samples.slice(samples.num_rows - 1).to_pylist()[0]
    seconds = samples["taken_at"].cast(_MOMENT).cast(pa.int64()).to_numpy() / 1e6
    found = forecast(seconds, samples["bytes"].to_numpy().astype(np.float64))
    row: dict[str, Any] = {name: last[name] for name in ("cluster", "scope", "broker", "log_dir", "total_bytes")}
    row |= {"used_bytes": last["bytes"], "samples": samples.num_rows, "last_sample": last["taken_at"]}
    if last["total_bytes"]:
        row["fill"] = (last["bytes"] + last["other_bytes"]) / last["total_bytes"]
    if found is None:
        row["note"] = "samples of less than a day"
    else:
        row |= {"growth_per_day": found.growth, "steps": len(found.steps)} | _days(found, last, question)
    return pa.Table.from_pylist([row], schema=FORECASTS)


def _days(found: Forecast, place: dict[str, Any], question: Question) -> dict[str, Any]:
    if not place["total_bytes"]:
        return {"note": "no capacity is known"}
    row: dict[str, Any] = {}
    for name, fill in (("passes", question.fill), ("full", 1.0)):
        limit = fill * place["total_bytes"] - place["other_bytes"]
        days = found.passes(limit)
        row |= {f"{name}_{when}": _after(place, one) for when, one in zip(Passing._fields, days, strict=True)}
        if question.more_brokers and place["scope"] == "cluster":
            more = found.passes(limit * (place["brokers"] + question.more_brokers) / place["brokers"])
            row[f"{name}_with_more"] = _after(place, more.likely)
    if row["passes_likely"] is None:
        row["note"] = "not within a year"
    return row


def _after(place: dict[str, Any], days: float | None) -> datetime | None:
    return None if days is None else place["taken_at"] + timedelta(days=days)


def finish(forecasts: pa.Table) -> pa.Table:
    """All places in order, those without a recent sample marked, and with more brokers the days that are gained."""
    rows = forecasts.to_pylist()
    newest: dict[str, datetime] = {}
    for row in rows:
        newest[row["cluster"]] = max(row["last_sample"], newest.get(row["cluster"], row["last_sample"]))
    wholes = {row["cluster"]: row for row in rows if row["scope"] == "cluster"}
    for row in rows:
        if row["used_bytes"] is not None and row["last_sample"] < newest[row["cluster"]] - STALE:
            row.update({name: None for name in FORECASTS.names if name.startswith(("passes", "full", "growth"))})
            row["note"] = f"no size since {row['last_sample']:%Y-%m-%d %H:%M}"
        elif row["scope"] != "log_dir":
            row.update(_gained(row, wholes.get(row["cluster"], {})))
    scopes = ("cluster", "broker", "log_dir")
    rows.sort(key=lambda row: (row["cluster"], scopes.index(row["scope"]), row["broker"] or 0, row["log_dir"] or ""))
    return pa.Table.from_pylist(rows, schema=FORECASTS)


def _gained(row: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("passes", "full"):
        then, now = whole.get(f"{name}_with_more"), row[f"{name}_likely"]
        if then is not None:
            found[f"{name}_with_more"] = then
            found[f"{name}_postponed_days"] = None if now is None else (then - now).total_seconds() / 86_400
    return found
