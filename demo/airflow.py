"""A local Airflow: api-server, scheduler, dag processor and triggerer on SQLite, listening on loopback only."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from sandbox.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
USER = "admin"
# Every process of this Airflow, Spark's included, inherits it and works in Airflow's home: that is how they are found
# again. (The api-server writes its title over its environment, and a task may change its directory.)
MARK = "KAFKA_REBALANCE_LOCAL_AIRFLOW"
COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
READY_SECONDS = 180.0
STOP_SECONDS = 8.0


class LocalAirflowError(RuntimeError):
    """The local Airflow did not do what was asked."""


class LocalAirflow:
    """Airflow's four components in a directory of their own.

    Args:
        directory: Airflow's home; made if missing, and left as it is when Airflow stops.
        bootstrap_servers: The Kafka cluster behind the connection ``kafka_default``.
        artifacts: Where runs keep their artifacts.
        more: Environment variables besides those that Airflow needs.
    """

    def __init__(
        self, directory: Path, *, bootstrap_servers: str, artifacts: Path, more: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory.absolute()
        self._bootstrap_servers = bootstrap_servers
        self._artifacts = artifacts.absolute()
        self._more = dict(more or {})
        self.port = free_port()
        self.password = secrets.token_urlsafe(12)
        self._secrets = {name: secrets.token_urlsafe(48) for name in ("API__SECRET_KEY", "API_AUTH__JWT_SECRET")}
        self._parent: subprocess.Popen[str] | None = None  # of all components
        self._components: dict[str, psutil.Process] = {}
        self._starting = threading.Lock()
        self._stopped = False

    @classmethod
    def attach(cls, directory: Path) -> Self | None:
        """The Airflow that was left running in this directory, or None."""
        state_file = directory / "local.json"
        if not state_file.is_file():
            return None
        state = json.loads(state_file.read_text(encoding="utf-8"))
        airflow = cls(directory, bootstrap_servers=state["bootstrap_servers"], artifacts=Path(state["artifacts"]))
        airflow.port, airflow.password = state["port"], state["password"]
        return airflow if any(airflow.processes()) else None

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What Airflow's processes are told; the JWT secret and the password never leave this machine."""
        kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": self._bootstrap_servers}}
        spark = {
            "conn_type": "spark",
            "host": "local[*]",
            "extra": {"deploy-mode": "client", "spark-binary": "spark-submit"},
        }
        python = sys.executable
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")},
            MARK: str(self.directory),
            "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(self.directory),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.directory / "passwords.json"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            **{f"AIRFLOW__{name}": value for name, value in self._secrets.items()},
            "AIRFLOW__KAFKA_REBALANCE__ARTIFACTS": f"file://{self._artifacts}",
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(kafka),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a small job: start fast
            **self._more,
        }

    def start(self) -> Self:
        """Make the database, start the components and wait until Airflow calls all of them healthy."""
        self.directory.mkdir(parents=True, exist_ok=True)
        passwords = self.directory / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({USER: self.password}), encoding="utf-8")
        self.port = free_port()
        try:
            with socket.socket() as reserved:  # until the api-server takes it
                reserved.bind(("127.0.0.1", self.port))
                if self._run("migrate", ["airflow", "db", "migrate"], wait=True) != 0:
                    raise LocalAirflowError(f"Airflow could not make its database:\n{self.log('migrate')}")
            self._save()
            for name in COMPONENTS:
                self.start_component(name)
            self._wait_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def start_component(self, name: str) -> None:
        """Start one of the components."""
        loopback = {
            "api-server": ["--host", "127.0.0.1", "--port", str(self.port)],
            "scheduler": ["--skip-serve-logs"],
            "triggerer": ["--skip-serve-logs"],
        }
        pid = self._run(name, ["airflow", name, *loopback.get(name, [])])
        try:
            self._components[name] = psutil.Process(pid)
        except psutil.NoSuchProcess:
            raise LocalAirflowError(f"Airflow's {name} ended:\n{self.log(name)}") from None

    def kill_component(self, name: str) -> None:
        """Kill a component and all that it has started, as a machine that is lost would."""
        process = self._components[name]
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End every process of this Airflow, the tasks it runs included; a start under way in a thread ends too."""
        with self._starting:
            self._stopped = True
        parent = self._parent.pid if self._parent is not None else None
        components = [process for process in self.processes() if process.pid != parent]  # which reaps them
        for process in components:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
        psutil.wait_procs(components, timeout=STOP_SECONDS)
        self._end_parent()
        while left := list(self.processes()):
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=2)

    def _end_parent(self) -> None:
        """Let the process that started the components end: it does at the end of its input."""
        if self._parent is None or self._parent.stdin is None or self._parent.stdout is None:
            return
        with suppress(BrokenPipeError):
            self._parent.stdin.close()
        try:
            self._parent.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._parent.kill()
            self._parent.wait()
        self._parent.stdout.close()

    def processes(self) -> Iterator[psutil.Process]:
        """Every live process that belongs to this Airflow."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE and self._is_ours(process):
                    yield process

    def _is_ours(self, process: psutil.Process) -> bool:
        home = str(self.directory)
        return process.cwd() == home or process.environ().get(MARK) == home

    def log(self, component: str) -> str:
        """The end of what a component printed."""
        return "\n".join(self.output(component).splitlines()[-20:])

    def output(self, component: str) -> str:
        """What a component printed, since the first start of it."""
        return (self.directory / f"{component}.out").read_text(encoding="utf-8", errors="replace")

    def _run(self, name: str, argv: list[str], *, wait: bool = False) -> int:
        """Run a command of Airflow; returns its process id, or its exit code if its end is awaited."""
        request = {"argv": argv, "output": str(self.directory / f"{name}.out"), "wait": wait}
        with self._starting:
            if self._stopped:
                raise LocalAirflowError("Airflow was stopped while it started")
            if self._parent is None:
                self._parent = self._start_parent()
            parent = self._parent
        assert parent.stdin is not None  # noqa: S101 - for mypy
        assert parent.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError, ValueError):  # the latter if it was closed meanwhile
            parent.stdin.write(json.dumps(request) + "\n")
            parent.stdin.flush()
        if not (answer := parent.stdout.readline()):
            if self._stopped:
                raise LocalAirflowError("Airflow was stopped while it started")
            raise LocalAirflowError(f"Airflow ended while its {name} started:\n{self.log('components')}")
        return int(answer)

    def _start_parent(self) -> subprocess.Popen[str]:
        with (self.directory / "components.out").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "demo.components"],
                env=self.environment(),
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )

    def _save(self) -> None:
        state = {
            "port": self.port,
            "password": self.password,
            "bootstrap_servers": self._bootstrap_servers,
            "artifacts": str(self._artifacts),
        }
        path = self.directory / "local.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(state), encoding="utf-8")

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        health: dict[str, Any] = {}
        while time.monotonic() < deadline and not self._stopped:
            if ended := [name for name in COMPONENTS if not self._components[name].is_running()]:
                raise LocalAirflowError(f"Airflow's {ended[0]} ended:\n{self.log(ended[0])}")
            with suppress(httpx.HTTPError, ValueError):
                health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
                if all(part["status"] == "healthy" for part in health.values()):
                    return
            time.sleep(0.5)
        ill = [name for name, part in health.items() if part["status"] != "healthy"] or ["api_server"]
        tail = self.log(ill[0].replace("_", "-"))
        raise LocalAirflowError(f"Airflow's {', '.join(ill)} was not healthy after {READY_SECONDS:.0f} s:\n{tail}")
