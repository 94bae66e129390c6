"""The search for secrets finds them, wherever they were planted."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.leaks import CommandLines, leaks
from tests.waiting import wait_for

SECRET = 'pla"nted/pä55 word'  # noqa: S105


def write_database(file):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE xcom (value TEXT)")
        database.execute("INSERT INTO xcom VALUES (?)", ("x" * 5000 + SECRET + "x" * 5000,))


def write_parquet(file):
    pq.write_table(pa.table({"text": [{"deep": f"{SECRET} {n}"} for n in range(1000)]}), file, compression="zstd")


PLANTED = {
    "plain.log": lambda file: file.write_text(f"password={SECRET}\n", encoding="utf-8"),
    "escaped.json": lambda file: file.write_text(json.dumps({"a": [SECRET]}), encoding="utf-8"),
    "address.txt": lambda file: file.write_text(f"kafka://me:{quote(SECRET, safe='')}@a", encoding="utf-8"),
    "header-0.txt": lambda file: file.write_bytes(base64.b64encode(SECRET.encode())),
    "header-1.txt": lambda file: file.write_bytes(base64.b64encode(f"u:::{SECRET}@x".encode())),
    "header-2.txt": lambda file: file.write_bytes(base64.b64encode(f"me:::{SECRET}".encode())),
    "old.log.gz": lambda file: file.write_bytes(gzip.compress(SECRET.encode() * 9)),
    "airflow.db": write_database,
    "plan.parquet": write_parquet,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_secret_in_a_file_is_found(tmp_path, name):
    file = tmp_path / "deep" / "er" / name
    file.parent.mkdir(parents=True)
    (tmp_path / "other.log").write_text("password=***", encoding="utf-8")
    PLANTED[name](file)
    assert leaks(SECRET, [tmp_path / "nothing", tmp_path]) == [str(file)]


def test_a_secret_on_a_command_line_is_found():
    program = subprocess.Popen([sys.executable, "-c", "input()", SECRET], stdin=subprocess.PIPE)
    try:
        (found,) = leaks(SECRET, [])
        assert found.startswith(f"process {program.pid}, ")
    finally:
        program.communicate(b"\n")
    assert leaks(SECRET, []) == []


def test_a_secret_on_the_command_line_of_a_program_that_has_ended_was_seen():
    with CommandLines(SECRET, kept=["input()", "no such word"]) as watched:
        assert watched.leaks == set()
        program = subprocess.Popen([sys.executable, "-c", "input()", SECRET], stdin=subprocess.PIPE)
        try:
            (found,) = wait_for(lambda: set(watched.leaks))
        finally:
            program.communicate(b"\n")
    assert found.startswith(f"process {program.pid}, ")
    assert [line for line in watched.kept if SECRET in line] == [f"{sys.executable} -c input() {SECRET}"]


def test_what_is_too_short_to_be_found_is_refused():
    with pytest.raises(ValueError, match="8 characters or more"):
        leaks("short", [])
