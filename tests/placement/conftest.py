"""Kafka's own classes for the placement tests, and how many random cases they are asked."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.java.reference import ADMIN_UTILS, STRIPED_REPLICA_PLACER, JavaProgram

REFERENCE_CASES = int(os.environ.get("REFERENCE_CASES", "1000"))
"""Random cases per reference class; the full proof takes 10,000."""


@pytest.fixture(scope="session")
def admin_utils() -> JavaProgram:
    return ADMIN_UTILS


@pytest.fixture(scope="session")
def striped_replica_placer() -> JavaProgram:
    return STRIPED_REPLICA_PLACER


@pytest.fixture(scope="session")
def reference_cases() -> range:
    return range(REFERENCE_CASES)


@pytest.fixture
def random() -> Random:
    return Random(20240817)
