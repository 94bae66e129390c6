"""Which set of brokers each broker and each topic belongs to; none of it counts in a cluster without sets.

A broker is in the set that the snapshot names, and those in none form one more, without a name. A topic is in the set
whose patterns name it; else in the one that holds most of its replicas now, of equals in that with the lowest broker
id. A broker that is not registered has no say in that, and is outside of every set.

Example: brokers 1 and 2 form the set payments, 3 and 4 are in none. ``orders`` on [1, 3], [2, 1] is in payments, with
three of its four replicas there; the one on broker 3 is misplaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.topology.capacities import sets_by_topic

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.workspace import Layout

NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets of a cluster, numbered by their lowest broker ids."""

    names: tuple[str | None, ...]  # None for the brokers that are in no set
    broker: NDArray[np.int32]  # by broker: the number of its set; -1 if it is not registered
    topic: NDArray[np.int32]  # by topic

    @classmethod
    def of(
        cls, brokers: pa.Table, known: list[int], topics: list[str], topic: NDArray[np.int32], broker: NDArray[np.int32]
    ) -> Sets | None:
        """Read the sets of brokers, in the order of their ids; `topic` and `broker` are by replica, `known` are ids."""
        registered = np.isin(brokers["broker"].to_numpy(), known).tolist()
        named = list(zip(brokers["broker_set"].to_pylist(), registered, strict=True))
        names = tuple(dict.fromkeys(name for name, is_known in named if is_known))
        if not any(names):
            return None
        numbers = [names.index(name) if is_known else NOWHERE for name, is_known in named]
        of_broker = np.array(numbers, np.int32)
        voting = of_broker[broker] >= 0
        cells = topic[voting].astype(np.int64) * len(names) + of_broker[broker[voting]]
        votes = np.bincount(cells, minlength=len(topics) * len(names)).reshape(-1, len(names))
        of_topic = votes.argmax(axis=1).astype(np.int32)
        number_of = {name: number for number, name in enumerate(topics)}
        for name, given in sets_by_topic(brokers, topics).items():
            of_topic[number_of[name]] = names.index(given)
        return cls(names, of_broker, of_topic)

    def members(self, number: int) -> NDArray[np.bool_]:
        """By broker: whether it is in this set."""
        found: NDArray[np.bool_] = self.broker == number
        return found

    def misplaced(self, model: ClusterModel, layout: Layout) -> NDArray[np.bool_]:
        """By slot of a layout: whether it is on a broker outside of its topic's set."""
        own = np.repeat(self.topic[model.topic], np.diff(layout.offsets))
        found: NDArray[np.bool_] = self.broker[layout.broker] != own
        return found

    def remarks(self, model: ClusterModel) -> list[str]:
        """How many topics each set has, and patterns that match none: a topic may be in another set than is meant."""
        counts = np.bincount(self.topic, minlength=len(self.names))
        found = [
            f"{self.describe(n)[0].upper()}{self.describe(n)[1:]} has {counts[n]} topics." for n in range(len(counts))
        ]
        rows = model.snapshot.brokers
        if "broker_set_topics" in rows.column_names:
            patterns = dict.fromkeys(
                (name, pattern)
                for name, given in zip(
                    rows["broker_set"].to_pylist(), rows["broker_set_topics"].to_pylist(), strict=True
                )
                for pattern in given or ()
            )
            found += [
                f"No topic matches {pattern!r} of broker set {name}."
                for name, pattern in patterns
                if not any(fnmatchcase(topic, pattern) for topic in model.topics)
            ]
        return found

    def describe(self, number: int) -> str:
        """A set in words."""
        name = self.names[number]
        return "the brokers that are in no broker set" if name is None else f"broker set {name}"
