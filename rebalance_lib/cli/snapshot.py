"""``kafka-rebalance snapshot``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster, take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.report import load_table


@click.command()
@click.option("--bootstrap-server", required=True, help="Brokers to connect to: host:port, with commas for more.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the snapshot as Parquet below this directory."
)
def snapshot(bootstrap_server: str, out: Path | None) -> None:
    """Show what each broker holds: bytes, replicas and leaders.

    With --out, brokers.parquet and replicas.parquet go to OUT/snapshot, as the planner reads them.
    """
    with Cluster({"bootstrap_servers": bootstrap_server.split(",")}) as cluster:
        taken = take_snapshot(cluster)
    Console().print(load_table(taken.load_per_broker().to_pylist(), f"Cluster {taken.cluster_id}"))
    if out is not None:
        Run(Artifacts.at(out).uri).write_snapshot(taken)
        click.echo(f"written to {out / 'snapshot'}")
