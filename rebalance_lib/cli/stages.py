"""The stages of a command that takes a while: shown to whoever waits, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from rebalance_lib.cli.output import Output

COMPILING = "compiling the planner, once"


@dataclass(frozen=True, slots=True)
class Stages:
    """What is being done, shown to whoever waits, and how long each part took."""

    show: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str, words: str) -> Iterator[None]:
        """Do one stage; its seconds add to what the stages of this name took before."""
        self.show(words)
        begun = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun


@contextmanager
def progress(output: Output) -> Iterator[Callable[[str], None]]:
    """A line with the stage and the time on a terminal; elsewhere only a line about what takes long unexpectedly."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def show_stage(words: str) -> None:
            bar.update(task, description=words)
            bar.refresh()  # the compiled loops do not let the bar's own thread run
            if not console.is_terminal and COMPILING in words:
                output.remark(COMPILING)

        yield show_stage
