"""How well the day is forecast on which a disk passes 90 % of its capacity, beside a straight line.

    python -m bench.capacity [--series 400] [--seed 1]

Series are generated: use of a log dir, a sample an hour, over 30 to 60 days. The limit is 90 % of the capacity.

    trend       a straight line, from 25 to 65 % of the limit, to the limit some 14 days after the last sample
    rhythm      a day of two waves and a week of five high and two low days, each 0.5 to 3 % of the level up and down
    retention   a saw of 0.5 to 2 % of the limit, with a tooth in 12 to 96 hours: whole segments go
    steps       none to three, at any time but the two days at either end, each 3 to 15 % of the limit; six of ten down
    noise       1 to 3 % of the level (standard deviation), drawn anew each hour

The truth is the first hour in which all of it but noise reaches the limit. The limit is drawn such that this is in
day 14 or 15. The error is the distance to that hour, as a part of 14 days. The forecast sees the history alone.

Three more kinds of series have each one thing that is harder: *noise with memory*, half of whose variance has a memory
of six hours; *steps to come*, where steps go on at their rate after the last sample; and *growth changes*, where it
becomes half to twice as fast between 20 and 70 % of the history.

Beside the forecast stand the straight line, by least squares through all samples, and one that is *told* what no
forecast knows: rhythm, retention and the hours of the steps in the history. It fits level, growth and sizes of steps
alone, so that noise is what it misses by.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.history.capacity import forecast, straight_line

if TYPE_CHECKING:
    from rebalance_lib.history.capacity import Floats

DAY = 24
HORIZON, AFTER = 14, 60  # days
NEAR = 0.1  # of the horizon
BYTES = 1e12  # of the limit, about
KINDS = ("as described", "noise with memory", "steps to come", "growth changes")
SMOOTH = np.hanning(25) / np.hanning(25).sum()  # the edges of a weekend


@dataclass(frozen=True)
class Generated:
    """A history in seconds and bytes, the limit, and in how many days it is passed: infinite for not in 60.

    ``columns`` and ``retention`` are for one that is told them, and go on after the history.
    """

    at: Floats
    used: Floats
    limit: float
    passes: float
    columns: Floats
    retention: Floats


def generate(seed: int, kind: str = KINDS[0]) -> Generated:
    """A series of this kind; the same for the same seed."""
    chance = np.random.default_rng(seed)
    found = None
    while found is None:
        found = _drawn(chance, kind)
    return found


def _drawn(chance: np.random.Generator, kind: str) -> Generated | None:
    """A series, or None if the level goes down to nothing, or day 14 is one on which no limit is passed first."""
    days = int(chance.integers(30, 61))
    end = days * DAY
    day = np.arange(end + AFTER * DAY) / DAY
    level = _trend(chance, day, days, changes=kind == "growth changes")
    steps = chance.uniform(2, days - 2, chance.integers(0, 4))
    for when in steps:
        level[day >= when] += _step(chance)
    if level.min() < 0.1:
        return None
    rhythm, retention = _rhythm(chance, day), _saw(chance, day)
    without = level * rhythm + retention
    least, most = without[end : end + (HORIZON - 1) * DAY].max(), without[end : end + (HORIZON + 1) * DAY].max()
    if least >= most:
        return None
    limit = chance.uniform(least, most)
    if kind == "steps to come":
        for when in chance.uniform(days, days + AFTER, chance.poisson(1.5 * AFTER / (days - 4))):
            level[day >= when] += _step(chance)
    expected = level * rhythm + retention
    passed = np.flatnonzero(expected[end:] >= limit)
    used = expected[:end] * (1 + _noise(chance, end, memory=kind == "noise with memory"))
    columns = np.column_stack([np.ones(len(day)), day, *(day >= when for when in steps)]) * rhythm[:, None]
    return Generated(
        at=day[:end] * 86_400,
        used=used * BYTES,
        limit=limit * BYTES,
        passes=(passed[0] + 1) / DAY if len(passed) else np.inf,
        columns=columns,
        retention=retention * BYTES,
    )


def _trend(chance: np.random.Generator, day: Floats, days: int, *, changes: bool) -> Floats:
    start = chance.uniform(0.25, 0.65)
    growth = (1 - start) / (days + HORIZON)
    if not changes:
        return np.asarray(start + growth * day)
    when, factor = days * chance.uniform(0.2, 0.7), 2 ** chance.uniform(-1, 1)
    return np.asarray(start + growth * (np.minimum(day, when) + factor * np.maximum(day - when, 0)))


def _step(chance: np.random.Generator) -> float:
    return float((-1 if chance.random() < 0.6 else 1) * chance.uniform(0.03, 0.15))


def _rhythm(chance: np.random.Generator, day: Floats) -> Floats:
    daily, weekly = chance.uniform(0.005, 0.03, 2)
    phase = chance.uniform(0, 1, 3)
    of_day = (np.sin(2 * np.pi * (day + phase[0])) + 0.4 * np.sin(4 * np.pi * (day + phase[1]))) / 1.4
    working = np.where((day + 7 * phase[2]) % 7 < 5, 1.0, -1.0)
    of_week = np.convolve(np.pad(working, len(SMOOTH) // 2, mode="edge"), SMOOTH, "valid")
    return np.asarray(1 + daily * of_day + weekly * of_week)


def _saw(chance: np.random.Generator, day: Floats) -> Floats:
    height, period, phase = chance.uniform(0.005, 0.02), chance.uniform(0.5, 4), chance.uniform()
    return np.asarray(height * ((day / period + phase) % 1 - 0.5))


def _noise(chance: np.random.Generator, count: int, *, memory: bool) -> Floats:
    deviation, noise = chance.uniform(0.01, 0.03), chance.normal(size=count)
    if memory:
        kept = np.exp(-1 / 6)
        new, last = chance.normal(size=count) * np.sqrt(1 - kept**2), chance.normal()
        for hour in range(count):
            last = kept * last + new[hour]
            noise[hour] = (noise[hour] + last) / np.sqrt(2)
    return np.asarray(deviation * noise)


@dataclass(frozen=True)
class Score:
    """Errors as parts of 14 days, infinite where a day is missing on one side; whether the truth is in the range."""

    ours: Floats
    line: Floats
    told: Floats
    covered: Floats
    days_wide: Floats


def score(seeds: range, kind: str = KINDS[0]) -> Score:
    """The forecast of each series beside the straight line's."""
    rows = []
    for seed in seeds:
        series = generate(seed, kind)
        found = forecast(series.at, series.used)
        if found is None:
            raise RuntimeError(f"no forecast of series {seed}")
        early, likely, late = (np.inf if day is None else day for day in found.passes(series.limit))
        line = straight_line(series.at, series.used, series.limit)
        told = _told(series)
        covered = early <= series.passes <= late
        wide = late - early if np.isfinite(early) else 0.0
        rows.append((*(_error(one, series.passes) for one in (likely, line, told)), covered, wide))
    return Score(*np.array(rows, dtype=np.float64).T)


def _told(series: Generated) -> float | None:
    """In how many days it passes the limit by a fit that knows all but the sizes."""
    end = len(series.at)
    fitted = np.linalg.lstsq(series.columns[:end], series.used - series.retention[:end], rcond=None)[0]
    passed = np.flatnonzero(series.columns[end:] @ fitted + series.retention[end:] >= series.limit)
    return (passed[0] + 1) / DAY if len(passed) else None


def _error(day: float | None, truth: float) -> float:
    never = day is None or not np.isfinite(day)
    if never or not np.isfinite(truth):
        return 0.0 if never and not np.isfinite(truth) else np.inf
    return abs(float(day or 0.0) - truth) / HORIZON


def main() -> None:
    parser = argparse.ArgumentParser(description="Backtest the forecast of capacity on generated series.")
    parser.add_argument("--series", type=int, default=400, help="of each kind; default 400")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| series | within 10 % | median error | in its range | range, days | line within 10 % | told within 10 % |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        begun = time.process_time()
        found = score(range(options.seed, options.seed + options.series), kind)
        seconds = time.process_time() - begun
        cells = [
            kind,
            f"{np.mean(found.ours <= NEAR):.1%}",
            f"{np.median(found.ours):.1%}",
            f"{np.mean(found.covered):.1%}",
            f"{np.median(found.days_wide):.1f}",
            f"{np.mean(found.line <= NEAR):.1%}",
            f"{np.mean(found.told <= NEAR):.1%}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{seconds / options.series * 1000:.0f} ms of processor time for a series, generated and forecast")


if __name__ == "__main__":
    main()
