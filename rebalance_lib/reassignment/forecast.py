"""What a dry run tells: waves, brokers, log dirs, partitions at their min ISR, and what was taken for granted.

A wave is what begins together. Where moves begin one by one, which is what caps lead to, those that begin within the
same twentieth of the time are shown as one wave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from rebalance_lib.plan.columns import partition_at
from rebalance_lib.reassignment.least_throttle import LeastThrottle
from rebalance_lib.reassignment.log_dirs import UNKNOWN, Use, sum_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.plan.pace import Pace
    from rebalance_lib.reassignment.conditions import Conditions
    from rebalance_lib.reassignment.work import Work

    Changes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]

WAVES_SHOWN = 20
NAMED = 50  # partitions that a list in a file names at most

MOVES = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("stage", pa.int32(), nullable=False),
        pa.field("begins", pa.float64(), nullable=False),
        pa.field("ends", pa.float64()),  # null where it never does
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
COPIES = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("from_broker", pa.int32()),  # null where it does not begin
        pa.field("to_broker", pa.int32(), nullable=False),
        pa.field("log_dir", pa.string()),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("begins", pa.float64()),
        pa.field("ends", pa.float64()),
    ]
)


@dataclass(slots=True)
class MoveTimes:
    """When each stage of each partition begins and ends, in the order in which they begin."""

    partition: list[int] = field(default_factory=list)
    stage: list[int] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    _place: dict[tuple[int, int], int] = field(default_factory=dict)

    def begin(self, partition: int, stage: int, now: float, size: int) -> None:
        """A stage begins."""
        self._place[partition, stage] = len(self.partition)
        self.partition.append(partition)
        self.stage.append(stage)
        self.begins.append(now)
        self.ends.append(float("nan"))
        self.bytes.append(size)

    def end(self, partition: int, stage: int, now: float) -> None:
        """A stage is over."""
        self.ends[self._place[partition, stage]] = now


@dataclass(frozen=True, eq=False)
class Timeline:
    """What a dry run found, in the numbers of its `Work`; times are seconds, NaN for what does not happen."""

    begins: NDArray[np.float64]  # by copy, as the next three
    ends: NDArray[np.float64]
    senders: NDArray[np.int64]
    log_dirs: NDArray[np.int64]
    gone: NDArray[np.float64]  # by replica: when its files are gone
    moves: MoveTimes
    peak_out: NDArray[np.float64]  # by broker, bytes per second
    peak_in: NDArray[np.float64]
    blocked: list[int]  # partitions without a leader, or with a target that is down
    never: list[int]  # partitions that do not end: written to as fast as they are copied, or waiting for such ones
    at_min_isr: list[int] | None


@dataclass(frozen=True, slots=True)
class Wave:
    """Moves that begin together; ``ends`` is None if one of them never does."""

    number: int
    begins: float
    ends: float | None
    partitions: int
    bytes: int
    seconds_left: float | None  # after its end, until all is done; None if that never is


@dataclass(frozen=True, slots=True)
class BrokerForecast:
    """A broker on the way: the most on its disks, and the most traffic of these moves, in bytes per second."""

    broker: int
    bytes_before: int
    bytes_peak: int
    bytes_after: int
    total_bytes: int | None
    peak_in: float
    peak_out: float


@dataclass(frozen=True, slots=True)
class LogDirForecast:
    """A log dir on the way; ``path`` is None where the snapshot does not name it."""

    broker: int
    path: str | None
    bytes_before: int
    bytes_peak: int
    bytes_after: int
    peak_at: float
    total_bytes: int | None
    usable_bytes: int | None

    @property
    def overflows(self) -> bool:
        """Whether there is less disk space than these moves need; no, where it is not known."""
        return self.lacks() > 0

    def lacks(self, reserve: float = 0.0) -> int:
        """The bytes that these moves need beyond the disk space there is, with this part of the log dir kept free."""
        if self.usable_bytes is None or self.bytes_peak == self.bytes_before:
            return 0
        free = self.usable_bytes - reserve * (self.total_bytes or 0)
        return max(0, math.ceil(self.bytes_peak - self.bytes_before - max(0.0, free)))

    @property
    def fill(self) -> float | None:
        """The part of the disk in use at the peak, whoever uses it."""
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return (self.total_bytes - self.usable_bytes + self.bytes_peak - self.bytes_before) / self.total_bytes


@dataclass(frozen=True, eq=False)
class Forecast:
    """The timeline of a plan at a pace.

    ``never`` would not catch up at this pace: if there are any, ``seconds`` is None, since the plan never finishes, and
    ``least_throttle`` says at which throttles it would. ``blocked`` cannot move as the cluster is now, and is not part
    of ``seconds``. ``at_min_isr`` is None where min.insync.replicas is not known.
    """

    seconds: float | None
    exact: bool
    partitions: int
    bytes: int
    waves: tuple[Wave, ...]
    brokers: tuple[BrokerForecast, ...]
    log_dirs: tuple[LogDirForecast, ...]
    at_min_isr: tuple[str, ...] | None
    blocked: tuple[str, ...]
    never: tuple[str, ...]
    least_throttle: LeastThrottle
    assumptions: tuple[str, ...]
    moves: pa.Table
    work: Work
    timeline: Timeline

    @cached_property
    def copies(self) -> pa.Table:
        """Each new replica, and each that goes to another log dir: from where, to where, and when."""
        return _copies(self.work, self.timeline)

    @property
    def overflowing(self) -> tuple[LogDirForecast, ...]:
        """The log dirs that would run out of disk space."""
        return tuple(log_dir for log_dir in self.log_dirs if log_dir.overflows)

    def as_dict(self, *, moves: bool = False, reserve: float = 0.0) -> dict[str, Any]:
        """For JSON; with ``moves``, each of them too. A log dir overflows that has not this ``reserve`` left."""
        values: dict[str, Any] = {
            "seconds": self.seconds,
            "exact": self.exact,
            "partitions": self.partitions,
            "bytes": self.bytes,
            "overflows": any(log_dir.lacks(reserve) for log_dir in self.log_dirs),
            "waves": [_fields(wave) for wave in self.waves],
            "brokers": [_fields(broker) for broker in self.brokers],
            "log_dirs": [
                {**_fields(log_dir), "fill": log_dir.fill, "overflows": log_dir.lacks(reserve) > 0}
                for log_dir in self.log_dirs
            ],
            "at_min_isr": None if self.at_min_isr is None else _listed(self.at_min_isr),
            "blocked": _listed(self.blocked),
            "never": {
                **_listed(self.never),
                "least_throttle": self.least_throttle.throttle,
                "least_log_dir_throttle": self.least_throttle.log_dir_throttle,
            },
            "assumptions": list(self.assumptions),
        }
        return values | ({"moves": self.moves.to_pylist()} if moves else {})


def _fields(one: Wave | BrokerForecast | LogDirForecast) -> dict[str, Any]:
    """Its fields by name; they are plain values, and there are too many of them for the copies that asdict makes."""
    return {name: getattr(one, name) for name in one.__slots__}


def _listed(names: tuple[str, ...]) -> dict[str, Any]:
    return {"count": len(names), "partitions": list(names[:NAMED])}


def forecast_of(work: Work, timeline: Timeline, pace: Pace, conditions: Conditions, *, exact: bool = True) -> Forecast:
    """What a timeline means for brokers and log dirs."""
    changes = _changes(work, timeline, conditions)
    use = Use.of(work.log_dirs.before, *changes)
    moves = _moves(work, timeline)
    ends = np.concatenate([[0.0], moves["ends"].to_numpy(), timeline.ends])
    seconds = None if timeline.never else float(np.nanmax(ends))
    at_min_isr = timeline.at_min_isr
    return Forecast(
        seconds=seconds,
        exact=exact,
        partitions=work.partitions,
        bytes=int(work.copies.size.sum()),
        waves=_waves(moves, seconds),
        brokers=_brokers(work, timeline, changes, use),
        log_dirs=_log_dirs(work, use),
        at_min_isr=None if at_min_isr is None else _names(work, at_min_isr),
        blocked=_names(work, timeline.blocked),
        never=_names(work, timeline.never),
        least_throttle=LeastThrottle.of(work, pace, conditions) if timeline.never else LeastThrottle(),
        assumptions=tuple(_assumptions(work, timeline, pace, conditions, exact=exact)),
        moves=moves,
        work=work,
        timeline=timeline,
    )


def _names(work: Work, rows: list[int]) -> tuple[str, ...]:
    return tuple(str(partition_at(work.entries, row)) for row in rows)


def _changes(work: Work, timeline: Timeline, conditions: Conditions) -> Changes:
    """Where, when and by how much log dirs change; what comes stands before what goes."""
    copies, replicas = work.copies, work.replicas
    begun = ~np.isnan(timeline.begins)
    moved = copies.within & ~np.isnan(timeline.ends)
    gone = np.flatnonzero(~np.isnan(timeline.gone))
    where = (timeline.log_dirs[begun], copies.from_log_dir[moved], replicas.log_dir[gone])
    when = (timeline.begins[begun], timeline.ends[moved] + conditions.delete_delay, timeline.gone[gone])
    change = (copies.size[begun], -copies.size[moved], -np.maximum(replicas.size[gone], 0))
    return np.concatenate(where), np.concatenate(when), np.concatenate(change)


def _log_dirs(work: Work, use: Use) -> tuple[LogDirForecast, ...]:
    dirs = work.log_dirs
    rows = zip(
        dirs.broker_ids[dirs.broker].tolist(),
        dirs.paths,
        dirs.before.tolist(),
        use.peak.tolist(),
        use.after.tolist(),
        use.moment.tolist(),
        dirs.total,
        dirs.usable,
        strict=True,
    )
    return tuple(LogDirForecast(*row) for row in rows)


def _brokers(work: Work, timeline: Timeline, changes: Changes, use: Use) -> tuple[BrokerForecast, ...]:
    dirs, count = work.log_dirs, len(work.brokers)
    before = sum_by(dirs.broker, dirs.before, count)
    if count != len(dirs.paths):  # else each broker is its one log dir
        where, when, change = changes
        use = Use.of(before, dirs.broker[where], when, change)
    totals: list[int | None] = []
    for place in range(count):
        listed = dirs.total[dirs.first[place] : dirs.first[place + 1]]
        known = [total for total in listed if total is not None]
        totals.append(sum(known) if known and len(known) == len(listed) else None)
    rows = zip(
        work.brokers.tolist(),
        before.tolist(),
        use.peak.tolist(),
        use.after.tolist(),
        totals,
        timeline.peak_in.tolist(),
        timeline.peak_out.tolist(),
        strict=True,
    )
    return tuple(BrokerForecast(*row) for row in rows)


def _waves(moves: pa.Table, seconds: float | None) -> tuple[Wave, ...]:
    if not moves.num_rows:
        return ()
    begins, ends, sizes = (moves[name].to_numpy() for name in ("begins", "ends", "bytes"))
    moments, group = np.unique(begins, return_inverse=True)
    if len(moments) > WAVES_SHOWN:
        last = begins.max() if seconds is None else seconds
        part = np.minimum(begins * WAVES_SHOWN / max(last, 1e-9), WAVES_SHOWN - 1).astype(np.int64)
        moments, group = np.unique(part, return_inverse=True)
    if seconds is not None:  # blocked ones have no end of their own
        ends = np.where(np.isnan(ends), seconds, ends)
    waves = []
    for number in range(len(moments)):
        own = np.flatnonzero(group == number)
        end = float(ends[own].max())  # NaN if one of them never ends
        waves.append(
            Wave(
                number=number + 1,
                begins=float(begins[own].min()),
                ends=None if math.isnan(end) else end,
                partitions=len(own),
                bytes=int(sizes[own].sum()),
                seconds_left=None if seconds is None else max(0.0, seconds - end),
            )
        )
    return tuple(waves)


def _moves(work: Work, timeline: Timeline) -> pa.Table:
    """A row per stage; a partition whose replicas also change log dirs is done when these are."""
    times = timeline.moves
    rows = np.array(times.partition, np.int64)
    ends, sizes = np.array(times.ends, np.float64), np.array(times.bytes, np.int64)
    within = np.flatnonzero(work.copies.within)
    if len(within) and len(rows):
        last = np.full(work.partitions, -1)
        last[rows] = np.arange(len(rows))
        own = last[work.copies.partition[within]]
        begun = own >= 0
        with np.errstate(invalid="ignore"):  # NaN, which stays one: a copy that never ends
            np.maximum.at(ends, own[begun], timeline.ends[within][begun])
        np.add.at(sizes, own[begun], work.copies.size[within][begun])
    named = work.entries.select(["topic", "partition"]).take(pa.array(rows))
    columns = [
        *named.columns,
        pa.array(times.stage, pa.int32()),
        pa.array(times.begins, pa.float64()),
        pa.array(ends, pa.float64(), mask=np.isnan(ends)),
        pa.array(sizes, pa.int64()),
    ]
    return pa.table(columns, schema=MOVES)


def _copies(work: Work, timeline: Timeline) -> pa.Table:
    copies = work.copies
    named = work.entries.select(["topic", "partition"]).take(pa.array(copies.partition))
    waits = np.isnan(timeline.begins)
    chosen = timeline.log_dirs
    columns = [
        *named.columns,
        pa.array(work.brokers[np.where(waits, 0, timeline.senders)], pa.int32(), mask=waits),
        pa.array(work.brokers[copies.broker], pa.int32()),
        pa.array(work.log_dirs.paths, pa.string()).take(pa.array(chosen, pa.int64(), mask=chosen == UNKNOWN)),
        pa.array(copies.size, pa.int64()),
        pa.array(timeline.begins, pa.float64(), mask=waits),
        pa.array(timeline.ends, pa.float64(), mask=np.isnan(timeline.ends)),
    ]
    return pa.table(columns, schema=COPIES)


def _assumptions(work: Work, timeline: Timeline, pace: Pace, conditions: Conditions, *, exact: bool) -> list[str]:
    rate = f"{conditions.unthrottled / 1e6:g} MB/s"
    notes = []
    if not exact:
        notes.append(
            "The plan is large: brokers are taken to work through their copies in order without waiting for each other."
        )
    if pace.throttle is None and not work.copies.within.all():
        notes.append(f"There is no throttle: each broker is taken to send and receive {rate} of these copies.")
    if pace.log_dir_throttle is None and work.copies.within.any():
        notes.append(f"There is no throttle between log dirs: each broker is taken to copy {rate}.")
    if pace.throttle is not None or pace.log_dir_throttle is not None:
        notes.append(f"Copies are taken to reach {conditions.reached:.0%} of a throttle, about what Kafka does.")
    if work.partitions:
        notes.append(f"Removed replicas stay on the disks for {conditions.delete_delay:g} s (file.delete.delay.ms).")
    if work.partitions and not work.rates_known:
        notes.append("Write rates are not known: what is written meanwhile is not counted.")
    elif work.partitions:
        notes.append("What is written meanwhile is copied too; disks are taken to keep their size otherwise.")
    if work.unknown_sizes:
        notes.append(f"The size of {work.unknown_sizes} replicas is not known: they count as nothing on their disks.")
    if timeline.at_min_isr is None and work.partitions:
        notes.append("min.insync.replicas is not known: partitions that come down to it are not named.")
    return notes
