"""The way of one partition from its replicas to others, one new replica at a time.

A reassignment that replaces all replicas at once keeps twice as many copies on the disks until the last of them has
caught up. In stages, a partition never has more than one copy too many: each stage adds the next new replica of the
target in the place of one that leaves. Those that leave first are the last of the list, so that the preferred leader
stays as long as it can; the last stage is the target itself, in its order.

Goal: every list on the way follows from the two ends alone. Whoever finds a partition half way knows where it came from
and where it goes, without a note of anybody.

Example: from [1, 2, 3] to [4, 5, 3] the stages are [1, 4, 3] and [4, 5, 3]; from [1, 2] to [2, 3] there is only one.
"""

from __future__ import annotations

Replicas = tuple[int, ...]


def stages(before: Replicas, target: Replicas) -> tuple[Replicas, ...]:
    """The replica lists from the first change to the target, which is the last of them."""
    adding = [broker for broker in target if broker not in before]
    leaving = [broker for broker in before if broker not in target]
    current = list(before)
    passed: list[Replicas] = []
    for broker in adding[:-1]:
        if leaving:
            current[current.index(leaving.pop())] = broker
        else:
            current.append(broker)
        passed.append(tuple(current))
    return (*passed, target)


def after_cancel(before: Replicas, target: Replicas) -> Replicas:
    """What a cancelled reassignment leaves: the replicas of before, those that the target shares with it first.

    Kafka gives back the set, not the order: what was to be removed stands behind, by id.
    """
    return (*(b for b in target if b in before), *sorted(b for b in before if b not in target))
