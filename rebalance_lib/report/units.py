"""Numbers as people read them."""

from __future__ import annotations

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
BLOCKS = " ▏▎▍▌▋▊▉█"


def human_bytes(count: float) -> str:
    """Bytes with three digits or so, in powers of 1000 as Kafka's rates are: ``1.5 MB``."""
    value = float(count)
    for unit in UNITS:
        if abs(value) < 999.5 or unit == UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.3g} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def text_bar(value: float, most: float, width: int = 12) -> str:
    """A bar of eighths of a character: full width for the largest value."""
    eighths = round(8 * width * value / most) if most else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (BLOCKS[rest] if rest else "")).ljust(width)


def figure(value: object) -> str:
    """A figure, or a dash where it is not known."""
    return "\u2013" if value is None else str(value)
