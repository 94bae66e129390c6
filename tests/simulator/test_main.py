"""The command: progress, a table, and for a failure the shortened schedule with its trace."""

import json
import sys

import pytest

from simulator import __main__ as command
from simulator.client import SimulatedClient


def run(monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", ["simulator", *options])
    return command.main()


def test_schedules_that_hold_end_well_and_are_counted(monkeypatch, capsys):
    assert run(monkeypatch, "--schedules", "5", "--seed", "100", "--processes", "1") in (0, 1)
    out, err = capsys.readouterr()
    assert "5 of 5 schedules" in err
    assert "faults injected" in out


def test_a_failure_is_shortened_told_and_kept(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(SimulatedClient, "alter_topic_configs", lambda *_: None)
    monkeypatch.setattr(command, "KEPT", tmp_path)
    assert run(monkeypatch, "--schedules", "6", "--processes", "1", "--keep") == 1
    out = capsys.readouterr().out
    assert "throttled: seed" in out
    assert "VIOLATED throttled" in out
    kept = json.loads(next(tmp_path.glob("throttled-*.json")).read_text())
    assert kept["invariant"] == "throttled"
    assert kept["schedule"]["plan"]


def test_one_seed_with_its_trace(monkeypatch, capsys):
    run(monkeypatch, "--only", "40", "--trace")
    assert "supervisor   starts" in capsys.readouterr().out


def test_help_teaches(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, "--help")
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "byte for byte" in out
