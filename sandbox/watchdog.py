"""Outlives the process that holds a sandbox, to clean up if that process dies without doing so.

The holder writes one JSON object per line to standard input: ``{"directory": ...}`` once, ``{"pid": ...}`` for each
process it starts, and ``{"done": true}`` when it has stopped everything itself. When the pipe closes without that last
line, the holder is gone: its processes, where they still are the ones that work in that directory, are killed, and the
directory is removed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from sandbox.node import find_process


class Watchdog:
    """The holder's end of the pipe."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from sandbox.watchdog import main; main()"],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._tell({"directory": str(directory)})

    def watch(self, pid: int | None) -> None:
        """Have this process killed, should we die."""
        self._tell({"pid": pid})

    def done(self) -> None:
        """Everything is stopped: nothing to clean up."""
        self._tell({"done": True})
        self._process.communicate()

    def _tell(self, message: dict[str, object]) -> None:
        if self._process.stdin is None or self._process.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()


def main() -> None:
    """Read until the pipe closes, then clean up if the holder did not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    directory = ""
    pids: list[int] = []
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("done"):
            return
        directory = message.get("directory", directory)
        if "pid" in message:
            pids.append(message["pid"])
    for pid in pids:
        if process := find_process(pid, directory):
            with contextlib.suppress(psutil.Error):
                process.kill()
                process.wait(10)
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
