"""What Spark's workers do with the shards of a large cluster; see ``planner.shards`` for what is planned how.

    add_up        a shard    what its rows add up to by broker
    plan_shard    a shard    its part of the plans, written to a directory of its own in the run's staging
    join          a run      the samples of its shards corrected, and the figures of the plans
    assemble      a file     its parts, of all shards and of the join, merged in order, a few rows of each at a time
    finish        a run      the digests of the assembled plans in its summary, and the review

No task but `plan_shard` has rows that grow with the cluster, and from task to task go names of directories. A
directory of a shard has

    replicas.parquet, loads.parquet       of its sample
    placements.parquet                    where candidates put the sample
    NAME.rest                             what all its other partitions add up to, now and for each candidate
    NAME.entries.parquet                  for each candidate, the plan's entries of these other partitions
    NAME.moves.parquet                    the copies that it makes of them, where it may be recommended
    rates.parquet                         the loads of all its partitions, if they are known
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rebalance_lib.artifacts import RATES, Artifacts
from rebalance_lib.compile import ensure_compiled
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.jobs.mapping import Batches, Mapper
from rebalance_lib.jobs.rows import (
    ROWS,
    RUN,
    PlanTask,
    Tasks,
    cluster_of,
    labelled,
    refuse_errors,
    rows_of,
)
from rebalance_lib.jobs.tasks import OUTCOMES, Found, outcome
from rebalance_lib.plan import write_plan
from rebalance_lib.plan.columns import find_sorted, partition_keys
from rebalance_lib.plan.merging import merge_sorted
from rebalance_lib.planner import Choice
from rebalance_lib.planner.names import FULL, UNLIMITED
from rebalance_lib.planner.outcome import Outcome
from rebalance_lib.planner.shard_tables import TOTALS, ShardInput, joined, shard_tables, totals_of
from rebalance_lib.report import moves_table, write_digests, write_figures
from rebalance_lib.topology import Snapshot
from rebalance_lib.topology.load_facts import LoadFacts

RUN_TOTALS = pa.schema([RUN, *TOTALS])
_TEXTS = [("candidate", pa.string()), ("source", pa.string())]
JOINED = pa.schema(
    [
        *OUTCOMES,
        ("parts", pa.list_(pa.string())),  # directories
        ("pieces", pa.list_(pa.struct([*_TEXTS, ("targets", pa.list_(pa.string()))]))),
    ]
)
ASSEMBLED = pa.schema([*OUTCOMES, ("candidate", pa.string())])
READ_ROWS = 1 << 15  # of each part at a time


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of a plan to be put together from files of the same name in several directories."""

    staged: str
    parts: tuple[str, ...]
    candidate: str | None  # whose plan it is
    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assembled:
    """A plan whose files are put together, and their digests by candidate."""

    staged: str
    digests: Mapping[str, str]


def add_up(tasks: Tasks) -> Mapper:
    """For mapInArrow: all rows of a shard come in; what they add up to by broker goes out.

    What is wrong with them is told by `plan_shard`, which reads them again.
    """

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        number, _, rows = rows_of(batches, ROWS)
        if rows.num_rows and not len(rows["error"].drop_null()):
            try:
                found = totals_of(cluster_of(tasks[number], rows), tasks[number].request)
            except InvalidInputError:
                return
            yield from labelled(found, RUN_TOTALS, number)

    return answer


def plan_shard(tasks: Tasks, totals: Mapping[int, pa.Table]) -> Mapper:
    """For mapInArrow: all rows of a shard come in; where its part of the plans is goes out."""

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        number, group, rows = rows_of(batches, ROWS)
        if rows.num_rows:
            yield outcome(number, lambda: _plan_shard(tasks[number], group, rows, totals.get(number)), OUTCOMES)

    return answer


def _plan_shard(task: PlanTask, group: int, rows: pa.Table, totals: pa.Table | None) -> Found:
    refuse_errors(rows)
    ensure_compiled()
    shard = cluster_of(task, rows)
    found = shard_tables(shard, task.request, TOTALS.empty_table() if totals is None else totals, task.shards)
    place = Artifacts(task.staging) / f"shard-{group:06d}-{uuid.uuid4().hex[:8]}"
    place.write_table("replicas.parquet", _only(shard.snapshot.replicas, found.sample))
    if shard.loads is not None:
        place.write_table("loads.parquet", _only(shard.loads, found.sample))
        place.write_table(RATES, shard.loads)
    place.write_table("placements.parquet", found.placements)
    for name, packed in found.rests.items():
        place.write_bytes(f"{name}.rest", packed)
    for name in list(found.others):
        _write_part(place, name, found.others.pop(name))
    return {"staged": place.uri}


def _only(rows: pa.Table, sample: pa.Table) -> pa.Table:
    """The rows of these partitions, which are sorted."""
    known, wanted = partition_keys(sample, rows)
    return rows.filter(pa.array(find_sorted(known, wanted) >= 0))


def _write_part(place: Artifacts, name: str, part: Outcome) -> None:
    """What a candidate does to some partitions, as files to be merged with those of all others."""
    place.write_table(f"{name}.entries.parquet", part.plan.entries)
    if name in {FULL, UNLIMITED}:
        place.write_table(f"{name}.moves.parquet", moves_table(part))


def join(tasks: Tasks, totals: Mapping[int, pa.Table]) -> Mapper:
    """For mapInArrow: all shards of a run come in, what became of it goes out."""

    def answer(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches, OUTCOMES)
        if rows.num_rows:
            (number,) = pc.unique(rows["run"]).to_pylist()
            yield outcome(number, lambda: _join(number, tasks[number], rows, totals), JOINED)

    return answer


def _join(number: int, task: PlanTask, shards: pa.Table, totals: Mapping[int, pa.Table]) -> Found:
    """Correct the plans of a cluster's shards."""
    begun = time.perf_counter()
    refuse_errors(shards)
    ensure_compiled()
    parts = [Artifacts(uri) for uri in sorted(shards["staged"].to_pylist())]  # by the number of the shard
    sample = _sample(task, parts)
    placements = pa.concat_tables([part.read_table("placements.parquet") for part in parts])
    names = [name.removesuffix(".rest") for name in parts[0].files() if name.endswith(".rest")]
    rests = {name: _read_each(parts, f"{name}.rest") for name in names}
    found = joined(sample, task.request, totals[number], placements, rests)
    timings = {"plan": time.perf_counter() - begun}
    choice = Choice(found.model, task.request, found.candidates, timings, rates=sample.loads)
    own, staged = (Artifacts(task.staging) / f"{kind}{uuid.uuid4().hex[:8]}" for kind in ("shard-", ""))
    for one in found.candidates:
        _write_part(own, found.origins[one.name], one.outcome)
    write_figures(staged, choice, task.pace)
    note = f"{task.uri} was planned in {task.shards} shards: its consumer groups were not looked at"
    uris = [part.uri for part in (*parts, own)]
    return {"note": note, "staged": staged.uri, "parts": uris, "pieces": _pieces(found.origins, sample)}


def _read_each(parts: Sequence[Artifacts], name: str) -> Iterator[bytes]:
    for part in parts:
        yield part.read_bytes(name)


def _sample(task: PlanTask, parts: Sequence[Artifacts]) -> ShardInput:
    replicas = pa.concat_tables([part.read_table("replicas.parquet") for part in parts])
    by = [(name, "ascending") for name in ("topic", "partition", "position")]
    snapshot = Snapshot.from_tables(task.snapshot.read_table("brokers.parquet"), replicas.sort_by(by))
    loads = [part.read_table("loads.parquet") for part in parts if part.exists("loads.parquet")]
    if not loads:
        return ShardInput(snapshot)
    facts = next((known for known in map(LoadFacts.of, loads) if known is not None), None)
    together = pa.concat_tables([one.replace_schema_metadata() for one in loads])
    together = together.sort_by(by[:2])
    return ShardInput(snapshot, together if facts is None else facts.attach(together))


def _pieces(origins: Mapping[str, str], sample: ShardInput) -> list[dict[str, object]]:
    """The files of a plan that grow with the cluster, and what they are put together from."""
    recommended, *_ = origins
    pieces: list[dict[str, object]] = [
        {"source": f"{origins[recommended]}.moves.parquet", "targets": ["moves.parquet"]}
    ]
    for name, origin in origins.items():
        targets = [f"candidates/{name}/plan.json", *(["plan.json"] if name == recommended else [])]
        pieces.append({"candidate": name, "source": f"{origin}.entries.parquet", "targets": targets})
    if sample.loads is not None:
        pieces.append({"source": RATES, "targets": [RATES]})
    return pieces


def assemble(piece: Piece) -> dict[str, object]:
    """Merge the parts of a file in order, into each of its places; a plan has a digest."""
    staged, parts = Artifacts(piece.staged), [Artifacts(uri) for uri in piece.parts]
    with ExitStack() as opened:
        files = [opened.enter_context(part.open_parquet(piece.source)) for part in parts if part.exists(piece.source)]
        merged = merge_sorted(_tables(file) for file in files)
        if piece.candidate is not None:
            writers = [opened.enter_context(staged.open_writer(name)) for name in piece.targets]

            def write(text: str) -> None:
                for writer in writers:
                    writer.write(text.encode("ascii"))

            return {"candidate": piece.candidate, "digest": write_plan(merged, write)}
        schema = next((file.schema_arrow for file in files if file.schema_arrow.metadata), files[0].schema_arrow)
        for name in piece.targets:
            staged.write_tables(name, schema, (table.cast(schema) for table in merged))
        return {}


def _tables(file: pq.ParquetFile) -> Iterator[pa.Table]:
    for batch in file.iter_batches(READ_ROWS, use_threads=False):
        yield pa.Table.from_batches([batch]).replace_schema_metadata()


def finish(plan: Assembled) -> dict[str, object]:
    """Note the digests of a plan's files in its summary, and write the review."""
    return {"staged": plan.staged, "digest": write_digests(Artifacts(plan.staged), plan.digests)}
