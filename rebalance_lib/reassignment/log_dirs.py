"""The log dirs of a cluster in numbers, and what is in them over time.

Log dirs are numbered broker by broker. A broker whose log dirs are not known, or that holds replicas of which nobody
said where they are, has one more without a path: bytes are then known by broker at least. If no log dir of a broker is
known, the one without a path is as large as the disk capacity that was given for it.

Over time, a copy counts in full from the moment when it begins, since the disk space must be there; what is removed
counts until its files are gone. So the peak is an upper bound of what `du` would show, and near to it where few copies
are under way at a time.

Example: a log dir has 100 bytes; a copy of 30 comes at second 5, and 40 are gone at second 65. Peak 130 at second 5,
in the end 90.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import find_sorted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rebalance_lib.topology import Snapshot

UNKNOWN = -1
_ENDLESS = float(1 << 62)


@dataclass(frozen=True, eq=False)
class LogDirs:
    """All log dirs: whose they are, what disk space they have, and what they hold before a plan."""

    broker_ids: NDArray[np.int64]  # of all brokers, sorted
    broker: NDArray[np.int64]  # by log dir, a place in broker_ids; sorted
    paths: list[str | None]
    total: list[int | None]
    usable: list[int | None]
    before: NDArray[np.int64]
    of_replica: NDArray[np.int64]  # by row of the snapshot's replicas

    @classmethod
    def of(cls, snapshot: Snapshot, other_bytes: Mapping[tuple[int, str | None], int] | None = None) -> LogDirs:
        """Read those of a snapshot.

        Args: `other_bytes` are those of replicas that it does not have, by broker id and path, None where that is not
        known.
        """
        others = other_bytes or {}
        rows, brokers = snapshot.replicas, snapshot.brokers.sort_by("broker")
        listed = dict(zip(brokers["broker"].to_pylist(), brokers["log_dirs"].to_pylist(), strict=True))
        known_ids = np.array([*listed, *(id_ for id_, _ in others)], np.int64)
        ids = np.union1d(known_ids, pc.unique(rows["broker"]).to_numpy())
        path = one_path_each(rows["log_dir"])
        known = [(place, d) for place, id_ in enumerate(ids.tolist()) for d in listed.get(id_) or []]
        places = find_sorted(ids, rows["broker"].to_numpy())
        named = {(place, d["path"]): number for number, (place, d) in enumerate(known)}
        found = _lookup(places, path, named, len(known))
        lacks = np.ones(len(ids), np.bool_)  # by broker: whether it has a log dir without a path
        lacks[[place for place, _ in known]] = False
        lacks[places[found == UNKNOWN]] = True
        place_of = {id_: place for place, id_ in enumerate(ids.tolist())}
        lacks[[place_of[id_] for id_, path in others if (place_of[id_], path) not in named]] = True
        nameless = np.flatnonzero(lacks)
        owner = np.append(np.array([place for place, _ in known], np.int64), nameless)
        order = np.argsort(owner, kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        lost = len(known) + np.searchsorted(nameless, places)
        of_replica = number[np.where(found == UNKNOWN, np.minimum(lost, len(order) - 1), found)]
        sizes = pc.fill_null(rows["size_bytes"], 0).to_numpy()
        before = sum_by(of_replica, sizes, len(order))
        for (id_, of_path), held in others.items():
            place = place_of[id_]
            at = named.get((place, of_path), len(known) + int(np.searchsorted(nameless, place)))
            before[number[at]] += held
        capacity = dict(zip(brokers["broker"].to_pylist(), brokers["capacity"].to_pylist(), strict=True))
        details = [d for _, d in known]
        for place in nameless.tolist():
            id_ = int(ids[place])
            total = None if listed.get(id_) else (capacity.get(id_) or {}).get("disk")
            usable = None if total is None else max(0, total - int(before[number[len(details)]]))
            details.append({"path": None, "total_bytes": total, "usable_bytes": usable})
        return cls(
            broker_ids=ids,
            broker=owner[order],
            paths=[details[place]["path"] for place in order],
            total=[details[place]["total_bytes"] for place in order],
            usable=[details[place]["usable_bytes"] for place in order],
            before=before,
            of_replica=of_replica,
        )

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """By broker: its first log dir, and behind the last broker, how many there are."""
        return np.searchsorted(self.broker, np.arange(len(self.broker_ids) + 1))

    @cached_property
    def named(self) -> dict[tuple[int, str | None], int]:
        """The number of a log dir, by broker's place and path."""
        return {key: number for number, key in enumerate(zip(self.broker.tolist(), self.paths, strict=True))}

    def disk_space(self) -> NDArray[np.float64]:
        """How much each log dir can take: what is usable, or, where that is not known, the more the less it holds."""
        usable = [float(value) if value is not None else np.nan for value in self.usable]
        space = np.array(usable, np.float64)
        return np.where(np.isnan(space), _ENDLESS - self.before, space)


@dataclass(frozen=True, eq=False)
class Use:
    """What a set of places holds over time: the most, when, and in the end."""

    peak: NDArray[np.int64]
    moment: NDArray[np.float64]
    after: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        before: NDArray[np.int64],
        where: NDArray[np.int64],
        when: NDArray[np.float64],
        change: NDArray[np.int64],
    ) -> Use:
        """From changes in any order; those of one place at one moment count in the order given."""
        order = np.argsort(when, kind="stable")
        order = order[order_by(where[order])]
        where, when, change = where[order], when[order], change[order]
        starts = np.searchsorted(where, np.arange(len(before)))
        running = np.cumsum(change)
        earlier = np.append(0, running)[starts]
        held = before[where] + running - earlier[where]
        peak, moment = before.copy(), np.zeros(len(before))
        np.maximum.at(peak, where, held)
        at_peak = np.flatnonzero((held == peak[where]) & (held > before[where]))[::-1]
        moment[where[at_peak]] = when[at_peak]  # the first one is written last
        return cls(peak, moment, before + sum_by(where, change, len(before)))


def order_by(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by place, equals as they stand; numbers of 16 bits are sorted without comparing them, in no time."""
    small = len(places) > 0 and int(places.max()) < 1 << 15
    return np.argsort(places.astype(np.int16) if small else places, kind="stable")


def sum_by(where: NDArray[np.int64], values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Sums by place, exact for whole numbers of any size."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, where, values)
    return sums


def one_path_each(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str | None]]:
    """A column of paths as numbers, and the path of each number; null is the last one."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    paths = encoded.dictionary.to_pylist()
    return pc.fill_null(encoded.indices, len(paths)).to_numpy(zero_copy_only=False).astype(np.int64), [*paths, None]


def _lookup(
    places: NDArray[np.int64],
    path: tuple[NDArray[np.int64], list[str | None]],
    named: dict[tuple[int, str], int],
    count: int,
) -> NDArray[np.int64]:
    """The log dir of each replica, or UNKNOWN."""
    numbers, names = path
    if not count:
        return np.full(len(places), UNKNOWN, np.int64)
    keys = places * len(names) + numbers
    pairs, which = np.unique(keys, return_inverse=True)
    found = [named.get((pair // len(names), names[pair % len(names)] or ""), UNKNOWN) for pair in pairs.tolist()]
    return np.array(found, np.int64)[which]
