"""Builds and runs the small Java programs that ask Kafka's own classes.

Maven resolves the jars that a pom names, javac compiles the program against them, and one run of it answers
any number of cases: a line in, a line out. Jars and classes are kept, and made anew when what they come
from changes. A program goes on running for whoever asks next: most of the time of a short run is the JVM's start.
"""

from __future__ import annotations

import atexit
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".local" / "java"
SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Jars:
    """The jars that a pom resolves to, in a directory that git ignores."""

    pom: Path
    directory: Path

    def resolve(self) -> Path:
        """The directory, with the jars in it."""
        made_from = _digest(self.pom)
        stamp = self.directory / ".made-from"
        if not stamp.is_file() or stamp.read_text() != made_from:
            self.directory.mkdir(parents=True, exist_ok=True)
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={self.directory}"]
            _run(["mvn", "-q", "-B", "-ntp", "-f", str(self.pom), *goal])
            stamp.write_text(made_from)
        return self.directory


@dataclass(frozen=True)
class JavaProgram:
    """A program of one source file and the jars it needs."""

    source: Path
    jars: Jars
    options: tuple[str, ...] = field(default=("-Xmx1g", "-XX:+UseSerialGC"))

    def ask(self, cases: Iterable[str], *arguments: str) -> list[str]:
        """Its answers, as many as there are cases; with arguments, from a run of its own."""
        asked = list(cases)
        if not arguments:
            return _running(self).ask(asked)
        answers = _run(self.command(*arguments), "".join(f"{case}\n" for case in asked)).split("\n")[:-1]
        if len(answers) != len(asked):
            raise RuntimeError(f"{self.source.name}: {len(asked)} cases, {len(answers)} answers")
        return answers

    def command(self, *arguments: str) -> list[str]:
        """The command that runs the program, which is compiled first if need be."""
        path = f"{self._compile()}:{self.jars.resolve()}/*"
        return ["java", *self.options, "-cp", path, self.source.stem, *arguments]

    def _compile(self) -> Path:
        classes = BUILT / "classes" / self.jars.directory.name / self.source.stem
        made_from = _digest(self.source, self.jars.pom)
        stamp = classes / ".made-from"
        if not stamp.is_file() or stamp.read_text() != made_from:
            classes.mkdir(parents=True, exist_ok=True)
            _run(
                [
                    "javac",
                    "-encoding",
                    "UTF-8",
                    "-cp",
                    f"{self.jars.resolve()}/*",
                    "-d",
                    str(classes),
                    str(self.source),
                ]
            )
            stamp.write_text(made_from)
        return classes


class RunningProgram:
    """A program that answers until this process ends."""

    def __init__(self, program: JavaProgram) -> None:
        self._process = subprocess.Popen(
            program.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        atexit.register(self.close)

    def ask(self, cases: list[str]) -> list[str]:
        """Its answers, as many as there are cases."""
        lines = "".join(f"{case}\n" for case in cases)
        sending = Thread(target=self._send, args=(lines,))  # it may wait for its answers to be read
        sending.start()
        answers = [self._process.stdout.readline() for _ in cases]
        sending.join()
        if not all(answers):
            _running.cache_clear()  # the next one who asks gets another
            raise RuntimeError(f"{self._process.args} ended with {self._process.wait()}; what it printed says why")
        return [answer.rstrip("\n") for answer in answers]

    def _send(self, lines: str) -> None:
        with suppress(BrokenPipeError):
            self._process.stdin.write(lines)
            self._process.stdin.flush()

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


@cache
def _running(program: JavaProgram) -> RunningProgram:
    return RunningProgram(program)


KAFKA = Jars(ROOT / "sandbox" / "pom.xml", ROOT / "sandbox" / "libs")
"""The Kafka that the sandbox runs."""

LAST_WITH_ADMIN_UTILS = Jars(SOURCES / "adminutils" / "pom.xml", BUILT / "adminutils")
FIRST_STICKY_CLIENTS = Jars(SOURCES / "assignors" / "pom.xml", BUILT / "clients-2.4")
QUIET = ("-Xmx2g", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF")  # assignors log what they answer, to where answers go

ADMIN_UTILS = JavaProgram(SOURCES / "adminutils" / "AdminUtilsReference.java", LAST_WITH_ADMIN_UTILS)
STRIPED_REPLICA_PLACER = JavaProgram(SOURCES / "kraft" / "StripedReplicaPlacerReference.java", KAFKA)
ASSIGNORS = JavaProgram(SOURCES / "assignors" / "AssignorReference.java", KAFKA, QUIET)
FIRST_STICKY_ASSIGNORS = JavaProgram(SOURCES / "assignors" / "AssignorReference.java", FIRST_STICKY_CLIENTS, QUIET)


def _digest(*files: Path) -> str:
    return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _run(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout
