"""Loops are compiled once, by one process, and used by all who can read them."""

from __future__ import annotations

import os
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


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The place below the directory for temporary files, where no other is to be had."""
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "home").chmod(0o777)
    monkeypatch.delenv(caches.PLACE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(caches.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return tmp_path / "temporary" / f"kafka-rebalance-{os.getuid()}"


def planted(place, mode=0o700):
    place.mkdir()
    place.chmod(mode)
    (place / "code").touch()


def test_a_place_of_ones_own_is_made_so_that_nobody_else_can_write_to_it(own, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    sources.chmod(0o777)
    assert caches.to_be_made(sources, "code") == own / "code"
    assert own.stat().st_mode & 0o777 == 0o700
    (own / "code").touch()
    assert caches.find(sources, "code") == own / "code"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_code_is_not_loaded_from_a_place_that_others_can_write_to(own, tmp_path, mode):
    planted(own, mode)
    planted(tmp_path / "home" / "kafka-rebalance")  # in a directory in which others can replace it
    planted(tmp_path / "__pycache__", 0o777)
    assert caches.find(tmp_path, "code") is None
    assert not caches.to_be_made(tmp_path / "__pycache__", "code").is_relative_to(tmp_path)


def test_code_is_not_loaded_through_a_link_or_from_somebody_elses_place(own, tmp_path, monkeypatch):
    planted(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    assert caches.find(tmp_path, "code") is None
    monkeypatch.setattr(caches.os, "getuid", lambda: 12345)
    planted(own.with_name("kafka-rebalance-12345"))
    assert caches.find(tmp_path, "code") is None


def test_a_place_that_is_named_is_trusted_whoever_can_write_to_it(own, tmp_path, monkeypatch):
    monkeypatch.setenv(caches.PLACE, str(tmp_path / "named"))
    planted(tmp_path / "named", 0o777)
    assert caches.find(tmp_path, "code") == tmp_path / "named" / "code"


def test_without_a_place_to_trust_loops_are_compiled_and_not_kept(own, tmp_path, monkeypatch):
    planted(own, 0o777)
    (tmp_path / "sources").mkdir(mode=0o755)
    (tmp_path / "sources").chmod(0o777)
    monkeypatch.setattr(cache, "_DIRECTORY", caches.to_be_made(tmp_path / "sources", "loops/complete").parent)
    assert cache.compiled(lambda number: number + 1)(1) == 2


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


def test_a_driver_is_given_the_quick_compiler_and_the_archive_if_there_is_one(places):
    assert archive.driver_java_options() == archive.QUICK
    (places[0] / archive._name()).touch()
    assert f"-XX:SharedArchiveFile={places[0] / archive._name()} " in archive.driver_java_options()


def test_an_archive_that_cannot_be_made_is_said_and_stops_nothing(places, monkeypatch):
    lines = []

    def fail(submit, directory):
        raise subprocess.CalledProcessError(1, "spark-submit")

    monkeypatch.setattr(archive, "_dump", fail)
    assert archive.archive_classes(lines.append) is None
    assert "could not be archived, its jobs start more slowly" in lines[-1]
    assert list(places[1].iterdir()) == []
