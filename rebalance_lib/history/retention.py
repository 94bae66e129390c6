"""How long the history is kept, and how finely: old snapshots are thinned to one an hour, older ones are dropped.

Rates come from differences between snapshots, so that fewer of them leave growth from one that stays to another as it
was; percentiles then are of hours. Of each hour the first snapshot stays, so that thinning again, later or by somebody
else at the same moment, finds the same ones.

Example: with ``compact_after`` two days and ``keep`` 30, at noon of the 31st:

    before noon of the 1st     dropped; whole days go as a directory, and none of their files is opened
    before noon of the 29th    the first of each hour stays: of 10:00, 10:20, 10:40 and 11:00, the first and the last
    since then                 all stay
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history.dataset import DAY, cluster_directory, clusters, files_of_day, utc


class Retained(NamedTuple):
    """How many snapshots are left, how many went because their hour had an earlier one, and how many by age."""

    kept: int = 0
    thinned: int = 0
    dropped: int = 0


def compact_history(history: Artifacts, *, now: datetime, compact_after: timedelta, keep: timedelta) -> Retained:
    """Thin out and drop old snapshots of all clusters; it can be run again at any moment, and by several at once.

    Args:
        history: The directory of the history.
        now: The moment that ages are counted from, with a time zone.
        compact_after: The age from which one snapshot an hour is enough.
        keep: The age from which none is kept.
    """
    now = utc(now, "the moment to count ages from")
    found = [_compact(history, cluster_directory(one), now - compact_after, now - keep) for one in clusters(history)]
    return Retained(*map(sum, zip(*found, strict=True))) if found else Retained()


def _compact(history: Artifacts, cluster: str, thin_before: datetime, drop_before: datetime) -> Retained:
    kept = thinned = dropped = 0
    for day in filter(DAY.fullmatch, (history / cluster).directories()):
        files = files_of_day(history, f"{cluster}/{day}")
        if datetime.fromisoformat(day.removeprefix("day=")).replace(tzinfo=UTC) + timedelta(days=1) <= drop_before:
            (history / cluster / day).remove()
            dropped += len(files)
            continue
        old = [file.name for file in files if file.taken_at < drop_before]
        rest = [file for file in files if drop_before <= file.taken_at < thin_before]
        hours = groupby(rest, key=lambda file: file.taken_at.hour)
        repeated = [file.name for _, hour in hours for file in list(hour)[1:]]
        history.remove_files([*old, *repeated])
        dropped, thinned = dropped + len(old), thinned + len(repeated)
        kept += len(files) - len(old) - len(repeated)
    return Retained(kept, thinned, dropped)
