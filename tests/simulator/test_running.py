"""Whole schedules: the same seed gives the same run, and executors that misbehave are found out."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from simulator import operator
from simulator.client import SimulatedClient
from simulator.drawing import KINDS, Drawing
from simulator.faults import FAULTS
from simulator.running import run_schedule
from simulator.schedule import generate
from simulator.shape import Fault
from simulator.trace import show
from tests.simulator.small import SMALL

FINGERPRINT = (
    "import hashlib\n"
    "from simulator.running import run_schedule\n"
    "from simulator.schedule import generate\n"
    "lines = [line for seed in range(40, 48) for line in run_schedule(generate(seed), traced=True, reads=True).trace]\n"
    "print(hashlib.sha256('\\n'.join(lines).encode()).hexdigest())\n"
)


def test_the_same_seed_gives_the_same_trace_byte_for_byte():
    for seed in range(40, 48):
        assert run_schedule(generate(seed), traced=True, reads=True) == run_schedule(
            generate(seed), traced=True, reads=True
        )


def test_the_trace_does_not_depend_on_the_hashes_of_a_process():
    found = {
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            env={**os.environ, "PYTHONHASHSEED": number},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == hashlib.sha256().digest_size * 2


def test_tracing_changes_nothing():
    for seed in range(40, 60):
        quiet, told = run_schedule(generate(seed)), run_schedule(generate(seed), traced=True)
        assert (quiet.violations, quiet.faults, quiet.seconds, quiet.events) == (
            told.violations,
            told.faults,
            told.seconds,
            told.events,
        )


def test_without_faults_every_plan_is_reached():
    for seed in range(40):
        outcome = run_schedule(replace(generate(seed), faults=()))
        assert outcome.violations == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_fault_strikes(kind):
    assert kind in FAULTS
    schedule = generate(14)  # one with a throttle
    struck = 0
    for seed in range(6):
        rng = __import__("random").Random(seed)
        drawing = Drawing(rng, schedule.shape, schedule.plan, None)
        fault = Fault(rng.uniform(3.0, 9.0), kind, KINDS[kind][1](drawing))
        struck += run_schedule(replace(schedule, faults=(fault,))).faults[kind]
    assert struck


def test_a_value_is_shown_in_one_order():
    assert show({"b": {3, 1}, "a": frozenset({"y", "x"})}) == "{b: {1, 3}, a: {x, y}}"


class TestExecutorsThatMisbehave:
    """Each is found within a few schedules, whatever the rest of the executor does right."""

    SEEDS = range(60)

    def found(self, name):
        return any(
            violation.name == name for seed in self.SEEDS for violation in run_schedule(generate(seed)).violations
        )

    def test_requests_sent_twice(self, monkeypatch):
        reassign = SimulatedClient.reassign

        def twice(self, targets, **options):
            reassign(self, targets, **options)
            reassign(self, targets, **options)

        monkeypatch.setattr(SimulatedClient, "reassign", twice)
        assert self.found("one_request")

    def test_targets_in_another_order(self, monkeypatch):
        reassign = SimulatedClient.reassign

        def other(self, targets, **options):
            reassign(self, {tp: None if one is None else one[::-1] for tp, one in targets.items()}, **options)

        monkeypatch.setattr(SimulatedClient, "reassign", other)
        assert self.found("approved")

    def test_lists_of_throttled_replicas_not_set(self, monkeypatch):
        monkeypatch.setattr(SimulatedClient, "alter_topic_configs", lambda *_: None)
        assert self.found("throttled")

    def test_rates_not_restored(self, monkeypatch):
        alter = SimulatedClient.alter_broker_configs

        def set_only(self, changes):
            kept = {broker: {key: one for key, one in values.items() if one} for broker, values in changes.items()}
            return alter(self, kept)

        monkeypatch.setattr(SimulatedClient, "alter_broker_configs", set_only)
        assert self.found("throttles")

    def test_caps_ignored(self, monkeypatch):
        run = operator.run_command

        def without_caps(place, job, settings, interval, said):
            pace = replace(settings.pace, moves_in=None, moves_out=None, moves_in_cluster=None, bytes_in_flight=None)
            return run(place, job, replace(settings, pace=pace), interval, said)

        monkeypatch.setattr(operator, "run_command", without_caps)
        assert self.found("caps")

    def test_requests_of_people_lost(self, monkeypatch):
        monkeypatch.setattr(operator, "ask", lambda *_: None)
        pause = Fault(2.0, "request_pause", {"seconds": 500.0})
        hang = replace(
            SMALL, settings={**SMALL.settings, "moves_in_cluster": 1, "throttle": 2_000_000}, faults=(pause,)
        )
        assert "requests_of_people" in {violation.name for violation in run_schedule(hang).violations}

    def test_a_process_that_ends_with_any_error(self, monkeypatch):
        monkeypatch.setattr(SimulatedClient, "reassignments", lambda *_, **__: {}["nothing"])
        assert self.found("unexpected_error")

    def test_a_process_that_never_ends(self, monkeypatch):
        def forever(place, *_):
            while True:
                place.clock.sleep(30.0)

        monkeypatch.setattr(operator, "run_command", forever)
        assert self.found("liveness")

    def test_a_record_that_is_not_written(self, monkeypatch):
        from simulator.storage import SimulatedStorage

        write = SimulatedStorage.write_bytes

        def without_audit(self, name, data, **options):
            if name != "audit.json":
                write(self, name, data, **options)

        monkeypatch.setattr(SimulatedStorage, "write_bytes", without_audit)
        assert self.found("record")
