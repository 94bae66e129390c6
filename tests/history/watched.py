"""Local files below ``watched://``, of which each operation is told before it is done, and each read of bytes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from itertools import count

import fsspec
from fsspec.implementations.local import LocalFileSystem

from rebalance_lib.artifacts import Artifacts

Told = Callable[[str, str], None]


class WatchedFileSystem(LocalFileSystem):
    protocol = "watched"
    cachable = False
    before: Told = staticmethod(lambda operation, path: None)
    read: Callable[[str, int, int], None] = staticmethod(lambda path, begin, size: None)

    @classmethod
    def _strip_protocol(cls, path):
        return LocalFileSystem._strip_protocol(str(path).removeprefix("watched://"))

    def _open(self, path, mode="rb", **options):
        type(self).before(f"open {mode}", path)
        file = super()._open(path, mode, **options)
        return Opened(file, path) if mode == "rb" else file


class Opened:
    def __init__(self, file, path):
        self._file, self._path = file, path

    def read(self, size=-1):
        begin = self._file.tell()
        data = self._file.read(size)
        WatchedFileSystem.read(self._path, begin, len(data))
        return data

    def __getattr__(self, name):
        return getattr(self._file, name)


def _told(name):
    own = getattr(LocalFileSystem, name)

    def method(self, path, *arguments, **options):
        type(self).before(name, str(path))
        return own(self, path, *arguments, **options)

    return method


for _name in ("ls", "mv", "rm", "makedirs", "pipe_file", "exists"):
    setattr(WatchedFileSystem, _name, _told(_name))
fsspec.register_implementation("watched", WatchedFileSystem)


def watched(history):
    """The same directory, watched."""
    return Artifacts(f"watched://{history.path}")


@contextmanager
def telling(before=None, read=None):
    """Meanwhile, what is done to watched files is told."""
    silent = WatchedFileSystem.before, WatchedFileSystem.read
    WatchedFileSystem.before = staticmethod(before or silent[0])
    WatchedFileSystem.read = staticmethod(read or silent[1])
    try:
        yield
    finally:
        WatchedFileSystem.before, WatchedFileSystem.read = map(staticmethod, silent)


class KilledError(BaseException):
    """What no clean-up survives."""


def killed_at(number):
    """The process dies before its operation of this number, and does nothing from then on."""
    done = count()

    def before(operation, path):
        if next(done) >= number:
            raise KilledError

    return telling(before)
