"""How hard tests look: `make test` has minutes for everything, `make test-long` takes its time.

A test that only the long run can afford has the marker ``long``. One that tries random cases takes their number from
`cases`, which gives the number of the run that is under way.
"""

from __future__ import annotations

LONG = False  # set by tests/conftest.py before any test is imported


def cases(short: int, *, long: int) -> int:
    """How many random cases to try."""
    return long if LONG else short
