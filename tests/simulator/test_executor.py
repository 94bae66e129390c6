"""The executor in a simulated cluster: what no invariant judges, each with the trouble that shows it."""

from dataclasses import replace

import pytest

from simulator.shape import Fault
from tests.simulator.small import MB, SMALL, T0, T1


def with_settings(schedule, **settings):
    """The same schedule with other settings."""
    return replace(schedule, settings={**schedule.settings, **settings})


SLOW = with_settings(SMALL, throttle=2 * MB)  # a minute and more


@pytest.mark.parametrize("leave_moves", [False, True])
def test_a_cancel_that_was_requested_cancels_moves_also_of_a_run_that_was_to_leave_them(play, leave_moves):
    schedule = with_settings(SLOW, cancel_on_failure=not leave_moves)
    world = play(replace(schedule, faults=(Fault(8.0, "request_cancel", {}),)))
    cancelled = {
        tp for one in world.cluster.requests if one.name == "reassign" for tp in one.changes if not one.changes[tp]
    }
    assert cancelled == {T0, T1}
    assert world.cluster.reassignments() == {}
