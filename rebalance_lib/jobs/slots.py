"""A plan beside the cluster it is for, counted: what the rules of `invariants` are asked of.

A partition that a plan names is an *entry*. Every broker that it is on, before or after, is a *slot*. Rules look at
what an entry or a slot is, not at which one: those that are alike become one row with their number, and with the name
of the first of them for messages. A plan of a million partitions is some ten rows for each broker and each topic.

A replica without a size counts as its partition's largest. A copy has the leader's size. Replicas that are being added
hold nothing yet, and are left out.

Example: ``foo-0`` and ``foo-1`` go from [1, 2] to [1, 3], and their leaders have 5 bytes. They are one row of entries,
which move, and three of slots:

    broker    comes    goes     leads    led      number    bytes    copied
    1         false    false    true     true     2         10       0
    2         false    true     false    false    2         10       0
    3         true     false    false    false    2         0        10
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rebalance_lib.plan.columns import Lists, find_sorted, one_chunk
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology.texts import encode_texts

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]

_BITS = 32  # of the number of a partition
_COUNTED = [("number", pa.int64()), ("first", pa.string())]
SLOTS = pa.schema(
    [
        ("candidate", pa.string()),
        ("topic", pa.string()),  # where there are broker sets: which one counts depends on it
        ("broker", pa.int32()),
        ("comes", pa.bool_()),
        ("goes", pa.bool_()),
        ("leads", pa.bool_()),
        ("led", pa.bool_()),
        ("others_may_lead", pa.bool_()),  # whether another broker of the list could
        ("log_dir", pa.string()),  # of the replica that is there
        ("named", pa.string()),  # the log dir that the plan names
        ("bytes", pa.int64()),  # of replicas that are there
        ("copied", pa.int64()),  # of replicas that come
        *_COUNTED,
    ]
)
ENTRIES = pa.schema(
    [
        ("candidate", pa.string()),
        ("topic", pa.string()),  # of partitions that are new: how many replicas they have depends on it
        ("known", pa.bool_()),  # whether the cluster has the partition
        ("repeated", pa.bool_()),  # whether the plan has another entry for it
        ("distinct", pa.bool_()),  # whether its brokers are
        ("adds", pa.bool_()),  # brokers that it is not on
        ("drops", pa.bool_()),  # brokers that it is on
        ("reordered", pa.bool_()),  # whether the list is another one
        ("leader_changes", pa.bool_()),
        ("names_log_dirs", pa.bool_()),
        ("before", pa.int64()),  # how many replicas
        ("after", pa.int64()),
        ("replaced", pa.bool_()),  # whether the list is the one before with brokers replaced as the request says
        *_COUNTED,
    ]
)
TOPIC_ENTRIES = pa.schema(
    [
        ("candidate", pa.string()),
        ("topic", pa.string()),
        ("known", pa.bool_()),
        ("lowest", pa.int32()),  # of the partitions
        ("highest", pa.int32()),
        *_COUNTED,
    ]
)
RACK_SLOTS = pa.schema(
    [
        ("candidate", pa.string()),
        ("topic", pa.string()),
        ("spread", pa.int64()),  # partitions that move and are alike have a number of their own
        ("broker", pa.int32()),  # one for all of the same rack and set that are alive, or not
        ("before", pa.int64()),  # replicas of each of these partitions
        ("after", pa.int64()),
        *_COUNTED,
    ]
)
UNPLANNED = pa.schema([("candidate", pa.string()), ("topic", pa.string()), ("broker", pa.int32()), *_COUNTED])
LOADS = pa.schema([("broker", pa.int32()), ("replicas", pa.int64()), ("bytes", pa.int64()), ("leaders", pa.int64())])
TOPICS = pa.schema(
    [("topic", pa.string()), ("partitions", pa.int64()), ("factor", pa.int64()), ("internal", pa.bool_())]
)
SET_REPLICAS = pa.schema([("topic", pa.string()), ("broker_set", pa.string()), ("number", pa.int64())])


@dataclass(frozen=True, eq=False)
class Cluster:
    """The replicas of some partitions, sorted by partition and position; none of them is being added."""

    replicas: pa.Table
    brokers: pa.Table  # of a snapshot

    @classmethod
    def of(cls, replicas: pa.Table, brokers: pa.Table) -> Cluster:
        """From rows of a snapshot, in any order."""
        adding = pc.fill_null(replicas["adding"], False)
        found = cls(replicas.filter(pc.invert(adding)) if pc.any(adding).as_py() else replicas, brokers)
        key, position = found.key, one_chunk(found.replicas["position"]).to_numpy(zero_copy_only=False)
        if np.all((key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (position[1:] > position[:-1]))):
            return found
        return cls(found.replicas.take(pa.array(np.lexsort((position, key)))), brokers)

    def loads(self) -> pa.Table:
        """By broker: what it holds."""
        leads = np.zeros(len(self.broker), np.int64)
        leads[self._begins] = 1
        rows = pa.table({"broker": self.broker, "bytes": self._bytes, "leads": leads})
        wanted = [([], "count_all"), ("bytes", "sum"), ("leads", "sum")]
        return rows.group_by("broker", use_threads=False).aggregate(wanted).rename_columns(LOADS.names).cast(LOADS)

    def topics(self) -> pa.Table:
        """By topic: how many partitions it has, and how many replicas its first."""
        code, names = self._topics
        internal = one_chunk(pc.fill_null(self.replicas["internal"], False)).to_numpy(zero_copy_only=False)
        partitions, factor, hidden = (
            np.bincount(code[rows], minlength=len(names))
            for rows in (self._begins, np.flatnonzero(self._partition == 0), np.flatnonzero(internal))
        )
        return pa.table([names, partitions, factor, hidden > 0], schema=TOPICS)

    @cached_property
    def has_sets(self) -> bool:
        """Whether any broker is in a set."""
        return "broker_set" in self.brokers.column_names and self.brokers["broker_set"].null_count < len(self.brokers)

    def set_replicas(self) -> pa.Table:
        """By topic and broker set, '' for brokers in none: how many replicas there are."""
        sets = self.brokers.select(["broker", "broker_set"])
        placed = self.replicas.select(["topic", "broker"]).join(sets, "broker", join_type="inner")
        placed = placed.set_column(2, "broker_set", pc.fill_null(placed["broker_set"], ""))
        found = placed.group_by(["topic", "broker_set"]).aggregate([([], "count_all")])
        return found.rename_columns(SET_REPLICAS.names).cast(SET_REPLICAS)

    def unplanned(self, candidate: str, entries: pa.Table, brokers: NDArray[np.int32]) -> pa.Table:
        """Replicas on some brokers, of partitions that a plan does not name."""
        rows = np.flatnonzero(np.isin(self.broker, brokers) & ~np.isin(self.key, self._keys_of(entries)))
        found = self.replicas.select(["topic", "partition", "broker"]).take(pa.array(rows))
        return _table(_counted({"topic": found["topic"], "broker": found["broker"]}, {}, found, candidate), UNPLANNED)

    def beside(self, candidate: str, entries: pa.Table, request: Request) -> dict[str, pa.Table]:
        """The entries, topic_entries, slots and rack_slots of a plan.

        Args:
            candidate: What the plan is called.
            entries: Its rows: entry (a number for each), topic, partition, replicas and log_dirs.
            request: What was asked for.
        """
        wanted = self._keys_of(entries)
        pair = _Pair.of(self, entries, find_sorted(self.key[self._begins], wanted))
        return {
            "entries": self._entries(candidate, pair, _repeated(wanted), request),
            "topic_entries": _topic_entries(candidate, pair),
            "slots": self._slots(candidate, pair, request),
            "rack_slots": self._rack_slots(candidate, pair),
        }

    def _entries(self, candidate: str, pair: _Pair, repeated: _Flags, request: Request) -> pa.Table:
        entries, before, after = pair.entries, pair.before, pair.after
        expected = before.values.copy()
        for broker, other in zip(request.brokers, request.replacements, strict=False):
            expected[before.values == broker] = other
        distinct = np.ones(len(entries), np.bool_)
        distinct[after.rows[after.repeated()]] = False
        columns = {
            **({"topic": entries["topic"]} if request.mode is Mode.PARTITIONS else {}),
            "known": pair.known,
            "repeated": repeated,
            "distinct": distinct & (after.lengths > 0),
            "adds": after.count_by_row(pair.was < 0) > 0,
            "drops": before.count_by_row(~pair.stays) > 0,
            "reordered": ~before.same_rows(after),
            "leader_changes": _first(before) != _first(after),
            "names_log_dirs": entries["log_dirs"].is_valid(),
            "before": before.lengths,
            "after": after.lengths,
            "replaced": Lists(before.offsets, expected).same_rows(after),
        }
        return _table(_counted(columns, {}, entries, candidate), ENTRIES)

    def _slots(self, candidate: str, pair: _Pair, request: Request) -> pa.Table:
        entries, before, after, was = pair.entries, pair.before, pair.after, pair.was
        once = np.ones(len(after.values), np.bool_)
        once[after.repeated()] = False
        new, gone = np.flatnonzero(once), np.flatnonzero(~pair.stays)
        row = np.concatenate([after.rows[new], before.rows[gone]])
        broker = np.concatenate([after.values[new], before.values[gone]])
        at = np.concatenate([was[new], gone])  # where the replica is in `before`
        goes, comes = np.arange(len(row)) >= len(new), at < 0
        place = np.concatenate([new - after.offsets[:-1][after.rows[new]], np.zeros(len(gone), np.int64)])
        replica = pa.array(pair.replica[at] if len(pair.replica) else at, mask=comes)
        listed = entries.take(pa.array(row))
        other_leaders = after.count_by_row(np.isin(after.values, self._may_lead(request))) > 0
        columns = {
            **({"topic": listed["topic"]} if self.has_sets else {}),
            "broker": broker,
            "comes": comes,
            "goes": goes,
            "leads": ~goes & (place == 0),
            "led": _first(before)[row] == broker,
            "others_may_lead": other_leaders[row],
            "log_dir": self._log_dir.take(replica),
            "named": _named(entries["log_dirs"], row, place, goes),
        }
        copied = np.where(comes, np.where(pair.known, self._copies[pair.partition], 0)[row], 0)
        held = pc.fill_null(pa.array(self._bytes).take(replica), 0)
        sums = {"bytes": (held, "sum"), "copied": (copied, "sum")}
        return _table(_counted(columns, sums, listed, candidate), SLOTS)

    def _rack_slots(self, candidate: str, pair: _Pair) -> pa.Table:
        comes, goes = pair.after.count_by_row(pair.was < 0), pair.before.count_by_row(~pair.stays)
        moving = np.flatnonzero(pair.known & (comes + goes > 0))
        if not len(moving):
            return RACK_SLOTS.empty_table()
        listed = pair.entries.take(pa.array(moving))
        lists = [Lists(one.offsets, self._alike(one.values)).take(moving) for one in (pair.before, pair.after)]
        columns = {"topic": listed["topic"]} if self.has_sets else {}
        for side, one in zip("ba", lists, strict=True):
            ordered = one.values[np.lexsort((one.values, one.rows))]
            columns |= {f"{side}{place}": column for place, column in enumerate(_padded(Lists(one.offsets, ordered)))}
        alike = _counted(columns, {"spread": (listed["entry"], "min")}, listed, candidate)
        tables = []
        for name in (name for name in columns if name != "topic"):
            counts = {"before": int(name[0] == "b"), "after": int(name[0] == "a")}
            sides = {key: pa.repeat(pa.scalar(count), len(alike["first"])) for key, count in counts.items()}
            table = _table({**alike, "broker": alike[name], **sides}, RACK_SLOTS)
            tables.append(table.filter(pc.greater_equal(table["broker"], 0)))
        return pa.concat_tables(tables)

    def _may_lead(self, request: Request) -> list[int]:
        """Live brokers that are neither excluded nor to be drained."""
        alive = self.brokers.filter(pc.equal(self.brokers["alive"], True))["broker"].to_pylist()
        drained = request.brokers if request.mode is Mode.DRAIN else ()
        return sorted(set(alive) - {*request.excluded_brokers, *drained})

    def _alike(self, brokers: NDArray[np.int32]) -> NDArray[np.int32]:
        """In place of each broker the first of the same rack and set that is alive, or not, as it is."""
        kinds: dict[tuple[object, ...], int] = {}
        first = {}
        for row in self.brokers.to_pylist():
            kind = (row["rack"], row["alive"], row.get("broker_set"))
            first[row["broker"]] = kinds.setdefault(kind, row["broker"])
        ids, which = np.unique(brokers, return_inverse=True)
        return np.array([first.get(id_, id_) for id_ in ids.tolist()], np.int32)[which]

    @cached_property
    def _topics(self) -> tuple[NDArray[np.int32], pa.Array]:
        return encode_texts(self.replicas["topic"])

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {topic: rank for rank, topic in enumerate(sorted(self._topics[1].to_pylist()))}

    @cached_property
    def key(self) -> _Ints:
        """By replica: a number for its partition, which sorts as partitions do."""
        code, names = self._topics
        ranks = np.array([self._ranks[topic] for topic in names.to_pylist()], np.int64)
        return (ranks[code] << _BITS) + self._partition

    def _keys_of(self, entries: pa.Table) -> _Ints:
        """By entry: the number of its partition; topics that the cluster does not have come after all others."""
        code, names = encode_texts(entries["topic"])
        ranks = dict(self._ranks)
        numbers = np.array([ranks.setdefault(topic, len(ranks)) for topic in names.to_pylist()], np.int64)
        found: _Ints = (numbers[code] << _BITS) + one_chunk(entries["partition"]).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def broker(self) -> NDArray[np.int32]:
        """By replica."""
        found: NDArray[np.int32] = one_chunk(self.replicas["broker"]).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def _partition(self) -> NDArray[np.int32]:
        found: NDArray[np.int32] = one_chunk(self.replicas["partition"]).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def _log_dir(self) -> Any:
        return one_chunk(self.replicas["log_dir"].dictionary_encode())

    @cached_property
    def _begins(self) -> _Ints:
        """Where the replicas of each partition begin."""
        differs = self.key[1:] != self.key[:-1]
        return np.flatnonzero(np.concatenate([np.ones(min(1, len(self.key)), np.bool_), differs]))

    @cached_property
    def offsets(self) -> _Ints:
        """Where the replicas of each partition begin, and where the last of them end."""
        return np.append(self._begins, self.replicas.num_rows)

    @cached_property
    def _size(self) -> _Ints:
        """By replica; -1 where it is not known."""
        found: _Ints = one_chunk(pc.fill_null(self.replicas["size_bytes"], -1)).to_numpy()
        return found

    @cached_property
    def _largest(self) -> _Ints:
        return np.maximum(0, np.maximum.reduceat(self._size, self._begins)) if len(self._begins) else self._size

    @cached_property
    def _bytes(self) -> _Ints:
        return np.where(self._size < 0, np.repeat(self._largest, np.diff(self.offsets)), self._size)

    @cached_property
    def _copies(self) -> _Ints:
        """By partition: the bytes of a copy; one more for partitions that are not known."""
        if not len(self._begins):
            return np.zeros(1, np.int64)
        leader = one_chunk(self.replicas["leader"]).to_numpy(zero_copy_only=False)
        of_leader = np.maximum.reduceat(np.where(leader, self._size, -1), self._begins)
        return np.append(np.where(of_leader < 0, self._largest, of_leader), 0)


@dataclass(frozen=True, eq=False)
class _Pair:
    """The lists of brokers of the partitions that a plan names, before and after."""

    entries: pa.Table
    partition: _Ints  # by entry: which one of the cluster it is; -1 if it has none such
    before: Lists
    after: Lists
    replica: _Ints  # by value of `before`: the row of the replica

    @classmethod
    def of(cls, cluster: Cluster, entries: pa.Table, partition: _Ints) -> _Pair:
        offsets, broker = cluster.offsets, cluster.broker
        lengths = np.append(np.diff(offsets), 0)[partition]
        before = Lists.from_lengths(lengths, np.empty(0, np.int32))
        replica = np.repeat(offsets[partition] - before.offsets[:-1], lengths) + np.arange(before.offsets[-1])
        before = Lists(before.offsets, broker[replica])
        return cls(entries, partition, before, Lists.from_column(entries["replicas"]), replica)

    @property
    def known(self) -> _Flags:
        return self.partition >= 0

    @cached_property
    def stays(self) -> _Flags:
        """By value of `before`: whether the partition stays on that broker."""
        return self.before.contained_in(self.after)

    @cached_property
    def was(self) -> _Ints:
        """By value of `after`: where it is in `before`; -1 if it comes."""
        return self.after.position_in(self.before)


def _topic_entries(candidate: str, pair: _Pair) -> pa.Table:
    partition = pair.entries["partition"]
    bounds = {"lowest": (partition, "min"), "highest": (partition, "max")}
    columns = {"topic": pair.entries["topic"], "known": pair.known}
    return _table(_counted(columns, bounds, pair.entries, candidate), TOPIC_ENTRIES)


def _repeated(keys: _Ints) -> _Flags:
    """By key: whether it is there more than once."""
    if np.all(keys[1:] > keys[:-1]):
        return np.zeros(len(keys), np.bool_)
    _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    found: _Flags = times[which] > 1
    return found


def _first(lists: Lists) -> NDArray[np.int32]:
    """The first of each list; -1 if it is empty."""
    found: NDArray[np.int32] = np.append(lists.values, -1)[np.where(lists.lengths > 0, lists.offsets[:-1], -1)]
    return found


def _padded(lists: Lists) -> list[NDArray[np.int32]]:
    """The first, second and further values of each list; -1 where it has ended."""
    values = np.append(lists.values, -1)
    return [
        values[np.where(place < lists.lengths, lists.offsets[:-1] + place, -1)]
        for place in range(int(lists.lengths.max(initial=0)))
    ]


def _named(log_dirs: pa.ChunkedArray, row: _Ints, place: _Ints, goes: _Flags) -> Any:
    """By slot: the log dir that the plan names for it."""
    column = one_chunk(log_dirs)
    if column.null_count == len(column):
        return pa.nulls(len(row), pa.string())
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    begins = np.cumsum(lengths) - lengths
    here = ~goes & (place < lengths[row])
    names = column.flatten().take(pa.array(begins[row] + place, mask=~here))
    return pc.if_else(pc.equal(names, "any"), None, names)


def _counted(
    keys: Mapping[str, Any], sums: Mapping[str, tuple[Any, str]], listed: pa.Table, candidate: str
) -> dict[str, Any]:
    """The rows that are alike in their keys, each with its number and the name of the first of them: columns.

    Args:
        keys: Columns.
        sums: Further columns, and how they are put together.
        listed: The topic and partition of each row.
        candidate: Of all rows.
    """
    values = {name: column for name, (column, _) in sums.items()}
    rows = pa.table({**keys, **values, "row": np.arange(len(listed))})
    wanted = [*((name, how) for name, (_, how) in sums.items()), ("row", "min"), ([], "count_all")]
    found = rows.group_by(list(keys), use_threads=False).aggregate(wanted)
    first = listed.select(["topic", "partition"]).take(found["row_min"])
    return {
        "candidate": pa.repeat(pa.scalar(candidate), len(found)),
        **{name: found[name] for name in keys},
        **{name: found[f"{name}_{how}"] for name, (_, how) in sums.items()},
        "number": found["count_all"],
        "first": pc.binary_join_element_wise(first["topic"], first["partition"].cast(pa.string()), "-"),
    }


def _table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Columns in the order of a schema; those that are missing are null."""
    rows = len(columns["candidate"])
    return pa.table(
        [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in schema],
        names=schema.names,
    ).cast(schema)
