"""Loops are compiled once, by one process, and used by all who can read them."""

from __future__ import annotations

import subprocess
import threading

import pytest

from rebalance_lib import caches
from rebalance_lib import compile as compiling
from rebalance_lib.jobs import archive
from rebalance_lib.planner import compiling as state
from rebalance_lib.planner.compiled import cache


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three places: that of the install, which only its owner writes, that of this user, and that of nobody yet."""
    found = [tmp_path / name for name in ("install", "user", "temporary")]
    found[0].mkdir()
    monkeypatch.setattr(caches, "places", lambda _: iter(found))
    monkeypatch.setattr(caches.os, "access", lambda place, _: found[0] not in (place, *place.parents))
    return found


def test_what_an_install_compiled_is_used_by_those_who_can_only_read_it(places):
    assert cache.cache_directory().parent == places[1], "nothing is compiled yet: where it can be kept"
    own = places[0] / f"loops-{cache.digest()}"
    own.mkdir()
    assert cache.cache_directory().parent == places[1], "somebody died half way"
    (own / cache.COMPLETE).touch()
    assert cache.cache_directory() == own


def test_a_place_that_is_named_goes_first(monkeypatch, tmp_path):
    monkeypatch.setenv(caches.PLACE, str(tmp_path / "named"))
    assert next(caches.places(tmp_path)) == tmp_path / "named"


def test_workers_that_start_together_compile_once_and_say_so(tmp_path, monkeypatch):
    for module in (compiling, state):
        monkeypatch.setattr(module, "cache_directory", lambda: tmp_path)
    compiled, lines, begun = [], [], threading.Event()

    def compile_all(log):
        compiled.append(1)
        log("compiling")
        begun.set()
        assert waiting.wait(10)
        (tmp_path / cache.COMPLETE).touch()

    waiting = threading.Event()
    monkeypatch.setattr(compiling, "compile_all", compile_all)
    first = threading.Thread(target=compiling.ensure_compiled, args=(lines.append,))
    first.start()
    assert begun.wait(10)

    def log(line):
        lines.append(line)
        waiting.set()

    assert compiling.ensure_compiled(log) is False
    first.join()
    assert (compiled, lines) == ([1], ["compiling", "another process compiles the planner's loops: waiting for it"])
    assert compiling.ensure_compiled(lines.append) is False


def test_a_place_that_cannot_be_locked_holds_up_no_plan(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for module in (compiling, state):
        monkeypatch.setattr(module, "cache_directory", lambda: tmp_path / "file" / "below")
    lines = []
    assert compiling.ensure_compiled(lines.append) is False
    assert "could not be compiled ahead" in lines[0]


def test_a_driver_is_given_the_archive_if_there_is_one_and_the_quick_compiler_if_there_is_little_to_do(places):
    assert archive.driver_java_options() == ""
    assert archive.driver_java_options(10_000) == archive.QUICK
    (places[0] / archive._name()).touch()
    assert f"-XX:SharedArchiveFile={places[0] / archive._name()} " in archive.driver_java_options(10**7)
    assert archive.QUICK not in archive.driver_java_options(10**7)


def test_an_archive_that_cannot_be_made_is_said_and_stops_nothing(places, monkeypatch):
    lines = []

    def fail(submit, directory):
        raise subprocess.CalledProcessError(1, "spark-submit")

    monkeypatch.setattr(archive, "_dump", fail)
    assert archive.archive_classes(lines.append) is None
    assert "could not be archived, its jobs start more slowly" in lines[-1]
    assert list(places[1].iterdir()) == []
