"""What a run took is told for the program alone, whatever holds the benchmark's own process."""

from __future__ import annotations

import sys

import pytest

from bench.measure import measure

MEGABYTE = 1 << 20


def python(program):
    return [sys.executable, "-c", program]


def test_the_memory_is_that_of_the_program_and_not_of_who_measures():
    ballast = bytearray(200 * MEGABYTE)
    small, large = (measure(python(f"bytearray({size} * {MEGABYTE})"), limit=60) for size in (1, 100))
    assert len(ballast) > small.peak_bytes
    assert large.peak_bytes - small.peak_bytes == pytest.approx(99 * MEGABYTE, rel=0.1)


def test_a_program_is_stopped_at_the_limit():
    measured = measure(python("import time; time.sleep(60)"), limit=1)
    assert measured.over_limit
    assert measured.error == "stopped after 1 s"
    assert 1 <= measured.seconds < 30


def test_a_failure_is_told_by_the_last_line_it_printed():
    measured = measure(python("import sys; print('first'); sys.exit('no such cluster')"), limit=60)
    assert measured.error == "ended with 1: no such cluster"
    assert not measured.over_limit
