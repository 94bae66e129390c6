"""Where what is made once for an installation is kept, and found by all who can read it.

It is the first of these places that holds it, whoever made it, or else the first that can be written:

1. ``KAFKA_REBALANCE_CACHE``, if it is set: for images whose sources are mounted over those they were built with;
2. ``__pycache__`` of the package;
3. the user's cache directory;
4. the directory for temporary files.

So an install by one user serves the workers of another, who may only read it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

PLACE = "KAFKA_REBALANCE_CACHE"


def places(beside: Path) -> Iterator[Path]:
    """All places, those first that go first.

    Args:
        beside: The directory of the sources.
    """
    if named := os.environ.get(PLACE):
        yield Path(named)
    yield beside / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kafka-rebalance"
    yield Path(tempfile.gettempdir()) / f"kafka-rebalance-{os.getuid()}"


def find(beside: Path, name: str) -> Path | None:
    """A file in the first place that has it."""
    return next((place / name for place in places(beside) if (place / name).is_file()), None)


def to_be_made(beside: Path, name: str) -> Path:
    """Where a file can be made, with its directories still to be made; in the last place if none can be written."""
    found = [place / name for place in places(beside)]
    return next((file for file in found if _can_be_written(file.parent)), found[-1])


def _can_be_written(directory: Path) -> bool:
    there = next(place for place in (directory, *directory.parents) if place.is_dir())
    return os.access(there, os.W_OK)
