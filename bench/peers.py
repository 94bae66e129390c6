"""The planners that a benchmark compares: this project's, and the peers that package registries offer.

Each reads a cluster's JSON, writes a reassignment JSON, and runs as a process of its own:

==================  ==================================================================================================
this project        ``kafka-rebalance plan``, on this machine without Spark
Kafka's generate    ``kafka-reassign-partitions --generate`` of the sandbox's Kafka, from the call that plans on, see
                    ``KafkaGenerate.java``; jars from Maven
kafka-utils         its partition count balancer and its genetic one, see ``kafka_utils_plan.py``; from PyPI
topicmappr          asked for at Go's module proxy; reads brokers and sizes from ZooKeeper only, so there is no adapter
==================  ==================================================================================================

Peers are installed below ``.local/peers``, which git ignores, in the versions named here. One that cannot be
installed says why, and stays in the tables with that reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.java.reference import KAFKA, ROOT, JavaProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parent / "peer_programs"
PEERS = ROOT / ".local" / "peers"
KAFKA_UTILS = "4.1.0"
TOPICMAPPR = "github.com/DataDog/kafka-kit/v4@latest"
MODES = {"expand": "expand", "decommission": "drain", "skew": "balance", "steady": "balance"}


class PeerUnavailableError(Exception):
    """A peer cannot be installed or cannot be run; the message says why."""


class Planner(Protocol):
    """Something that plans: its name in tables, and how it is installed and run."""

    name: str

    def install(self) -> None:
        """Make sure that it can be run; raises PeerUnavailableError."""

    def command(self, cluster: Path, scenario: str, out: Path) -> list[str]:
        """The command that writes ``plan.json`` and, with the seconds it planned for, ``summary.json`` to ``out``."""


class ThisProject:
    """The planner of this project, by its command line."""

    def __init__(self, *, engine: str = "local") -> None:
        self.name = "this project" if engine == "local" else f"this project, {engine}"
        self.engine = engine

    def install(self) -> None:
        if not self._script.is_file():
            raise PeerUnavailableError(f"{self._script.name} is not installed beside {Path(sys.executable).name}")

    def command(self, cluster: Path, scenario: str, out: Path) -> list[str]:
        arguments = ["--snapshot", cluster, "--mode", MODES[scenario], "--out", out, "--engine", self.engine]
        return [str(self._script), "plan", *map(str, arguments)]

    @property
    def _script(self) -> Path:
        return Path(sys.executable).parent / "kafka-rebalance"


class KafkaGenerate:
    """Kafka's own proposal."""

    name = "Kafka's generate"
    program = JavaProgram(PROGRAMS / "KafkaGenerate.java", KAFKA)

    def install(self) -> None:
        try:
            self.program.command()
        except (RuntimeError, OSError) as error:
            raise PeerUnavailableError(last_line(str(error))) from error

    def command(self, cluster: Path, scenario: str, out: Path) -> list[str]:  # noqa: ARG002 - a file has it all
        return replace(self.program, options=("-Xmx4g",)).command(str(cluster), str(out))


class KafkaUtils:
    """One of kafka-utils' balancers."""

    def __init__(self, balancer: str) -> None:
        self.name = f"kafka-utils, {balancer}"
        self.balancer = balancer

    def install(self) -> None:
        complete = self._environment / "complete"
        if complete.is_file():
            return
        run([sys.executable, "-m", "venv", "--clear", str(self._environment)])
        run([str(self._python), "-m", "pip", "install", "--quiet", f"kafka-utils=={KAFKA_UTILS}"])
        complete.touch()

    def command(self, cluster: Path, scenario: str, out: Path) -> list[str]:  # noqa: ARG002 - a file has it all
        return [str(self._python), str(PROGRAMS / "kafka_utils_plan.py"), self.balancer, str(cluster), str(out)]

    @property
    def _environment(self) -> Path:
        return PEERS / f"kafka-utils-{KAFKA_UTILS}"

    @property
    def _python(self) -> Path:
        return self._environment / "bin" / "python"


class Topicmappr:
    """DataDog's topicmappr, for which there is no adapter: see the module."""

    name = "topicmappr"

    def install(self) -> None:
        try:
            run(["go", "mod", "download", TOPICMAPPR])
        except PeerUnavailableError as error:
            answer = str(error).removeprefix("server response: ")
            raise PeerUnavailableError(f"Go's module proxy answers: {answer}") from error
        raise PeerUnavailableError("installs, but reads brokers and sizes from ZooKeeper only")

    def command(self, cluster: Path, scenario: str, out: Path) -> list[str]:
        raise PeerUnavailableError(f"there is no adapter for {cluster.name}, {scenario}, {out.name}")


PLANNERS: tuple[Planner, ...] = (
    ThisProject(),
    KafkaGenerate(),
    KafkaUtils("count"),
    KafkaUtils("genetic"),
    Topicmappr(),
)


def timings(out: Path) -> dict[str, float]:
    """The seconds of each phase that a planner told in its summary, by name; ``plan`` is planning alone."""
    summary = out / "summary.json"
    told = json.loads(summary.read_text()).get("timings", {}) if summary.is_file() else {}
    return {phase: float(seconds) for phase, seconds in told.items()}


def run(command: Sequence[str]) -> None:
    """Run a step of an installation."""
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise PeerUnavailableError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        raise PeerUnavailableError(last_line(done.stderr or done.stdout))


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
