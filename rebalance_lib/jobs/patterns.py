"""Patterns of topics as SQL's RLIKE has them."""

from __future__ import annotations

import fnmatch
import re


def regex(pattern: str) -> str:
    """A name, or a pattern such as ``orders-*``, for RLIKE, which looks for it anywhere."""
    if any(sign in pattern for sign in "*?["):
        return f"^{fnmatch.translate(pattern)}"
    return f"^{re.escape(pattern)}$"
