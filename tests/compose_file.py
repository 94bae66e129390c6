"""docker-compose.yaml as the tests read it, its variables filled in as docker/make_env.py does."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
MAKE_ENV = runpy.run_path(str(ROOT / "docker" / "make_env.py"))
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<rule>:[-?])(?P<text>[^}]*)\}")
SECRET = re.compile(r"PASSWORD$|SECRET|_KEY$")
PROJECT = "/opt/kafka-rebalance"


def parse_env(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


DOT_ENV = parse_env(MAKE_ENV["fill"](EXAMPLE))
COMPOSE = yaml.safe_load(VARIABLE.sub(lambda found: DOT_ENV[found["name"]], TEXT))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
AIRFLOW = [name for name in SERVICES if name.startswith("airflow-")]
SPARK = [name for name in SERVICES if name.startswith("spark-")]
BROKERS = [name for name in SERVICES if re.fullmatch(r"kafka-\d", name)]
KAFKA = ["kafka-controller", *BROKERS]


def environment(service: str) -> dict[str, str]:
    return {name: str(value) for name, value in SERVICES[service].get("environment", {}).items()}


def mounts(service: str) -> list[list[str]]:
    return [volume.split(":") for volume in SERVICES[service].get("volumes", [])]


def commands(service: str) -> Iterator[list[str]]:
    """What the service runs, line by line for scripts, and what its health check runs."""
    command = SERVICES[service].get("command", "")
    script = command[-1] if isinstance(command, list) else command
    yield from (shlex.split(line) for line in script.splitlines())
    if "healthcheck" in SERVICES[service]:
        yield SERVICES[service]["healthcheck"]["test"][1:]


def listeners(text: str) -> dict[str, str]:
    return dict(listener.split("://") for listener in text.split(","))


def copied() -> list[str]:
    lines = re.findall(r"^COPY (?:--\S+ )*(.+)$", DOCKERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
