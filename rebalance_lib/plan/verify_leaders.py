"""Who leads, for the verifier: read from the plan, the snapshot and the request alone.

This states once more, on purpose, what ``rebalance_lib.planner.leader_racks`` and ``min_topic_leaders`` say.

    leader-rack         a list with another preferred leader than before has one in the leader racks, if a replica there
                        may lead
    min-topic-leaders   a broker that leads too few partitions of a chosen topic hands over no more of them, of those
                        whose replica it keeps, than it takes over

A replica may lead if its broker may, and it is in sync or will be copied.

Example: leaders are kept in rack a, with broker 1. ``[3, 1]`` may stay, or become ``[1, 3]``; ``[4, 1]`` in its place
violates leader-rack.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, find_sorted, partition_keys
from rebalance_lib.plan.verify_limits import Breach
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from rebalance_lib.plan.verify_sets import SetRule
    from rebalance_lib.topology import Snapshot


@dataclass(frozen=True, eq=False)
class LeaderRule:
    """What a request says of leaders, and the snapshot of who may be one."""

    may_lead: frozenset[int]  # brokers, in the leader racks if there are any
    in_racks: bool
    least: Mapping[str, int]  # by name or pattern of topics
    lagging: pa.Table  # topic, partition and broker of each replica that is not in sync
    preferred: pa.Table  # topic and broker of each preferred leader, of partitions that may not change too
    members: Mapping[str, frozenset[int]] = field(default_factory=dict)  # by topic, the brokers of its set

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        *,
        leader_racks: Collection[str] = (),
        least: Mapping[str, int] | None = None,
        barred: Collection[int] = (),
        broker_sets: SetRule | None = None,
    ) -> LeaderRule | None:
        """The rule of a request, None if it says nothing; ``barred`` brokers must not be made leaders."""
        if not leader_racks and not least:
            return None
        may_lead = frozenset(
            broker.id
            for broker in snapshot.alive_brokers()
            if broker.id not in barred and (not leader_racks or broker.rack in leader_racks)
        )
        replicas = snapshot.replicas
        lagging = replicas.filter(pc.invert(replicas["in_sync"])).select(["topic", "partition", "broker"])
        preferred = replicas.filter(pc.equal(replicas["position"], 0)).select(["topic", "broker"])
        members = {} if broker_sets is None else broker_sets.members
        return cls(may_lead, bool(leader_racks), dict(least or {}), lagging, preferred, members)

    def breaches(self, entries: pa.Table, before: Lists, after: Lists) -> Iterator[Breach]:
        """All that a plan's entries do not keep; ``before`` has their lists until now."""
        changes = _Changes.of(before, after)
        if self.in_racks:
            yield from self._outside_of_racks(entries, changes, after)
        if self.least:
            yield from self._handed_over(entries, changes, self._electable(entries, before))

    def _may_lead(self, entries: pa.Table, rows: NDArray[np.int64], brokers: NDArray[np.integer]) -> NDArray[np.bool_]:
        """By row of an entry and broker: whether this broker may lead that partition, as one of its topic's set."""
        codes, texts = encode_texts(entries["topic"])
        members = [self.members.get(topic) for topic in texts.to_pylist()]
        may: NDArray[np.bool_] = np.isin(brokers, sorted(self.may_lead))
        for group in {one for one in members if one is not None}:
            of_group = np.array([one == group for one in members])[codes[rows]]
            may &= ~of_group | np.isin(brokers, sorted(group))
        return may

    def _electable(self, entries: pa.Table, lists: Lists) -> NDArray[np.bool_]:
        """By value of lists: whether this replica may lead."""
        keys, behind = partition_keys(entries, self.lagging)
        order = np.argsort(keys, kind="stable")
        row = find_sorted(keys[order], behind)
        found = row >= 0
        broker = self.lagging["broker"].to_numpy().astype(np.int64)[found]
        late = (order[row[found]] << 32) + broker if len(order) else np.empty(0, np.int64)
        return self._may_lead(entries, lists.rows, lists.values) & ~np.isin(lists.keys, late)

    def _outside_of_racks(self, entries: pa.Table, changes: _Changes, after: Lists) -> Iterator[Breach]:
        right = self._may_lead(entries, np.arange(len(changes.leads)), changes.leads)
        wrong = ~right & (after.count_by_row(self._electable(entries, after)) > 0)
        for row in np.flatnonzero(changes.changed & wrong).tolist():
            message = f"broker {changes.leads[row]} would lead it, though a replica in the leader racks may"
            yield Breach("leader-rack", row, message)

    def _handed_over(self, entries: pa.Table, changes: _Changes, electable: NDArray[np.bool_]) -> Iterator[Breach]:
        codes, texts = encode_texts(entries["topic"])
        least = [self._least(topic) for topic in texts.to_pylist()]
        of_row = np.array(least, np.int64)[codes] if len(codes) else np.empty(0, np.int64)
        rows = np.flatnonzero(changes.changed & (of_row > 0))
        net: Counter[tuple[int, int]] = Counter()  # by topic and broker: leaders taken over less those handed over
        for row in rows.tolist():
            if changes.keeps[row] and electable[changes.first[row]]:
                net[int(codes[row]), int(changes.led[row])] -= 1
            net[int(codes[row]), int(changes.leads[row])] += 1
        for (code, broker), gain in sorted(net.items()):
            topic = texts[code].as_py()
            if gain >= 0 or broker not in self.may_lead & self.members.get(topic, self.may_lead):
                continue
            own = rows[codes[rows] == code]
            led = pc.and_(pc.equal(self.preferred["topic"], topic), pc.equal(self.preferred["broker"], broker))
            more = np.count_nonzero(changes.leads[own] == broker) - np.count_nonzero(changes.led[own] == broker)
            leads = (pc.sum(led).as_py() or 0) + int(more)
            if leads < least[code]:
                row = int(rows[(codes[rows] == code) & (changes.led[rows] == broker)][0])
                message = f"broker {broker} would lead {leads} partitions of {topic}, hands one over and needs "
                yield Breach("min-topic-leaders", row, f"{message}{least[code]}")

    def _least(self, topic: str) -> int:
        return max((n for name, n in self.least.items() if name == topic or fnmatchcase(topic, name)), default=0)


@dataclass(frozen=True, eq=False)
class _Changes:
    """By entry: who led it, who shall, and whether the former stays; -1 for nobody."""

    led: NDArray[np.int64]
    leads: NDArray[np.int64]
    keeps: NDArray[np.bool_]
    first: NDArray[np.int64]  # where the value of who led it is

    @classmethod
    def of(cls, before: Lists, after: Lists) -> _Changes:
        led, leads = _first(before), _first(after)
        keeps = after.count_by_row(after.values == led[after.rows]) > 0
        return cls(led, leads, keeps & (led >= 0), before.offsets[:-1])

    @property
    def changed(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.led != self.leads
        return found


def _first(lists: Lists) -> NDArray[np.int64]:
    padded = np.append(lists.values.astype(np.int64), -1)
    return np.where(lists.lengths > 0, padded[lists.offsets[:-1]], -1)
