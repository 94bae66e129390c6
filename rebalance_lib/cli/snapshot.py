"""``kafka-rebalance snapshot``."""

from __future__ import annotations

from pathlib import Path

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Output
from rebalance_lib.cluster import groups_or_none, take_snapshot
from rebalance_lib.execution import Run
from rebalance_lib.history import append_snapshot
from rebalance_lib.report import load_table

EXAMPLE = r"""
kafka-rebalance snapshot --bootstrap-server kafka:9092 --history file:///shared/kafka-rebalance/history
"""


@command("snapshot", example=EXAMPLE)
@cluster_options
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the snapshot as Parquet below this directory."
)
@click.option("--history", metavar="URI", help="Append the snapshot to the history in this directory.")
@output_option
def snapshot(*, connection: Connection, output: Output, out: Path | None, history: str | None) -> None:
    """Show what each broker holds: bytes, replicas and leaders.

    With --out, brokers.parquet and replicas.parquet go to OUT/snapshot, as the planner reads them, and the consumer
    groups beside them. With --history, sizes, offsets and what consumer groups have committed go to a file of their own
    below URI, a directory or the address of one, such as file:///shared/history: snapshots over time tell how fast each
    partition grows, is written and is read.
    """
    with connection.open() as cluster:
        taken = take_snapshot(cluster)
        wanted = out is not None or history is not None
        groups = groups_or_none(cluster, tell=output.remark) if wanted else None
    load = taken.load_per_broker().to_pylist()
    output.show(load_table(load, f"Cluster {taken.cluster_id}"))
    if out is not None:
        run = Run(Artifacts.at(out).uri)
        run.write_snapshot(taken)
        run.write_groups(groups)
        output.remark(f"written to {out / 'snapshot'}")
    if history is not None:
        appended = append_snapshot(Artifacts(history), taken, groups)
        output.remark(f"appended to {history.rstrip('/')}/{appended.name}")
    output.result({"cluster_id": taken.cluster_id, "taken_at": taken.taken_at, "brokers": load})
