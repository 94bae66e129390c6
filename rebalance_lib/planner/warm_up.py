"""Compile the planner's loops ahead of their first use: ``python -m rebalance_lib.planner.warm_up``.

numba compiles a function when it is first called, about a second each, and keeps the result (`compiled.cache`). Set-up
and images do it once, so that nobody waits for it later. Two tiny clusters are planned, one in each way that matters.
`rebalance_lib.compile` does it for one process at a time, and for consumer groups too.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from numba.core import event

from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.compiled.cache import COMPLETE, cache_directory, remove_others
from rebalance_lib.planner.model import ClusterModel
from rebalance_lib.planner.request import Mode, Request
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot

REQUESTS = (
    Request(Mode.BALANCE),
    Request(Mode.DRAIN, brokers=(1,)),
    Request(Mode.DISKS),
    Request(Mode.REPLICATION_FACTOR, topics=("t",), replication_factor=1),
    Request(Mode.LIGHT, fill_level=0.08),
)


class Count(event.Listener):  # type: ignore[misc]
    """Counts the loops that were compiled."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self.progress = progress
        self.compiled = 0

    def on_start(self, event: event.Event) -> None:
        """A loop is being compiled."""

    def on_end(self, event: event.Event) -> None:
        """A loop is compiled; those of numba itself, which ours call, are not counted."""
        if event.data["dispatcher"].py_func.__module__.startswith("rebalance_lib."):
            self.compiled += 1
            self.progress(self.compiled)


def main(progress: Callable[[int], None] = lambda _: None) -> None:
    """Plan in every way that has loops of its own, and remove what was compiled of other sources.

    Args:
        progress: Called with the number of loops that are compiled so far.
    """
    with event.install_listener("numba:compile", Count(progress)):
        _plan_all()
    (cache_directory() / COMPLETE).touch()
    remove_others()


def _plan_all() -> None:
    snapshot = tiny_cluster()
    for rates in (None, snapshot.replicas.select(["topic", "partition"]).append_column("write_rate", _ones(snapshot))):
        model = ClusterModel.of(snapshot, rates)
        for request in REQUESTS:
            for one in candidates(model, request):
                len(one.plan)


def tiny_cluster() -> Snapshot:
    """Four brokers in two racks with two disks each; all is on two of them."""
    gigabyte = 10**9

    def disks(usable: int) -> list[dict[str, object]]:
        sizes = {"total_bytes": 1000 * gigabyte, "usable_bytes": usable * gigabyte}
        return [{"path": f"/disk{n}", **sizes} for n in (1, 2)]

    brokers = [
        {"broker": n, "rack": f"r{n % 2}", "host": f"b{n}", "port": 9092, "alive": True, "log_dirs": disks(usable)}
        for n, usable in enumerate((900, 900, 1000, 1000), 1)
    ]
    replicas = [
        {
            "topic": "t",
            "partition": partition,
            "position": position,
            "broker": broker,
            "leader": position == 0,
            "in_sync": True,
            "adding": False,
            "removing": False,
            "internal": False,
            "size_bytes": partition * gigabyte,
            "log_dir": "/disk1",
        }
        for partition in range(12)
        for position, broker in enumerate((1, 2))
    ]
    return Snapshot(
        cluster_id="tiny",
        taken_at="2000-01-01T00:00:00+00:00",
        brokers=pa.Table.from_pylist(brokers, schema=BROKERS),
        replicas=pa.Table.from_pylist(replicas, schema=REPLICAS),
    )


def _ones(snapshot: Snapshot) -> pa.Array:
    return pa.array([1.0] * snapshot.replicas.num_rows, pa.float64())


if __name__ == "__main__":
    main()
