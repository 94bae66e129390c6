"""One Kafka process: its configuration, and how it is formatted, started, signalled and found again by its pid."""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
import subprocess
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import psutil

Role = Literal["broker", "controller"]

JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
ARCHIVE = Path(__file__).with_name("kafka.jsa")  # sandbox/archive.py
LOG4J = Path(__file__).with_name("log4j2.properties")
META_PROPERTIES = "meta.properties"
_LAUNCHED: dict[int, subprocess.Popen[bytes]] = {}  # children of this process by pid: only it can reap them

# Small and quick: a broker that dies is noticed in seconds, and internal topics stay few.
DEFAULTS = {
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "metadata.max.idle.interval.ms": "0",  # no records that do nothing: a third of what an idle node costs
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A broker or controller as the sandbox knows it: where it lives and listens, and its process, if it has one."""

    id: int
    role: Role
    port: int
    home: str
    rack: str | None = None
    pid: int | None = None
    heap: str | None = None
    secure_ports: dict[str, int] = field(default_factory=dict)  # of the listeners that ask who a client is, by name

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> Path:
        """Its configuration."""
        return Path(self.home, "server.properties")

    @property
    def log_dirs(self) -> list[Path]:
        """Where it keeps its data: a broker has two of them."""
        names = ("data-a", "data-b") if self.role == "broker" else ("metadata",)
        return [Path(self.home, name) for name in names]

    @property
    def is_formatted(self) -> bool:
        """Whether its log dirs are ready for Kafka."""
        return all((directory / META_PROPERTIES).exists() for directory in self.log_dirs)

    @property
    def log_file(self) -> Path:
        """What it printed since it was first started."""
        return Path(self.home, "kafka.log")

    def process(self) -> psutil.Process | None:
        """The running process, or None; a pid that went to another program does not count."""
        return find_process(self.pid, self.home) if self.pid is not None else None

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
        process = _LAUNCHED.get(self.pid or 0) or self.process()
        if process is None:
            return True
        try:
            process.wait(seconds)
        except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
            return False
        _LAUNCHED.pop(self.pid or 0, None)
        return True


def find_process(pid: int, home: str) -> psutil.Process | None:
    """The live process with this pid, if its command line shows that it works in this directory."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE and any(word.startswith(home) for word in process.cmdline()):
            return process
    return None


def write_properties(node: Node, voters: str, extra: dict[str, str]) -> None:
    """Write ``server.properties``: loopback only, a rack, and two log dirs for a broker."""
    home = Path(node.home)
    home.mkdir(parents=True, exist_ok=True)
    broker = node.role == "broker"
    listeners = {"PLAINTEXT" if broker else "CONTROLLER": node.port, **node.secure_ports}
    protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **{name: name for name in node.secure_ports}}
    settings = {
        **DEFAULTS,
        **extra,
        "node.id": str(node.id),
        "process.roles": node.role,
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": ",".join(map(str, node.log_dirs)),
    }
    if node.rack is not None:
        settings["broker.rack"] = node.rack
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    node.properties.write_text(text, encoding="utf-8")


def format_storage(node: Node, libs: Path, cluster_id: str) -> subprocess.Popen[bytes]:
    """Start formatting the node's log dirs for the cluster, as an operator would before the first start."""
    return _run(node, libs, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(node.properties))


def copy_format(node: Node, formatted: Node) -> None:
    """Format the node's log dirs as those of another node of its cluster are: a JVM for each takes most of the time.

    What differs from one log dir to another are the id of the node and a random id of the directory itself.
    """
    original = formatted.log_dirs[0]
    properties = dict(
        line.split("=", 1)
        for line in (original / META_PROPERTIES).read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    for directory in node.log_dirs:
        directory.mkdir(parents=True)
        shutil.copy(original / "bootstrap.checkpoint", directory)
        own = {**properties, "node.id": str(node.id), "directory.id": random_id()}
        text = "".join(f"{key}={value}\n" for key, value in own.items())
        (directory / META_PROPERTIES).write_text(text, encoding="utf-8")


def random_id() -> str:
    """A new id as Kafka makes them: never one that begins with a dash, which its own tools would read as an option."""
    while (drawn := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return drawn


def launch(node: Node, libs: Path) -> Node:
    """Start the Kafka process; from here on it is known by its pid, whichever process asks."""
    process = _run(node, libs, "kafka.Kafka", str(node.properties))
    _LAUNCHED[process.pid] = process
    return replace(node, pid=process.pid)


def java(libs: Path, main_class: str, *arguments: str, heap: str | None = None) -> list[str]:
    """The command that runs a class of Kafka's jars; ``heap`` as in ``2g``, where the small one is not enough."""
    flags = [*JVM_FLAGS]
    if heap is not None:
        flags.append(f"-Xmx{heap}")  # the last one counts
    if ARCHIVE.exists():
        flags += [f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return ["java", *flags, f"-Dlog4j2.configurationFile={LOG4J}", "-cp", f"{libs}/*", main_class, *arguments]


def _run(node: Node, libs: Path, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a class of Kafka's jars in a session of its own, so that a Ctrl-C meant for us does not reach it first."""
    with node.log_file.open("ab") as log:
        return subprocess.Popen(
            java(libs, main_class, *arguments, heap=node.heap),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
