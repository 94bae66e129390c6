"""The cluster: which nodes there are, and the things that can happen to them.

What is known of the nodes is in ``sandbox.json`` in the sandbox's directory, so that a cluster that was left running
(``python -m sandbox up``) can be found again, by this class and from the command line alike.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from sandbox import node as nodes
from sandbox.certificates import make_certificates
from sandbox.node import Node, Role, random_id
from sandbox.ports import free_port
from sandbox.security import SECURE, add_scram_users, security_config
from sandbox.watchdog import Watchdog

LIBS = Path(__file__).with_name("libs")
FIRST_CONTROLLER_ID = 1001
READY_SECONDS = 90.0

Progress = Callable[[str], None]


class SandboxError(RuntimeError):
    """The sandbox could not do what was asked; the message ends with what Kafka printed, where that helps."""


class PortTakenError(SandboxError):
    """Another program took the port between our look and Kafka's bind."""


class Sandbox:
    """A Kafka cluster in KRaft mode on loopback, with any number of brokers, each with a rack and two log dirs.

    Args:
        directory: Where configuration, data and logs go; a temporary directory by default. It must be empty or
            missing, and it is removed when the sandbox stops.
        brokers: How many brokers to start with; their ids are 1, 2, 3, ...
        racks: Over how many racks (``rack-1``, ``rack-2``, ...) the brokers are spread in turn; 0 for no racks.
        controllers: How many controllers; three survive the loss of one.
        config: Broker settings beside the sandbox's own, in Kafka's names.
        users: Who may sign in, with their passwords: brokers then also listen with SASL_PLAINTEXT, SASL_SSL and SSL.
        heap: Memory of each node's heap, as in ``2g``; by default little, which is enough for some thousand partitions.
        libs: Kafka's jars, as ``make setup`` leaves them.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        brokers: int = 3,
        racks: int = 3,
        controllers: int = 1,
        config: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        heap: str | None = None,
        libs: Path = LIBS,
        progress: Progress = lambda _: None,
    ) -> None:
        self._directory = Path(directory).absolute() if directory is not None else None
        self._broker_count = brokers
        self._racks = racks
        self._controller_count = controllers
        self._config = dict(config or {})
        self._users = dict(users or {})
        self._heap = heap
        self._libs = libs
        self._progress = progress
        self._nodes: dict[int, Node] = {}
        self._cluster_id = random_id()
        self._watchdog: Watchdog | None = None

    @classmethod
    def attach(cls, directory: Path | str) -> Self:
        """The sandbox that was left running in this directory."""
        root = Path(directory).absolute()
        state_file = root / "sandbox.json"
        if not state_file.is_file():
            raise SandboxError(f"no sandbox runs in {root}: start one with `python -m sandbox up --dir {directory}`")
        state = json.loads(state_file.read_text(encoding="utf-8"))
        kept = {name: state[name] for name in ("racks", "config", "users", "heap")}
        sandbox = cls(root, **kept, libs=Path(state["libs"]))
        sandbox._cluster_id = state["cluster_id"]
        sandbox._nodes = {entry["id"]: Node(**entry) for entry in state["nodes"]}
        return sandbox

    @property
    def directory(self) -> Path:
        """Where this sandbox keeps its configuration, data and logs."""
        if self._directory is None:
            raise SandboxError("the sandbox is not started")
        return self._directory

    @property
    def cluster_id(self) -> str:
        """Kafka's id of this cluster."""
        return self._cluster_id

    @property
    def nodes(self) -> dict[int, Node]:
        """All nodes by id, controllers included, dead ones too."""
        return dict(self._nodes)

    @property
    def broker_ids(self) -> list[int]:
        """The ids of all brokers, dead ones too."""
        return sorted(node.id for node in self._nodes.values() if node.role == "broker")

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers that run now, as clients take them."""
        return ",".join(self._nodes[i].address for i in self.broker_ids if self._nodes[i].state() == "running")

    @property
    def certificates(self) -> Path:
        """Where ``ca.pem`` is, and ``<user>.pem`` with ``<user>.key`` for each user."""
        return self.directory / "certificates"

    def secure_servers(self, protocol: str) -> str:
        """The addresses of the running brokers' listeners with this security protocol."""
        running = [self._nodes[i] for i in self.broker_ids if self._nodes[i].state() == "running"]
        return ",".join(f"127.0.0.1:{node.secure_ports[protocol]}" for node in running)

    def log(self, node_id: int) -> str:
        """What this node printed."""
        return self._node(node_id).log_file.read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, detached: bool = False) -> Self:
        """Start the cluster and wait until every broker is registered.

        Args:
            detached: Leave the cluster running when this Python process ends; `attach` finds it again.
        """
        if not any(self._libs.glob("kafka-clients-*.jar")):
            raise SandboxError(f"Kafka's jars are not in {self._libs}: run `make setup`")
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="kafka-sandbox-"))
        elif self._directory.exists() and any(self._directory.iterdir()):
            raise SandboxError(
                f"{self._directory} is not empty: stop the sandbox there first, or name another directory"
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        if not detached:
            self._watchdog = Watchdog(self._directory)
        try:
            if self._users:
                make_certificates(self.certificates, self._users)
            self._start_nodes()
            if self._users:
                with self.admin() as admin:
                    add_scram_users(admin, self._users)
        except BaseException:
            self.stop()
            raise
        return self

    def add_brokers(self, count: int = 1, *, rack: str | None = None) -> list[int]:
        """Start more, empty brokers; returns their ids."""
        first = max(self.broker_ids, default=0) + 1
        added = [
            self._new_node(broker, "broker", rack or self._rack_of(broker)) for broker in range(first, first + count)
        ]
        self._launch_new(added)
        return [node.id for node in added]

    def kill(self, node_id: int) -> None:
        """SIGKILL: the process is gone at once, its data stays."""
        self._node(node_id).send(signal.SIGKILL)
        self._node(node_id).wait_gone(10)

    def pause(self, node_id: int) -> None:
        """SIGSTOP: the process is there but answers nothing."""
        self._node(node_id).send(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """SIGCONT: the paused process goes on."""
        self._node(node_id).send(signal.SIGCONT)

    def restart(self, node_id: int) -> None:
        """Stop the node in an orderly way if it runs, start it on the same port and data, and wait until it is back."""
        old = self._node(node_id)
        old.send(signal.SIGCONT)
        old.send(signal.SIGTERM)
        if not old.wait_gone(30):
            self.kill(node_id)
        self._launch([old])
        if old.role == "broker":
            self._wait_registered({node_id})

    def stop(self) -> None:
        """Kill every process and remove the directory."""
        for node in self._nodes.values():
            node.send(signal.SIGKILL)
        for node in self._nodes.values():
            node.wait_gone(10)
        self._nodes = {}
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        if self._watchdog is not None:
            self._watchdog.done()
            self._watchdog = None

    def admin(self, **settings: Any) -> KafkaAdminClient:
        """An admin client for this cluster; close it after use."""
        return KafkaAdminClient(bootstrap_servers=self.bootstrap_servers.split(","), **settings)

    def _start_nodes(self) -> None:
        for attempt in range(1, 4):
            first, last = FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + self._controller_count
            controllers = [self._new_node(i, "controller", None) for i in range(first, last)]
            brokers = [self._new_node(i, "broker", self._rack_of(i)) for i in range(1, self._broker_count + 1)]
            try:
                self._launch_new([*controllers, *brokers])
            except PortTakenError:
                if attempt == 3:
                    raise
                self._forget(list(self._nodes))
            else:
                return

    def _node(self, node_id: int) -> Node:
        if node_id not in self._nodes:
            raise SandboxError(f"no node {node_id} in this sandbox; there are {sorted(self._nodes)}")
        return self._nodes[node_id]

    def _rack_of(self, broker: int) -> str | None:
        return f"rack-{(broker - 1) % self._racks + 1}" if self._racks else None

    def _new_node(self, node_id: int, role: Role, rack: str | None) -> Node:
        taken = {port for other in self._nodes.values() for port in (other.port, *other.secure_ports.values())}
        names = ["", *(SECURE if self._users and role == "broker" else ())]
        ports: dict[str, int] = {}
        for name in names:
            ports[name] = free_port({*taken, *ports.values()})
        home = str(self.directory / f"{role}-{node_id}")
        node = Node(node_id, role, ports.pop(""), home, rack, heap=self._heap, secure_ports=ports)
        self._nodes[node_id] = node
        return node

    def _launch_new(self, added: list[Node]) -> None:
        """Format, start and await nodes that were never started; none of them stays if one does not come up."""
        try:
            self._format(added)
            self._launch(added)
            self._wait_registered({node.id for node in added if node.role == "broker"})
        except BaseException:
            self._forget([node.id for node in added])
            raise

    def _forget(self, node_ids: list[int]) -> None:
        for node_id in node_ids:
            self.kill(node_id)
            node = self._nodes.pop(node_id)
            shutil.rmtree(node.home, ignore_errors=True)
        self._save()

    def _format(self, added: list[Node]) -> None:
        self._progress(f"formatting storage of {len(added)} nodes")
        voters = ",".join(f"{n.id}@{n.address}" for n in self._nodes.values() if n.role == "controller")
        replication = {
            key: str(min(3, len(self.broker_ids)))
            for key in ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
        }
        security = security_config(self._users, self.certificates) if self._users else {}
        for node in added:
            here = security if node.role == "broker" else {}
            nodes.write_properties(node, voters, {**replication, **here, **self._config})
        formatted = next((node for node in self._nodes.values() if node.is_formatted), None)
        if formatted is None:
            formatted = added[0]
            self._format_first(formatted)
        for node in added:
            if not node.is_formatted:
                nodes.copy_format(node, formatted)

    def _format_first(self, node: Node) -> None:
        process = nodes.format_storage(node, self._libs, self._cluster_id)
        try:
            self._watch(process.pid)
            if process.wait() != 0:
                raise SandboxError(f"formatting the storage of {node.role} {node.id} failed:\n{self._tail(node)}")
        finally:
            process.kill()
            process.wait()

    def _launch(self, started: list[Node]) -> None:
        for node in started:
            self._nodes[node.id] = nodes.launch(node, self._libs)
            self._watch(self._nodes[node.id].pid)
        self._save()

    def _watch(self, pid: int | None) -> None:
        if self._watchdog is not None:
            self._watchdog.watch(pid)

    def _wait_registered(self, brokers: set[int]) -> None:
        """Wait until the cluster itself says that these brokers are alive and unfenced."""
        deadline = time.monotonic() + READY_SECONDS
        missing = set(brokers)
        while missing:
            self._check_alive()
            if time.monotonic() > deadline:
                slow = min(missing)
                tail = self._tail(self._node(slow))
                raise SandboxError(f"broker {slow} was not ready after {READY_SECONDS:.0f} s:\n{tail}")
            registered = self._registered(brokers)
            if missing - registered != missing:
                self._progress(f"{len(registered & brokers)} of {len(brokers)} brokers ready")
            missing -= registered
            time.sleep(0.2)

    def _registered(self, brokers: set[int]) -> set[int]:
        open_ports = [self._nodes[i] for i in sorted(brokers) if _accepts(self._nodes[i].port)]
        if not open_ports:
            return set()
        try:
            admin = KafkaAdminClient(bootstrap_servers=open_ports[0].address, bootstrap_timeout_ms=3000)
            try:
                return {b["broker_id"] for b in admin.describe_cluster()["brokers"] if not b["is_fenced"]}
            finally:
                admin.close()
        except (KafkaError, OSError):
            return set()

    def _check_alive(self) -> None:
        for node in self._nodes.values():
            if node.pid is not None and node.state() == "dead" and "Address already in use" in self._tail(node):
                raise PortTakenError(f"a port of {node.role} {node.id} was taken by another program")

    def _tail(self, node: Node, lines: int = 15) -> str:
        text = node.log_file.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _save(self) -> None:
        state = {
            "cluster_id": self._cluster_id,
            "racks": self._racks,
            "config": self._config,
            "users": self._users,
            "heap": self._heap,
            "libs": str(self._libs),
            "nodes": [asdict(node) for node in self._nodes.values()],
        }
        temporary = self.directory / "sandbox.json.new"
        temporary.write_text(json.dumps(state, indent=2), encoding="utf-8")
        temporary.replace(self.directory / "sandbox.json")


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0
