"""The loops of the sticky assignor where members subscribe to different topics.

``owner`` and ``size`` are changed in place: by row the member that has it, by member how many it has. The subscribers
of topic ``t`` are ``subscribers[subscriber_offsets[t]:subscriber_offsets[t + 1]]``, in the order of their ids.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def assign_rows(rows, row_topic, subscriber_offsets, subscribers, member_rack, present, with_racks, owner, size):
    """Give each row to the subscriber that has the fewest; with racks, only to one that is near, or to nobody."""
    for row in rows:
        topic = row_topic[row]
        chosen = -1
        for member in subscribers[subscriber_offsets[topic] : subscriber_offsets[topic + 1]]:
            if chosen >= 0 and size[member] >= size[chosen]:
                continue
            rack = member_rack[member]
            if with_racks and rack >= 0 and not present[row, rack]:
                continue
            chosen = member
        if chosen >= 0:
            owner[row] = chosen
            size[chosen] += 1


@njit(cache=True)
def reassign(
    rows, row_topic, row_hash, topic_offsets, subscriber_offsets, subscribers, before, owner, size, moved_from
):
    """Move rows from members that have more to subscribers that have at least two less, until there are none.

    A row goes back to the member that had it before, if that one has so much less; else to the one that has the fewest.
    ``moved_from`` remembers, by row, from whom it came on the way here: where another row of the topic came from just
    that member to this one's owner, that one is sent back instead, so that rows do not go to and fro.
    """
    topic_moves = np.zeros(len(topic_offsets) - 1, np.int64)
    given = np.zeros(len(size), np.int64)
    for row in np.flatnonzero(moved_from >= 0):
        topic_moves[row_topic[row]] += 1
        given[moved_from[row]] += 1
    performed = False
    modified = True
    while modified:
        modified = False
        for row in rows:
            topic = row_topic[row]
            first, last = subscriber_offsets[topic], subscriber_offsets[topic + 1]
            target = -1
            if before[row] >= 0 and size[owner[row]] > size[before[row]] + 1:
                for member in subscribers[first:last]:
                    if member == before[row]:
                        target = member
            if target < 0:
                target = subscribers[first]
                for member in subscribers[first:last]:
                    if size[member] < size[target]:
                        target = member
                if size[owner[row]] <= size[target] + 1:
                    continue
            moving = row
            if topic_moves[topic] and given[target]:
                origin = moved_from[row] if moved_from[row] >= 0 else owner[row]
                first, last = topic_offsets[topic], topic_offsets[topic + 1]
                moving = _came_the_other_way(row, first, last, target, origin, row_hash, owner, moved_from)
            _move(moving, target, topic, owner, size, moved_from, topic_moves, given)
            performed = modified = True
    return performed


@njit(cache=True)
def _came_the_other_way(row, first, last, source, target, row_hash, owner, moved_from):
    """Of the topic's rows that moved from source to target, the one that a Java HashSet gives first; else this row."""
    count = 0
    for other in range(first, last):
        count += moved_from[other] == source and owner[other] == target
    table = 16
    while count > table * 3 // 4:
        table *= 2
    chosen, least = row, table
    for other in range(first, last):
        bucket = row_hash[other] & (table - 1)
        if moved_from[other] == source and owner[other] == target and bucket < least:
            chosen, least = other, bucket
    return chosen


@njit(cache=True)
def _move(row, target, topic, owner, size, moved_from, topic_moves, given):
    source = owner[row]
    owner[row] = target
    size[source] -= 1
    size[target] += 1
    if moved_from[row] < 0:
        moved_from[row] = source
        topic_moves[topic] += 1
        given[source] += 1
    elif moved_from[row] == target:  # it is back where it came from
        moved_from[row] = -1
        topic_moves[topic] -= 1
        given[target] -= 1
