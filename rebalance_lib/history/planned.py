"""The loads that a plan is made with: of the hours before its snapshot, and of none after it; sizes as they will be.

The rates are one of three statistics of `loads`, for what is written and for what is read:

    mean    bytes in all kept intervals of the window, over their seconds
    p95     the 95th percentile over the kept intervals, each counting once
    last    the last kept interval

Sizes are those after a horizon of some days, so that a plan is still right then:

    size after the horizon = size of the last sample + growth x horizon, with growth at least 0

Growth is that of `loads`, the difference of local bytes from one sample to the next, summed over the window: last less
first, where no log was truncated in between. It is the mean whatever the statistic is: a percentile of growth is what
one interval may bring, and no partition grows at its busiest interval's pace for days. Where retention deletes as much
as is written, growth is about 0 by itself; it deletes whole segments, so that a window should be long enough for
several of them. A partition that became smaller keeps its size: what a shorter retention freed, it frees once.

With a horizon of 0 days sizes are null, and those of the snapshot count, which are of the moment and of each replica.
They are null, too, where growth is not known, as of a partition with one sample.

Example: a snapshot taken at noon and a window of 24 hours have the loads from noon of the day before up to and with
noon. What the history knows of the afternoon is not looked at, so that an old snapshot gives the plan it would have
given then. The partition of the example in `loads`, of 300 bytes, grows by 2.333 bytes per second: with a horizon of
one day its size is 300 + 2.333 x 86,400 = 201,900 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history.dataset import HistoryFile, clusters, files_between
from rebalance_lib.history.loads import read_group_reads, read_loads
from rebalance_lib.history.shares import Share, shares_of
from rebalance_lib.topology import TopicPartition
from rebalance_lib.topology.load_facts import LoadFacts

PLANNED_LOADS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("size_bytes", pa.int64()),  # of one replica after the horizon; null: as in the snapshot
        pa.field("write_rate", pa.float64()),  # bytes per second, as all rates; null: unknown
        pa.field("read_rate", pa.float64()),  # what consumers fetch from the leader
        pa.field("write_rate_p95", pa.float64()),  # whatever the statistic: what a throttle must be above
    ]
)
SECONDS_OF_A_DAY = 86_400
MOST_HOURS = 24 * 365 * 10.0  # of a window: no history is longer
MOST_DAYS = 3_650.0  # of a horizon: beyond it, growth of today says nothing
LARGEST_SIZE = 2.0**62  # as far as a size may grow: what sums of sizes can bear


class Statistic(StrEnum):
    """Which of the rates of `LOADS` count; the value is what a person types."""

    MEAN = "mean"
    P95 = "p95"
    LAST = "last"

    def column(self, rate: str) -> str:
        """The column of `LOADS` that has a rate by this statistic."""
        return rate if self is Statistic.MEAN else f"{rate}_{self}"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Which loads a plan is made with.

    Args:
        hours: How many hours of history before the snapshot count.
        statistic: What of these hours counts.
        horizon_days: After how many days sizes are estimated; 0: as they are.

    Raises:
        InvalidInputError: One of them makes no sense.
    """

    hours: float = 24.0
    statistic: Statistic = Statistic.MEAN
    horizon_days: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hours", "horizon_days"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, int | float):
                raise InvalidInputError(f"{name} is {value!r}: give a number")
        if not 0 < self.hours <= MOST_HOURS:
            raise InvalidInputError(f"the window is {self.hours} hours: give more than 0, up to {MOST_HOURS:,.0f}")
        if self.statistic not in list(Statistic):
            raise InvalidInputError(f"there is no load {self.statistic!r}: give one of {', '.join(Statistic)}")
        if not 0 <= self.horizon_days <= MOST_DAYS:
            raise InvalidInputError(f"the horizon is {self.horizon_days} days: give 0 up to {MOST_DAYS:,.0f}")
        object.__setattr__(self, "statistic", Statistic(self.statistic))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`; what is missing or None is as by default."""
        names = [one.name for one in fields(cls)]
        if unknown := sorted(set(given) - set(names)):
            raise InvalidInputError(f"loads have no {unknown[0]!r}: give some of {', '.join(names)}")
        return cls(**{name: value for name, value in given.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON can hold them."""
        return {**asdict(self), "statistic": str(self.statistic)}

    def arguments(self) -> list[str]:
        """The options as the Spark job takes them."""
        words = {"--window": self.hours, "--load": self.statistic, "--horizon": self.horizon_days}
        return [str(word) for option in words.items() for word in option]


def window_until(taken_at: str, hours: float) -> tuple[datetime, datetime]:
    """The window that ends with a snapshot taken then, or now if it is not said when; its end is not in it."""
    try:
        moment = datetime.fromisoformat(taken_at) if taken_at else datetime.now(UTC)
    except ValueError as error:
        raise InvalidInputError(f"the snapshot says it was taken at {taken_at!r}, which is no time: {error}") from error
    end = moment + timedelta(seconds=1)
    return end - timedelta(hours=hours), end


def planned_loads(
    history: Artifacts, cluster_id: str, taken_at: str, options: LoadOptions | None = None
) -> pa.Table | None:
    """The loads of a cluster's partitions for a plan, in `PLANNED_LOADS`, with their `LoadFacts`.

    Args:
        history: The directory of the history.
        cluster_id: Kafka's id of the cluster.
        taken_at: When the plan's snapshot was taken; empty for now.
        options: Which loads; by default the mean of 24 hours.

    Returns:
        A row for each partition of which anything is known; None where there is none, as of a single snapshot.
    """
    return planned_part(history, cluster_id, taken_at, options or LoadOptions(), (None, None))


def cuts_of(
    history: Artifacts, cluster_id: str, taken_at: str, options: LoadOptions, tasks: int
) -> list[TopicPartition]:
    """Where to cut a cluster's partitions for `planned_part`, so that as many tasks have about the same to read."""
    files = _files(history, cluster_id, taken_at, options.hours)
    return [share.low for share in shares_of(history, cluster_id, files, tasks) if share.low is not None]


def planned_part(
    history: Artifacts,
    cluster_id: str,
    taken_at: str,
    options: LoadOptions,
    between: tuple[TopicPartition | None, TopicPartition | None],
) -> pa.Table | None:
    """As `planned_loads`, of the partitions from one to before another; None for either end is no limit."""
    files = _files(history, cluster_id, taken_at, options.hours)
    return planned(read_loads(history, Share(cluster_id, files, *between)), options) if files else None


def group_reads(history: Artifacts, cluster_id: str, taken_at: str, hours: float = 24.0) -> pa.Table | None:
    """What each group reads of each partition, in `GROUP_READS`; None where the window has no snapshot."""
    files = _files(history, cluster_id, taken_at, hours)
    return read_group_reads(history, Share(cluster_id, files)) if files else None


def planned(loads: pa.Table, options: LoadOptions) -> pa.Table | None:
    """The loads for a plan out of those of the window: the one place that says which count, here and on Spark."""
    write, read = (loads[options.statistic.column(rate)] for rate in ("write_rate", "read_rate"))
    columns = [loads["topic"], loads["partition"], _sizes(loads, options), write, read, loads["write_rate_p95"]]
    table = pa.table(columns, schema=PLANNED_LOADS)
    known = [pc.is_valid(table[name]) for name in ("size_bytes", "write_rate", "read_rate")]
    table = table.filter(pc.or_(pc.or_(known[0], known[1]), known[2]))
    reset = pc.unique(pc.list_flatten(loads["groups_reset"])).to_pylist()
    facts = LoadFacts(str(options.statistic), options.hours, options.horizon_days, tuple(sorted(reset)))
    return facts.attach(table) if table.num_rows else None


def _sizes(loads: pa.Table, options: LoadOptions) -> pa.Array:
    """By partition: what one replica will occupy; null for as much as now, and where growth is not known."""
    if not options.horizon_days:
        return pa.nulls(loads.num_rows, pa.int64())
    size, growth = loads["size_bytes"].to_numpy(), pc.fill_null(loads["growth"], math.nan).to_numpy()
    grown = size + np.maximum(growth, 0.0) * (options.horizon_days * SECONDS_OF_A_DAY)
    whole = np.rint(np.nan_to_num(np.minimum(grown, LARGEST_SIZE))).astype(np.int64)
    return pa.array(whole, mask=np.isnan(grown))


def _files(history: Artifacts, cluster_id: str, taken_at: str, hours: float) -> tuple[HistoryFile, ...]:
    if cluster_id not in clusters(history):
        return ()
    return tuple(files_between(history, cluster_id, *window_until(taken_at, hours)))
