"""Balanced plans that move next to nothing more than they must.

What is listed here is imported when it is first used: whoever only reads a request need not wait for the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_lib.planner.candidates import Candidate
    from rebalance_lib.planner.choice import Choice
    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Mode, Request
    from rebalance_lib.planner.scope import Scope

__all__ = ["Candidate", "Choice", "ClusterModel", "Mode", "Request", "Scope"]

_MODULES = {
    "Candidate": "candidates",
    "Choice": "choice",
    "ClusterModel": "model",
    "Mode": "request",
    "Request": "request",
    "Scope": "scope",
}


if not TYPE_CHECKING:  # a type checker would take any name for one of this package

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
