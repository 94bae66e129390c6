"""How fast a plan may go, read from files and programs."""

from __future__ import annotations

import json

import pytest

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.pace import Order, Pace


@pytest.mark.parametrize(
    "pace",
    [
        Pace(),
        Pace(throttle=5, log_dir_throttle=7, moves_in=None, order=Order.SMALLEST_FIRST, one_replica_at_a_time=True),
    ],
)
def test_a_pace_comes_back_from_json_as_it_was(pace):
    assert Pace.from_dict(json.loads(json.dumps(pace.as_dict()))) == pace


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"speed": 1}, "no field 'speed'"),
        ({"throttle": 0}, "throttle is 0"),
        ({"throttle": "1"}, "throttle is '1'"),
        ({"moves_in": True}, "moves in is True"),
        ({"order": "random"}, "order of a pace is 'random'"),
        ({"order": ["smallest-first"]}, "order of a pace is"),
        ({"one_replica_at_a_time": 1}, "one replica at a time is 1"),
    ],
)
def test_what_is_no_pace_is_refused(given, words):
    with pytest.raises(InvalidInputError, match=words):
        Pace.from_dict(given)
