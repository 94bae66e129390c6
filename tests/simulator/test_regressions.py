"""Schedules that once violated an invariant: shortened, named after what went wrong, and never to fail again.

``python -m simulator --keep`` adds to them; the name of a file says what happens in it.
"""

import json
from pathlib import Path

import pytest

from simulator.running import run_schedule
from simulator.schedule import Schedule

KEPT = sorted((Path(__file__).parent / "schedules").glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_a_schedule_that_failed_once_does_not_fail_again(path):
    schedule = Schedule.from_dict(json.loads(path.read_text())["schedule"])
    outcome = run_schedule(schedule, traced=True)
    assert not outcome.violations, "\n".join(outcome.trace[-60:])
