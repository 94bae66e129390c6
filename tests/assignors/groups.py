"""Random consumer groups, and the same for Java's assignors: as lines in, as assignments out."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rebalance_lib.assignors import Assignment, Subscription

CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
RACKS = ("r1", "r2", "r3")


@dataclass(frozen=True)
class Case:
    """A group in front of an assignor."""

    partitions: Mapping[str, int]
    members: Mapping[str, Subscription]
    racks: Mapping[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def line(self, strategy: str) -> str:
        """The case as Java reads it."""
        topics = " ".join(f"{topic}:{self._racks(topic, count)}" for topic, count in self.partitions.items() if count)
        members = " ".join(_member(name, one) for name, one in self.members.items())
        return f"{CLASSES[strategy]}\t{topics}\t{members}"

    def _racks(self, topic: str, count: int) -> str:
        return ",".join("+".join(racks) for racks in self.racks.get(topic, [()] * count))


def _member(name: str, one: Subscription) -> str:
    owned = "+".join(f"{topic}/{partition}" for topic, partition in one.owned)
    return ";".join([name, "+".join(one.topics), owned, str(one.generation), one.rack or "", one.instance or ""])


def answered(line: str) -> Assignment:
    """What Java said, each member's partitions in order."""
    assert not line.startswith("!"), line
    found: Assignment = {}
    for word in line.split():
        member, _, partitions = word.partition("=")
        listed = [one.rsplit("/", 1) for one in partitions.split("+") if one]
        found[member] = sorted((topic, int(number)) for topic, number in listed)
    return found


def random_case(
    seed: int, *, equal: bool | None = None, racks: bool = False, instances: bool = False, largest: int = 12
) -> Case:
    """A group of up to so many members; their subscriptions are all equal, all different, or some of both."""
    draw = random.Random(seed)
    topics = {f"t{n}": draw.choice((0, 1, 2, 3, 5, 8, 13)) for n in range(draw.randint(1, 6))}
    known = [*topics, "no-such-topic"]
    names = [
        f"{draw.choice(('consumer', 'm', 'billing-app'))}-{draw.randrange(16**6):06x}"
        for _ in range(draw.randint(1, largest))
    ]
    common = draw.sample(known, draw.randint(1, len(known)))
    if equal is None:
        equal = draw.random() < 0.5
    members = {}
    for name in names:
        own = common if equal or draw.random() < 0.2 else draw.sample(known, draw.randint(1, len(known)))
        members[name] = Subscription(
            own,
            rack=draw.choice((*RACKS, None)) if racks else None,
            instance=f"i{draw.randrange(16**4):04x}" if instances and draw.random() < 0.5 else None,
        )
    placed = {}
    if racks:
        placed = {t: [tuple(draw.sample(RACKS, draw.randint(1, 2))) for _ in range(n)] for t, n in topics.items()}
    return Case({topic: count for topic, count in topics.items() if count or draw.random() < 0.5}, members, placed)


def next_generation(case: Case, assignment: Assignment, seed: int, generation: int) -> Case:
    """The group after something happened: members leave and join, a topic grows, a subscription changes."""
    draw = random.Random(seed)
    members = {
        name: replace(one, owned=tuple(assignment[name]), generation=generation) for name, one in case.members.items()
    }
    partitions = dict(case.partitions)
    for event in draw.sample(("leave", "join", "grow", "subscribe", "late"), draw.randint(1, 3)):
        some = draw.choice(sorted(members))
        if event == "leave" and len(members) > 1:
            del members[some]
        elif event == "join":
            members[f"new-{draw.randrange(16**6):06x}"] = Subscription(members[some].topics, rack=members[some].rack)
        elif event == "grow" and partitions:
            topic = draw.choice(sorted(partitions))
            partitions[topic] += draw.randint(1, 4)
        elif event == "subscribe" and len({tuple(sorted(one.topics)) for one in members.values()}) > 1:
            members[some] = replace(members[some], topics=draw.choice(list(members.values())).topics)
        elif event == "late" and generation > 1:  # it missed a rebalance, and still has what it had before
            members[some] = replace(members[some], generation=generation - 1)
    racks = {
        t: [*case.racks[t], *[(RACKS[0],)] * (n - len(case.racks[t]))] for t, n in partitions.items() if t in case.racks
    }
    return Case(partitions, members, racks)
