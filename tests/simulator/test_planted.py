"""Planted faults are found: each by one schedule that is known to show it, in the long run by the search itself."""

import pytest

from tests.simulator.planted import MOST_SCHEDULES, PLANTS, look_for, planted, violated_by

# The first seed that shows each fault, which is how many schedules it took, and the invariant that is violated:
# python -m tests.simulator.planted
FOUND: dict[str, tuple[int, str]] = {
    "lost answer is sent again": (210, "one_request"),
    "metadata lag is not waited for": (9, "one_request"),
    "ended move is requested again": (5, "one_request"),
    "wrong target is requested": (1, "approved"),
    "stages are skipped": (4, "approved"),
    "recreated topic is moved": (64, "approved"),
    "leaders of recreated topic are elected": (41, "approved"),
    "foreign reassignment is replaced": (216, "foreign_reassignment"),
    "caps do not count after a restart": (4, "caps"),
    "disk reserve is ignored": (7, "disk_reserve"),
    "copies under way take no disk space": (9, "disk_reserve"),
    "unknown size counts as zero": (804, "caps"),
    "one batch is not listed": (3, "throttled"),
    "deleted lists are not set again": (193, "throttled"),
    "deleted rates are not set again": (253, "throttled"),
    "returned broker gets no rate": (2912, "throttled"),
    "entries of ended moves stay": (8, "listed"),
    "rate of somebody else is replaced": (51, "throttles"),
    "throttles are saved too late": (411, "throttles"),
    "saved throttles are overwritten on restart": (2, "throttles"),
    "saved throttles are not durable": (51, "throttles"),
    "backup of saved throttles is not read": (265, "throttles"),
    "damaged saved throttles end the run": (1255, "targets"),
    "restore is skipped after a cancel": (2, "throttles"),
    "log dir rate is not restored": (6, "throttles"),
    "entries of others are removed": (35, "foreign_throttle"),
    "foreign reassignment is cancelled": (66, "foreign_reassignment"),
    "moves are not cancelled": (9, "throttles"),
    "cancel goes below min isr": (2161, "min_isr"),
    "moves begin after the clean up": (77, "throttles"),
    "two processes write saved throttles": (77, "throttles"),
    "gone broker is waited for": (21, "throttles"),
    "cancel is ignored": (139, "requests_of_people"),
    "pause is ignored": (969, "requests_of_people"),
    "lower throttle is ignored": (734, "throttled"),
    "lower caps are ignored": (103, "caps"),
    "excluded topics begin": (10, "requests_of_people"),
    "window is ignored": (29, "requests_of_people"),
    "maximum run time is ignored": (543, "requests_of_people"),
    "request is judged by the clock": (29, "requests_of_people"),
    "refused partition is requested for ever": (86, "liveness"),
    "refused partition ends the run": (86, "record"),
    "late replica is waited for": (6, "liveness"),
    "stalled move is waited for": (6, "liveness"),
    "one bad partition refuses the plan": (12, "record"),
    "set aside is not reported": (14, "targets"),
    "journal is not written": (1, "record"),
}


def test_every_fault_was_found():
    assert FOUND.keys() == PLANTS.keys()
    assert len(PLANTS) >= 25
    assert all(seed <= MOST_SCHEDULES for seed, _ in FOUND.values())


@pytest.mark.parametrize("name", FOUND)
def test_a_schedule_shows_the_fault(name):
    """If it does not any more, the executor or the generator has changed: look for the fault anew."""
    assert violated_by(name, FOUND[name][0]) is not None


@pytest.mark.long
@pytest.mark.parametrize("name", FOUND)
def test_the_fault_is_found_within_10_000_schedules(name):
    assert look_for(name) is not None


@pytest.mark.parametrize("name", PLANTS)
def test_a_fault_is_switched_off_again(name):
    before = _functions()
    with planted(name):
        assert _functions() != before
    assert _functions() == before


def _functions():
    """What the modules of the executor and of the simulator consist of."""
    import sys

    modules = [
        one for name, one in sorted(sys.modules.items()) if name.startswith(("rebalance_lib.exec", "simulator."))
    ]
    owners = [*modules, *(one for module in modules for one in vars(module).values() if isinstance(one, type))]
    return [(str(owner), name, id(value)) for owner in owners for name, value in vars(owner).items()]
