"""The command lines of the Spark jobs: arguments, messages and signals, without Spark."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys

import pytest

from rebalance_lib.jobs.command_line import JobLog, json_object


def test_messages_have_the_name_of_the_job_and_a_failure_its_exit_code(capsys):
    log = JobLog("compact_history")
    log("2 days")
    assert log.fail("day=2026-11-16 is not compacted", "day=2026-11-17 is not compacted") == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.splitlines() == [
        "compact_history: 2 days",
        "compact_history: day=2026-11-16 is not compacted",
        "compact_history: day=2026-11-17 is not compacted",
    ]


@pytest.mark.parametrize(("text", "message"), [("{", "this is not JSON"), ("[1]", r"give an object .*, not '\[1\]'")])
def test_what_is_no_json_object_is_refused(text, message):
    assert json_object('{"mode": "drain", "brokers": [3]}') == {"mode": "drain", "brokers": [3]}
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        json_object(text)


@pytest.mark.programs
def test_a_job_that_is_terminated_cleans_up():
    script = (
        "import signal\n"
        "from rebalance_lib.jobs.command_line import run_program\n"
        "def main():\n"
        "    try:\n"
        "        print('begun', flush=True)\n"
        "        signal.pause()\n"
        "    finally:\n"
        "        print('cleaned up')\n"
        "run_program(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "begun\n"
        program.terminate()
        assert program.stdout.read() == "cleaned up\n"
    assert program.returncode == 128 + signal.SIGTERM
