"""A run's artifacts appear whole or not at all, in files as in an object store."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from fsspec.implementations.local import LocalFileSystem

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import Clock
from rebalance_lib.errors import FileMissingError, InvalidInputError, RebalanceError
from rebalance_lib.file_lock import InUseError

PLAN_FILES = {"plan.json": "{}", "summary.json": "1", "candidates/full/plan.json": "{}"}


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.programs)])
def artifacts(request, tmp_path):
    match request.param:
        case "file":
            return Artifacts.at(tmp_path / "a dir with ü and %20")
        case "memory":
            return Artifacts(f"memory://{tmp_path}")
    return request.getfixturevalue("object_store").bucket() / "a dir with ü and %20"


@pytest.fixture
def bucket(object_store):
    return object_store.bucket()


def test_text_json_and_tables_come_back(artifacts):
    table = pa.table({"broker": [1, 2]})
    artifacts.write_text("a.txt", "ä\r\n")
    artifacts.write_json("deep/b.json", {"x": [1]})
    artifacts.write_table("c.parquet", table)
    assert artifacts.read_text("a.txt") == "ä\r\n"
    assert (artifacts / "deep").read_json("b.json") == {"x": [1]}
    assert artifacts.read_table("c.parquet").equals(table)
    with artifacts.open_parquet("c.parquet") as opened:
        assert opened.read_row_group(0, ["broker"]).equals(table)
    assert artifacts.exists("a.txt")
    assert not artifacts.exists("b.json")


def test_a_directory_lists_what_is_in_it_and_nothing_else(artifacts):
    for name in ("b/x", "b/c/y", "a", "b.tmp/z"):
        artifacts.write_text(name, name)
    assert artifacts.names() == ["a", "b", "b.tmp"]
    assert artifacts.directories() == ["b", "b.tmp"]
    assert artifacts.files() == ["a"]
    assert (artifacts / "b").names() == ["c", "x"]
    for not_there in (artifacts / "nothing", artifacts / "a"):
        assert not_there.directories() == not_there.files() == []
    with pytest.raises(InvalidInputError, match="is a file: give a directory"):
        (artifacts / "a").names()


def test_a_second_write_replaces_the_first(artifacts):
    artifacts.write_text("a", "one")
    artifacts.write_text("a", "two")
    assert artifacts.read_text("a") == "two"
    assert artifacts.names() == ["a"]


def opened(artifacts, name):
    with artifacts.open_parquet(name) as parquet:
        return parquet.read()


@pytest.mark.parametrize("read", [Artifacts.read_text, Artifacts.read_json, Artifacts.read_table, opened])
def test_a_missing_file_is_named(artifacts, read):
    with pytest.raises(FileMissingError, match=r"nothing\.here is missing"):
        read(artifacts, "nothing.here")


@pytest.mark.parametrize("read", [Artifacts.read_table, opened])
def test_what_is_no_parquet_file_is_named(artifacts, read):
    artifacts.write_text("a.parquet", "no Parquet")
    with pytest.raises(InvalidInputError, match=r"a\.parquet is no Parquet file"):
        read(artifacts, "a.parquet")


def test_a_parquet_file_that_is_torn_inside_is_named_while_it_is_read(artifacts):
    artifacts.write_table("a.parquet", pa.table({"x": range(1000)}))
    whole = artifacts.read_bytes("a.parquet")
    artifacts.write_bytes("a.parquet", whole[:4] + bytes(100) + whole[104:])
    with pytest.raises(RebalanceError, match=r"a\.parquet (is no Parquet file|is damaged|cannot be read): [^\n]+$"):
        opened(artifacts, "a.parquet")


def test_a_file_that_is_written_in_pieces_appears_whole_or_not_at_all(artifacts):
    with artifacts.open_writer("deep/a") as file:
        file.write(b"one, ")
        assert [name for name in (artifacts / "deep").names() if not name.startswith("_")] == []
        file.write(b"two")
    with suppress(InvalidInputError), artifacts.open_writer("deep/b") as file:
        file.write(artifacts.read_bytes("not there"))
    assert artifacts.read_text("deep/a") == "one, two"
    assert (artifacts / "deep").names() == ["a"]


def test_publishing_replaces_what_stood_there(artifacts):
    place = artifacts / "plan"
    for name in ("old", "plan.json"):
        place.write_text(name, "1")
    staged = place.staging()
    for name, text in PLAN_FILES.items():
        staged.write_text(name, text)
    place.publish(staged)
    assert {name: place.read_text(name) for name in PLAN_FILES} == PLAN_FILES
    assert place.names() == ["candidates", "plan.json", "summary.json"]
    assert artifacts.names() == ["plan"]


def test_without_a_plan_nothing_is_published_and_what_stood_there_stays(artifacts):
    place = artifacts / "plan"
    place.write_text("plan.json", "1")
    with pytest.raises(InvalidInputError, match=r"has no plan\.json: there is nothing to publish"):
        place.publish(place.staging())
    assert place.read_text("plan.json") == "1"


def test_a_rename_that_fails_brings_back_what_stood_there(tmp_path, monkeypatch):
    place = Artifacts.at(tmp_path) / "plan"
    place.write_text("plan.json", "1")
    staged = place.staging()
    staged.write_text("plan.json", "2")
    move = LocalFileSystem.mv

    def failing(self, source, target, **options):
        if staged.path == Path(source):
            raise OSError("disk full")
        move(self, source, target, **options)

    monkeypatch.setattr(LocalFileSystem, "mv", failing)
    with pytest.raises(RebalanceError, match="disk full"):
        place.publish(staged)
    assert place.read_text("plan.json") == "1"


def test_what_is_removed_is_gone_and_its_neighbours_are_not(artifacts):
    for name in ("run/a", "run/b/c", "run/d", "runs"):
        artifacts.write_text(name, "")
    (artifacts / "run").remove_files(["a", "was never there"])
    assert (artifacts / "run").names() == ["b", "d"]
    for _ in range(2):
        (artifacts / "run").remove()
        assert artifacts.names() == ["runs"]


def test_two_may_remove_the_same_at_once(artifacts):
    for number in range(60):
        artifacts.write_text(f"run/{number % 7}/{number}", "")
    wrong = []

    def remove():
        try:
            (artifacts / "run").remove()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not artifacts.exists("run")


def test_the_last_change_is_that_of_the_newest_file_at_any_depth(artifacts):
    assert artifacts.last_change() is None
    begun = datetime.now(UTC)
    artifacts.write_text("a", "")
    artifacts.write_text("deep/er/b", "")
    second = timedelta(seconds=1)  # object stores count in whole ones
    assert begun - second <= artifacts.last_change() <= datetime.now(UTC) + second


def test_an_old_file_is_known_as_old(tmp_path):
    artifacts = Artifacts.at(tmp_path)
    artifacts.write_text("deep/a", "")
    os.utime(tmp_path / "deep" / "a", (86_400, 86_400))
    assert artifacts.last_change() == datetime(1970, 1, 2, tzinfo=UTC)


def test_an_unknown_kind_of_storage_is_named():
    with pytest.raises(InvalidInputError, match="carrier-pigeon"):
        Artifacts("carrier-pigeon://x").read_text("y")


def test_what_another_process_writes_is_seen(bucket):
    run = bucket / "run"
    run.write_text("a", "1")
    assert run.names() == ["a"]
    assert not run.exists("b")
    program = "import sys; from rebalance_lib.artifacts import Artifacts; Artifacts(sys.argv[1]).write_text('b', '2')"
    subprocess.run([sys.executable, "-c", program, run.uri], check=True, timeout=240, cwd=Path(__file__).parents[1])
    assert run.exists("b")
    assert run.names() == ["a", "b"]
    assert run.read_text("b") == "2"


@pytest.mark.parametrize("earlier", [True, False])
def test_whoever_finds_a_plan_in_an_object_store_finds_all_of_it_whenever_its_publisher_dies(
    bucket, monkeypatch, earlier
):
    import s3fs

    call, left = s3fs.S3FileSystem._call_s3, 0

    async def call_until_dead(self, method, *arguments, **options):
        nonlocal left
        if method in ("copy_object", "delete_objects"):
            left -= 1
            if left < 0:
                raise RuntimeError("the publisher died")
        return await call(self, method, *arguments, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", call_until_dead)
    place = bucket / "plan"
    seen = []
    for survived in range(20):
        left = 99
        place.remove()
        for name in PLAN_FILES if earlier else ():
            place.write_text(name, "earlier")
        staged = place.staging()
        for name in PLAN_FILES:
            staged.write_text(name, "later")
        left = survived
        with suppress(RebalanceError):
            place.publish(staged)
        there = [place.read_text(name) for name in PLAN_FILES if place.exists(name)]
        if place.exists("plan.json"):
            assert there in (["earlier"] * 3, ["later"] * 3)
        seen.append(there)
        if not staged.names():
            break
    assert [] in seen
    assert ["later"] in seen or ["later"] * 2 in seen
    assert seen[-1] == ["later"] * 3


def test_a_directory_that_some_tool_made_as_an_empty_object_lists_only_what_is_in_it(bucket, object_store):
    name = bucket.uri.removeprefix("s3://")
    object_store.client.put_object(Bucket=name, Key="run/")
    object_store.client.put_object(Bucket=name, Key="run/a")
    assert (bucket / "run").names() == ["a"]
    (bucket / "run").remove()
    assert bucket.names() == []


def test_a_bucket_that_is_not_there_is_not_made(object_store):
    nowhere = Artifacts("s3://nowhere-at-all/run")
    assert nowhere.names() == []
    with pytest.raises(RebalanceError, match="nowhere-at-all/run/a cannot be written"):
        nowhere.write_text("a", "1")
    assert "nowhere-at-all" not in {bucket["Name"] for bucket in object_store.client.list_buckets()["Buckets"]}


def test_a_storage_that_does_not_answer_is_named_in_one_line(monkeypatch):
    import fsspec

    fsspec.get_filesystem_class("s3").clear_instance_cache()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    try:
        with pytest.raises(RebalanceError, match="s3://bucket/a cannot be read: "):
            Artifacts("s3://bucket").read_text("a")
    finally:
        fsspec.get_filesystem_class("s3").clear_instance_cache()


def test_a_durable_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_the_write_returns(
    tmp_path, monkeypatch
):
    done = []
    fsync, run = os.fsync, Artifacts.at(tmp_path)

    def noted(file):
        synced = Path(f"/proc/self/fd/{file}").readlink()
        done.append(("directory" if synced.is_dir() else "file", (tmp_path / "saved.json").exists()))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    run.write_json("saved.json", {"a": 1})
    assert done == []
    run.remove_files(["saved.json"])
    run.write_json("saved.json", {"a": 1}, durable=True)
    assert done == [("file", False), ("directory", True)]


def test_where_there_is_no_disk_a_durable_write_is_a_write(artifacts):
    artifacts.write_json("saved.json", {"a": 1}, durable=True)
    artifacts.write_text("saved.txt", "text", durable=True)
    assert (artifacts.read_json("saved.json"), artifacts.read_text("saved.txt")) == ({"a": 1}, "text")


class Waiting(Clock):
    """A clock by which somebody waits, until something happens."""

    def __init__(self, then=lambda: None):
        self.slept, self._then = 0.0, then

    def monotonic(self):
        return self.slept

    def sleep(self, seconds):
        self.slept += seconds
        self._then()


HOLD = """
import sys
from pathlib import Path
from rebalance_lib.clock import SYSTEM
from rebalance_lib.file_lock import file_lock

with file_lock(Path(sys.argv[1]), seconds=0, on_wait=print, clock=SYSTEM):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def locked_elsewhere(tmp_path):
    """A run whose lock another process has, and that process."""
    run = Artifacts.at(tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], **pipes) as holder:
        holder.stdout.readline()
        yield run, holder
        holder.kill()


def test_a_run_that_another_process_has_is_in_use_and_free_when_that_is_killed(locked_elsewhere):
    run, holder = locked_elsewhere
    with pytest.raises(InUseError), run.locked():
        pass
    holder.kill()
    holder.wait()
    with run.locked():
        pass


def test_whoever_waits_for_a_run_says_so_once_and_gets_it_when_it_is_free(locked_elsewhere):
    run, holder = locked_elsewhere
    waits = []

    def release():
        holder.kill()
        holder.wait()

    with run.locked(seconds=5, on_wait=lambda: waits.append(1), clock=Waiting(release)):
        assert waits == [1]
    clock = Waiting()
    with run.locked(), pytest.raises(InUseError, match="for 5 s"), run.locked(seconds=5, clock=clock):
        pass
    assert 5 <= clock.slept < 6


def test_what_is_not_there_has_no_lock_unless_it_is_made(tmp_path):
    run = Artifacts.at(tmp_path / "run")
    with run.locked():
        assert not (tmp_path / "run").exists()
    with run.locked(make=True), pytest.raises(InUseError), run.locked():
        pass


def test_an_object_store_has_no_lock():
    run = Artifacts("memory://run")
    with run.locked(make=True), run.locked(make=True):
        pass
