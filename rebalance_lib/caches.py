"""Where what is made once for an installation is kept, and found by all who can read it.

It is the first of these places that holds it, whoever made it, or else the first that can be written:

1. ``KAFKA_REBALANCE_CACHE``, if it is set: for images whose sources are mounted over those they were built with;
2. ``__pycache__`` of the package;
3. the user's cache directory;
4. the directory for temporary files.

So an install by one user serves the workers of another, who may only read it.

What is kept is code, which whoever can write there could replace. The first place is trusted because it was configured.
The second is not if everybody can write to it. The last two have names that anybody can guess: they are made with mode
0700, and trusted only if they are directories, no symbolic links, of this user, to which nobody else can write, and
nobody else can put another in their place. Where no place is left, nothing is kept.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

PLACE = "KAFKA_REBALANCE_CACHE"
NOWHERE = Path(os.devnull)  # below a file there are none, and none can be made


def places(beside: Path) -> Iterator[Path]:
    """All places that can be trusted, those first that go first; not all of them are there.

    Args:
        beside: The directory of the sources.
    """
    if named := os.environ.get(PLACE):
        yield Path(named)
    kept = beside / "__pycache__"
    if not any(place.is_dir() and place.stat().st_mode & stat.S_IWOTH for place in (beside, kept)):
        yield kept
    yield from filter(_is_safe, _own_places())


def find(beside: Path, name: str) -> Path | None:
    """A file in the first place that has it."""
    return next((place / name for place in places(beside) if (place / name).is_file()), None)


def to_be_made(beside: Path, name: str) -> Path:
    """Where a file can be made, with its directories still to be made; `NOWHERE` if no place can be written."""
    for place in places(beside):
        file = place / name
        if _can_be_written(file.parent) and (place not in _own_places() or _make_own(place)):
            return file
    return NOWHERE / name


def _own_places() -> list[Path]:
    """The places of this user alone."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return [home / "kafka-rebalance", Path(tempfile.gettempdir()) / f"kafka-rebalance-{os.getuid()}"]


def _make_own(place: Path) -> bool:
    """Make a place of this user alone; False if it cannot be, or somebody else was faster."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return _is_safe(place)


def _is_safe(place: Path) -> bool:
    """Whether only this user can write to the place, if it is there, and only this user and root can replace it."""
    user = os.getuid()
    try:
        if os.path.lexists(place):
            status = place.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o022:
                return False
        above = [one.lstat() for one in {*place.parents, *place.resolve().parents} if os.path.lexists(one)]
    except OSError:
        return False
    return all(one.st_uid in (0, user) and not _can_be_replaced_in(one.st_mode) for one in above)


def _can_be_replaced_in(mode: int) -> bool:
    """Whether anybody can rename what others have in a directory of this mode; not in a sticky one, such as /tmp."""
    return stat.S_ISDIR(mode) and bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def _can_be_written(directory: Path) -> bool:
    there = next(place for place in (directory, *directory.parents) if place.is_dir())
    return os.access(there, os.W_OK)
