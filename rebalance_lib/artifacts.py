"""The directory of a run's artifacts, wherever it is kept: `rebalance_lib.storage` says which URIs there are.

A run is one URI. Below it:

    snapshot/   brokers.parquet, replicas.parquet,         what the cluster was; its consumer groups, if they were read
                group_members.parquet,
                group_offsets.parquet
    plan/       plan.json, candidates/, moves.parquet,     what is to change, published all at once
                brokers_before_after.parquet, groups.parquet,
                rates.parquet, summary.json, review.md
    run.json                                               which run of which DAG this is
    shown.json                                             the options and plans of the review as it was first asked
    approvals.json                                         the answers of a review that goes on, and what they lack
    review.json                                            who chose which candidate, how and when, and by which rules
    execution.json, execution.backup.json                  since when the plan is executed, and its topics' ids
    throttles.json, throttles.backup.json                  the throttle configurations before the run, in two copies
    requests/                                              what people ask of the run while it is under way
    clean_up.json, lock                                    when it was last cleaned up; held by who executes it
    progress.json                                          what the last check found while data moved
    journal/, audit.json                                   what was done as it happened, and the record of it
    after/      brokers.parquet, replicas.parquet          what the cluster is at the end
    report.html                                            the story, for people

The history of snapshots is such a directory too, beside those of the runs (`rebalance_lib.history`), and so are the
locks of clusters, by which one run at a time has a cluster.

A file appears whole or not at all, so that a step that died half way leaves nothing a later step could mistake for
its result: a file of a file system is written beside its place and renamed, an object of an object store is not there
before its last byte is.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.errors import FileMissingError, InvalidInputError, RebalanceError
from rebalance_lib.file_lock import file_lock
from rebalance_lib.json_text import indented
from rebalance_lib.storage import Place, locate, scheme_of
from rebalance_lib.topology import Groups, Snapshot, check_snapshot

SNAPSHOT, PLAN, AFTER = "snapshot", "plan", "after"
RUN, SHOWN, REVIEW, PROGRESS = "run.json", "shown.json", "review.json", "progress.json"
RATES = "rates.parquet"
GROUP_FILES = ("group_members.parquet", "group_offsets.parquet")  # of a snapshot
GROUPS = "groups.parquet"  # of a plan: what each candidate does to each consumer group
LAST = "plan.json"  # of a directory that is published
CHANGED = ("mtime", "LastModified", "last_modified", "updated", "created")  # what storages call the time of a change


@dataclass(frozen=True, slots=True)
class Artifacts:
    """A directory named by a URI; Spark and every task of the DAG are given the same one."""

    uri: str

    @classmethod
    def at(cls, path: Path) -> Artifacts:
        """The artifacts in a local directory."""
        return cls(f"file://{path.absolute()}")

    @classmethod
    def named(cls, place: str) -> Artifacts:
        """The artifacts at a place that a person named: a URI, or a local directory."""
        return cls(place) if "://" in place else cls.at(Path(place))

    @property
    def is_local(self) -> bool:
        """Whether these are files, which any program opens by their path."""
        return scheme_of(self.uri) == "file"

    @property
    def path(self) -> Path:
        """The directory itself, where these are files."""
        return Path(locate(self.uri).path)

    def __truediv__(self, name: str) -> Artifacts:
        return Artifacts(f"{self.uri.rstrip('/')}/{name}")

    def directories(self) -> list[str]:
        """The names of the directories in this one, in order; none if it is not there."""
        return sorted(name for name, kind in self._entries() if kind == "directory")

    def files(self) -> list[str]:
        """The names of the files in this directory, in order; none if it is not there."""
        return sorted(name for name, kind in self._entries() if kind == "file")

    def names(self) -> list[str]:
        """The names of all that is in this directory, in order; none if it is not there."""
        with self._reached("read") as place:
            if place.filesystem.isfile(place.path):
                raise InvalidInputError(f"{self.uri} is a file: give a directory")
        return sorted(name for name, _ in self._entries())

    def exists(self, name: str) -> bool:
        """Whether this file or directory is there."""
        with self._reached("read", name) as place:
            return bool(place.filesystem.exists(f"{place.path}/{name}"))

    def last_change(self) -> datetime | None:
        """When a file in this directory, or below it, was last written; None if there is none."""
        with self._reached("read") as place:
            found = place.filesystem.find(place.path, detail=True).values()
            return max((_changed(place, entry) for entry in found), default=None)

    def read_bytes(self, name: str) -> bytes:
        """The content of a file."""
        with self._reached("read", name) as place:
            return bytes(place.filesystem.cat_file(f"{place.path}/{name}"))

    @contextmanager
    def open_reader(self, name: str) -> Iterator[IO[bytes]]:
        """A file to read piece by piece; what goes wrong meanwhile names it."""
        with self._reached("read", name) as place, place.filesystem.open(f"{place.path}/{name}", "rb") as file:
            yield file

    def read_text(self, name: str) -> str:
        """The text of a file."""
        return self.read_bytes(name).decode()

    def write_text(self, name: str, text: str, *, durable: bool = False) -> None:
        """Write a file; it appears whole or not at all."""
        self.write_bytes(name, text.encode(), durable=durable)

    def read_json(self, name: str) -> Any:
        """The value in a JSON file."""
        try:
            return json.loads(self.read_text(name))
        except ValueError as error:
            raise InvalidInputError(f"{self.uri}/{name} is no JSON: {error}") from error

    def write_json(self, name: str, value: object, *, durable: bool = False) -> None:
        """Write a value as JSON for machines and for people."""
        self.write_text(name, indented(value) + "\n", durable=durable)

    def read_table(self, name: str) -> pa.Table:
        """The table in a Parquet file."""
        with self._reached("read", name) as place:
            return pq.read_table(f"{place.path}/{name}", filesystem=place.filesystem)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a table as Parquet; it appears whole or not at all."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self.write_bytes(name, sink.getvalue().to_pybytes())

    def write_tables(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write a table that comes in pieces as Parquet; it appears whole or not at all."""
        with self.open_writer(name) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for table in tables:
                for batch in table.to_batches():
                    writer.write_batch(batch)

    @contextmanager
    def open_parquet(self, name: str, *, read_dictionary: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """A Parquet file, to read some of its columns and row groups; what goes wrong meanwhile names it.

        Args:
            name: The file.
            read_dictionary: Columns of strings to read as they are stored, as numbers into a list of values.
        """
        with (
            self._reached("read", name) as place,
            pq.ParquetFile(
                f"{place.path}/{name}", filesystem=place.filesystem, read_dictionary=list(read_dictionary)
            ) as parquet,
        ):
            yield parquet

    def read_row_group(
        self, name: str, number: int, columns: Sequence[str] | None = None, *, rows: int = 100_000
    ) -> Iterator[pa.Table]:
        """Some rows at a time of a row group of a Parquet file; none if the file has fewer groups.

        Args:
            name: The file.
            number: Of the row group.
            columns: Those of interest, of which the file may lack some; None for all.
            rows: How many at a time.
        """
        with self.open_parquet(name) as file:
            found = None if columns is None else [one for one in columns if one in file.schema_arrow.names]
            if number < file.num_row_groups:
                for batch in file.iter_batches(rows, [number], found, use_threads=False):
                    yield pa.Table.from_batches([batch])

    def write_bytes(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Write a file; it appears whole or not at all, and if ``durable``, it survives the crash of the machine."""
        with self._reached("written", name) as place:
            target = f"{place.path}/{name}"
            if place.is_object_store:
                place.filesystem.pipe_file(target, data)
                return
            temporary = _make_hidden(place, target)
            place.filesystem.pipe_file(temporary, data)
            self._show(place, temporary, target, durable=durable)

    @contextmanager
    def open_writer(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write piece by piece; it appears whole at the end, as if ``durable``, or not at all."""
        with self._reached("written", name) as place:
            target = f"{place.path}/{name}"
            if place.is_object_store:
                with tempfile.NamedTemporaryFile() as local:
                    yield local
                    local.flush()
                    place.filesystem.put_file(local.name, target)
                return
            temporary = _make_hidden(place, target)
            try:
                with place.filesystem.open(temporary, "wb") as file:
                    yield file
                self._show(place, temporary, target, durable=True)
            except BaseException:
                with suppress(FileNotFoundError):
                    place.filesystem.rm(temporary)
                raise

    def _show(self, place: Place, temporary: str, target: str, *, durable: bool) -> None:
        """Let a file that was written under a hidden name appear."""
        if durable and self.is_local:
            _fsync(temporary)
        place.filesystem.mv(temporary, target)
        if durable and self.is_local:
            _fsync(target.rsplit("/", 1)[0])

    def staging(self) -> Artifacts:
        """A fresh directory beside this one, to be filled and then published."""
        return Artifacts(f"{self.uri.rstrip('/')}.{uuid.uuid4().hex[:8]}.tmp")

    def publish(self, staged: Artifacts) -> None:
        """Make the directory ``staged`` appear here, in place of what an earlier try left.

        In a file system by one rename: at no moment half of a directory is here.

        An object store knows no rename: objects are copied one by one. ``plan.json`` goes first and comes last, so that
        whoever finds one finds all that belongs to it, and a job that dies half way leaves no plan. Whoever reads some
        files before a replacement and others after it has files of both: the digests in them tell.
        """
        if not staged.exists(LAST):
            raise InvalidInputError(f"{staged.uri} has no {LAST}: there is nothing to publish")
        with self._reached("written") as place, staged._reached("read") as source:
            if place.is_object_store:
                _copy_objects(place, source)
            else:
                _rename(place, source)

    def remove(self) -> None:
        """Remove the directory with all that is in it, if it is there; another process may be at it too."""
        with self._reached("removed") as place:
            while place.filesystem.exists(place.path):
                try:
                    place.filesystem.rm(place.path, recursive=True)
                except FileNotFoundError:
                    place.filesystem.invalidate_cache()

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove some files; another process may have removed them already."""
        with self._reached("removed") as place:
            paths = [f"{place.path}/{name}" for name in names]
            together = len(paths) if place.is_object_store else 1  # objects go in few requests
            for some in range(0, len(paths), together or 1):
                with suppress(FileNotFoundError):
                    place.filesystem.rm(paths[some : some + together])

    @contextmanager
    def locked(
        self,
        *,
        make: bool = False,
        seconds: float = 0.0,
        on_wait: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM,
    ) -> Iterator[None]:
        """Hold the lock of this directory, where these are files: one process at a time executes a plan or cleans up.

        Args:
            make: Make the directory if it is not there; else there is nothing to lock then.
            seconds: How long to wait for whoever has it.
            on_wait: Called once if somebody has it.
            clock: What to wait with.

        Raises:
            InUseError: Somebody else has it, and did not release it in time.
        """
        if not self.is_local or not (make or self.path.is_dir()):
            yield
            return
        with file_lock(self.path, seconds=seconds, on_wait=on_wait, clock=clock):
            yield

    def _entries(self) -> list[tuple[str, str]]:
        with self._reached("read") as place:
            try:
                entries = place.filesystem.ls(place.path, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        # A file lists itself, and so does the empty object that some tools put in place of a directory.
        found = [(entry["name"].rstrip("/"), entry["type"]) for entry in entries]
        return [(path.rsplit("/", 1)[1], kind) for path, kind in found if path != place.path]

    @contextmanager
    def _reached(self, what: str, name: str = "") -> Iterator[Place]:
        """The place of this directory, and what goes wrong there in words."""
        uri = f"{self.uri}/{name}" if name else self.uri
        place = locate(self.uri)
        try:
            yield place
        except RebalanceError:
            raise
        except FileNotFoundError as error:
            if what == "written":
                raise RebalanceError(f"{uri} cannot be written: {error.strerror or error}") from error
            raise FileMissingError(f"{uri} is missing: did the step that writes it succeed?") from error
        except pa.ArrowInvalid as error:
            raise InvalidInputError(f"{uri} is no Parquet file: {_on_one_line(error)}") from error
        except OSError as error:
            of_arrow = error.errno is None and not place.is_object_store
            wrong = "is damaged" if of_arrow else f"cannot be {what}"
            raise RebalanceError(f"{uri} {wrong}: {error.strerror or _on_one_line(error)}") from error
        except Exception as error:
            if not place.is_object_store:
                raise
            # Clients of object stores have errors of their own: no credentials, no such host.
            raise RebalanceError(f"{uri} cannot be {what}: {type(error).__name__}: {error}") from error


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _make_hidden(place: Place, target: str) -> str:
    """A name beside a file's own, in a directory that is there; to Spark, which may be reading it, it is no data."""
    directory, base = target.rsplit("/", 1)
    place.filesystem.makedirs(directory, exist_ok=True)
    return f"{directory}/_{base}.{uuid.uuid4().hex[:8]}.tmp"


def _fsync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_groups(directory: Artifacts, groups: Groups | None) -> None:
    """Keep consumer groups beside a snapshot; without any, those that an earlier try kept go."""
    if groups is None:
        directory.remove_files(name for name in GROUP_FILES if directory.exists(name))
        return
    for name, table in zip(GROUP_FILES, (groups.members, groups.offsets), strict=True):
        directory.write_table(name, table)


def read_snapshot(directory: Artifacts) -> Snapshot:
    """The snapshot that is kept in a directory; one that is damaged is named with its file and column."""
    brokers, replicas = (directory.read_table(f"{name}.parquet") for name in ("brokers", "replicas"))
    try:
        return Snapshot.from_tables(brokers, replicas)
    except InvalidInputError as error:
        raise InvalidInputError(f"{directory.uri}/{error}") from error


def read_checked_snapshot(directory: Artifacts) -> Snapshot:
    """The snapshot that is kept in a directory, to be planned from; what no cluster can be is refused."""
    snapshot = read_snapshot(directory)
    try:
        return check_snapshot(snapshot)
    except InvalidInputError as error:
        raise InvalidInputError(f"{directory.uri}/{error}") from error


def has_groups(directory: Artifacts) -> bool:
    """Whether there are consumer groups beside a snapshot."""
    return all(directory.exists(name) for name in GROUP_FILES)


def read_groups(directory: Artifacts) -> Groups | None:
    """The consumer groups beside a snapshot; None where they were not read."""
    if not has_groups(directory):
        return None
    return Groups.from_tables(*(directory.read_table(name) for name in GROUP_FILES))


def _rename(place: Place, source: Place) -> None:
    """Put a directory in the place of another."""
    filesystem, root = place.filesystem, place.path
    # What is there is renamed, not removed: no moment of it is half a directory.
    old = f"{root}.{uuid.uuid4().hex[:8]}.tmp" if filesystem.exists(root) else ""
    if old:
        filesystem.mv(root, old, recursive=True)
    try:
        filesystem.mv(source.path, root, recursive=True)
    except BaseException:
        if old and not filesystem.exists(root):
            filesystem.mv(old, root, recursive=True)
        raise
    if old:
        filesystem.rm(old, recursive=True)


def _copy_objects(place: Place, source: Place) -> None:
    """Put the objects below a path in the place of others, the one that is looked for last."""
    filesystem, last = place.filesystem, f"{place.path}/{LAST}"
    old = filesystem.find(place.path)
    for some in ([path for path in old if path == last], [path for path in old if path != last]):
        if some:
            filesystem.rm(some)
    staged = {path: f"{place.path}{path.removeprefix(source.path)}" for path in filesystem.find(source.path)}
    early = {path: target for path, target in staged.items() if target != last}
    if early:
        filesystem.copy(list(early), list(early.values()))
    for path in staged.keys() - early.keys():
        filesystem.cp_file(path, last)
    # The one that is looked for first: a try that is made again takes what is left for nothing to publish.
    for some in (sorted(staged.keys() - early.keys()), list(early)):
        if some:
            filesystem.rm(some)


def _changed(place: Place, entry: dict[str, Any]) -> datetime:
    found = next((entry[key] for key in CHANGED if key in entry), None) or place.filesystem.modified(entry["name"])
    return found.astimezone(UTC) if isinstance(found, datetime) else datetime.fromtimestamp(found, UTC)
