"""The process that the command ``kafka-rebalance`` is."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

from rebalance_lib.cli.main import main


class WithoutPandas(MetaPathFinder):
    """Lets nobody import pandas.

    Where it is installed, as Spark wants it, pyarrow imports it for the first array that becomes one of numpy's, and
    does without where it is not: a second that no command has any use for.
    """

    def find_spec(self, fullname: str, *_: Any) -> None:
        """No spec for pandas; whoever asks for another name may find it elsewhere."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"kafka-rebalance has no use for {fullname}", name=fullname)


def run() -> None:
    """Run the command."""
    sys.meta_path.insert(0, WithoutPandas())
    main()


if __name__ == "__main__":
    run()
