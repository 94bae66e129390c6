"""What is missing on a machine is said at once, in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("sh", "sed", "head", "cat", "cksum", "dirname", "make", "expand")


@pytest.fixture
def machine(tmp_path):
    """A copy of the set-up script, and a PATH with the tools of any machine and what a test adds."""
    project, path = tmp_path / "project", tmp_path / "bin"
    (project / "tools").mkdir(parents=True)
    path.mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", project / "tools")
    shutil.copy(ROOT / "Makefile", project)
    for tool in TOOLS:
        (path / tool).symlink_to(str(shutil.which(tool)))

    def add(name: str, script: str) -> None:
        (path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (path / name).chmod(0o755)

    def setup() -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(path), "HOME": os.environ["HOME"]}
        return subprocess.run(
            ["make", "setup"], cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return add, setup


NEW_PYTHON = "exit 0"
OLD_PYTHON = "exit 1"
JAVA_17 = """echo 'openjdk version "17.0.15" 2025-04-15' >&2"""
JAVA_11 = """echo 'openjdk version "11.0.2" 2019-01-15' >&2"""
JAVA_8 = """echo 'java version "1.8.0_202"' >&2"""


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ({}, "needs Python 3.11 to 3.14"),
        ({"python3": OLD_PYTHON, "java": JAVA_17, "mvn": "exit 0"}, "needs Python 3.11 to 3.14"),
        ({"python3": NEW_PYTHON, "mvn": "exit 0"}, "needs Java 17 or newer; install a JDK"),
        ({"python3": NEW_PYTHON, "java": JAVA_11, "mvn": "exit 0"}, "needs Java 17 or newer, found 11"),
        ({"python3": NEW_PYTHON, "java": JAVA_8, "mvn": "exit 0"}, "needs Java 17 or newer, found 1"),
        ({"python3": NEW_PYTHON, "java": JAVA_17}, "needs Maven; install it"),
    ],
)
def test_one_clear_line_says_what_to_install(machine, programs, message):
    add, setup = machine
    for name, script in programs.items():
        add(name, script)
    answer = setup()
    assert answer.returncode != 0
    said = [line for line in answer.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1
    assert said[0].startswith(f"kafka-rebalance: {message}")


def test_without_prometheus_and_without_apt_the_tests_say_what_to_install(machine, tmp_path):
    project = tmp_path / "project"
    shutil.copy(ROOT / "tools" / "prometheus.sh", project / "tools")
    environment = {"PATH": str(tmp_path / "bin"), "HOME": os.environ["HOME"]}

    def ask() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [project / "tools" / "prometheus.sh"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    answer = ask()
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("kafka-rebalance: the tests need Prometheus; install it")
    assert answer.stderr.count("\n") == 1
    add, _ = machine
    add("prometheus", "exit 0")
    assert ask().stdout == f"{tmp_path / 'bin' / 'prometheus'}\n"
