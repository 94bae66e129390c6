"""Runs a program and says how long it took and how much memory its largest process held.

A process starts out as a copy of the one that starts it, and Linux counts the memory of that copy into its peak. So
the program is started by this module run as a small process of its own: the peak has a floor of some 15 MB, whatever
the benchmark itself holds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LETTERS_OF_AN_ERROR = 160
_BYTES_A_KILOBYTE = 1024


@dataclass(frozen=True)
class Measured:
    """A run from start to end; ``error`` is empty if it ended well, ``over_limit`` says that it was stopped.

    ``cpu_seconds`` is on a processor, over all threads: it does not grow with what else the machine does.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    error: str = ""
    over_limit: bool = False


def measure(command: Sequence[str], *, limit: float) -> Measured:
    """Run the program; at the limit, in seconds, it is stopped with all that it started."""
    starter = [sys.executable, "-I", str(Path(__file__)), str(limit), *command]
    done = subprocess.run(starter, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return Measured(**json.loads(done.stdout))


def run(command: Sequence[str], limit: float) -> Measured:
    """What the process of its own does."""
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        stopped = threading.Event()
        timer = threading.Timer(limit, _stop, (process.pid, stopped))
        timer.start()
        # wait4 alone tells the memory of this child and no other.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    used = seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _BYTES_A_KILOBYTE
    if stopped.is_set():
        return Measured(*used, f"stopped after {limit:.0f} s", over_limit=True)
    if process.returncode:
        last = said.splitlines()[-1][:LETTERS_OF_AN_ERROR] if said else "no message"
        return Measured(*used, f"ended with {process.returncode}: {last}")
    return Measured(*used)


def _stop(pid: int, stopped: threading.Event) -> None:
    stopped.set()
    os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    print(json.dumps(asdict(run(sys.argv[2:], float(sys.argv[1])))))
