"""The command line, with every request for reassignments noted in a file, also that of a process that is killed.

python -m tests.execution.counted FILE run --bootstrap-server ...
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rebalance_lib.cli.__main__ import run
from rebalance_lib.cluster import Cluster


def main() -> None:
    """Run the command with the arguments after the file."""
    file = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    reassign = Cluster.reassign

    def noted(self: Cluster, targets: Any, **options: Any) -> None:
        requested = [tp._asdict() for tp, target in targets.items() if target is not None]
        if requested:
            os.write(file, json.dumps(requested).encode() + b"\n")
        reassign(self, targets, **options)

    Cluster.reassign = noted  # type: ignore[method-assign]
    run()


if __name__ == "__main__":
    main()
