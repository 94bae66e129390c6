"""One Kafka process: its configuration, and how it is formatted, started, signalled and found again by its pid."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

Role = Literal["broker", "controller"]

JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
LOG4J = Path(__file__).with_name("log4j2.properties")

# Small and quick: a broker that dies is noticed in seconds, and internal topics stay few.
DEFAULTS = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A broker or controller as the sandbox knows it; ``pid`` and ``started`` name its process, if it has one."""

    id: int
    role: Role
    port: int
    rack: str | None = None
    pid: int | None = None
    started: float | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def directory(self, root: Path) -> Path:
        """Where its configuration, log and data are."""
        return root / f"{self.role}-{self.id}"

    def log_file(self, root: Path) -> Path:
        """What it printed since it was first started."""
        return self.directory(root) / "kafka.log"

    def process(self) -> psutil.Process | None:
        """The running process, or None; a pid that went to another program does not count."""
        if self.pid is None:
            return None
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            if process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None

    def state(self) -> str:
        """``running``, ``paused`` or ``dead``, for people."""
        process = self.process()
        if process is None:
            return "dead"
        return "paused" if process.status() == psutil.STATUS_STOPPED else "running"

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if there is one."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if process := self.process():
                process.send_signal(number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait until the process is gone; False if it still runs after that time."""
        process = self.process()
        if process is None:
            return True
        try:
            process.wait(seconds)
        except psutil.TimeoutExpired:
            return False
        return True


def write_properties(node: Node, root: Path, voters: str, extra: dict[str, str]) -> None:
    """Write ``server.properties``: loopback only, a rack, and two log dirs for a broker."""
    home = node.directory(root)
    home.mkdir(parents=True, exist_ok=True)
    listener = "CONTROLLER" if node.role == "controller" else "PLAINTEXT"
    settings = {
        **DEFAULTS,
        **extra,
        "node.id": str(node.id),
        "process.roles": node.role,
        "listeners": f"{listener}://{node.address}",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": ",".join(str(home / name) for name in ("data-a", "data-b")),
    }
    if node.role == "controller":
        settings["log.dirs"] = str(home / "metadata")
    if node.rack is not None:
        settings["broker.rack"] = node.rack
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    (home / "server.properties").write_text(text, encoding="utf-8")


def java(libs: Path, main_class: str, *arguments: str) -> list[str]:
    """The command that runs a class of Kafka's jars."""
    return [
        "java",
        *JVM_FLAGS,
        f"-Dlog4j2.configurationFile={LOG4J}",
        "-cp",
        f"{libs}/*",
        main_class,
        *arguments,
    ]


def format_storage(node: Node, root: Path, libs: Path, cluster_id: str) -> subprocess.Popen[bytes]:
    """Start formatting the node's log dirs for the cluster, as an operator would before the first start."""
    properties = node.directory(root) / "server.properties"
    with node.log_file(root).open("ab") as log:
        return subprocess.Popen(
            java(libs, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def launch(node: Node, root: Path, libs: Path) -> Node:
    """Start the Kafka process in a session of its own, so that a Ctrl-C meant for us does not reach it first."""
    properties = node.directory(root) / "server.properties"
    with node.log_file(root).open("ab") as log:
        process = subprocess.Popen(
            java(libs, "kafka.Kafka", str(properties)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return replace(node, pid=process.pid, started=psutil.Process(process.pid).create_time())
