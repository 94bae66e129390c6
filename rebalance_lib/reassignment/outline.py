"""The forecast of a plan that is too large for a dry run while somebody waits: every broker works by itself.

Goal: the same figures as `simulate`, in a fraction of a second for a hundred thousand partitions.

Algorithm: moves stand in the order of the pace. Each broker receives its copies in that order at its full rate, and
sends those of the partitions it leads in the same way, with what is written to them meanwhile; a copy is done when both
its brokers have come to its end, and begins when a cap's number of copies before it are done. Copies that never catch
up (`rates_needed`) begin at once, and are taken to hold up nobody. Nobody waits for a broker that is busy with others,
and time is lost nowhere, so the real end is later: by up to a sixth in the clusters of ``bench/clusters.py``, held
against `simulate`.

Example, that of `simulate`: broker 1 sends a-0 (100 bytes), b-0 (50) and c-0 (30) in this order, at 10 bytes a second.
a-0 ends after 10 s, b-0 after 15 s, c-0 after 18 s, as all does there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.pace import Order, Pace
from rebalance_lib.plan.waves import SLOT, slots_of
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.reassignment.forecast import Forecast, MoveTimes, Timeline, forecast_of
from rebalance_lib.reassignment.least_throttle import rates_needed
from rebalance_lib.reassignment.log_dirs import UNKNOWN, order_by
from rebalance_lib.reassignment.work import NOBODY, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def outline(
    work: Work,
    pace: Pace | None = None,
    *,
    min_insync: Mapping[str, int] | None = None,
    conditions: Conditions | None = None,
) -> Forecast:
    """The forecast of a plan that is executed at a pace, near enough for a person to decide by."""
    pace, conditions = pace or Pace(), conditions or Conditions()
    copies = work.copies
    blocked = _blocked(work)
    order = _order(work, pace)
    begins, ends = np.full((2, len(order)), np.nan)
    stuck = _stuck(work, pace, conditions)
    waiting = _any_of(stuck & ~copies.within, work)  # for a new replica that never catches up
    able = ~(blocked | waiting)[copies.partition[order]]
    between, within = order[able & ~copies.within[order]], order[able & (copies.within & ~stuck)[order]]
    begins[between], ends[between] = _between_brokers(work, between, pace, conditions)
    starts, done = _partitions(work, begins, ends)
    starts[blocked] = np.nan
    over = np.where(work.target.same_rows(work.replicas.brokers), 0.0, done + conditions.settling)
    over[blocked | waiting] = np.nan
    begins[~copies.within & (waiting & ~blocked)[copies.partition]] = 0.0
    begins[copies.within] = over[copies.partition[copies.within]]
    rate = conditions.between_log_dirs(pace)
    carried = _carried(work, within, rate)
    ends[within] = np.maximum(_running(copies.broker[within], carried), begins[within] * rate + carried) / rate
    gone = np.full(len(work.replicas.size), np.nan)
    gone[work.leaving] = over[work.replicas.brokers.rows[work.leaving]] + conditions.delete_delay
    timeline = Timeline(
        begins=begins,
        ends=ends,
        senders=np.where(copies.within, copies.broker, np.maximum(work.leader[copies.partition], 0)),
        log_dirs=_log_dirs(work, order),
        gone=gone,
        moves=_moves(work, starts, over),
        peak_out=_busy(work.leader[copies.partition[between]], work, conditions.between_brokers(pace)),
        peak_in=_busy(copies.broker[between], work, conditions.between_brokers(pace)),
        blocked=np.flatnonzero(blocked).tolist(),
        never=np.flatnonzero(_any_of(stuck, work) & ~blocked).tolist(),
        at_min_isr=None if min_insync is None else _at_min_isr(work, min_insync),
    )
    return forecast_of(work, timeline, pace, conditions, exact=False)


def _order(work: Work, pace: Pace) -> NDArray[np.int64]:
    """The copies in the order in which they are to begin, which is that of `in_order`."""
    copies, replicas = work.copies, work.replicas
    sent = np.bincount(copies.partition, copies.size * ~copies.within, minlength=work.partitions)
    sign = -1 if pace.order is Order.LARGEST_FIRST else 1
    whole = replicas.brokers.count_by_row(replicas.in_sync) == replicas.brokers.lengths
    rank = np.empty(work.partitions, np.int64)
    rank[np.lexsort((sign * sent, whole))] = np.arange(work.partitions)
    return np.argsort(rank[copies.partition], kind="stable")


def _blocked(work: Work) -> NDArray[np.bool_]:
    """Partitions without a leader, or with a new replica on a broker that is down."""
    dead = ~work.alive[work.copies.broker] & ~work.copies.within
    blocked: NDArray[np.bool_] = work.leader == NOBODY
    blocked[work.copies.partition[dead]] = True
    return blocked


def _between_brokers(
    work: Work, copies: NDArray[np.int64], pace: Pace, conditions: Conditions
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When these copies, given in order, begin and end."""
    rate = conditions.between_brokers(pace)
    begins, ends = np.zeros((2, len(copies)))
    senders = work.leader[work.copies.partition[copies]]
    carried = _carried(work, copies, rate)
    parts = slots_of(work.copies.size[copies])
    for brokers, cap in ((work.copies.broker[copies], pace.moves_in), (senders, pace.moves_out)):
        by_broker = order_by(brokers)
        done = (_running(brokers, carried) / rate)[by_broker]
        free = np.zeros(len(copies))
        if cap is not None:
            taken = np.cumsum(parts[by_broker])
            # The last that must have ended before the copy may begin: those after it fit into the cap together.
            last = np.searchsorted(taken, taken - cap * SLOT)
            same = (brokers[by_broker] == brokers[by_broker][last]) & (taken > cap * SLOT)
            free[same] = done[last[same]]
        begins[by_broker] = np.maximum(begins[by_broker], free)
        ends[by_broker] = np.maximum(ends[by_broker], done)
    return begins, ends


def _stuck(work: Work, pace: Pace, conditions: Conditions) -> NDArray[np.bool_]:
    """Copies that never catch up with what is written to their partitions."""
    within = work.copies.within
    if not work.rates_known:
        return np.zeros(len(within), np.bool_)
    rate = np.where(within, conditions.between_log_dirs(pace), conditions.between_brokers(pace))
    stuck: NDArray[np.bool_] = rates_needed(work, pace) >= rate
    return stuck


def _any_of(copies: NDArray[np.bool_], work: Work) -> NDArray[np.bool_]:
    """The partitions with one of these copies."""
    found = np.zeros(work.partitions, np.bool_)
    found[work.copies.partition[copies]] = True
    return found


def _carried(work: Work, copies: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """The bytes of each copy at this rate, with what is written until it has caught up."""
    written = work.write_rate[work.copies.partition[copies]]
    return work.copies.size[copies] / (1 - written / rate)


def _running(groups: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of each group up to and with each value, in the order given."""
    order = order_by(groups)
    sums = np.cumsum(values[order])
    first = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0][: len(order)])
    lengths = np.diff(np.append(first, len(order)))
    running = np.empty(len(values))
    running[order] = sums - np.repeat(sums[first] - values[order][first], lengths)
    return running


def _partitions(
    work: Work, begins: NDArray[np.float64], ends: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When each partition begins, and when its last new replica has caught up; at once where there is none."""
    known = np.flatnonzero(~np.isnan(ends))
    starts, done = np.full(work.partitions, np.inf), np.zeros(work.partitions)
    np.minimum.at(starts, work.copies.partition[known], begins[known])
    np.maximum.at(done, work.copies.partition[known], ends[known])
    return np.where(np.isinf(starts), 0.0, starts), done


def _log_dirs(work: Work, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the plan; else, one after the other, those with the most disk space if nothing is ever removed."""
    chosen, dirs = work.copies.log_dir.copy(), work.log_dirs
    single = np.diff(dirs.first)[work.copies.broker] == 1
    chosen = np.where((chosen == UNKNOWN) & single, dirs.first[work.copies.broker], chosen)
    if not (chosen == UNKNOWN).any():
        return chosen
    space, first = dirs.disk_space().tolist(), dirs.first.tolist()
    for copy in order.tolist():
        if chosen[copy] == UNKNOWN:
            broker = work.copies.broker[copy]
            chosen[copy] = max(range(first[broker], first[broker + 1]), key=space.__getitem__)
        space[chosen[copy]] -= int(work.copies.size[copy])
    return chosen


def _moves(work: Work, starts: NDArray[np.float64], over: NDArray[np.float64]) -> MoveTimes:
    copies = work.copies
    sent = np.zeros(work.partitions, np.int64)
    np.add.at(sent, copies.partition, copies.size * ~copies.within)
    rows = np.flatnonzero(~np.isnan(starts))
    rows = rows[np.argsort(starts[rows], kind="stable")]
    return MoveTimes(rows.tolist(), [0] * len(rows), starts[rows].tolist(), over[rows].tolist(), sent[rows].tolist())


def _busy(brokers: NDArray[np.int64], work: Work, rate: float) -> NDArray[np.float64]:
    return np.where(np.bincount(brokers, minlength=len(work.brokers)) > 0, rate, 0.0)


def _at_min_isr(work: Work, min_insync: Mapping[str, int]) -> list[int]:
    """Partitions with fewer in-sync replicas after than before, and no more than they need."""
    replicas, copies = work.replicas, work.copies
    stays = replicas.in_sync & replicas.brokers.contained_in(work.target)
    coming = np.bincount(copies.partition[~copies.within], minlength=work.partitions)
    before, after = (replicas.brokers.count_by_row(mask) for mask in (replicas.in_sync, stays))
    least = [min_insync.get(topic, 0) for topic in work.entries["topic"].to_pylist()]
    left = after + coming
    return np.flatnonzero((left < before) & (left <= np.array(least, np.int64))).tolist()
