"""Leaders of each topic spread over the brokers that hold it, in the partitions that a mode changes anyway.

Who leads is evened out over the whole cluster first, see ``order``. A broker that leads little else is then given the
lead of every partition it gets a replica of, which may be a whole topic. So each topic is spread after that: a broker
that leads more of it than an even part hands partitions to followers that lead less of it, with as few changes as
possible.

Example: brokers 1 and 2 lead 25 partitions each and broker 3 none. Four partitions of a topic go from one replica to
three. By numbers alone broker 3 leads all four of them; spread, it leads two, and 1 and 2 lead one each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.plan.columns import Lists
from rebalance_lib.planner.compiled.compare import leader_to_front
from rebalance_lib.planner.compiled.leaders import Leaders
from rebalance_lib.planner.leaders import Sending, even_leaders, sending_of
from rebalance_lib.planner.order import electable, sending
from rebalance_lib.planner.shares import band, even_shares
from rebalance_lib.planner.workspace import Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.workspace import Workspace


def spread_topic_leaders(work: Workspace, placement: Placement, movable: NDArray[np.bool_]) -> Placement:
    """The placement with other leaders in movable partitions of topics that one broker leads too much of."""
    layout, leader = placement.layout, placement.leader.copy()
    movable = movable & ~(work.scope.excluded[work.leader] & (work.leader >= 0))
    may_lead, sent = electable(work, layout), sending(work, layout)
    for rows in _crowded(work, placement, may_lead, movable):
        lengths = np.diff(layout.offsets)[rows]
        ends = np.cumsum(lengths)
        slots = np.repeat(layout.offsets[rows] - (ends - lengths), lengths) + np.arange(lengths.sum())
        lists = Lists(np.r_[0, ends].astype(np.int64), layout.broker[slots])
        leader[rows] = _spread(lists, may_lead[slots], leader[rows], movable[rows], sending_of(sent, rows, leader))
    broker = layout.broker.copy()
    leader_to_front(layout.offsets, broker, leader)
    return Placement(work.model, layout.in_order(broker), broker[layout.offsets[:-1]])


def _crowded(
    work: Workspace, placement: Placement, may_lead: NDArray[np.uint8], movable: NDArray[np.bool_]
) -> list[NDArray[np.int64]]:
    """The partitions of each topic of which some may change, and of which a broker leads more than an even part."""
    topic, layout, leader = work.model.topic, placement.layout, placement.leader
    topics, brokers = len(work.model.topics), work.model.brokers
    chosen = np.zeros(topics, np.bool_)
    chosen[topic[movable]] = True
    rows = np.flatnonzero(chosen[topic] & (leader >= 0))
    slot_topic = np.repeat(topic, np.diff(layout.offsets)).astype(np.int64)
    open_slots = np.flatnonzero(chosen[slot_topic] & (may_lead > 0))
    holders = np.unique(slot_topic[open_slots] * brokers + layout.broker[open_slots])
    candidates = np.maximum(1, np.bincount(holders // brokers, minlength=topics))
    led, counts = np.unique(topic[rows].astype(np.int64) * brokers + leader[rows], return_counts=True)
    most = np.zeros(topics, np.int64)
    np.maximum.at(most, led // brokers, counts)
    even = -(-np.bincount(topic[rows], minlength=topics) // candidates)
    rows = rows[(most > even)[topic[rows]]]
    rows = rows[np.argsort(topic[rows], kind="stable")]
    return [part for part in np.split(rows, np.flatnonzero(np.diff(topic[rows])) + 1) if len(part)]


def _spread(
    lists: Lists,
    may_lead: NDArray[np.uint8],
    leader: NDArray[np.int32],
    movable: NDArray[np.bool_],
    sent: Sending,
) -> NDArray[np.int32]:
    """The leaders of one topic's partitions."""
    ids, place = np.unique(lists.values, return_inverse=True)
    count = len(ids)
    own = np.where(leader >= 0, np.searchsorted(ids, leader), -1).astype(np.int32)
    led = own[own >= 0]
    fixed = np.bincount(own[(own >= 0) & ~movable], minlength=count).astype(np.float64)
    candidates = np.bincount(place[may_lead > 0], minlength=count).astype(np.float64)
    everyone = np.zeros(count, np.int32)
    share = even_shares(
        float(len(led)),
        (candidates > 0).astype(np.float64),
        everyone,
        np.array([np.inf]),
        at_least=fixed,
        at_most=np.maximum(candidates, fixed),
    )
    low, high = (edge.astype(np.int64) for edge in band(share, 0.0))
    if np.all(np.bincount(led, minlength=count) <= high):
        return leader
    none = np.zeros(count, np.int64)
    fields = (lists.offsets, place.astype(np.int32), may_lead, own, movable.astype(np.uint8))
    of_partition, base, most = sent
    limits = (np.round(share, 6), low, high, none, of_partition, base[ids], most[ids])
    found = even_leaders(Leaders(*fields, *limits))
    return np.where(found >= 0, ids[found], leader).astype(np.int32)
