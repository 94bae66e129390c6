"""``python -m sandbox.archive``: an archive of Kafka's classes, as the JVM lays them out in memory.

A node loads and verifies thousands of classes before it listens, and every node and tool does so anew. A JVM that maps
the archive does not: four brokers and a controller take half the processor time until they are ready. The archive is
written by a node that has started and served a record, when it stops. A JVM that the archive does not fit, because it
is another one or the jars have changed, goes without it.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from kafka import KafkaProducer
from kafka.errors import KafkaError

from sandbox.cluster import LIBS
from sandbox.node import ARCHIVE, java, random_id
from sandbox.ports import free_port

SECONDS = 240  # on a busy machine
TOPIC = "records"


def make_archive(libs: Path = LIBS, archive: Path = ARCHIVE) -> None:
    """Run a node that is broker and controller in one, and let it write the archive on its way out."""
    archive.unlink(missing_ok=True)
    new = archive.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="kafka-archive-") as home:
        port = free_port(set())
        properties = _write_properties(Path(home), port, free_port({port}))
        formatting = java(libs, "kafka.tools.StorageTool", "format", "-t", random_id(), "-c", str(properties))
        subprocess.run(formatting, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        serving, *rest = java(libs, "kafka.Kafka", str(properties))
        node = subprocess.Popen(
            [serving, f"-XX:ArchiveClassesAtExit={new}", *rest], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _write_a_record(f"127.0.0.1:{port}", node)
            node.terminate()
            node.wait(SECONDS)
        finally:
            node.kill()
            node.wait()
    new.replace(archive)


def _write_properties(home: Path, port: int, controller_port: int) -> Path:
    properties = home / "server.properties"
    settings = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(home / "data"),
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    return properties


def _write_a_record(server: str, node: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while node.poll() is None and time.monotonic() < deadline:
        try:
            producer = KafkaProducer(bootstrap_servers=server)
        except (KafkaError, OSError):
            time.sleep(0.2)
            continue
        producer.send(TOPIC, b"a record").get(SECONDS)  # the topic is made with its first record
        producer.close()
        return
    raise RuntimeError(f"a Kafka node did not come up within {SECONDS} s")


if __name__ == "__main__":
    make_archive()
