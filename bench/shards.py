"""Clusters planned in shards beside the same planned as a whole: how near to each goal, and at what cost.

    python -m bench.shards
    python -m bench.shards --sizes 100000:100,300000:300 --shards 2,4,8,16 --scenarios skew,expand
    python -m bench.shards --memory 100000:1000,250000:1000

Per cluster and number of shards: what the full plan comes to in each goal, over what the whole one's does, with what is
above the bar marked; bytes that it copies over those of the whole plan; which part of the partitions is in the sample
that the join has; and seconds on a processor: of all candidates planned as a whole, of one shard and of the join.

With ``--memory``, one shard of so many partitions and brokers is planned from its rows, with topic names of 75
characters, by a process of its own: its seconds on a processor, and the most memory it held.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa

from bench.clusters import Parameters, generate
from bench.document import table
from rebalance_lib.planner import Candidate, ClusterModel, Mode, Request, Scope, shard_join
from rebalance_lib.planner.candidates import FULL, all_candidates
from rebalance_lib.planner.goals import GOALS
from rebalance_lib.planner.shard_tables import ShardInput, shard_tables, summed, totals_of

MODES = {"skew": Mode.BALANCE, "expand": Mode.EXPAND, "steady": Mode.BALANCE}
COLUMNS = ("disk", "network_in", "replicas", "leaders", "network_out", "topic_leaders", "failover", "topic_replicas")
BAR = 1.005
NAME = 75


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare plans made in shards with whole ones.")
    parser.add_argument("--sizes", default="100000:100", help="PARTITIONS:BROKERS, with commas")
    parser.add_argument("--shards", default="2,4,8,16")
    parser.add_argument("--scenarios", default="skew,expand")
    parser.add_argument("--plain", action="store_true", help="only clusters without rates and capacities")
    parser.add_argument("--memory", help="shards of PARTITIONS:BROKERS, with commas: seconds and memory of each")
    parser.add_argument("--one-shard", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_shard:
        print(*one_shard(*map(int, options.one_shard.split(":"))))
        return
    if options.memory:
        print(memory_table(options.memory.split(",")))
        return
    counts = [int(count) for count in options.shards.split(",")]
    rows = []
    for scenario in options.scenarios.split(","):
        for size in options.sizes.split(","):
            for known in (False,) if options.plain else (False, True):
                partitions, brokers = map(int, size.split(":"))
                drawn = Parameters(
                    scenario=scenario, partitions=partitions, brokers=brokers, rates=known, capacities=known
                )
                rows += compared(drawn, counts)
    print(table(("cluster", "shards", *COLUMNS, "bytes", "sampled", "whole s", "shard s", "join s"), rows))


def compared(drawn: Parameters, counts: list[int]) -> list[tuple[str, ...]]:
    """A row for the whole plan, with its measures, and one for each number of shards, with theirs over these."""
    cluster = generate(drawn)
    model, request = ClusterModel.of(cluster.snapshot(), cluster.loads()), Request(MODES[drawn.scenario])
    name = f"{drawn.scenario}, {drawn.partitions:,}{', rates' if drawn.rates else ''}"
    begun = time.process_time()
    whole = full(model, request)
    seconds = time.process_time() - begun
    measured = measures(whole, request)
    rows = [
        (name, "1", *(f"{value:.3f}" if value else "-" for value in measured), "1", "-", f"{seconds:.1f}", "-", "-")
    ]
    for count in counts:
        with Watched() as watched:
            parts = full(model, replace(request, shards=count))
        over = [
            ours / theirs if ours and theirs else None
            for ours, theirs in zip(measures(parts, request), measured, strict=True)
        ]
        cells = ("-" if one is None else f"**{one:.4f}**" if one > BAR else f"{one:.4f}" for one in over)
        copied = parts.figures.bytes_moved / max(1, whole.figures.bytes_moved)
        spent = (f"{watched.shards / count:.2f}", f"{watched.join:.2f}")
        sampled = f"{watched.sampled / model.partitions:.2f}"
        rows.append((name, str(count), *cells, f"{copied:.4f}", sampled, "-", *spent))
    return rows


def full(model: ClusterModel, request: Request) -> Candidate:
    """The full plan, of all candidates that are worked out."""
    found = all_candidates(model, Scope.of(model, request), request)
    return next(one for one in found if one.name == FULL)


def measures(one: Candidate, request: Request) -> list[float | None]:
    view = one.outcome.views(request)[1]
    return [view.measure(GOALS[name]) for name in COLUMNS]


class Watched:
    """Seconds on a processor of shards and of their join, and how many partitions were sampled."""

    def __init__(self) -> None:
        self.shards = self.join = 0.0
        self.sampled = 0

    def __enter__(self) -> Self:
        plan_shard, join_shards = shard_join.plan_shard, shard_join.join_shards

        def plan(*arguments: Any) -> Any:
            begun = time.process_time()
            found = plan_shard(*arguments)
            self.shards += time.process_time() - begun
            self.sampled += len(found.sample)
            return found

        def join(*arguments: Any) -> Any:
            begun = time.process_time()
            found = join_shards(*arguments)
            self.join += time.process_time() - begun
            return found

        self.patches = patch.multiple(shard_join, plan_shard=plan, join_shards=join)
        self.patches.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.patches.stop()


def memory_table(sizes: list[str]) -> str:
    rows = []
    for size in sizes:
        command = [sys.executable, "-m", "bench.shards", "--one-shard", size]
        before, after, seconds, partitions = map(float, subprocess.check_output(command).split())
        each = (after - before) / partitions * 1e6
        rows.append(
            (
                size,
                f"{before:.0f}",
                f"{after:.0f}",
                f"{each:.0f}",
                f"{seconds:.1f}",
                f"{seconds / partitions * 1e6:.1f}",
            )
        )
    return table(("shard", "MB before", "MB at most", "bytes a partition", "seconds", "microseconds a partition"), rows)


def one_shard(partitions: int, brokers: int) -> tuple[float, float, float, int]:
    """Memory of a process with a shard's rows, at most, and the seconds that planning it from them took."""
    warm = Parameters(scenario="skew", partitions=2_000, brokers=30, rates=True)
    planned(warm)
    return planned(Parameters(scenario="skew", partitions=partitions, brokers=brokers, rates=True, capacities=True))


def planned(drawn: Parameters) -> tuple[float, float, float, int]:
    cluster, request = generate(drawn), Request(Mode.BALANCE)
    long = pa.array([name.ljust(NAME, "x") for name in cluster.topics.to_pylist()], pa.string())
    cluster = replace(cluster, topics=long)
    shard = ShardInput(cluster.snapshot(), cluster.loads())
    del cluster
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begun = time.process_time()
    totals = summed([totals_of(shard, request)] * 4)  # as one of four
    shard_tables(shard, request, totals, 4)
    return (
        before,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        time.process_time() - begun,
        drawn.partitions,
    )


if __name__ == "__main__":
    main()
