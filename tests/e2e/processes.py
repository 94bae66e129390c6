"""Which processes work in a directory, however they call themselves."""

from __future__ import annotations

from pathlib import Path

import psutil


def processes_below(directory: Path) -> list[psutil.Process]:
    """Every process whose working directory is this one or below it."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd().removesuffix(" (deleted)")).is_relative_to(directory):
                found.append(process)
        except psutil.Error:
            continue
    return found
