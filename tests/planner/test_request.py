"""A request survives JSON, and what is no request is refused by its field."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import Mode, Request

IDS = st.lists(st.integers(0, 9), max_size=3).map(tuple)
NAMES = st.lists(st.text(min_size=1, max_size=3), max_size=3).map(tuple)


@given(
    st.builds(
        Request,
        mode=st.just(Mode.EXPAND),
        brokers=IDS,
        allowed_brokers=IDS,
        topics=NAMES,
        include_internal=st.booleans(),
        tolerance=st.floats(0, 0.5),
        byte_budget=st.none() | st.integers(0, 2**60),
        seed=st.integers(0, 2**63 - 1),
    )
)
def test_json_and_back_is_the_same_request(request):
    assert Request.from_dict(json.loads(json.dumps(request.as_dict()))) == request


def test_only_what_differs_from_the_defaults_is_told():
    assert Request(Mode.DRAIN, brokers=(7,)).as_dict() == {"mode": "drain", "brokers": [7]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "the mode of a request is None: give one of balance, expand"),
        ({"mode": "sideways"}, "the mode of a request is 'sideways'"),
        ({"mode": ["balance"]}, "the mode of a request is"),
        ({"mode": "balance", "broker": [1]}, "a request has no field 'broker': use some of mode, brokers"),
        ({"mode": "balance", "brokers": 1}, "brokers of a request is 1: give a list of broker ids"),
        ({"mode": "balance", "brokers": [True]}, "give a list of broker ids"),
        ({"mode": "balance", "topics": [1]}, "topics of a request is [1]: give a list of names or patterns"),
        ({"mode": "balance", "seed": 1.5}, "seed of a request is 1.5: give a whole number"),
        ({"mode": "balance", "tolerance": "1"}, "tolerance of a request is '1': give a number"),
        ({"mode": "balance", "balance": 1}, "balance of a request is 1: give true or false"),
        ({"mode": "light"}, "mode light needs a fill level"),
        ({"mode": "demote"}, "mode demote needs brokers: name those to demote"),
        ({"mode": "drain-log-dirs"}, "mode drain-log-dirs needs log dirs: name those to empty, such as 1:/disk2"),
        ({"mode": "disks", "log_dirs": ["1:/d"]}, "mode disks has no use for log_dirs, only drain-log-dirs"),
        ({"mode": "drain-log-dirs", "log_dirs": "1:/d"}, "log_dirs of a request is '1:/d': give a list of BROKER:PATH"),
        ({"mode": "drain-log-dirs", "log_dirs": ["/d"]}, "log dir '/d' is not BROKER:PATH, such as 1:/disk2"),
        ({"mode": "drain-log-dirs", "log_dirs": ["1:/d", "1: /d"]}, "log dir '1: /d' is not BROKER:PATH"),
        ({"mode": "drain-log-dirs", "log_dirs": ["1:d"]}, "log dir '1:d' is not BROKER:PATH"),
        ({"mode": "drain-log-dirs", "log_dirs": ["01:/d"]}, "log dir '01:/d' is not BROKER:PATH"),
        ({"mode": "drain-log-dirs", "log_dirs": ["9999999999:/d"]}, "log dir '9999999999:/d' is not BROKER:PATH"),
        ({"mode": "drain-log-dirs", "log_dirs": ["1:/d", "1:/d"]}, "log dir '1:/d' is named twice"),
    ],
)
def test_what_is_no_request_is_refused_by_its_field(value, message):
    with pytest.raises(InvalidInputError) as caught:
        Request.from_dict(value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"byte_budget": 10**19}, "byte budget is 10000000000000000000; give 0 to"),
        ({"move_budget": -1}, "move budget is -1; give 0 to"),
        ({"seed": -1}, "seed is -1; give 0 to"),
        ({"seed": 10**20}, "seed is 100000000000000000000; give 0 to"),
        ({"partitions": 3_000_000_000}, "partitions is 3000000000; give 1 to"),
        ({"shards": -1}, "shards is -1; give 0 to"),
        ({"replication_factor": 0}, "replication factor is 0; give 1 to"),
    ],
)
def test_numbers_that_no_array_holds_are_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        Request(mode=Mode.BALANCE, **options)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mode": "balance", "brokers": [1]}, "mode balance has no use for brokers"),
        ({"mode": "leaders", "fill_level": 0.3}, "mode leaders has no use for fill_level, only light"),
        ({"mode": "expand", "balance": True}, "mode expand has no use for balance, only drain"),
    ],
)
def test_what_a_mode_has_no_use_for_is_refused(given, words):
    with pytest.raises(InvalidInputError, match=words):
        Request.from_dict(given)
