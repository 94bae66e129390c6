"""Loads once more, one partition after the other and in plain numpy, as the definitions read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

RATES = (
    *("size_p95", "growth", "growth_p95", "write_rate", "write_rate_p95", "write_rate_last"),
    *("read_rate", "read_rate_p95", "read_rate_last", "groups_reset"),
)


def recomputed(by_second):
    """By partition: what `LOADS` has to say of it."""
    return {key: _load(found) | _reads(found)[0] for key, found in _samples(by_second).items()}


def recomputed_groups(by_second):
    """By partition and group: what `GROUP_READS` has to say of it."""
    found = {key: _reads(samples)[1] for key, samples in _samples(by_second).items()}
    return {(*key, group): load for key, groups in found.items() for group, load in groups.items()}


def _samples(by_second):
    samples = {}
    for at in sorted(by_second):
        for row in by_second[at]:
            if row.leader and row.size is not None:
                samples.setdefault((row.topic, row.partition), []).append((at, row))
    return samples


def _load(samples):
    grown, written = [], []
    for (before, old), (after, new) in pairwise(samples):
        seconds = after - before
        if _less(new.end, old.end) or _less(new.start, old.start):
            continue
        grown.append((new.size - old.size, seconds))
        if old.end is None or new.end is None:
            continue
        if new.start is None:
            continue
        if new.end == old.end:
            written.append((0, seconds))
        elif new.end > new.start and new.size > 0:
            written.append(((new.end - old.end) * new.size / (new.end - new.start), seconds))
    sizes = [row.size for _, row in samples]
    return {
        "size_bytes": sizes[-1],
        "size_p95": float(np.percentile(sizes, 95)),
        "growth": _over_all(grown),
        "growth_p95": _p95(grown),
        "write_rate": _over_all(written),
        "write_rate_p95": _p95(written),
        "write_rate_last": _last(written),
        "samples": len(samples),
    }


def _reads(samples):
    """What all groups together read, and what each does."""
    total, by_group, resets = [], {}, {}
    listed, seen, old = None, {}, None
    for at, new in samples:
        if old is not None and (_less(new.end, old.end) or _less(new.start, old.start)):
            listed, seen = None, {}
        old = new
        if new.committed is None:
            continue
        amounts = []
        for group, offset in new.committed.items():
            own = by_group.setdefault(group, [])
            if group in seen:
                before, last = seen[group]
                resets[group] = resets.get(group, 0) + (offset < last)
                amount = _bytes(offset - last, new)
                amounts.append(amount)
                own += [] if amount is None else [(amount, at - before)]
            seen[group] = (at, offset)
        if listed is not None and None not in amounts:
            total.append((sum(amounts), at - listed))
        listed = at
    groups = {
        group: {**_statistics("read_rate", own), "resets": resets.get(group, 0)} for group, own in by_group.items()
    }
    reset = sorted(group for group, times in resets.items() if times)
    return {**_statistics("read_rate", total), "groups_reset": reset or None}, groups


def _bytes(records, row):
    """The bytes of so many records; None where the size of a record is not known."""
    if records <= 0:
        return 0
    known = row.start is not None and row.end is not None and row.end > row.start and row.size > 0
    return records * row.size / (row.end - row.start) if known else None


def _statistics(name, intervals):
    return {name: _over_all(intervals), f"{name}_p95": _p95(intervals), f"{name}_last": _last(intervals)}


def _last(intervals):
    return intervals[-1][0] / intervals[-1][1] if intervals else None


def _less(new, old):
    return new is not None and old is not None and new < old


def _over_all(intervals):
    return sum(amount for amount, _ in intervals) / sum(seconds for _, seconds in intervals) if intervals else None


def _p95(intervals):
    return float(np.percentile([amount / seconds for amount, seconds in intervals], 95)) if intervals else None
