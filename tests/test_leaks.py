"""The search for secrets, on which tests of a real Airflow rely, finds those that were planted."""

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

from tests.leaks import CommandLines, leaks
from tests.waiting import wait_for

SECRET = 'pla"nted/pä55 word'  # noqa: S105


def plant_secrets(directory):
    """Files of all kinds that show the secret."""
    texts = {
        "plain.log": f"password={SECRET}\n",
        "escaped.json": json.dumps({"a": [SECRET]}),
        "address.txt": f"kafka://me:{quote(SECRET, safe='')}@a",
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    for before in range(3):  # in base64, other bytes shift it
        (directory / f"header-{before}.txt").write_bytes(base64.b64encode(f"{':' * before}{SECRET}@x".encode()))
    (directory / "old.log.gz").write_bytes(gzip.compress(SECRET.encode() * 9))
    with closing(sqlite3.connect(directory / "airflow.db")) as database, database:
        database.execute("CREATE TABLE xcom (value TEXT)")
        database.execute("INSERT INTO xcom VALUES (?)", ("x" * 5000 + SECRET + "x" * 5000,))
    table = pa.table({"text": [{"deep": f"{SECRET} {n}"} for n in range(1000)]})
    pq.write_table(table, directory / "plan.parquet", compression="zstd")
    return sorted(map(str, directory.iterdir()))


def test_secrets_in_files_of_all_kinds_and_on_command_lines_are_found(tmp_path):
    (tmp_path / "other.log").write_text("password=***", encoding="utf-8")
    directory = tmp_path / "deep" / "er"
    directory.mkdir(parents=True)
    planted = plant_secrets(directory)
    with CommandLines(SECRET, kept=["input()", "no such word"]) as watched:
        program = subprocess.Popen([sys.executable, "-c", "input()", SECRET], stdin=subprocess.PIPE)
        try:
            (seen,) = wait_for(lambda: set(watched.leaks))
            assert leaks(SECRET, [tmp_path / "nothing", tmp_path]) == [*planted, seen]
        finally:
            program.communicate(b"\n")
    assert seen.startswith(f"process {program.pid}, ")
    assert [line for line in watched.kept if SECRET in line] == [f"{sys.executable} -c input() {SECRET}"]
    assert leaks(SECRET, []) == []
