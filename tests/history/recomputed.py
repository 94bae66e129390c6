"""Loads once more, one partition after the other and in plain numpy, as the definitions read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

RATES = ("size_p95", "growth", "growth_p95", "write_rate", "write_rate_p95")


def recomputed(by_second):
    """By partition: what `LOADS` has to say of it."""
    samples = {}
    for at in sorted(by_second):
        for row in by_second[at]:
            if row.leader and row.size is not None:
                samples.setdefault((row.topic, row.partition), []).append((at, row))
    return {key: _load(found) for key, found in samples.items()}


def _load(samples):
    grown, written = [], []
    for (before, old), (after, new) in pairwise(samples):
        seconds = after - before
        if _less(new.end, old.end) or _less(new.start, old.start):
            continue
        grown.append((new.size - old.size, seconds))
        if old.end is None or new.end is None:
            continue
        if new.end == old.end:
            written.append((0, seconds))
        elif new.start is not None and new.end > new.start and new.size > 0:
            written.append(((new.end - old.end) * new.size / (new.end - new.start), seconds))
    sizes = [row.size for _, row in samples]
    return {
        "size_bytes": sizes[-1],
        "size_p95": float(np.percentile(sizes, 95)),
        "growth": _over_all(grown),
        "growth_p95": _p95(grown),
        "write_rate": _over_all(written),
        "write_rate_p95": _p95(written),
        "samples": len(samples),
    }


def _less(new, old):
    return new is not None and old is not None and new < old


def _over_all(intervals):
    return sum(amount for amount, _ in intervals) / sum(seconds for _, seconds in intervals) if intervals else None


def _p95(intervals):
    return float(np.percentile([amount / seconds for amount, seconds in intervals], 95)) if intervals else None
