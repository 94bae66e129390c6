"""The archive of classes: a JVM that it fits starts with it, and one that it does not fit starts all the same."""

from __future__ import annotations

import subprocess

import pytest

from sandbox import node
from sandbox.cluster import LIBS

pytestmark = pytest.mark.programs


def loaded(*flags):
    """Where the JVM took the class of a broker from."""
    command = node.java(LIBS, "kafka.Kafka")
    ended = subprocess.run(
        [command[0], *flags, "-Xlog:class+load", *command[1:]], capture_output=True, text=True, check=False
    )
    assert "USAGE" in ended.stdout + ended.stderr
    (line,) = [line for line in ended.stdout.splitlines() if " kafka.Kafka$ " in line]
    return line


def test_classes_come_from_the_archive():
    assert node.ARCHIVE.exists()
    assert "shared objects file (top)" in loaded()


def test_an_archive_that_does_not_fit_is_ignored(tmp_path, monkeypatch):
    foreign = tmp_path / "foreign.jsa"
    foreign.write_bytes(b"not an archive")
    monkeypatch.setattr(node, "ARCHIVE", foreign)
    assert "shared objects file" not in loaded()
