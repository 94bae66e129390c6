"""Where Spark itself gives up, only the piece at fault fails: a day of the history, a cluster, a run.

An error in a task's own code is caught there, and is a row like others. But a worker that is killed, for its memory,
say, takes Spark's whole job with it. Then the pieces are cut in half, and each half is tried again, until the one at
fault is alone: of 100 pieces with one at fault, some 14 more jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

FAULTS_OF_SPARK = 3  # pieces that fail alone in the same way
DEATH = "a worker died over it, most likely for want of memory: give executors more (docs/scaling.md, Sizing)"
_DEATHS = ("Python worker exited unexpectedly", "ExecutorLostFailure", "OutOfMemory", "SparkOutOfMemoryError")

Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


def in_halves(
    work: Callable[[Sequence[Piece]], Answer], pieces: Sequence[Piece]
) -> tuple[list[Answer], list[str | None]]:
    """Do the work for all pieces at once; where that fails, for each half of them, down to the piece at fault.

    If the first few fail alone, one like the other, though no worker died, it is not their fault: all others fail, too.

    Args:
        work: What is done for some of the pieces, in one go; it can be done again.
        pieces: All of them.

    Returns:
        What the work gave, each time that it did not fail, and by piece why it failed; None where it did not.
    """
    answers: list[Answer] = []
    reasons: list[str | None] = [None] * len(pieces)
    waiting, alone = [range(len(pieces))] if pieces else [], list[str]()
    while waiting:
        some = waiting.pop()
        try:
            answers.append(work([pieces[number] for number in some]))
        except Exception as error:  # whatever Spark raises: there are many kinds
            if len(some) > 1:
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
                continue
            reason = reason_of(error)
            reasons[some[0]] = reason
            alone.append(reason)
            if not answers and alone == [reason] * FAULTS_OF_SPARK and reason != DEATH:
                for number in (number for others in waiting for number in others):
                    reasons[number] = reason
                break
    return answers, reasons


def reason_of(error: Exception) -> str:
    """Why Spark gave up, in a line."""
    text = str(error)
    if any(death in text for death in _DEATHS):
        return DEATH
    _, traceback, python = text.rpartition("Traceback (most recent call last):")
    if traceback:  # of a Python worker: its last line says what happened, Java's stack may follow
        lines = [line for line in python.partition("\n\tat ")[0].splitlines() if line[:1].strip()]
        return f"Spark failed: {lines[-1] if lines else python.strip()}"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("An error occurred while")]
    return f"Spark failed: {lines[0].strip() if lines else type(error).__name__}"
