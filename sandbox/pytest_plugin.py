"""Pytest fixtures: ``kafka`` is one cluster for the whole run, ``new_kafka`` starts clusters of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sandbox.cluster import Sandbox


@pytest.fixture(scope="session")
def kafka() -> Iterator[Sandbox]:
    """Four brokers on three racks, shared by all tests: leave no throttle, topic or dead broker behind."""
    with Sandbox(brokers=4, racks=3) as sandbox:
        yield sandbox


@pytest.fixture
def new_kafka() -> Iterator[Callable[..., Sandbox]]:
    """Start a sandbox with the given arguments; it is stopped when the test ends."""
    with ExitStack() as stack:

        def start(**arguments: Any) -> Sandbox:
            return stack.enter_context(Sandbox(**arguments))

        yield start
