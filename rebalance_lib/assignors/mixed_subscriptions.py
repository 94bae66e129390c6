"""The sticky assignor where members subscribe to different topics.

1. Each member keeps what it had and still subscribes to.
2. The other partitions, those of topics with the fewest subscribers first, each go to the subscriber that has the
   fewest.
3. While a member has at least two partitions more than another one that could have one of them, it is moved there:
   first among the partitions that nobody had, unless some had to be taken away anyway; then among all. A partition
   goes back to whoever had it before, if that helps. A record of movements keeps partitions from going to and fro
   between two members: if a partition of the same topic came the other way, that one is sent back instead.
4. If that did not make the group more balanced, all of step 3 is forgotten. The balance score of a group is the sum
   of the differences in size over all pairs of members: 0 if all have the same.

Members and topics that cannot take part do not count: a topic with one subscriber, and a member that has all it can get
of such topics alone.

With racks, members keep only partitions with a replica in their rack, and step 2 is done within racks before it is done
with what is left.

Example: C0 subscribes to t0, C1 to t0 and t1, C2 to t0, t1 and t2, which have 1, 2 and 3 partitions. All of t2 goes
to C2. Of t1, the first goes to C1, which has none yet, and so does the second; t0-0 goes to C0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.assignors.compiled.mixed import assign_rows, reassign
from rebalance_lib.assignors.group import NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.assignors.claims import Claims
    from rebalance_lib.assignors.group import ConsumerGroup
    from rebalance_lib.assignors.racks import GroupRacks


def mixed_subscriptions(group: ConsumerGroup, claims: Claims, racks: GroupRacks) -> NDArray[np.int32]:
    """By row: the member that gets it."""
    subscribed = is_subscribed(group, claims.owner)
    owner = np.where(subscribed & racks.matching(claims.owner), claims.owner, NOBODY).astype(np.int32)
    taken_away = bool(np.any((claims.owner != NOBODY) & (owner == NOBODY)))
    size = sizes(group, owner)
    rows = _in_order(group)
    unassigned = rows[owner[rows] == NOBODY]
    is_first = not size.any()

    subscriber_offsets, subscribers = subscribers_by_topic(group)
    readable = (group.row_topic, subscriber_offsets, subscribers)
    if racks.count:
        assign_rows(unassigned, *readable, racks.member_rack, racks.present, True, owner, size)
    left = unassigned[owner[unassigned] == NOBODY]
    assign_rows(left, *readable, racks.member_rack, racks.present, False, owner, size)

    shared = np.diff(subscriber_offsets) > 1
    movable = shared[group.row_topic]
    takes_part = _takes_part(group, size, owner, movable)
    earlier = owner.copy()
    moved_from = np.full(len(owner), NOBODY, np.int32)
    columns = (
        group.row_topic,
        group.row_hash,
        group.offsets,
        subscriber_offsets,
        subscribers,
        claims.previous,
        owner,
        size,
        moved_from,
    )
    if not taken_away:
        reassign(unassigned[movable[unassigned]], *columns)
    performed = reassign(rows[movable[rows]], *columns)
    if performed and not is_first:
        score_before, score = (balance_score(sizes(group, one)[takes_part]) for one in (earlier, owner))
        if score >= score_before:
            return earlier
    return owner


def balance_score(size: NDArray[np.int64]) -> int:
    """The sum of the differences over all pairs of members; 0 is even."""
    ordered = np.sort(size)
    return int(np.sum(ordered * (2 * np.arange(len(ordered)) - len(ordered) + 1)))


def sizes(group: ConsumerGroup, owner: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many partitions each member has."""
    return np.bincount(owner[owner != NOBODY], minlength=len(group.members))


def is_subscribed(group: ConsumerGroup, member: NDArray[np.int32]) -> NDArray[np.bool_]:
    """By row: whether this member subscribes to its topic; nobody does not."""
    listens = np.zeros((len(group.subscriber_sets), len(group.members) + 1), np.bool_)
    for place, members in enumerate(group.subscriber_sets):
        listens[place, members] = True
    return listens[group.subscriber_set_of[group.row_topic], member]  # NOBODY is the last column


def subscribers_by_topic(group: ConsumerGroup) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where each topic's subscribers begin, and all of them, topic after topic."""
    listed = [group.subscribers(topic) for topic in range(len(group.topics))]
    offsets = np.append(0, np.cumsum([len(one) for one in listed], dtype=np.int64))
    return offsets, np.concatenate(listed) if listed else np.empty(0, np.int32)


def _in_order(group: ConsumerGroup) -> NDArray[np.int64]:
    """All rows, those of topics with few subscribers first."""
    subscribers = np.array([len(members) for members in group.subscriber_sets], np.int64)[group.subscriber_set_of]
    return np.argsort(subscribers[group.row_topic], kind="stable")


def _takes_part(
    group: ConsumerGroup, size: NDArray[np.int64], owner: NDArray[np.int32], movable: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The members that can give a partition or take one."""
    counts = np.diff(group.offsets)
    possible = np.zeros(len(group.members), np.int64)
    for place, members in enumerate(group.subscriber_sets):
        possible[members] += int(counts[group.subscriber_set_of == place].sum())
    gives = np.bincount(owner[movable & (owner != NOBODY)], minlength=len(group.members)) > 0
    return (size < possible) | gives
