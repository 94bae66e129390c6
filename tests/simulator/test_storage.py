from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.file_lock import InUseError
from simulator.clock import EPOCH, SimulatedClock
from simulator.processes import Scheduler
from simulator.storage import Disk, SimulatedStorage

RUN = "file:///run"


class World:
    def __init__(self):
        self.scheduler, self.disk = Scheduler(), Disk()

    def spawn(self, function, name="p"):
        process = self.scheduler.spawn(name, lambda: function(SimulatedStorage(RUN, self.disk, process)))
        return process

    def run(self, function):
        """Run a function with the storage of a process of its own, to its end; returns what it returns."""
        process = self.spawn(function)
        self.scheduler.run(until=self.scheduler.now + 100.0)
        if process.error is not None:
            raise process.error
        return process.result


@pytest.fixture
def world():
    return World()


def test_what_one_process_writes_another_reads(world):
    world.run(lambda storage: (storage / "journal").write_json("0001.json", {"at": 1}))
    assert world.run(lambda storage: (storage / "journal").read_json("0001.json")) == {"at": 1}
    assert world.run(lambda storage: (storage.directories(), storage.files(), storage.names())) == (
        ["journal"],
        [],
        ["journal"],
    )
    assert world.run(lambda storage: storage.exists("journal") and not storage.exists("plan.json"))


def test_a_file_that_is_missing_is_an_invalid_input_and_one_that_is_removed_is_missing(world):
    world.run(lambda storage: storage.write_text("a", "1"))
    world.run(lambda storage: storage.remove_files(["a", "never there"]))
    with pytest.raises(InvalidInputError, match="file:///run/a is missing: did the step that writes it succeed"):
        world.run(lambda storage: storage.read_bytes("a"))


def test_every_operation_takes_time_and_counts_as_a_call(world):
    process = world.spawn(lambda storage: (storage.write_text("a", "1"), storage.read_text("a"), storage.files()))
    world.scheduler.run(until=1.0)
    assert process.calls == 3
    assert world.disk.changed[f"{RUN}/a"] == pytest.approx(0.002)


def test_the_last_change_is_that_of_the_newest_file_below(world):
    world.run(lambda storage: storage.write_text("a", "1"))
    world.scheduler.at(50.0, lambda: None)
    world.run(lambda storage: (storage / "journal").write_text("b", "1"))
    newest = world.disk.changed[f"{RUN}/journal/b"]
    assert world.run(lambda storage: storage.last_change()) == EPOCH + timedelta(seconds=newest)


def test_a_disk_that_fails_for_writes_can_be_read_and_works_again_later(world):
    world.run(lambda storage: storage.write_text("a", "1"))
    world.disk.fail("write", until=world.scheduler.now + 5.0, reason="No space left on device")
    with pytest.raises(RebalanceError, match="file:///run/a cannot be written: No space left on device"):
        world.run(lambda storage: storage.write_text("a", "2"))
    assert world.run(lambda storage: storage.read_text("a")) == "1"
    world.scheduler.run(until=world.scheduler.now)
    world.disk.heal()
    world.run(lambda storage: storage.write_text("a", "2"))


def test_a_failure_may_concern_some_names_only(world):
    world.disk.fail("both", names="throttles")
    world.run(lambda storage: storage.write_text("journal", "1"))
    with pytest.raises(RebalanceError, match="cannot be read: Input/output error"):
        world.run(lambda storage: storage.exists("throttles.json"))


def test_a_crash_of_the_machine_spares_what_was_written_durably_or_long_ago(world):
    world.run(lambda storage: storage.write_text("old", "1" * 10))
    world.scheduler.at(20.0, lambda: None)
    world.scheduler.run(until=20.0)

    def write(storage):
        storage.write_text("durable", "2" * 10, durable=True)
        storage.write_text("new", "3" * 10)

    world.spawn(write)
    world.scheduler.run(until=22.0)
    outcomes = set()
    for seed in range(40):
        disk = Disk()
        for path, data in world.disk.files.items():
            disk.write(path, data, world.disk.changed[path], durable="durable" in path)
        disk.crash(22.0, Random(seed))
        assert disk.files[f"{RUN}/old"] == b"1" * 10
        assert disk.files[f"{RUN}/durable"] == b"2" * 10
        outcomes.add(disk.files.get(f"{RUN}/new"))
    assert outcomes == {b"3" * 10, b"3" * 5, b"", None}


def test_a_crash_may_bring_back_what_was_overwritten():
    disk = Disk()
    disk.write("file:///run/a", b"before", 0.0)
    disk.write("file:///run/a", b"after", 1.0, durable=False)
    seen = set()
    for seed in range(40):
        copy = Disk()
        copy.write("file:///run/a", b"before", 0.0)
        copy.write("file:///run/a", b"after", 1.0, durable=False)
        copy.crash(2.0, Random(seed))
        seen.add(copy.files["file:///run/a"])
    assert seen == {b"before", b"after", b"af", b""}


def test_a_file_can_be_torn(world):
    world.run(lambda storage: storage.write_json("throttles.json", {"topics": {}}))
    assert world.disk.tear(f"{RUN}/throttles.json", keep=0.5)
    with pytest.raises(InvalidInputError, match="is no JSON"):
        world.run(lambda storage: storage.read_json("throttles.json"))


def hold(for_seconds, **options):
    def main(storage):
        clock = SimulatedClock(storage.process, Random(1))
        with storage.locked(make=True, clock=clock, **options):
            clock.sleep(for_seconds)
            return storage.process.now

    return main


def test_one_process_at_a_time_has_the_lock(world):
    world.spawn(hold(60.0), "first")
    second = world.spawn(hold(0.0), "second")
    patient = world.spawn(hold(0.0, seconds=120.0), "patient")
    world.scheduler.run(until=200.0)
    assert isinstance(second.error, InUseError)
    assert 60.0 < patient.result < 61.0


def test_the_lock_of_a_killed_process_is_free(world):
    first = world.spawn(hold(1000.0), "first")
    world.scheduler.at(5.0, first.kill)
    second = world.spawn(hold(0.0, seconds=30.0), "second")
    world.scheduler.run(until=100.0)
    assert second.result < 6.0


def test_there_is_nothing_to_lock_in_a_directory_that_does_not_exist(world):
    def main(storage):
        with storage.locked(clock=SimulatedClock(storage.process, Random(1))):
            return dict(world.disk.locks)

    assert world.run(main) == {}
    assert not world.disk.files


def test_a_directory_is_published_whole(world):
    def main(storage):
        plan = storage / "plan"
        plan.write_text("old.json", "1")
        staged = plan.staging()
        staged.write_text("plan.json", "2")
        plan.publish(staged)
        return plan.names(), storage.directories()

    assert world.run(main) == (["plan.json"], ["plan"])
