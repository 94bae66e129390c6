"""When a log dir, a broker or a cluster is full: its use over time, continued.

Terms. *Used* is the bytes of all replicas in one place at one moment. Its *level* is what is left of it without rhythm
and noise; *growth* is what the level gains in an hour. *Rhythm* is how far used is above or below the level at each
hour of the week, as a part of the level: with retention by time, a log dir holds what came in the last days, so that
where twice as much is written, level and rhythm are both twice as large. A *step* is a level that changes at once, and
stays: retention was shortened, a topic was deleted, a replica came. A step does not change growth.

    used(hour) = level(hour) x (1 + rhythm(hour of the week)) + noise
    level(hour) = level now + growth x (hour - now) - steps since that hour

Method.
1. Samples become means by hour. What came before a place held `EMPTY` of what it holds now, as in a new broker, does
   not count: an empty disk does not grow. A spike of a few hours, such as both copies of a replica while it moves, is
   cut off at some deviations from the median of the day around it.
2. Level, growth and rhythm are one linear regression, on used as a part of the level, since noise is larger, too, where
   the level is. The rhythm is `DAILY` waves in a day, and `WEEKLY` in a week; what the history is too short for is left
   out: no weekly rhythm from ten days. The level is that of the round before; it is 1 in the first of three rounds.
3. Steps are found one after the other: of all hours, that at which a step would explain the most, as long as it
   explains more than noise does. How much that is, differences between the means of successive days say, since noise
   of one hour is much like that of the next; their median does not see the steps themselves. Steps that are more
   frequent than one in a week are no events but how retention works there: a saw, whose teeth count into growth. They
   are not cut out.
4. The range: residuals of the regression, in blocks of days, are put in another order and added to the fit, and all is
   fitted again, `PATHS` times. The median of what these say is the likely hour, the 5th and 95th percentile are early
   and late.
5. Used passes a limit in the first hour in which level x (1 + rhythm) reaches it. Growth is a straight line, and rhythm
   repeats, so that for each of the 168 hours of the week the first week in which it does so is one division; the
   earliest of the 168 counts.

A passing later than in a year is none: so much is not known. What the range does not have: steps to come, and growth
that changes. With less than a day of samples there is no forecast.

Example: 21 days, a sample an hour, no noise. Used is 50 at first and gains 1 a day; after 12 days, retention deletes
10. At the end it is 50 + 21 - 10 = 61, growth is 1 a day, and the one step -10. With a limit of 72, it passes in 11
days. A straight line through all samples sees 0.30 a day, is at 59.4 at the end, and says 42 days.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAILY, WEEKLY = 3, 12  # waves: of 3, 6, 9, 12 and 16 weekly ones 12 were best, at seeds that bench.capacity leaves out
STEP = 25.0  # times what noise explains; with 9, one step was found too much in each series there, with 25 none
LEAST_STEP = 0.01  # of the level: smaller ones do not matter, and without noise anything looks like one
EDGE = 12  # hours between two steps, and at both ends
BLOCK = 96  # hours of residuals that stay together: of 24, 48 and 96 the best median
PATHS = 200
FAR = 6.0  # median deviations from the median of the day around it: a spike
DAY, WEEK = 24, 168
MOST_HOURS = 365 * DAY
RANGE = (5, 50, 95)
EMPTY = 0.1  # of what it holds now
LEAST_LEVEL = 0.05  # of the mean: hours with next to nothing would else count most
LEAST_DAYS = 7  # of samples, for steps: a median of fewer differences says little
SEED = 0


class Passing(NamedTuple):
    """In how many days after the last sample a limit is passed; None: not within a year."""

    early: float | None
    likely: float | None
    late: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of one place; levels and growth are by path, rhythm by hour of the week from now on and path.

    Args:
        used: Bytes of the last sample.
        growth: Bytes a day.
        steps: By step, how much the level changed.
        levels: The levels now.
        growths: What they gain in an hour.
        rhythm: As parts of the level, from the hour after the last sample on.
    """

    used: float
    growth: float
    steps: tuple[float, ...]
    levels: Floats
    growths: Floats
    rhythm: Floats

    def passes(self, limit: float) -> Passing:
        """When the limit, in bytes, is passed; 0 days if it is now."""
        if self.used >= limit:
            return Passing(0.0, 0.0, 0.0)
        # An hour is not missed for the rounding of floats.
        found = np.percentile(self._hours(limit * (1 - 1e-9)), RANGE, method="nearest")
        return Passing(*(float(hours) / DAY if hours <= MOST_HOURS else None for hours in found))

    def _hours(self, limit: float) -> Floats:
        """By path: the first hour in which the limit is reached; infinite for never."""
        hour = np.arange(1.0, WEEK + 1)[:, None]
        part = np.maximum(1 + self.rhythm, 1e-9)
        grows = self.growths > 0
        needed = np.where(grows, (limit / part - self.levels) / np.where(grows, self.growths, 1.0), np.inf)
        weeks = np.maximum(np.ceil((needed - hour) / WEEK), 0.0)
        # Where it does not grow, only rhythm can pass the limit, and does so in the first week or never.
        soon = (self.levels + self.growths * hour) * part >= limit
        first: Floats = np.where(soon, hour, hour + WEEK * np.where(grows, weeks, np.inf)).min(axis=0)
        return first


def forecast(at: Floats, used: Floats) -> Forecast | None:
    """Continue a series.

    Args:
        at: When the samples were taken, in seconds since 1970, in any order.
        used: The bytes then.

    Returns:
        None where samples are of less than a day, or fewer than three hours, since it was empty.
    """
    order = np.argsort(at, kind="stable")
    hour, value = _since_empty(*_by_hour(at[order], used[order]))
    if len(hour) <= 2 or hour[-1] - hour[0] < DAY - 1:
        return None
    scale = max(float(np.abs(value).mean()), 1.0)  # all columns of about the same size: bytes would drown the others
    value = _without_spikes(value / scale)
    rhythm = _rhythm(hour)
    level = np.ones(len(hour))
    for _ in range(3):
        columns, steps = _fitted(hour, value / level, level, rhythm)
        coefficients = np.linalg.lstsq(columns, value / level, rcond=None)[0]
        residual = value / level - columns @ coefficients
        plain = [0, 1, *range(2 + rhythm.shape[1], columns.shape[1])]
        level = np.maximum(level * (columns[:, plain] @ coefficients[plain]), LEAST_LEVEL)
    waves = slice(2, 2 + rhythm.shape[1])
    paths = coefficients[:, None] + _deviations(columns, residual)
    to_come = _rhythm(hour, hour[-1] + 1 + np.arange(WEEK))
    return Forecast(
        used=float(used[order][-1]),
        growth=float(coefficients[1]) * scale * DAY,
        steps=tuple((scale * coefficients[2 + rhythm.shape[1] :][np.argsort(steps)]).tolist()),
        levels=scale * (paths[0] + paths[2 + rhythm.shape[1] :].sum(axis=0)),
        growths=scale * paths[1],
        rhythm=to_come @ paths[waves],
    )


def straight_line(at: Floats, used: Floats, limit: float) -> float | None:
    """In how many days a straight line through all samples passes the limit: what `forecast` stands beside."""
    days = (at - at.max()) / 86_400
    growth, level = np.polyfit(days, used, 1)
    return max(0.0, float((limit - level) / growth)) if growth > 0 else None


def _by_hour(at: Floats, used: Floats) -> tuple[Ints, Floats]:
    """The hours that have samples, and the mean of each."""
    hours, which = np.unique((at // 3600).astype(np.int64), return_inverse=True)
    return hours, np.bincount(which, used) / np.bincount(which)


def _since_empty(hour: Ints, value: Floats) -> tuple[Ints, Floats]:
    """What came since the place was last next to empty, beside what it has now."""
    empty = np.flatnonzero(value < EMPTY * np.median(value[-DAY:])) if len(value) else np.empty(0, np.int64)
    begin = int(empty[-1]) + 1 if len(empty) else 0
    return hour[begin:], value[begin:]


def _without_spikes(value: Floats) -> Floats:
    side = DAY // 2
    around = np.median(sliding_window_view(np.pad(value, side, mode="edge"), 2 * side + 1), axis=1)
    far = FAR * float(np.median(np.abs(value - around)))
    return value if far == 0 else np.clip(value, around - far, around + far)


def _rhythm(known: Ints, hour: Ints | None = None) -> Floats:
    """The waves at each hour, as far as the hours that are known tell them apart."""
    span, hour = known[-1] - known[0], known if hour is None else hour
    waves = np.empty((len(hour), 0))
    for period, number, hours_apart in ((DAY, DAILY, 1), (WEEK, WEEKLY, DAY)):
        seen = len(np.unique(known % period // hours_apart))
        if span >= 2 * period and seen >= min(2 * number + 1, period // hours_apart):
            wave = [
                n for n in range(1, number + 1) if period == DAY or n % (WEEK // DAY)
            ]  # every seventh is of the day
            angle = 2 * np.pi / period * np.outer(hour % period, wave)
            waves = np.hstack([waves, np.sin(angle), np.cos(angle)])
    return waves


def _fitted(hour: Ints, value: Floats, level: Floats, rhythm: Floats) -> tuple[Floats, list[int]]:
    """The columns of the regression, those of steps last, and where these are, in the order they were found."""
    start = np.column_stack([1 / level, (hour - hour[-1]) / level, rhythm])
    columns, steps = start, list[int]()
    while len(steps) <= (hour[-1] - hour[0]) / WEEK:
        basis = np.linalg.qr(columns)[0]
        step = _step(hour, basis, value - basis @ (basis.T @ value), level, steps)
        if step is None:
            return columns, steps
        steps.append(step)
        columns = np.column_stack([columns, (np.arange(len(hour)) >= step) / level])
    return start, []


def _step(hour: Ints, basis: Floats, residual: Floats, level: Floats, steps: list[int]) -> int | None:
    """The sample from which on a step explains most of the residual, if that is more than noise does."""
    noise = _noise(hour, residual)
    if noise is None:
        return None
    # What a step there has beyond all columns so far, and how much of it is in the residual: sums from its end on.
    whole = _from_the_end(level**-2.0)
    own = whole - (_from_the_end(basis / level[:, None]) ** 2).sum(axis=1)
    allowed = own > 1e-3 * whole[0]
    for end in (0, len(hour), *steps):
        allowed[max(0, end - EDGE) : end + EDGE] = False
    size = np.where(allowed, _from_the_end(residual / level) / np.where(allowed, own, 1.0), 0.0)
    explained = np.where(np.abs(size) >= LEAST_STEP * level, size**2 * own, 0.0)
    best = int(explained.argmax())
    return best if explained[best] > STEP * noise else None


def _noise(hour: Ints, residual: Floats) -> float | None:
    """What one column explains of noise in the mean, noise of an hour being much like that of the next."""
    day = (hour - hour[0]) // DAY
    count = np.bincount(day)
    full = 2 * count >= np.median(count[count > 0])
    if full.sum() < LEAST_DAYS:
        return None
    apart = np.diff((np.bincount(day, residual) / np.maximum(count, 1))[full])
    deviation = 1.4826 / 2**0.5 * float(np.median(np.abs(apart)))
    # Without noise, the rounding of floats must not look like steps.
    return float(np.median(count[full])) * max(deviation, 1e-9 * float(np.abs(residual).max()), 1e-9) ** 2


def _from_the_end(values: Floats) -> Floats:
    summed: Floats = values[::-1].cumsum(axis=0)[::-1]
    return summed


def _deviations(columns: Floats, residual: Floats) -> Floats:
    """By coefficient and path: what the residuals, in another order of their blocks, change."""
    chance = np.random.default_rng(SEED)
    count, block = len(residual), min(BLOCK, len(residual))
    begin = chance.integers(0, count - block + 1, (-(-count // block), 1, PATHS))
    order = (begin + np.arange(block)[:, None]).reshape(-1, PATHS)[:count]
    free = max(1, count - columns.shape[1])  # residuals are smaller than the noise, by what was fitted to it
    found: Floats = np.linalg.pinv(columns) @ (residual[order] * np.sqrt(count / free))
    return found
