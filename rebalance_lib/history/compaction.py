"""One file for each cluster and day that is over, instead of one for each snapshot: 1 instead of 288.

Nothing is lost, doubled or torn if it dies at any moment, if two do it at once, or while others read, but for one
thing that is said below:

    1  All files of the day are read, and added up: by moment, the number of rows, and of each column the sum.
    2  They are merged into one new file, under a name that no file ever had, with a number that is above all others:
       day-0001-1a2b3c4d.parquet. It appears whole, and says which moments it has.
    3  It is read again from where it is now, and added up. If a moment differs, the new file goes, and the day fails.
    4  A file of the listing goes if all that it has is in the new file, moment by moment with the same totals.

No file is ever overwritten, and one only goes if each of its moments is in a file that is later in the order of names
(`dataset.day_file_order`), in which files of one moment are first. So of two that remove each other's files at the same
moment, one finds itself too early: of each moment, the last file that has it never goes. Between 2 and 4 a moment is in
two files, and readers take it from the last one. If it dies there, the next run finds that the last day file has
everything, and does 4 alone.

One thing rests on timing, and nothing enforces it. A listing is not atomic: one that begins before 2 and is still going
on at 4 may miss both files of a moment, and its reader has a sample less. 3 reads a whole day's rows between the two,
and a listing has a few hundred names, so that a listing would have to be held up for longer than 3 takes.

A snapshot that is appended to a day after that is read beside the day file, and merged by the next run. A file that
cannot be read stays as it is, and is named; the others are compacted.

`retention` thins a day that was compacted by the same steps, with fewer moments in 2.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import FileMissingError, RebalanceError
from rebalance_lib.history.dataset import (
    DAY,
    DAY_FILE,
    FILE,
    LISTINGS,
    HistoryFile,
    cluster_directory,
    day_file_order,
    is_day_file,
    utc,
)
from rebalance_lib.history.day_file import Totals, totals_of, write_day

Choose = Callable[[list[datetime]], list[datetime]]  # of moments by time, those that stay
MARGIN = timedelta(hours=1)  # after midnight: by then a snapshot that was begun before it is written


class Compacted(NamedTuple):
    """What became of a day: snapshots and rows in it, files that went, and what is wrong with those that stay."""

    snapshots: int = 0
    rows: int = 0
    removed: int = 0
    problems: tuple[str, ...] = ()


def days_over(history: Artifacts, cluster_id: str, now: datetime, margin: timedelta = MARGIN) -> list[str]:
    """The directories of a cluster's days that nothing is appended to any more, by time."""
    last = utc(now, "the moment to count from") - margin - timedelta(days=1)
    cluster = cluster_directory(cluster_id)
    days = filter(DAY.fullmatch, (history / cluster).directories())
    return [f"{cluster}/{day}" for day in days if day_of(day) <= last]


def day_of(directory: str) -> datetime:
    """The day of a directory of the history."""
    return datetime.fromisoformat(directory.rpartition("day=")[2]).replace(tzinfo=UTC)


def compact_day(history: Artifacts, directory: str) -> Compacted:
    """Make one file of a day's; it can be run again at any moment, and by several at once.

    Args:
        history: The directory of the history.
        directory: The day's directory in it, as `days_over` gives it.

    Raises:
        RebalanceError: The storage failed, or a file that was written is not what it should be; no file was removed.
    """
    return replace_files(history, directory, None)


def replace_files(history: Artifacts, directory: str, choose: Choose | None) -> Compacted:
    """Make one file of a day's, with the moments that are chosen; None for all, if they are in several files."""
    for _ in range(LISTINGS - 1):
        try:
            return _replace_files(history, directory, choose)
        except FileMissingError:
            continue  # somebody else has replaced or dropped it
    return _replace_files(history, directory, choose)


def _replace_files(history: Artifacts, directory: str, choose: Choose | None) -> Compacted:
    names = _names(history, directory)
    day_files = [name for name in names if is_day_file(name)]
    totals, problems = _readable(history, [name for name in names if not is_day_file(name)])
    if choose is None and len(totals) + len(day_files) < 2:
        return Compacted(problems=problems)
    of_days, more = _readable(history, day_files)
    totals, problems = totals | of_days, (*problems, *more)
    moments = {moment: name for name, found in totals.items() for moment in found}  # the last file that has it
    chosen = sorted(moments) if choose is None else choose(sorted(moments))
    kept = [HistoryFile(moments[one], one) for one in chosen]
    if not kept:
        return Compacted(problems=problems)
    last = max(totals, key=day_file_order)
    if not is_day_file(last) or totals[last].keys() != {file.taken_at for file in kept}:
        last = f"{directory}/day-{_number(names) + 1:04d}-{uuid.uuid4().hex[:8]}.parquet"
        write_day(history, last, kept, {name: _rows(found) for name, found in totals.items()})
        totals[last] = _check(history, last, {file.taken_at: totals[file.name][file.taken_at] for file in kept})
    differing = {name: moment for name in totals for moment in [_difference(totals[name], totals[last])] if moment}
    spare = [name for name in totals if name != last and name not in differing]
    history.remove_files(spare)
    told = [
        f"{history.uri}/{name} differs from {last} at {moment.isoformat()}: it stays; look into it, and remove one"
        for name, moment in differing.items()
    ]
    found = Compacted(len(kept), _rows(totals[last]), len(spare), (*problems, *told))
    if any(is_day_file(name) for name in _names(history, directory) if name not in (*names, last)):
        again = _replace_files(history, directory, choose)  # somebody else was at it: one file of both
        return again._replace(removed=found.removed + again.removed)
    return found


def _names(history: Artifacts, directory: str) -> list[str]:
    """The files of a day, in their order."""
    names = [name for name in (history / directory).files() if FILE.fullmatch(name) or DAY_FILE.fullmatch(name)]
    return [f"{directory}/{name}" for name in sorted(names, key=day_file_order)]


def _number(names: list[str]) -> int:
    return max(day_file_order(name)[0] for name in names)


def _readable(history: Artifacts, names: list[str]) -> tuple[dict[str, Totals], tuple[str, ...]]:
    """The totals of the files that can be read, and what is wrong with the others."""
    totals, problems = {}, []
    for name in names:
        try:
            totals[name] = totals_of(history, name)
        except FileMissingError:
            raise
        except RebalanceError as error:
            problems.append(f"{error}; it stays as it is")
    return totals, tuple(problems)


def _check(history: Artifacts, name: str, expected: Totals) -> Totals:
    """The totals of a file that was written just now, if they are as expected."""
    found = totals_of(history, name)
    if found != expected:
        history.remove_files([name])
        at = next(one for one in sorted(expected.keys() | found.keys()) if found.get(one) != expected.get(one))
        raise RebalanceError(
            f"{history.uri}/{name} does not have the rows of {at.isoformat()} that it was made of: it was removed, and "
            "all others stay; run it again, and look after the storage if that does not help"
        )
    return found


def _difference(totals: Totals, last: Totals) -> datetime | None:
    """A moment of which two files say different things; None if there is none."""
    return next((one for one in totals if one in last and totals[one] != last[one]), None)


def _rows(totals: Totals) -> int:
    return sum(found[0] or 0 for found in totals.values() if found)
