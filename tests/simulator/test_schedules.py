"""A thousand schedules of faults, and no invariant violated; `make faults` runs as many as one likes."""

import subprocess
import sys

import pytest

from simulator.running import run_schedule
from simulator.schedule import generate

TOGETHER = 50  # schedules in one test


class _Schedules:
    def check(self, first: int) -> None:
        failed = {
            seed: outcome.violations
            for seed in range(first, first + TOGETHER)
            if (outcome := run_schedule(generate(seed))).violations
        }
        assert failed == {}, "python -m simulator --only SEED shows how"


class TestFirstHalf(_Schedules):
    """A class for each half, so that two processes share them."""

    @pytest.mark.parametrize("first", range(1, 501, TOGETHER))
    def test_no_invariant_is_violated(self, first):
        self.check(first)


class TestSecondHalf(_Schedules):
    @pytest.mark.parametrize("first", range(501, 1001, TOGETHER))
    def test_no_invariant_is_violated(self, first):
        self.check(first)


@pytest.mark.programs
def test_the_same_seed_gives_the_same_trace_byte_for_byte():
    """Also where Python orders its sets otherwise."""
    traces = {
        subprocess.run(
            [sys.executable, "-m", "simulator", "--only", "25", "--trace", "--reads"],
            env={"PYTHONHASHSEED": str(seed), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(traces) == 1
    assert b"run is over" in next(iter(traces))
