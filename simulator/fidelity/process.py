"""The process of a run on the real stage: a child that can be killed, and says in a file how far it is.

Children are forked from a server that has imported everything, so that one starts in a moment. What it said is written
as a whole after each report and at the end; a child that was killed leaves what it said last.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution import Report
from simulator.fidelity.stage import DIRECTORY, RUNS, SNAPSHOT, Heard, Status, Task
from simulator.operator import Place

# Pauses that are meant for clusters in use. How long brokers may be behind, or may not answer, stays as it is.
SHORT_PAUSES = {
    ("rebalance_lib.execution.preflight", "SAMPLE_SECONDS"): 0.2,
    ("rebalance_lib.execution.executor", "IDLE_SECONDS"): 0.2,
}
CONTEXT = multiprocessing.get_context("forkserver")


class Child:
    """A process of the run, or of what follows it.

    Args:
        home: Where the artifacts of all runs, and the words of this process, are.
        servers: The addresses of all brokers.
        number: A number of its own.
        task: What it does.
    """

    def __init__(self, home: Path, servers: Sequence[str], number: int, task: Task) -> None:
        self._words = home / f"process-{number}.json"
        self._process: BaseProcess = CONTEXT.Process(
            target=_main, args=(home, list(servers), self._words, task), daemon=True
        )
        self._process.start()

    def kill(self) -> None:
        """SIGKILL it."""
        self._process.kill()
        self._process.join()

    def status(self) -> Status:
        """What is known of it."""
        alive = self._process.is_alive()  # before its words are read: what it says last comes before its end
        found = Status()
        if self._words.exists():
            found = Status(**json.loads(self._words.read_text(encoding="utf-8")))
        if not alive and found.alive:
            found = replace(found, alive=False, error=f"it ended with exit code {self._process.exitcode}")
        return found


class _Writing(Heard):
    """Writes down what was said after each report."""

    __slots__ = ("_file",)

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def on_report(self, report: Report) -> None:
        super().on_report(report)
        self.write(alive=True, error=None)

    def write(self, *, alive: bool, error: BaseException | None) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self.status(alive, error))), encoding="utf-8")
        new.replace(self._file)


def _main(home: Path, servers: list[str], words: Path, task: Task) -> None:
    for (module, name), seconds in SHORT_PAUSES.items():
        setattr(sys.modules[module], name, seconds)
    heard = _Writing(words)
    with (home / "log.txt").open("a", encoding="utf-8", buffering=1) as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            with Cluster({"bootstrap_servers": servers}) as cluster:
                storage = Artifacts.at(home / (RUNS if task.what == SNAPSHOT else DIRECTORY))
                task.run(Place(cluster, storage, SYSTEM, lambda text: print(text, file=log)), heard)
        except Exception as error:
            traceback.print_exc(file=log)
            heard.write(alive=False, error=error)
        else:
            heard.write(alive=False, error=None)
