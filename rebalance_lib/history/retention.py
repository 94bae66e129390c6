"""How long the history is kept, and how finely: old snapshots are thinned to one an hour, older ones are dropped.

Rates come from differences between snapshots, so that fewer of them leave growth from one that stays to another as it
was; percentiles then are of hours. Of each hour the first snapshot stays, so that thinning again, later or by somebody
else at the same moment, finds the same ones.

Example: with ``thin_after`` two days and ``keep`` 30, at noon of the 31st:

    before noon of the 1st     dropped; whole days go as a directory, and none of their files is opened
    before noon of the 29th    the first of each hour stays: of 10:00, 10:20, 10:40 and 11:00, the first and the last
    since then                 all stay

A day that was compacted (`compaction`) is one file, so that it is thinned and dropped as a whole: as soon as its last
moment is old enough. Its file is replaced by one with fewer moments, by the same steps.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import RebalanceError
from rebalance_lib.history.compaction import day_of, replace_files
from rebalance_lib.history.dataset import (
    DAY,
    HistoryFile,
    cluster_directory,
    clusters,
    files_of_day,
    is_day_file,
    utc,
)


class Retained(NamedTuple):
    """How many snapshots are left, how many went because their hour had an earlier one, and how many by age.

    The problems are those of compacted days, which stay as they are.
    """

    kept: int = 0
    thinned: int = 0
    dropped: int = 0
    problems: tuple[str, ...] = ()


class Ages(NamedTuple):
    """Before which moment one snapshot an hour is enough, and before which none is kept."""

    thin_before: datetime
    drop_before: datetime


def thin_history(history: Artifacts, *, now: datetime, thin_after: timedelta, keep: timedelta) -> Retained:
    """Thin out and drop old snapshots of all clusters; it can be run again at any moment, and by several at once.

    Args:
        history: The directory of the history.
        now: The moment that ages are counted from, with a time zone.
        thin_after: The age from which one snapshot an hour is enough.
        keep: The age from which none is kept.
    """
    now = utc(now, "the moment to count ages from")
    ages = Ages(now - thin_after, now - keep)
    found = [
        _thin(history, f"{cluster}/{day}", ages)
        for cluster in map(cluster_directory, clusters(history))
        for day in filter(DAY.fullmatch, (history / cluster).directories())
    ]
    return Retained(
        sum(one.kept for one in found),
        sum(one.thinned for one in found),
        sum(one.dropped for one in found),
        tuple(line for one in found for line in one.problems),
    )


def _thin(history: Artifacts, directory: str, ages: Ages) -> Retained:
    end = day_of(directory) + timedelta(days=1)
    try:
        files = files_of_day(history, directory)
    except RebalanceError as error:
        files, problem = [], str(error)
    else:
        problem = ""
    if end <= ages.drop_before:
        (history / directory).remove()
        return Retained(dropped=len(files))
    if problem:
        return Retained(problems=(problem,))
    if any(is_day_file(file.name) for file in files):
        return _thin_compacted(history, directory, files) if end <= ages.thin_before else Retained(len(files))
    old = [file.name for file in files if file.taken_at < ages.drop_before]
    rest = {file.taken_at: file.name for file in files if ages.drop_before <= file.taken_at < ages.thin_before}
    repeated = rest.keys() - first_of_each_hour(list(rest))
    history.remove_files([*old, *(rest[moment] for moment in sorted(repeated))])
    return Retained(len(files) - len(old) - len(repeated), len(repeated), len(old))


def _thin_compacted(history: Artifacts, directory: str, files: list[HistoryFile]) -> Retained:
    kept = len(first_of_each_hour([file.taken_at for file in files]))
    if kept == len(files):
        return Retained(kept)
    try:
        found = replace_files(history, directory, first_of_each_hour)
    except RebalanceError as error:
        return Retained(len(files), problems=(str(error),))
    return Retained(kept, len(files) - kept, problems=found.problems)


def first_of_each_hour(moments: list[datetime]) -> list[datetime]:
    """Of a day's moments, by time, those whose hour has no earlier one."""
    return [next(hour) for _, hour in groupby(moments, key=lambda moment: moment.hour)]
