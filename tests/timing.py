"""Where the time of a test run goes: progress while it runs, and at its end seconds by directory and by fixture."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

PROGRESS_SECONDS = 15.0
SHORTEST = 1.0  # seconds; a fixture that took less in all is not listed
Spent = dict[str, list[float]]  # by name: how often, and seconds


class Timing:
    """Adds up seconds; in a worker of xdist it sends those of fixtures to the main process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = self._last_progress = time.monotonic()
        self._directories: Spent = defaultdict(lambda: [0, 0.0])
        self._fixtures: Spent = defaultdict(lambda: [0, 0.0])
        self._teardown_began: dict[int, float] = {}
        self._finished = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._spend(fixturedef, began, uses=1)
            # Finalizers run last in, first out: this one begins the clock for the fixture's own.
            fixturedef.addfinalizer(lambda: self._teardown_began.update({id(fixturedef): time.monotonic()}))

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        if (began := self._teardown_began.pop(id(fixturedef), None)) is not None:
            self._spend(fixturedef, began, uses=0)

    def _spend(self, fixturedef: Any, began: float, uses: int) -> None:
        spent = self._fixtures[f"{fixturedef.argname} of {fixturedef.baseid or 'pytest'}"]
        spent[0] += uses
        spent[1] += time.monotonic() - began

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["fixtures"] = dict(self._fixtures)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for name, (uses, seconds) in getattr(node, "workeroutput", {}).get("fixtures", {}).items():
            self._fixtures[name][0] += uses
            self._fixtures[name][1] += seconds

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = self._directories[str(PurePosixPath(report.nodeid.partition("::")[0]).parent)]
        spent[0] += report.when == "call"
        spent[1] += report.duration
        self._finished += report.when == "teardown"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS or hasattr(self._config, "workerinput"):
            return
        self._last_progress = now
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        total, file = reporter._session.testscollected, nodeid.partition("::")[0]
        reporter.write_line(f"\n{_clock(now - self._began)}  {self._finished} of {total} tests, last of {file}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for title, spent in (("directory", self._directories), ("fixture", self._fixtures)):
            terminalreporter.section(f"seconds by {title}, of {_clock(time.monotonic() - self._began)} min")
            for name, (uses, seconds) in sorted(spent.items(), key=lambda entry: -entry[1][1]):
                if title == "directory" or seconds >= SHORTEST:
                    terminalreporter.write_line(f"{seconds:7.1f}  {uses:6.0f}  {name}")


def _clock(seconds: float) -> str:
    return f"{int(seconds // 60):2}:{int(seconds % 60):02}"
