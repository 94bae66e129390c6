"""Wait for a plan with a progress bar, on a terminal; elsewhere with a line now and then."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.commands.verify import Verdict, Verification, saved_assignment, verify
from rebalance_lib.execution.progress import Meter
from rebalance_lib.plan import Plan

LOOK_SECONDS = 1.0
LINE_SECONDS = 30.0


def wait_until_ended(cluster: Cluster, plan: Plan, state: Artifacts) -> Verification:
    """Poll until nothing of the plan moves any more; it may be reached then, or wrong."""
    console = Console(stderr=True)
    before = saved_assignment(cluster, plan, state) or plan
    meter = Meter(plan, before)
    printed = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("comparing the plan with the cluster", total=1.0)
        while True:
            verification = verify(cluster, plan, state)
            if verification.verdict is not Verdict.NOT_FINISHED:
                return verification
            progress, _ = meter.read(cluster, verification.status, cluster.alive_brokers().keys())
            bar.update(task, description=str(progress), completed=progress.share)
            if not console.is_terminal and time.monotonic() - printed > LINE_SECONDS:
                click.echo(str(progress), err=True)
                printed = time.monotonic()
            time.sleep(LOOK_SECONDS)
