"""Broker sets for the verifier: which brokers a topic may be on, read from the snapshot alone.

This states once more, on purpose, what ``rebalance_lib.planner.broker_sets`` says: a topic is in the set whose patterns
name it, else in the one that holds most of its replicas, of equals in that with the lowest broker id. Brokers that are
in no set form one more.

Example: brokers 1 and 2 form a set, 3 is in none. ``orders`` on [1, 3] and [2, 3] may be on 1 and 2: of two replicas
here and two there, the set with broker 1 counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, find_sorted
from rebalance_lib.topology.capacities import sets_by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rebalance_lib.topology import Snapshot


@dataclass(frozen=True, slots=True)
class SetRule:
    """By topic, the brokers of its set; where replicas are to be brought there, some brokers may keep theirs."""

    members: Mapping[str, frozenset[int]]
    gathered: bool = False
    may_keep: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, snapshot: Snapshot, *, gathered: bool = False, may_keep: frozenset[int] = frozenset()
    ) -> SetRule | None:
        """The rule that a snapshot asks for; None if none of its brokers is in a set."""
        brokers = snapshot.brokers.sort_by("broker")
        named = dict(zip(brokers["broker"].to_pylist(), brokers["broker_set"].to_pylist(), strict=True))
        if not any(named.values()):
            return None
        members = {name: frozenset(id_ for id_, of in named.items() if of == name) for name in named.values()}
        rank = {name: number for number, name in enumerate(members)}
        held = snapshot.replicas.filter(pc.invert(snapshot.replicas["adding"]))
        counts = held.group_by(["topic", "broker"]).aggregate([("partition", "count")]).to_pylist()
        votes: dict[str, dict[str | None, int]] = {topic: {} for topic in pc.unique(held["topic"]).to_pylist()}
        for row in counts:
            if row["broker"] in named:
                of_topic, name = votes[row["topic"]], named[row["broker"]]
                of_topic[name] = of_topic.get(name, 0) + row["partition_count"]
        given = sets_by_topic(snapshot.brokers, votes)
        first = next(iter(members))
        chosen = {
            topic: given[topic]
            if topic in given
            else min(of_topic, key=lambda name: (-of_topic[name], rank[name]), default=first)
            for topic, of_topic in votes.items()
        }
        return cls({topic: members[name] for topic, name in chosen.items()}, gathered, may_keep)


@dataclass(frozen=True, eq=False)
class Membership:
    """The sets of the rows of a table, and which of some brokers are in each; one set of all brokers without a rule."""

    of_row: NDArray[np.int64]
    brokers: NDArray[np.int32]
    contains: NDArray[np.bool_]  # by set and broker

    @classmethod
    def of(cls, topics: pa.ChunkedArray, brokers: NDArray[np.int32], rule: SetRule | None) -> Membership:
        """The sets of topics; one that the rule does not know may be anywhere."""
        if rule is None:
            return cls(np.zeros(len(topics), np.int64), brokers, np.ones((1, len(brokers)), np.bool_))
        everyone = frozenset(brokers.tolist())
        distinct = pc.unique(topics)
        sets = [rule.members.get(topic, everyone) for topic in distinct.to_pylist()]
        listed = list(dict.fromkeys([*sets, everyone]))
        number = np.array([listed.index(one) for one in sets], np.int64)
        codes = pc.index_in(topics, value_set=distinct).to_numpy()
        contains = np.array([np.isin(brokers, sorted(one)) for one in listed]).reshape(len(listed), len(brokers))
        return cls(number[codes] if len(codes) else np.empty(0, np.int64), brokers, contains)

    def inside(self, replicas: Lists) -> NDArray[np.bool_]:
        """By replica: whether its broker is in the set of its row; one that is not known is in none."""
        place = find_sorted(self.brokers, replicas.values)
        padded = np.c_[self.contains, np.zeros(len(self.contains), np.bool_)]
        found: NDArray[np.bool_] = padded[self.of_row[replicas.rows], place]
        return found
