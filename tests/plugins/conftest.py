"""A cluster that asks who its clients are, for the tests of connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Sandbox

PASSWORD = "planted-Pa55word"  # noqa: S105
WRONG = "wrong-Pa55word"
USERS = {"rebalance": PASSWORD, "reader": PASSWORD}
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:rebalance;User:CN=rebalance",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[Sandbox]:
    """One broker with all listeners and an authorizer: ``rebalance`` may do anything, ``reader`` nothing yet."""
    with Sandbox(brokers=1, racks=0, users=USERS, config=AUTHORIZED) as sandbox:
        yield sandbox
