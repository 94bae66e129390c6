"""Where a secret got to that should be nowhere: in files of any kind, and on the command lines of programs."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote, quote_plus

import psutil
import pyarrow.parquet as pq

SHORTEST = 8  # what is shorter is somewhere by chance
LOOK_SECONDS = 0.3  # between two looks at all programs


class CommandLines:
    """Looks at the command lines of all programs, again and again until it is closed: many live for seconds only.

    Args:
        secret: What none of them may show; `leaks` has those that did.
        kept: Words; `kept` has the command lines with one of them, to tell that there was something to see.
    """

    def __init__(self, secret: str, kept: Iterable[str] = ()) -> None:
        self._forms, self._words = _forms(secret), tuple(kept)
        self.leaks: set[str] = set()
        self.kept: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            for line, process in _running():
                if any(word in line for word in self._words):
                    self.kept.add(line)
                if _shows(line.encode(), self._forms):
                    self.leaks.add(process)


def leaks(secret: str, directories: Iterable[Path]) -> list[str]:
    """Every place that shows the secret, as it is or encoded: files below these directories, and running programs.

    Databases (SQLite), Parquet and gzip are also read as what they are, since their bytes may be compressed or split.
    """
    if len(secret) < SHORTEST:
        raise ValueError(f"a secret to look for needs {SHORTEST} characters or more")
    forms = _forms(secret)
    found = {
        str(file)
        for directory in directories
        for file in Path(directory).rglob("*")
        if file.is_file() and any(_shows(content, forms) for content in _contents(file))
    }
    return sorted(found) + sorted(_command_lines(forms))


def _shows(content: bytes, forms: frozenset[bytes]) -> bool:
    return any(form in content for form in forms)


def _forms(secret: str) -> frozenset[bytes]:
    """The secret as it may be written: plain, escaped, in an address, or in base64 behind any number of other bytes."""
    raw = secret.encode()
    written = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    encoded = set()
    for before in range(3):
        first, last = -(-before * 4 // 3), (len(raw) + before) * 4 // 3  # characters of the secret's bits alone
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded.add(encode(bytes(before) + raw)[first:last])
    return frozenset({form.encode() for form in written} | encoded)


def _contents(file: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError):  # a program that still runs may have removed it
        raw = file.read_bytes()
        yield raw
        if raw.startswith(b"SQLite format 3"):
            yield from _rows(file)
        elif raw.startswith(b"PAR1"):
            yield json.dumps(pq.read_table(file).to_pylist(), default=str, ensure_ascii=False).encode()
        elif raw.startswith(b"\x1f\x8b"):
            yield gzip.decompress(raw)


def _rows(file: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - a name out of the database itself
                for value in row:
                    if isinstance(value, str | bytes):
                        yield value if isinstance(value, bytes) else value.encode()


def _command_lines(forms: frozenset[bytes]) -> Iterator[str]:
    return (process for line, process in _running() if _shows(line.encode(), forms))


def _running() -> Iterator[tuple[str, str]]:
    """The command line of each running program, and how to call the program."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            yield " ".join(process.cmdline()), f"process {process.pid}, {process.name()}"
