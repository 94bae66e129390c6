"""What the command lines of the Spark jobs share: parser, JSON arguments, messages, and the end by SIGTERM."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn


class JobLog:
    """Messages of a job on stderr, a line each, with the job's name in front.

    Args:
        job: The name.
    """

    def __init__(self, job: str) -> None:
        self.job = job

    def __call__(self, *lines: str) -> None:
        """Log these lines at once: whoever waits for the job reads along."""
        for line in lines:
            print(f"{self.job}: {line}", file=sys.stderr, flush=True)

    def fail(self, *lines: str) -> int:
        """Log what went wrong; returns the exit code of a job that failed."""
        self(*lines)
        return 1


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help begins with the job's own docstring, as it is written."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def json_object(text: str) -> dict[str, Any]:
    """The type of an argument that is a JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'give an object such as {{"name": "value"}}, not {text!r}')
    return value


def run_program(main: Callable[[], int]) -> NoReturn:
    """Run a job as a program, which cleans up when SIGTERM ends it: by default Python would end at once."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
