"""JSON with indentation is what Python's own encoder writes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.json_text import indented

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@settings(max_examples=50)
@given(VALUES)
def test_it_is_what_python_writes(value: Any) -> None:
    assert indented(value) == json.dumps(value, indent=2, sort_keys=True)


def test_keys_that_are_no_texts_and_tuples_are_written_alike() -> None:
    value: Any = {"a": {3: [1], 20: {True: ("x", [])}}, "b": ((), {}, [[]], [[1]])}
    assert indented(value) == json.dumps(value, indent=2, sort_keys=True)
