"""Who may import whom: pure in the middle, effects at the edge."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "rebalance_lib/topology": set(),
    "rebalance_lib/approval": {"window"},
    "rebalance_lib/assignors": {"topology"},
    "rebalance_lib/placement": {"topology"},
    "rebalance_lib/plan": {"topology"},
    "rebalance_lib/planner": {"caches", "placement", "plan", "threads", "topology"},
    "rebalance_lib/reassignment": {"plan", "topology"},
    "rebalance_lib/cluster": {"clock", "topology"},
    "rebalance_lib/history": {"artifacts", "topology"},
    "rebalance_lib/report": {
        "approval",
        "artifacts",
        "assignors",
        "plan",
        "planner",
        "reassignment",
        "threads",
        "topology",
    },
    "rebalance_lib/execution": {
        "artifacts",
        "clock",
        "cluster",
        "plan",
        "reassignment",
        "report",
        "topology",
        "window",
    },
    "rebalance_lib/jobs": {
        "artifacts",
        "assignors",
        "caches",
        "compile",
        "history",
        "placement",
        "plan",
        "planner",
        "reassignment",
        "report",
        "threads",
        "topology",
    },
}
OUTSIDE = {
    "airflow": ["plugins", "dags"],
    "kafka": ["rebalance_lib/cluster"],
    "numba": ["rebalance_lib/assignors", "rebalance_lib/planner"],
    "pyspark": ["rebalance_lib/jobs"],
    "rebalance_lib": ["rebalance_lib", "plugins", "dags", "demo", "simulator", "tests", "bench"],
    "sandbox": ["sandbox", "demo", "simulator", "tests", "bench"],
    "simulator": ["simulator", "tests"],
}
WRITTEN_FOR_IT = {
    "kafka": ["sandbox", "demo", "tests", "bench"],
    "airflow": ["demo", "tests"],
    "pyspark": ["tests", "bench"],
}


@cache
def imports(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names


def python_files(directory: str) -> list[Path]:
    found = [file for file in (ROOT / directory).rglob("*.py") if ".venv" not in file.parts]
    assert found, directory
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_its_door_lets_in(room):
    own = room.removeprefix("rebalance_lib/")
    allowed = {own, "errors", *ROOMS[room]}
    for file in python_files(room):
        used = {name.split(".")[1] for name in imports(file) if name.startswith("rebalance_lib.")}
        assert used <= allowed, f"{file.relative_to(ROOT)} imports {sorted(used - allowed)}"


@pytest.mark.parametrize("library", OUTSIDE)
def test_only_its_own_rooms_import(library):
    allowed = [ROOT / room for room in OUTSIDE[library] + WRITTEN_FOR_IT.get(library, [])]
    for top in ("rebalance_lib", "plugins", "dags", "demo", "sandbox", "simulator", "tests"):
        for file in python_files(top):
            if any(file.is_relative_to(room) for room in allowed):
                continue
            roots = {name.split(".")[0] for name in imports(file)}
            assert library not in roots, f"{file.relative_to(ROOT)} imports {library}"


@pytest.mark.programs
def test_what_executes_plans_imports_no_numba():
    """It would take most of the time that an Airflow task needs to start."""
    script = "import sys, rebalance_lib.execution; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


TIME_AND_CHANCE = {"time", "random", "uuid", "secrets"}


def test_what_executes_plans_is_handed_its_clock():
    """So that the simulator can run it: no time, randomness or waiting but the clock's."""
    for file in python_files("rebalance_lib/execution"):
        where = file.relative_to(ROOT)
        assert TIME_AND_CHANCE.isdisjoint(imports(file)), f"{where} imports {sorted(TIME_AND_CHANCE & imports(file))}"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert not called.endswith(("datetime.now", "datetime.utcnow", "date.today")), f"{where} calls {called}"
                waits = node.func.attr in ("wait", "sleep") and "clock" not in called
                assert not waits, f"{where} calls {called}: use the clock"


def test_every_room_of_the_library_has_its_rule():
    rooms = {f"rebalance_lib/{p.parent.name}" for p in (ROOT / "rebalance_lib").glob("*/__init__.py")}
    assert rooms - {"rebalance_lib/cli"} == set(ROOMS)
