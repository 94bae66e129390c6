"""Ctrl-C leaves nothing behind, also in the middle of everything starting."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import processes_below
from tests.sandbox.test_sandbox import kafka_processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.programs, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]


def test_nothing_is_left_when_the_demo_is_interrupted_while_airflow_starts():
    before = set((ROOT / ".local").glob("demo-*"))
    command = [sys.executable, "-u", "-m", "demo", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("records written" in line for line in demo.stdout)
        [home] = set((ROOT / ".local").glob("demo-*")) - before
        assert kafka_processes(home)
        demo.send_signal(signal.SIGINT)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(240) == 130
    wait_for(lambda: kafka_processes(home), [])
    assert not home.exists()
    wait_for(lambda: processes_below(home), [])
