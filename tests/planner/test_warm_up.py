"""Set-up compiles the loops by planning for a tiny cluster: what modes refuse must not end it."""

from __future__ import annotations

from rebalance_lib.planner import warm_up
from rebalance_lib.planner.compiled.relieve import relieve
from rebalance_lib.planner.compiled.shift import shift


def test_every_way_of_planning_has_something_to_do_for_the_tiny_cluster():
    warm_up.main()
    assert shift.signatures
    assert relieve.signatures
