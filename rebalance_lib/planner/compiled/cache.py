"""Compiled loops kept for the next process, under a digest of all their sources.

Numba keys what it keeps by the file of the function alone: after an edit of another file that it calls, the old code
would still run. Here all loops are kept in a directory named after the text of every file of this package, so that any
edit, and any pulled fix, leads to another directory. `caches` says where: what an install compiled is used by all who
can read it. Code for another processor than this one is not used: numba sees to that.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from rebalance_lib.caches import find, to_be_made

SOURCES = Path(__file__).parent
COMPLETE = "complete"  # the file that says that all loops are there
_WHOLE = {types.int8, types.int16, types.int32, types.int64}


def digest() -> str:
    """The digest of all sources of this package."""
    content = hashlib.sha256(numba.__version__.encode())
    for file in sorted(SOURCES.glob("*.py")):
        content.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return content.hexdigest()[:16]


def cache_directory() -> Path:
    """Where the loops of these sources are kept."""
    name = f"loops-{_DIGEST}/{COMPLETE}"
    return (find(SOURCES, name) or to_be_made(SOURCES, name)).parent


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
    return _compile_and_keep(function, no_cpython_wrapper=True, forceinline=True, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that other loops call, and Python never: what would let Python call it takes long to compile."""
    return _share(_compile_and_keep(function, no_cpython_wrapper=True))


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled when it is first called, and kept; it lets other threads run."""
    return _share(_compile_and_keep(function))


def _compile_and_keep(function: Callable[..., Any], **options: Any) -> Any:
    loop = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    loop._cache = _Kept(function)  # noqa: SLF001 - what njit(cache=True) does, with a place of our own
    return loop


def _share(loop: Any) -> Any:
    """Let all loops that call this one call the same code, whether they pass a constant, an int32 or an int64.

    Left alone, numba compiles a function anew for every constant that stands in a call of it, and for every width of
    whole numbers. All loops together take 85 s of processor time then, and 63 s so, with `inner` (docs/scaling.md).
    Functions that are inlined are left alone: without the constants of their callers, plans take a fifth longer.
    """
    template = loop.get_call_template

    def shared(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        return template([_common(one) for one in args], {name: _common(one) for name, one in kws.items()})

    loop.get_call_template = shared
    return loop


def _common(given: Any) -> Any:
    plain = types.unliteral(given)
    return types.int64 if plain in _WHOLE else plain


class _Place(_CacheLocator):
    """Where numba keeps a loop; the directory's name says from which sources."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        _DIRECTORY.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(_DIRECTORY)

    def get_source_stamp(self) -> str:
        return _DIGEST

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Place:
        return cls(py_func, py_file)


class _Format(CompileResultCacheImpl):
    _locator_classes = (_Place,)


class _Kept(FunctionCache):
    _impl_class = _Format

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except OSError:  # nothing is kept, or it cannot be read: it is compiled
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # a place that can only be read, or is full: this process has its code all the same
            self.disable()


_DIGEST = digest()
_DIRECTORY = cache_directory()
