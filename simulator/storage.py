"""The directory of a run on a simulated disk, which fails, fills, tears files and loses what was not synced.

All processes share one `Disk`; each sees it through a `SimulatedStorage` of its own, which is an `Artifacts`, so that
records, throttles and locks of the executor work on it unchanged.

As on a real file system, a file appears whole or not at all, and stays so as long as the machine runs. Only a crash of
the machine tells files that were synced from others: a file that was written during the last seconds and not durably
is then lost, empty, or cut.

Example: ``throttles.json`` was written at second 100 as ``{}``, and again, not durably, at second 200. A crash at
second 203 leaves the new content, the content of second 100, nothing of the new one, or its first half.

Faults are attributes of the disk: `Disk.fail`, `Disk.heal`, `Disk.tear` and `Disk.crash`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.file_lock import RETRY_SECONDS, InUseError, in_use
from simulator.clock import EPOCH
from simulator.processes import Process

OPERATION_SECONDS = 0.002
SYNC_SECONDS = 5.0  # after which the kernel has written everything back; Linux' default is up to 30


class _Failure(NamedTuple):
    what: str
    until: float
    names: str
    reason: str


class _Write(NamedTuple):
    """A write that a crash of the machine may undo: when it was, and what it replaced."""

    time: float
    before: bytes | None


class Disk:
    """What is stored, for all processes.

    Attributes:
        files: Content by path; a path is the URI of a directory, a slash and a name.
        changed: When each file was last written, in simulated seconds.
        locks: The process that has the lock of a directory.
        writes: How many writes there were.
        seconds: How long an operation takes.
    """

    def __init__(self, *, seconds: float = OPERATION_SECONDS) -> None:
        self.files: dict[str, bytes] = {}
        self.changed: dict[str, float] = {}
        self.locks: dict[str, Process] = {}
        self.writes = 0
        self.seconds = seconds
        self._directories: dict[str, dict[str, str]] = {}
        self._not_synced: dict[str, _Write] = {}
        self._failures: list[_Failure] = []

    def fail(self, what: str, *, until: float = inf, names: str = "", reason: str = "Input/output error") -> None:
        """Let operations fail from now on.

        Args:
            what: ``read``, ``write`` or ``both``.
            until: The simulated second at which they work again.
            names: Only for paths that contain this.
            reason: What the operating system says.
        """
        self._failures.append(_Failure(what, until, names, reason))

    def heal(self) -> None:
        """Let all operations work again."""
        self._failures.clear()

    def tear(self, path: str, keep: float = 0.0) -> bool:
        """Cut a file to this part of its bytes; returns whether it was there."""
        if path not in self.files:
            return False
        self.files[path] = self.files[path][: int(len(self.files[path]) * keep)]
        return True

    def crash(self, now: float, rng: Random) -> list[str]:
        """The machine crashed: what was not synced is kept, lost, empty or cut; returns the paths that are not kept.

        The processes of that machine are for the caller to kill.
        """
        damaged = []
        for path, write in sorted(self._not_synced.items()):
            outcome = rng.choice(("kept", "lost", "empty", "cut"))
            if now - write.time > SYNC_SECONDS or path not in self.files or outcome == "kept":
                continue
            damaged.append(path)
            if outcome != "lost":
                self.tear(path, 0.0 if outcome == "empty" else 0.5)
            elif write.before is None:
                self.remove(path)
            else:
                self.files[path] = write.before
        self._not_synced.clear()
        return damaged

    def check(self, what: str, path: str, now: float) -> None:
        """Raise what an operation on this path raises, if it fails now; ``what`` is read or write."""
        for failure in self._failures:
            if failure.what in (what, "both") and now < failure.until and failure.names in path:
                done = {"read": "read", "write": "written"}[what]
                raise RebalanceError(f"{path} cannot be {done}: {failure.reason}")

    def write(self, path: str, data: bytes, now: float, *, durable: bool = True) -> None:
        """Put a file there."""
        self.writes += 1
        if durable:
            self._not_synced.pop(path, None)
        else:
            self._not_synced[path] = _Write(now, self.files.get(path))
        if path not in self.files:
            self._list(path, "file")
        self.files[path] = data
        self.changed[path] = now

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.files.pop(path, None) is not None:
            del self.changed[path]
            directory, _, name = path.rpartition("/")
            del self._directories[directory][name]

    def make_directory(self, directory: str) -> None:
        """Make a directory with its parents, if it is not there."""
        if directory not in self._directories:
            self._directories[directory] = {}
            self._list(directory, "directory")

    def entries(self, directory: str) -> dict[str, str] | None:
        """The names in a directory with what each is, ``file`` or ``directory``; None if it is not there."""
        return self._directories.get(directory)

    def below(self, directory: str) -> list[str]:
        """The paths of all files in a directory and below it, in order."""
        return sorted(path for path in self.files if path.startswith(f"{directory}/"))

    def remove_directory(self, directory: str) -> None:
        """Remove a directory with all that is in it."""
        for path in self.below(directory):
            self.remove(path)
        for name in [name for name in self._directories if name == directory or name.startswith(f"{directory}/")]:
            del self._directories[name]
        parent, _, name = directory.rpartition("/")
        self._directories.get(parent, {}).pop(name, None)

    def _list(self, path: str, kind: str) -> None:
        directory, _, name = path.rpartition("/")
        if not directory.endswith("/"):
            self.make_directory(directory)
            self._directories[directory][name] = kind


@dataclass(frozen=True, slots=True)
class SimulatedStorage(Artifacts):
    """A directory of the disk, as one process sees it."""

    disk: Disk = field(compare=False, repr=False)
    process: Process = field(compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        """These count as files: there are locks."""
        return True

    def __truediv__(self, name: str) -> SimulatedStorage:
        return SimulatedStorage(f"{self._directory}/{name}", self.disk, self.process)

    def names(self) -> list[str]:
        """The names of all that is in this directory, in order."""
        return sorted(name for name, _ in self._entries())

    def exists(self, name: str) -> bool:
        """Whether this file or directory is there."""

        def find() -> bool:
            self.disk.check("read", path, self.process.now)
            return path in self.disk.files or self.disk.entries(path) is not None

        path = self._path(name)
        return self.process.call(self.disk.seconds, find)

    def last_change(self) -> datetime | None:
        """When a file in this directory, or below it, was last written, by the clock of the disk."""

        def find() -> float | None:
            self.disk.check("read", self._directory, self.process.now)
            return max((self.disk.changed[path] for path in self.disk.below(self._directory)), default=None)

        found = self.process.call(self.disk.seconds, find)
        return None if found is None else EPOCH + timedelta(seconds=found)

    def read_bytes(self, name: str) -> bytes:
        """The content of a file."""

        def read() -> bytes:
            self.disk.check("read", path, self.process.now)
            if path not in self.disk.files:
                raise InvalidInputError(f"{path} is missing: did the step that writes it succeed?")
            return self.disk.files[path]

        path = self._path(name)
        return self.process.call(self.disk.seconds, read)

    def write_bytes(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Write a file; it appears whole or not at all."""

        def write() -> None:
            self.disk.check("write", path, self.process.now)
            self.disk.write(path, data, self.process.now, durable=durable)

        path = self._path(name)
        self.process.call(self.disk.seconds, write)

    def read_table(self, name: str) -> pa.Table:
        """The table in a Parquet file."""
        data = self.read_bytes(name)
        try:
            return pq.read_table(pa.BufferReader(data))
        except pa.ArrowInvalid as error:
            raise InvalidInputError(f"{self._path(name)} is no Parquet file: {error}") from error

    def open_parquet(self, name: str, *, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
        """A Parquet file."""
        return pq.ParquetFile(pa.BufferReader(self.read_bytes(name)), read_dictionary=list(read_dictionary))

    def staging(self) -> SimulatedStorage:
        """A directory beside this one; its name is that of the write that it is made for."""
        return SimulatedStorage(f"{self._directory}.{self.disk.writes:08x}.tmp", self.disk, self.process)

    def publish(self, staged: Artifacts) -> None:
        """Make the directory ``staged`` appear here."""

        def rename() -> None:
            self.disk.check("write", self._directory, self.process.now)
            self.disk.remove_directory(self._directory)
            source = staged.uri.rstrip("/")
            for path in self.disk.below(source):
                self.disk.write(
                    f"{self._directory}{path.removeprefix(source)}", self.disk.files[path], self.process.now
                )
            self.disk.remove_directory(source)

        self.process.call(self.disk.seconds, rename)

    def remove(self) -> None:
        """Remove the directory with all that is in it, if it is there."""

        def remove() -> None:
            self.disk.check("write", self._directory, self.process.now)
            self.disk.remove_directory(self._directory)

        self.process.call(self.disk.seconds, remove)

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove some files, one after the other."""

        def remove(path: str) -> None:
            self.disk.check("write", path, self.process.now)
            self.disk.remove(path)

        for path in [self._path(name) for name in names]:
            self.process.call(self.disk.seconds, lambda path=path: remove(path))  # type: ignore[misc]

    @contextmanager
    def locked(
        self,
        *,
        make: bool = False,
        seconds: float = 0.0,
        on_wait: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM,
    ) -> Iterator[None]:
        """Hold the lock of this directory; the disk releases it when the process ends, however that happens."""
        directory = self._directory
        if not make and self.disk.entries(directory) is None:
            yield
            return
        if not self._acquired():
            on_wait()
            deadline = clock.monotonic() + seconds
            while not self._acquired():
                if clock.monotonic() >= deadline:
                    raise InUseError(in_use(directory, seconds))
                clock.sleep(RETRY_SECONDS)
        try:
            yield
        finally:
            if self.disk.locks.get(directory) is self.process:
                del self.disk.locks[directory]

    @property
    def _directory(self) -> str:
        return self.uri.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _entries(self) -> list[tuple[str, str]]:
        def find() -> list[tuple[str, str]]:
            self.disk.check("read", self._directory, self.process.now)
            return list((self.disk.entries(self._directory) or {}).items())

        return self.process.call(self.disk.seconds, find)

    def _acquired(self) -> bool:
        def acquire() -> bool:
            self.disk.check("write", f"{self._directory}/lock", self.process.now)
            self.disk.make_directory(self._directory)
            holder = self.disk.locks.get(self._directory)
            if holder is not None and holder.alive:
                return False
            self.disk.locks[self._directory] = self.process
            return True

        return self.process.call(self.disk.seconds, acquire)
