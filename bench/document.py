"""Generated parts of hand-written Markdown: a rerun replaces what stands between two markers and nothing else.

The markers of the part ``planner`` are ``<!-- planner: begin -->`` and ``<!-- planner: end -->``, each on a line of its
own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def replace_part(document: Path, part: str, text: str) -> None:
    """Put the text between the part's markers; raises ValueError if they are not there once each, in order."""
    begin, end = f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->\n"
    content = document.read_text(encoding="utf-8")
    before, found_begin, rest = content.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end) or begin in rest or end in after:
        raise ValueError(f"{document}: the markers of {part!r} are not there once each, in order")
    document.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first ``left`` columns are words, the others figures."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def machine() -> str:
    """The machine in one line, as far as it matters to the figures."""
    cores = len(os.sched_getaffinity(0))
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"one machine with {cores} cores and {gigabytes:.0f} GB of memory"


def seconds(value: float) -> str:
    """A time with the digits that mean something."""
    if value < 0.01:
        return f"{value * 1000:.2g} ms"
    return f"{value:.3f} s" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def gigabytes(value: float) -> str:
    """Bytes as GB."""
    return f"{value / 1e9:.2f} GB"
