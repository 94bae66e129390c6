"""Times as people read them."""

from __future__ import annotations

_STEPS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def human_seconds(seconds: float | None) -> str:
    """A time in its two largest units: ``2 h 5 min``, ``50 s``, ``0.4 s``; None is the end of what never ends."""
    if seconds is None:
        return "never"
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    for large, name, small, rest in _STEPS:
        if round(seconds) >= large:
            whole, left = divmod(round(seconds / small), large // small)
            return f"{whole} {name} {left} {rest}" if left else f"{whole} {name}"
    return f"{seconds:.0f} s"
