"""The one place where a URI becomes a path: the directory of a run's artifacts, wherever it is kept.

A run is one URI. Below it:

    snapshot/   brokers.parquet, replicas.parquet          what the cluster was
    plan/       plan.json, summary.json, review.md         what is to change, published all at once
    review.json                                            who answered the review, how and when
    throttles.json                                         what stood in the throttle settings before the run
    after/      brokers.parquet, replicas.parquet          what the cluster is at the end
    report.html                                            the story, for people

A file appears whole or not at all, so that a step that died half way leaves nothing a later step could mistake for
its result.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_lib.errors import InvalidInputError, RebalanceError

SNAPSHOT, PLAN, AFTER = "snapshot", "plan", "after"


@dataclass(frozen=True, slots=True)
class Artifacts:
    """A directory named by a URI; Spark and every task of the DAG are given the same one.

    What follows the scheme is taken as it stands, as fsspec and Hadoop do: nothing in it is percent-encoded. Kinds of
    storage other than files (``s3://...``) need their fsspec package.
    """

    uri: str

    @classmethod
    def at(cls, path: Path) -> Artifacts:
        """The artifacts in a local directory."""
        return cls(f"file://{path.absolute()}")

    def directories(self) -> list[str]:
        """The names of the directories in this one, in order; none if it is not there."""
        filesystem, root = self._open()
        if not filesystem.isdir(root):
            return []
        entries = filesystem.ls(root, detail=True)
        return sorted(entry["name"].rstrip("/").rsplit("/", 1)[1] for entry in entries if entry["type"] == "directory")

    def __truediv__(self, name: str) -> Artifacts:
        return Artifacts(f"{self.uri.rstrip('/')}/{name}")

    def exists(self, name: str) -> bool:
        """Whether this file is there."""
        filesystem, root = self._open()
        return bool(filesystem.exists(f"{root}/{name}"))

    def read_text(self, name: str) -> str:
        """The text of a file."""
        filesystem, root = self._open()
        try:
            return str(filesystem.read_text(f"{root}/{name}", encoding="utf-8"))
        except FileNotFoundError as error:
            raise InvalidInputError(f"{self.uri}/{name} is missing: did the step that writes it succeed?") from error

    def write_text(self, name: str, text: str) -> None:
        """Write a file; it appears whole or not at all."""
        self._write(name, text.encode())

    def read_json(self, name: str) -> Any:
        """The value in a JSON file."""
        return json.loads(self.read_text(name))

    def write_json(self, name: str, value: object) -> None:
        """Write a value as JSON for machines and for people."""
        self.write_text(name, json.dumps(value, indent=2, sort_keys=True) + "\n")

    def read_table(self, name: str) -> pa.Table:
        """The table in a Parquet file."""
        filesystem, root = self._open()
        try:
            return pq.read_table(f"{root}/{name}", filesystem=filesystem)
        except FileNotFoundError as error:
            raise InvalidInputError(f"{self.uri}/{name} is missing: did the step that writes it succeed?") from error

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a table as Parquet; it appears whole or not at all."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self._write(name, sink.getvalue().to_pybytes())

    def publish(self, staged: Artifacts) -> None:
        """Make the directory ``staged`` appear here, for files by one rename, in place of what an earlier try left."""
        filesystem, root = self._open()
        _, source = staged._open()
        if filesystem.exists(root):
            filesystem.rm(root, recursive=True)
        filesystem.mv(source, root, recursive=True)

    def staging(self) -> Artifacts:
        """A fresh directory beside this one, to be filled and then published."""
        return Artifacts(f"{self.uri.rstrip('/')}.{uuid.uuid4().hex[:8]}.tmp")

    def _write(self, name: str, data: bytes) -> None:
        filesystem, root = self._open()
        target = f"{root}/{name}"
        temporary = f"{target}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            filesystem.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            filesystem.pipe_file(temporary, data)
            filesystem.mv(temporary, target)
        except OSError as error:
            raise RebalanceError(f"{self.uri}/{name} cannot be written: {error.strerror or error}") from error

    def _open(self) -> tuple[Any, str]:
        try:
            filesystem, path = fsspec.core.url_to_fs(self.uri)
        except (ValueError, ImportError) as error:
            raise InvalidInputError(f"artifacts at {self.uri!r} cannot be reached: {error}") from error
        return filesystem, str(path).rstrip("/")
