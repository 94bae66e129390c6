"""The sandbox is a real cluster, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from kafka.errors import KafkaError

from sandbox import Sandbox, SandboxError, ports
from sandbox import cluster as sandbox_cluster
from sandbox import node as sandbox_node
from sandbox.__main__ import main
from tests.waiting import wait_for

pytestmark = pytest.mark.programs


def brokers_alive(kafka: Sandbox) -> set[int]:
    admin = kafka.admin()
    try:
        return {entry["broker_id"] for entry in admin.describe_cluster()["brokers"] if not entry["is_fenced"]}
    except KafkaError:  # the client asked the broker that is down: look again
        return set()
    finally:
        admin.close()


def kafka_processes(directory: Path | str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if any(str(directory) in a for a in p.info["cmdline"] or [])]


def java_processes(directory: Path | str) -> list[psutil.Process]:
    return [p for p in kafka_processes(directory) if p.info["cmdline"][0] == "java"]


def test_brokers_have_racks_and_two_log_dirs(kafka):
    admin = kafka.admin()
    racks = {entry["broker_id"]: entry["rack"] for entry in admin.describe_cluster()["brokers"]}
    log_dirs = {entry["broker"]: len(entry["log_dirs"]) for entry in admin.describe_log_dirs()}
    admin.close()
    assert racks == {1: "rack-1", 2: "rack-2", 3: "rack-3", 4: "rack-1"}
    assert log_dirs == {1: 2, 2: 2, 3: 2, 4: 2}


def test_a_cluster_id_never_looks_like_an_option(monkeypatch):
    drawn = iter([uuid.UUID(bytes=b"\xfb" + bytes(15)), uuid.UUID(bytes=b"\x01" * 16)])  # 0xfb encodes to a dash
    monkeypatch.setattr(sandbox_node.uuid, "uuid4", lambda: next(drawn))
    assert sandbox_node.random_id() == "AQEBAQEBAQEBAQEBAQEBAQ"


def test_kafka_listens_on_loopback_only(kafka):
    for node in kafka.nodes.values():
        listening = [c.laddr.ip for c in psutil.Process(node.pid).net_connections("inet") if c.status == "LISTEN"]
        assert listening
        assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_a_port_taken_between_look_and_bind_is_replaced(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = [taken.getsockname()[1]]
        monkeypatch.setattr(sandbox_cluster, "free_port", lambda used: given.pop() if given else ports.free_port(used))
        with Sandbox(brokers=1) as kafka:
            assert given == []
            wait_for(lambda: brokers_alive(kafka), {1})


def test_a_taken_port_is_not_chosen(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(port, port + 1))
        with pytest.raises(LookupError, match="no free port"):
            ports.free_port()


RUN = [sys.executable, "-m", "sandbox", "run", "--brokers", "1"]


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_nothing_is_left_when_the_process_that_holds_it_gets(number):
    with subprocess.Popen(RUN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().startswith("127.0.0.1:")
        children = psutil.Process(holder.pid).children(recursive=True)
        kafkas = [child for child in children if "java" in child.name()]
        assert len(kafkas) == 2
        directory = Path(kafkas[0].cmdline()[-1]).parents[1]
        holder.send_signal(number)
        holder.wait(180)
    wait_for(lambda: not any(child.is_running() for child in children))
    wait_for(lambda: not directory.exists())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_is_interrupted_while_it_starts(tmp_path, number):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(RUN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as holder:
        wait_for(lambda: java_processes(tmp_path))  # formatting its storage
        holder.send_signal(number)
        holder.wait(180)
    wait_for(lambda: kafka_processes(tmp_path) == [])
    assert list(tmp_path.iterdir()) == []


def test_from_the_command_line_beside_another_sandbox(kafka, tmp_path):
    directory = tmp_path / "sandbox"

    def in_a_process(command: str, *arguments: str) -> str:
        call = [sys.executable, "-m", "sandbox", command, "--dir", str(directory), *arguments]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout

    def run(command: str, *arguments: str) -> str:
        return CliRunner().invoke(main, [command, "--dir", str(directory), *arguments], catch_exceptions=False).stdout

    def states() -> list[str]:
        return [line.split()[-1] for line in run("status").splitlines()]

    assert in_a_process("up", "--brokers", "1", "--racks", "1").startswith("127.0.0.1:")
    try:  # it goes on without the process that started it
        assert run("add", "--rack", "b") == "2\n"
        other = Sandbox.attach(directory)
        assert other.cluster_id != kafka.cluster_id
        wait_for(lambda: brokers_alive(other), {1, 2})
        assert [node.rack for node in other.nodes.values() if node.role == "broker"] == ["rack-1", "b"]
        run("kill", "2")
        assert states() == ["running", "dead", "running"]
        wait_for(lambda: brokers_alive(other), {1})
        port = other.nodes[2].port
        run("restart", "2")
        other = Sandbox.attach(directory)  # the process is another one
        assert other.nodes[2].port == port
        wait_for(lambda: brokers_alive(other), {1, 2})
        run("pause", "2")
        wait_for(states, ["running", "paused", "running"])  # a signal takes its time
        wait_for(lambda: brokers_alive(other), {1})
        run("resume", "2")
        wait_for(lambda: brokers_alive(other), {1, 2})
        wait_for(lambda: brokers_alive(kafka), {1, 2, 3, 4})
    finally:
        run("down")
    assert not directory.exists()
    assert kafka_processes(directory) == []


def test_no_sandbox_there_is_one_clear_line(tmp_path):
    call = [sys.executable, "-m", "sandbox", "status", "--dir", str(tmp_path)]
    answer = subprocess.run(call, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("sandbox: no sandbox runs in ")
    assert answer.stderr.count("\n") == 1


def test_missing_jars_are_one_clear_line(tmp_path):
    with pytest.raises(SandboxError, match="run `make setup`"):
        Sandbox(tmp_path / "new", libs=tmp_path).start()
