"""``kafka-rebalance snapshot``."""

from __future__ import annotations

from pathlib import Path

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.options import Connection, cluster_options, command, output_option
from rebalance_lib.cli.output import Output
from rebalance_lib.cluster import take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.report import load_table

EXAMPLE = r"""
kafka-rebalance snapshot --bootstrap-server kafka:9092
"""


@command("snapshot", example=EXAMPLE)
@cluster_options
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the snapshot as Parquet below this directory."
)
@output_option
def snapshot(*, connection: Connection, output: Output, out: Path | None) -> None:
    """Show what each broker holds: bytes, replicas and leaders.

    With --out, brokers.parquet and replicas.parquet go to OUT/snapshot, as the planner reads them.
    """
    with connection.open() as cluster:
        taken = take_snapshot(cluster)
    load = taken.load_per_broker().to_pylist()
    output.show(load_table(load, f"Cluster {taken.cluster_id}"))
    if out is not None:
        Run(Artifacts.at(out).uri).write_snapshot(taken)
        output.remark(f"written to {out / 'snapshot'}")
    output.result({"cluster_id": taken.cluster_id, "taken_at": taken.taken_at, "brokers": load})
