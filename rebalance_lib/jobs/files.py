"""What was written, read in Spark's workers as any program would read it, and handed to Spark as rows.

A row is of one kind: of its columns only ``run`` and the one of that kind are filled in, see `CHECKED`. The cluster and
its plans meet here, in `slots`. A cluster of several shards is too large for one worker: the rows of its snapshot and
of its plans are brought together by shard first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.jobs import slots
from rebalance_lib.jobs.entries import ENTRY, entries_of
from rebalance_lib.jobs.mapping import BATCH_ROWS, Batches, Mapper
from rebalance_lib.jobs.patterns import regex
from rebalance_lib.jobs.rows import chunks_of, in_columns, labelled, rows_of, worded
from rebalance_lib.planner import Mode, Request
from rebalance_lib.planner.shard_tables import shard_of
from rebalance_lib.threads import side_by_side

BROKERS = pa.schema(
    [
        ("broker", pa.int32()),
        ("rack", pa.string()),
        ("alive", pa.bool_()),
        ("cordoned", pa.bool_()),
        ("broker_set", pa.string()),
        ("broker_set_topics", pa.list_(pa.string())),  # as regular expressions
        ("log_dirs", pa.list_(pa.struct([("path", pa.string()), ("total", pa.int64()), ("usable", pa.int64())]))),
    ]
)
FIGURES = ("partitions_changed", "replicas_moved", "bytes_moved", "leaders_moved")
PLANS = pa.schema(  # what the files say of each plan; moves.parquet is about the one that is recommended
    [
        ("candidate", pa.string()),
        *((name, pa.int64()) for name in FIGURES),
        ("copies", pa.int64()),
        ("copied", pa.int64()),
    ]
)
FILES = pa.schema(
    [
        ("candidate", pa.string()),
        ("digest", pa.string()),  # of the plan file
        ("said", pa.string()),  # the digest that the summary says
        ("unreadable", pa.string()),  # why it cannot be read
    ]
)
BROKERS_AFTER = pa.schema([("candidate", pa.string()), *slots.LOADS])
KINDS = {
    "registered": BROKERS,
    "loads": slots.LOADS,
    "topic_sizes": slots.TOPICS,
    "set_replicas": slots.SET_REPLICAS,
    "unplanned": slots.UNPLANNED,
    "entries": slots.ENTRIES,
    "topic_entries": slots.TOPIC_ENTRIES,
    "slots": slots.SLOTS,
    "rack_slots": slots.RACK_SLOTS,
    "plans": PLANS,
    "files": FILES,
    "brokers_after": BROKERS_AFTER,
}
CHECKED = pa.schema([("run", pa.int64()), *((name, pa.struct(list(schema))) for name, schema in KINDS.items())])
REPLICAS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("position", pa.int16()),
        ("broker", pa.int32()),
        ("leader", pa.bool_()),
        ("adding", pa.bool_()),
        ("internal", pa.bool_()),
        ("size_bytes", pa.int64()),
        ("log_dir", pa.string()),
    ]
)
LISTED = pa.schema([*ENTRY, ("candidate", pa.string()), ("entry", pa.int64())])
PARTS = pa.schema([*LISTED, *list(REPLICAS)[2:], *list(FILES)[1:]])
PLAN_FILE = "plan.json"

Rows = Iterator[tuple[str, pa.Table]]  # and of which kind they are


class Staged(NamedTuple):
    """A run to be checked: its number, its snapshot, and where its files wait to be published."""

    run: int
    snapshot: Artifacts
    directory: Artifacts
    row_groups: int = 1
    shards: int = 1

    @property
    def candidates(self) -> list[str]:
        """The names of its plans."""
        return sorted((self.directory / "candidates").directories())


def whole_clusters(staged: Sequence[Staged], request: Request) -> Mapper:
    """For mapInArrow: places in the list come in; everything that is asked of these runs goes out."""

    def read(one: Staged) -> Rows:
        yield from _documents(one)
        replicas = [table for part in range(one.row_groups) for table in _replicas(one, part)]

        def read_plan(name: str) -> tuple[pa.Table, pa.Table]:
            *listed, file = _plan(one, name)
            return pa.concat_tables([LISTED.empty_table(), *listed]), file.select(FILES.names)

        together = pa.concat_tables([REPLICAS.empty_table(), *replicas])
        yield from _beside(one, request, together, one.candidates, read_plan)

    return _each(staged, read)


def documents(staged: Sequence[Staged]) -> Mapper:
    """For mapInArrow: the same, without what is known of partitions."""
    return _each(staged, _documents)


def parts(one: Staged, places: Sequence[int | str]) -> Mapper:
    """For mapInArrow: places of row groups and candidates come in; their rows go out, each with its shard."""

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for place in (places[place] for batch in batches for place in batch["id"].to_pylist()):
            for table in _replicas(one, place) if isinstance(place, int) else _plan(one, place):
                shard: Any = 0
                if table.column_names != FILES.names:
                    shard = shard_of(table["topic"], table["partition"].to_numpy(), one.shards)
                yield from chunks_of(table, PARTS, one.run, shard)

    return read


def shards(one: Staged, request: Request) -> Mapper:
    """For mapInArrow: all rows of a shard come in; everything that is asked of them goes out."""

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = rows_of(batches, PARTS)[2]
        placed = rows.filter(pc.is_valid(rows["position"])).select(REPLICAS.names)
        listed = rows.filter(pc.is_valid(rows["entry"])).select(LISTED.names)
        files = rows.filter(pc.and_(pc.is_null(rows["position"]), pc.is_null(rows["entry"]))).select(FILES.names)
        yield from _batches(one.run, "files", files)
        del rows, files

        def read_plan(name: str) -> tuple[pa.Table, pa.Table]:
            return listed.filter(pc.equal(listed["candidate"], name)), FILES.empty_table()

        for kind, table in _beside(one, request, placed, one.candidates, read_plan):
            yield from _batches(one.run, kind, table)

    return answer


def _each(staged: Sequence[Staged], read: Callable[[Staged], Rows]) -> Mapper:
    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for one in (staged[place] for batch in batches for place in batch["id"].to_pylist()):
            try:
                for kind, table in read(one):
                    yield from _batches(one.run, kind, table)
            except Exception as error:  # the plans of other clusters are checked all the same
                unreadable = {"candidate": "all plans", "unreadable": worded(error)}
                yield from _batches(one.run, "files", pa.Table.from_pylist([unreadable], FILES))

    return rows


def _batches(run: int, kind: str, table: pa.Table) -> list[pa.RecordBatch]:
    structs = pa.chunked_array([batch.to_struct_array() for batch in table.to_batches()], CHECKED.field(kind).type)
    return labelled(pa.table({kind: structs}), CHECKED, run)


def _beside(
    one: Staged,
    request: Request,
    replicas: pa.Table,
    candidates: Sequence[str],
    read_plan: Callable[[str], tuple[pa.Table, pa.Table]],
) -> Rows:
    """A cluster, or a shard of it, beside the plans for it, of each of which entries and row of its file are read."""
    brokers = one.snapshot.read_table("brokers.parquet")
    cluster = slots.Cluster.of(replicas, brokers)
    loads = cluster.loads()
    yield "loads", loads
    yield "topic_sizes", cluster.topics()
    if cluster.has_sets:
        yield "set_replicas", cluster.set_replicas()
    alive = brokers.filter(pc.equal(brokers["alive"], True))["broker"].to_numpy()
    dead = np.setdiff1d(loads["broker"].to_numpy(), alive)
    to_leave = np.union1d(dead, np.array(request.brokers, np.int32))

    def of_plan(candidate: str) -> list[tuple[str, pa.Table]]:
        listed, file = read_plan(candidate)
        found = [("files", file), *cluster.beside(candidate, listed, request).items()]
        if request.mode in {Mode.DRAIN, Mode.REPAIR}:
            found.append(("unplanned", cluster.unplanned(candidate, listed, to_leave)))
        return found

    for found in side_by_side(of_plan, candidates, len(cluster.offsets) - 1):
        yield from found


def _replicas(one: Staged, row_group: int) -> Iterator[pa.Table]:
    for table in one.snapshot.read_row_group("replicas.parquet", row_group, REPLICAS.names, rows=BATCH_ROWS):
        yield in_columns(table, REPLICAS)


def _plan(one: Staged, candidate: str) -> Iterator[pa.Table]:
    """The entries of a candidate, and at last the row of its file."""
    digest, number, unreadable = hashlib.sha256(), one.candidates.index(candidate) << 40, None
    said = one.directory.read_json("summary.json")["candidates"][candidate]["digest"]
    try:
        for table in entries_of(_hashed(one.directory / "candidates" / candidate, digest)):
            numbers = pa.array(np.arange(number, number + len(table)))
            label = pa.repeat(pa.scalar(candidate), len(table))
            yield table.append_column("candidate", label).append_column("entry", numbers)
            number += len(table)
    except InvalidInputError as error:
        unreadable = str(error)
    found = None if unreadable else f"sha256:{digest.hexdigest()}"
    file = {"candidate": candidate, "digest": found, "said": said, "unreadable": unreadable}
    yield pa.Table.from_pylist([file], FILES)


def _hashed(directory: Artifacts, digest: Any) -> Iterator[bytes]:
    """The pieces of a plan file; the digest is of its text without the ends of lines, which is its canonical form."""
    with directory.open_reader(PLAN_FILE) as file:
        while piece := file.read(8 << 20):
            digest.update(piece.replace(b"\n", b""))
            yield piece


def _documents(one: Staged) -> Rows:
    """The brokers, and what the files say of the plans."""
    yield "registered", _brokers(one.snapshot.read_table("brokers.parquet"))
    summary = one.directory.read_json("summary.json")
    recommended = summary["recommended"]
    digest = hashlib.sha256()
    for _ in _hashed(one.directory, digest):
        pass
    # The plan at the top has no name: it, and what the summary says of it, must be the one that is recommended.
    said_of_it = summary["candidates"][recommended]["digest"]
    tops = [
        {"candidate": recommended, "digest": digest_at_top, "said": said_of_it}
        for digest_at_top in (f"sha256:{digest.hexdigest()}", summary["digest"])
    ]
    yield "files", pa.Table.from_pylist(tops, FILES)
    copies = {recommended: _copies(one)}
    said = [
        {"candidate": name, **{key: plan["figures"][key] for key in FIGURES}, **copies.get(name, {})}
        for name, plan in summary["candidates"].items()
    ]
    yield "plans", pa.Table.from_pylist(said, PLANS)
    listed = [{"candidate": recommended, "broker": row["broker"], **row["after"]} for row in summary["brokers"]]
    yield "brokers_after", pa.Table.from_pylist(listed, BROKERS_AFTER)
    after = one.directory.read_table("brokers_before_after.parquet")
    columns = [after[name if name == "broker" else f"{name}_after"] for name in slots.LOADS.names]
    label = pa.repeat(pa.scalar(recommended), len(after))
    yield "brokers_after", pa.table([label, *columns], schema=BROKERS_AFTER)


def _brokers(brokers: pa.Table) -> pa.Table:
    rows = brokers.to_pylist()
    for row in rows:
        row["broker_set_topics"] = [regex(one) for one in row.get("broker_set_topics") or ()]
        row["log_dirs"] = [
            {"path": one["path"], "total": one["total_bytes"], "usable": one["usable_bytes"]}
            for one in row.get("log_dirs") or ()
        ]
    return pa.Table.from_pylist(rows, BROKERS)


def _copies(one: Staged) -> dict[str, int]:
    """How many replicas moves.parquet says are copied, and their bytes."""
    copies = copied = 0
    with one.directory.open_parquet("moves.parquet") as file:
        for batch in file.iter_batches(columns=["from_broker", "to_broker", "bytes"]):
            within = pc.fill_null(pc.equal(batch["from_broker"], batch["to_broker"]), False)
            found = pc.sum(batch["bytes"].filter(pc.invert(within)))
            copies, copied = copies + len(within) - (pc.sum(within).as_py() or 0), copied + (found.as_py() or 0)
    return {"copies": copies, "copied": copied}
