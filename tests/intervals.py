"""Pauses of the product that are meant for clusters in use, short for tests: what is waited for takes a moment here.

How long brokers may be behind, or may not answer, stays as it is: a busy machine takes that long.
"""

from __future__ import annotations

import sys

import pytest

import rebalance_lib.cli.waiting
import rebalance_lib.execution  # noqa: F401

SECONDS = {
    ("rebalance_lib.execution.preflight", "SAMPLE_SECONDS"): 0.2,  # how long to see whether partitions are written to
    ("rebalance_lib.execution.preflight", "SHORT_SAMPLE_SECONDS"): 0.2,
    ("rebalance_lib.execution.executor", "IDLE_SECONDS"): 0.2,
    ("rebalance_lib.cli.waiting", "LOOK_SECONDS"): 0.1,
}


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the product pause for a short time only."""
    for (module, name), seconds in SECONDS.items():
        monkeypatch.setattr(sys.modules[module], name, seconds)  # functions hide modules of their name
