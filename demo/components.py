"""The process from which the local Airflow's components are forked: Airflow is imported once, not by each of them.

It reads one request a line from its standard input, as JSON: ``argv`` is a command line of Airflow, ``output`` the file
that takes what it prints, and ``wait`` says whether its end is awaited. It answers with a line: the exit code of a
command whose end is awaited, the process id of any other. At the end of its input it ends, and the components go on.

What every task imports is imported here too: the scheduler forks its workers, and these the tasks.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

OF_TASKS = (
    "airflow.executors.local_executor",
    "airflow.sdk.execution_time.task_runner",
    "kafka_rebalance_airflow.factories",
    "kafka_rebalance_airflow.triggers.reassignment",
    "rebalance_lib.execution",
    "rebalance_lib.history",
)


def main() -> None:
    """Serve requests until there are no more."""
    import airflow.__main__  # noqa: F401, PLC0415 - not before the environment is complete

    warm = False
    for line in sys.stdin:
        request = json.loads(line)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork() or become(request["argv"], request["output"])
        if not warm:  # the first command makes the database, meanwhile
            warm = True
            for name in OF_TASKS:
                import_module(name)
        answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if request["wait"] else pid
        signal.signal(signal.SIGCHLD, reap)
        reap()
        print(answer, flush=True)


def become(argv: list[str], output: str) -> NoReturn:
    """In a forked process: run a command of Airflow as its console script does, and end."""
    from airflow.__main__ import main as run  # noqa: PLC0415

    os.setsid()
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, appended), (2, output, appended)):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = argv
    run()  # type: ignore[no-untyped-call]
    sys.exit(0)


def reap(*_: Any) -> None:
    """Let no component that has ended stay a zombie."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
