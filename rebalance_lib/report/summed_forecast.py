"""The forecast of a plan of which only sums are known, because its cluster was planned in shards.

Goal: how long the plan takes, and how full disks get, from what each broker receives and sends in all.

Algorithm: a broker receives and sends at its full rate from the beginning, so that the busiest one says when all is
done. A log dir is at its peak when all of its copies are there and nothing has been removed: an upper bound.

Example: brokers 1 and 2 hold 100 bytes each; 3 receives 20 from each of them, at 10 bytes a second. It takes 4 s, and
broker 3 has a peak of 40, brokers 1 and 2 of 100.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan import Plan
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.forecast import Forecast, Wave
from rebalance_lib.reassignment.outline import outline
from rebalance_lib.reassignment.work import Cluster, Work

if TYPE_CHECKING:
    from rebalance_lib.plan.pace import Pace
    from rebalance_lib.planner import ClusterModel
    from rebalance_lib.planner.outcome import Outcome
    from rebalance_lib.planner.rest import Rest

Places = Counter[tuple[int, str | None]]
"""Bytes by broker id and path of the log dir, None where that is not known."""

IN_SHARDS = (
    "The cluster was planned in shards: times and peaks follow from what each broker sends and receives in all, "
    "at {rate}, as if nothing were removed meanwhile."
)
NOT_NAMED = "Partitions that cannot catch up, or come down to min.insync.replicas, are not named."


def bytes_of_rest(model: ClusterModel, rest: Rest | None) -> Places:
    """What partitions that are not in the model hold."""
    held: Places = Counter()
    if rest is not None:
        sums, paths = rest.sums, [*model.log_dirs.paths, ""]  # -1 finds the last
        for row in np.flatnonzero(sums.columns["replicas"]).tolist():
            id_, path = int(model.broker_ids[sums.broker[row]]), paths[sums.log_dir[row]] or None
            held[id_, path] += int(sums.columns["bytes"][row])
    return held


def forecast_of_sums(outcome: Outcome, cluster: Cluster, pace: Pace) -> Forecast:
    """The forecast of a plan for the model's partitions and its rest."""
    from rebalance_lib.planner.rest import Changes  # noqa: PLC0415 - brings numba, which most commands never need

    model, rest, conditions = outcome.model, outcome.placement.model.rest, Conditions()
    changes = Changes.of(outcome.own)
    changes = changes if rest is None else changes + rest.changes
    arrives, sends, stays = (changes.flows[name] for name in ("received", "sent", "within"))
    rate, dirs = conditions.between_brokers(pace), len(model.log_dirs.paths)
    owner = np.repeat(np.arange(model.brokers), np.diff(model.log_dirs.offsets))
    comes = np.bincount(np.append(owner, np.arange(model.brokers)), arrives, model.brokers) - stays
    busiest = max(comes.max(initial=0), sends.max(initial=0)) / rate
    within = stays.max(initial=0) / conditions.between_log_dirs(pace)
    figures = outcome.figures
    seconds = float(busiest + within) + (conditions.settling if figures.partitions_changed else 0.0)
    received, after = _by_log_dir(model, arrives), bytes_of_rest(model, rest)
    layout = outcome.placement.layout
    place = np.where(layout.log_dir >= 0, layout.log_dir, dirs + layout.broker)
    after.update(_by_log_dir(model, np.bincount(place, outcome.bytes_after, dirs + model.brokers)))
    nothing = outline(Work.of(Plan.from_assignment({}), cluster), pace)
    log_dirs = tuple(
        replace(one, bytes_peak=one.bytes_before + received[key], bytes_after=after[key], peak_at=seconds)
        for one in nothing.log_dirs
        for key in [(one.broker, one.path)]
    )
    sent = dict(zip(model.broker_ids.tolist(), sends.tolist(), strict=True))
    came = dict(zip(model.broker_ids.tolist(), comes.tolist(), strict=True))
    peak, end = (Counter[int]() for _ in range(2))
    for one in log_dirs:
        peak[one.broker] += one.bytes_peak
        end[one.broker] += one.bytes_after
    brokers = tuple(
        replace(
            one,
            bytes_peak=peak[one.broker],
            bytes_after=end[one.broker],
            peak_in=rate if came.get(one.broker) else 0.0,
            peak_out=rate if sent.get(one.broker) else 0.0,
        )
        for one in nothing.brokers
    )
    copied = figures.bytes_moved + figures.log_dir_bytes
    wave = Wave(1, 0.0, seconds, figures.partitions_changed, copied, 0.0)
    return replace(
        nothing,
        seconds=seconds,
        partitions=figures.partitions_changed,
        bytes=copied,
        waves=(wave,) if figures.partitions_changed else (),
        brokers=brokers,
        log_dirs=log_dirs,
        at_min_isr=None,
        assumptions=(IN_SHARDS.format(rate=f"{rate / 1e6:g} MB/s"), NOT_NAMED),
    )


def _by_log_dir(model: ClusterModel, values: np.ndarray) -> Places:
    """By broker id and path: values by log dir of the model, then by broker where that is not known."""
    owner = np.repeat(model.broker_ids, np.diff(model.log_dirs.offsets)).tolist()
    keys = [*zip(owner, model.log_dirs.paths, strict=True), *((id_, None) for id_ in model.broker_ids.tolist())]
    return Counter({key: int(value) for key, value in zip(keys, values.tolist(), strict=True) if value})
