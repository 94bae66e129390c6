"""Chains of moves that a search among single ones overlooks; the columns are those of `mixed`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def even_out(row_topic, subscriber_offsets, subscribers, owner, size):
    """Move rows along chains of members from larger ones to smaller ones, until no chain is left."""
    while _even_out_once(row_topic, subscriber_offsets, subscribers, owner, size):
        pass


@njit(cache=True)
def _even_out_once(row_topic, subscriber_offsets, subscribers, owner, size):
    """Find a chain from a member to one that has at least two less, and move a row along each of its links.

    Members are begun with in the order of their sizes, the largest first. Whatever can be reached from a larger one was
    looked at by then, and none of it was small enough: it need not be looked at again.
    """
    members, topics = len(size), len(subscriber_offsets) - 1
    starts, held = _rows_by_owner(owner, members)
    came_by = np.full(members, -1, np.int64)  # the row that would be moved to this member
    seen = np.zeros(members, np.bool_)
    seen_topic = np.zeros(topics, np.bool_)
    queue = np.empty(members, np.int64)
    for root in np.argsort(-size):
        if seen[root]:
            continue
        seen[root] = True
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            member = queue[head]
            head += 1
            for row in held[starts[member] : starts[member + 1]]:
                topic = row_topic[row]
                if seen_topic[topic]:
                    continue
                seen_topic[topic] = True
                for subscriber in subscribers[subscriber_offsets[topic] : subscriber_offsets[topic + 1]]:
                    if seen[subscriber]:
                        continue
                    seen[subscriber] = True
                    came_by[subscriber] = row
                    if size[subscriber] + 1 < size[root]:
                        size[subscriber] += 1
                        size[root] -= 1
                        _shift(subscriber, came_by, owner)
                        return True
                    queue[tail] = subscriber
                    tail += 1
    return False


@njit(cache=True)
def _rows_by_owner(owner, members):
    starts = np.zeros(members + 1, np.int64)
    for member in owner:
        starts[member + 1] += 1
    starts = np.cumsum(starts)
    place = starts[:-1].copy()
    held = np.empty(len(owner), np.int64)
    for row in range(len(owner)):
        held[place[owner[row]]] = row
        place[owner[row]] += 1
    return starts, held


@njit(cache=True)
def _shift(member, came_by, owner):
    """Along the chain that ends at this member, back to its root."""
    while came_by[member] >= 0:
        row = came_by[member]
        giver = owner[row]
        owner[row] = member
        member = giver


@njit(cache=True)
def bring_back(row_topic, subscriber_offsets, subscribers, prior, owner, size):
    """Exchange rows in circles of members as long as more of them come back to where they were than leave it.

    The members, the topics and the sizes are places on a map. From a member one gets to the topic of a row that it
    has, at a cost of 1 if the row was this member's before and would leave it, of 0 else; from a topic to any of its
    subscribers for nothing; and directly to the member that a row belonged to before, at a cost of -1. From a member
    one also gets for nothing to those that have just one row more, by way of its size: if the two change roles, the
    group is as balanced as before. A circle with a cost below 0 brings a row back, and one is found by Bellman and
    Ford's method.
    """
    while _bring_back_once(row_topic, subscriber_offsets, subscribers, prior, owner, size):
        pass


@njit(cache=True)
def _bring_back_once(row_topic, subscriber_offsets, subscribers, prior, owner, size):
    members, topics = len(size), len(subscriber_offsets) - 1
    levels = members + topics  # where places for sizes begin
    places = levels + size.max() + 1
    cost = np.zeros(places, np.int64)
    parent = np.full(places, -1, np.int64)
    by_row = np.full(places, -1, np.int64)  # for topics and members: the row that is moved on the way here
    for _ in range(places + 1):
        changed = False
        for row in range(len(owner)):
            giver, topic = owner[row], members + row_topic[row]
            leaving = 1 if prior[row] == giver else 0
            if cost[giver] + leaving < cost[topic]:
                cost[topic], parent[topic], by_row[topic] = cost[giver] + leaving, giver, row
                changed = True
            home = prior[row]
            if home >= 0 and home != giver and cost[giver] - 1 < cost[home]:
                cost[home], parent[home], by_row[home] = cost[giver] - 1, giver, row
                changed = True
        for topic in range(topics):
            place = members + topic
            for subscriber in subscribers[subscriber_offsets[topic] : subscriber_offsets[topic + 1]]:
                if cost[place] < cost[subscriber]:
                    cost[subscriber], parent[subscriber], by_row[subscriber] = cost[place], place, -1
                    changed = True
        for member in range(members):
            level = levels + size[member]
            if cost[member] < cost[level]:
                cost[level], parent[level] = cost[member], member
                changed = True
        for member in range(members):
            level = levels + size[member] - 1
            if size[member] and cost[level] < cost[member]:
                cost[member], parent[member], by_row[member] = cost[level], level, -1
                changed = True
        if not changed:
            return False
        if _go_round(parent, by_row, members, levels, owner, size):
            return True
    return False


@njit(cache=True)
def _go_round(parent, by_row, members, levels, owner, size):
    """Move rows along every circle that the parents form; whether there was one."""
    visit = np.zeros(len(parent), np.int64)
    found = False
    for start in range(len(parent)):
        place = start
        while place >= 0 and visit[place] == 0:
            visit[place] = start + 1
            place = parent[place]
        if place < 0 or visit[place] != start + 1:
            continue
        found = True
        first = place
        while True:
            origin = parent[place]
            if place < members:
                if origin < members:  # a row comes home
                    _hand_over(by_row[place], place, owner, size)
                elif origin < levels:
                    _hand_over(by_row[origin], place, owner, size)
            place = origin
            if place == first:
                break
    return found


@njit(cache=True)
def _hand_over(row, member, owner, size):
    size[owner[row]] -= 1
    owner[row] = member
    size[member] += 1
