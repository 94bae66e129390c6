"""The planners that a benchmark compares: this project's, and the peers that package registries offer.

Each reads a cluster's JSON, writes a reassignment JSON, and runs as a process of its own:

==================  ==================================================================================================
this project        ``kafka-rebalance plan``, on this machine without Spark; once more with the goals that Rebalancer is
                    given and no others; and with these the planner alone, see ``bench.kernel_plan``
Kafka's generate    ``kafka-reassign-partitions --generate`` of the sandbox's Kafka, from the call that plans on, see
                    ``KafkaGenerate.java``; jars from Maven
kafka-utils         its partition count balancer and its genetic one, see ``kafka_utils_plan.py``; from PyPI
Rebalancer          Meta's solver, with its fast and its greedy local search, see ``rebalancer_plan.py``; from PyPI,
                    where Python 3.12 is found
topicmappr          asked for at Go's module proxy; reads brokers and sizes from ZooKeeper only, so there is no adapter
==================  ==================================================================================================

Peers are installed below ``.local/peers``, which git ignores, in the versions named here. One that cannot be
installed says why, and stays in the tables with that reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.java.reference import KAFKA, ROOT, JavaProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parent / "peer_programs"
PEERS = ROOT / ".local" / "peers"
KAFKA_UTILS = "4.1.0"
REBALANCER, REBALANCER_PYTHON = "1.0.4", "3.12"
TOPICMAPPR = "github.com/DataDog/kafka-kit/v4@latest"
PEER_GOALS = "disk=0.002,network_in=0.01,replicas=0.002,leaders=0.002,network_out=0.01"
"""What Rebalancer is asked for. Its search knows no tolerance and goes on to a local optimum; of seven lists tried on
two other clusters (``expand`` and ``skew``, 10,000 partitions) these tolerances came nearest to what it ended with."""
LEFT_TO_WRITE = 0.9
"""Of the limit, what a search may take that returns the best it found when its time is over."""
MODES = {"expand": "expand", "decommission": "drain", "skew": "balance", "steady": "balance"}


class PeerUnavailableError(Exception):
    """A peer cannot be installed or cannot be run; the message says why."""


@dataclass(frozen=True)
class Task:
    """A cluster's JSON and its scenario, where the plan goes, and after how many seconds a planner is stopped."""

    cluster: Path
    scenario: str
    out: Path
    limit: float = 120.0


class Planner(Protocol):
    """Something that plans: its name in tables, and how it is installed and run."""

    name: str

    def install(self) -> None:
        """Make sure that it can be run; raises PeerUnavailableError."""

    def command(self, task: Task) -> list[str]:
        """The command that writes ``plan.json`` and, with the seconds it planned for, ``summary.json``."""


class ThisProject:
    """The planner of this project, by its command line."""

    def __init__(self, goals: str = "") -> None:
        self.name = "this project, peer's goals" if goals else "this project"
        self.goals = goals

    def install(self) -> None:
        if not self._script.is_file():
            raise PeerUnavailableError(f"{self._script.name} is not installed beside {Path(sys.executable).name}")

    def command(self, task: Task) -> list[str]:
        arguments = ["--snapshot", task.cluster, "--mode", MODES[task.scenario], "--out", task.out, "--engine", "local"]
        goals = ["--goals", self.goals] if self.goals else []
        return [str(self._script), "plan", *map(str, arguments), *goals]

    @property
    def _script(self) -> Path:
        return Path(sys.executable).parent / "kafka-rebalance"


class ThisKernel:
    """The planner of this project alone, with the goals that Rebalancer is given."""

    def __init__(self, which: str) -> None:
        self.name = f"this project, {which} in a process" if which == "first" else "this project, kernel"
        self.which = which

    def install(self) -> None:
        """Nothing to do: what runs this can run it."""

    def command(self, task: Task) -> list[str]:
        asked = [self.which, MODES[task.scenario], PEER_GOALS]
        return [sys.executable, "-m", "bench.kernel_plan", *asked, str(task.cluster), str(task.out)]


class KafkaGenerate:
    """Kafka's own proposal."""

    name = "Kafka's generate"
    program = JavaProgram(PROGRAMS / "KafkaGenerate.java", KAFKA)

    def install(self) -> None:
        try:
            self.program.command()
        except (RuntimeError, OSError) as error:
            raise PeerUnavailableError(last_line(str(error))) from error

    def command(self, task: Task) -> list[str]:
        return replace(self.program, options=("-Xmx4g",)).command(str(task.cluster), str(task.out))


class KafkaUtils:
    """One of kafka-utils' balancers."""

    def __init__(self, balancer: str) -> None:
        self.name = f"kafka-utils, {balancer}"
        self.balancer = balancer

    def install(self) -> None:
        install_apart(self._environment, sys.executable, f"kafka-utils=={KAFKA_UTILS}")

    def command(self, task: Task) -> list[str]:
        program = str(PROGRAMS / "kafka_utils_plan.py")
        return [str(self._python), program, self.balancer, str(task.cluster), str(task.out)]

    @property
    def _environment(self) -> Path:
        return PEERS / f"kafka-utils-{KAFKA_UTILS}"

    @property
    def _python(self) -> Path:
        return self._environment / "bin" / "python"


class Rebalancer:
    """Meta's Rebalancer with one of its local searches."""

    def __init__(self, search: str) -> None:
        self.name = f"Rebalancer, {search}"
        self.search = search

    def install(self) -> None:
        python = find_python(REBALANCER_PYTHON)
        if python is None:
            raise PeerUnavailableError(f"its wheels need Python {REBALANCER_PYTHON}, which is not here")
        install_apart(self._environment, python, f"rebalancer=={REBALANCER}")

    def command(self, task: Task) -> list[str]:
        program = str(PROGRAMS / "rebalancer_plan.py")
        seconds = str(int(task.limit * LEFT_TO_WRITE))
        return [str(self._python), program, self.search, str(task.cluster), str(task.out), seconds]

    @property
    def _environment(self) -> Path:
        return PEERS / f"rebalancer-{REBALANCER}"

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

    def command(self, task: Task) -> list[str]:
        raise PeerUnavailableError(f"there is no adapter for {task}")


PLANNERS: tuple[Planner, ...] = (
    ThisProject(),
    ThisProject(PEER_GOALS),
    ThisKernel("first"),
    ThisKernel("again"),
    KafkaGenerate(),
    KafkaUtils("count"),
    KafkaUtils("genetic"),
    Rebalancer("fast"),
    Rebalancer("greedy"),
    Topicmappr(),
)


def timings(out: Path) -> dict[str, float]:
    """The seconds of each phase that a planner told in its summary, by name; ``plan`` is planning alone."""
    summary = out / "summary.json"
    told = json.loads(summary.read_text()).get("timings", {}) if summary.is_file() else {}
    return {phase: float(seconds) for phase, seconds in told.items()}


def install_apart(environment: Path, python: str, package: str) -> None:
    """A virtual environment with one package, made once."""
    complete = environment / "complete"
    if complete.is_file():
        return
    run([python, "-m", "venv", "--clear", str(environment)])
    run([str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", package])
    complete.touch()


def find_python(version: str) -> str | None:
    """An interpreter of this version: this one, or one that uv or pyenv knows or that is on the path."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    for command in (["uv", "python", "find", version], ["pyenv", "prefix", version]):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
            if done.returncode == 0:
                found = Path(done.stdout.strip())
                return str(found / "bin" / "python" if found.is_dir() else found)
    # A shim of pyenv is on the path for versions that are installed and not chosen: it must also run.
    command = [f"python{version}", "-c", "import sys; print(sys.executable)"]
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


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
