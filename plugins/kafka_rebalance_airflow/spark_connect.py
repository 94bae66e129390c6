"""A job on a Spark Connect server: a Python program of its own, without a JVM and without spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

LINES_OF_AN_ERROR = 5


class ConnectJob:
    """A Python program that finds the server in its environment, where no log shows the token.

    Args:
        conn_id: A connection of type ``spark_connect``.
        program: The program's file.
        arguments: What it is given.
        log: Where its output goes.
    """

    CONN_TYPE = "spark_connect"

    def __init__(self, conn_id: str, program: str, arguments: Sequence[str], log: Any) -> None:
        self.conn_id = conn_id
        self.command = [sys.executable, program, *arguments]
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        """Run it to its end.

        Raises:
            RuntimeError: It failed; with what it said last.
        """
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

        environment = {**os.environ, "SPARK_REMOTE": SparkConnectHook(self.conn_id).get_connection_url()}
        last: deque[str] = deque(maxlen=LINES_OF_AN_ERROR)
        with subprocess.Popen(
            self.command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as self.process:
            for line in self.process.stdout or ():
                last.append(line.rstrip())
                self.log.info(last[-1])
        if self.process.returncode:
            raise RuntimeError(f"the job ended with {self.process.returncode}: {' / '.join(last)}")

    def end(self) -> None:
        """End it by SIGTERM: it removes what it staged and releases its session, and the server ends its queries."""
        if self.process is not None:
            self.process.terminate()
