"""Kafka's own classes for the placement tests, and how many random cases they are asked."""

from __future__ import annotations

from random import Random

import pytest

from tests.budget import cases
from tests.java.reference import ADMIN_UTILS, STRIPED_REPLICA_PLACER, JavaProgram


@pytest.fixture(scope="session")
def admin_utils() -> JavaProgram:
    return ADMIN_UTILS


@pytest.fixture(scope="session")
def striped_replica_placer() -> JavaProgram:
    return STRIPED_REPLICA_PLACER


@pytest.fixture(scope="session")
def reference_cases() -> range:
    return range(cases(300, long=10_000))


@pytest.fixture
def random() -> Random:
    return Random(20240817)
