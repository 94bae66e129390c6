"""Compiled loops kept for the next process, under a digest of all their sources.

Numba keys what it keeps by the file of the function alone: after an edit of another file that it calls, the old code
would still run. Here all loops are kept in a directory named after the text of every file of this package, so that any
edit, and any pulled fix, leads to another directory. It is below ``__pycache__`` beside the sources, or in the user's
cache directory where that cannot be written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit

SOURCES = Path(__file__).parent


def digest() -> str:
    """The digest of all sources of this package."""
    content = hashlib.sha256(numba.__version__.encode())
    for file in sorted(SOURCES.glob("*.py")):
        content.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]


def cache_directory() -> Path:
    """Where the loops of these sources are kept."""
    beside = SOURCES / "__pycache__"
    if os.access(beside if beside.is_dir() else SOURCES, os.W_OK):
        return beside / f"loops-{_DIGEST}"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "kafka-rebalance" / f"loops-{_DIGEST}"


def remove_others() -> None:
    """Remove what is kept of other sources: with every edit and every pulled fix there is more of it."""
    for directory in _DIRECTORY.parent.glob("loops-*"):
        if directory != _DIRECTORY:
            shutil.rmtree(directory, ignore_errors=True)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function small enough to be compiled into each that calls it, which spares them handing over their arrays.

    It makes no array and returns numbers: so its arrays need not be counted as in use, which takes longer than what
    most of these functions do.
    """
    return compiled(function, forceinline=True, _nrt=False)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function, compiled when it is first called, and kept; it lets other threads run."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_DIRECTORY)
    try:
        loop: Callable[..., Any] = njit(cache=True, nogil=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before
    return loop


_DIGEST = digest()
_DIRECTORY = cache_directory()
