"""What one small cluster of a fleet costs a worker, by stage: many of them, one after another in one warm process.

    python -m bench.small_clusters
    python -m bench.small_clusters --clusters 20 --variants rates
    python -m bench.small_clusters --clusters 20 --variants plain --profile 40

Clusters are those of ``bench.scaling``'s fleet, 10,000 partitions on 30 brokers, each with a seed of its own: plain,
with rates, or with rates and 20 consumer groups. Each is read from Parquet, checked, modelled, planned for all its
candidates, certified, checked by the verifier, and its choice is written, as the command line and a Spark worker do it.
The first cluster of a variant is not counted: it warms up.

Seconds are on a processor, so that they say the same whatever else the machine does. With ``--profile``, so many
functions that took the longest follow, by their own time and with what they call.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.cluster_json import Cluster
from bench.clusters import Parameters, generate, write_snapshot
from bench.document import table
from rebalance_lib.artifacts import RATES, Artifacts, read_checked_snapshot, read_groups, write_groups
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import candidate, names, undominated
from rebalance_lib.planner.certified import certificate_of
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.report import with_groups, write_choice
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups

PARTITIONS, BROKERS = 10_000, 30
GROUPS, MEMBERS, TOPICS = 20, 8, 10
VARIANTS = ("plain", "rates", "groups")


class Stages:
    """Seconds on a processor by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count what is done meanwhile."""
        begun = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description="Time small clusters, one after another.")
    parser.add_argument("--clusters", type=int, default=10, help="how many of each variant are counted (10)")
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--profile", type=int, default=0, help="how many functions of a profile to print")
    options = parser.parse_args()
    profile = cProfile.Profile() if options.profile else None
    columns = {variant: measure(variant, options.clusters, profile) for variant in options.variants.split(",")}
    stages = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [[name, *(_milliseconds(column.get(name)) for column in columns.values())] for name in stages]
    rows.append(["all", *(_milliseconds(sum(column.values())) for column in columns.values())])
    print(f"ms on a processor for each cluster, the mean of {options.clusters}\n")
    print(table(["stage", *columns], rows))
    if profile is not None:
        for order in ("tottime", "cumtime"):
            pstats.Stats(profile).sort_stats(order).print_stats(options.profile)


def measure(variant: str, count: int, profile: cProfile.Profile | None = None) -> dict[str, float]:
    """By stage: the mean seconds of clusters of one variant."""
    with tempfile.TemporaryDirectory() as directory:
        runs = [_written(variant, seed, Path(directory) / str(seed)) for seed in range(1, count + 2)]
        plan(runs[0], Stages())
        stages = Stages()
        if profile is not None:
            profile.enable()
        for run in runs[1:]:
            plan(run, stages)
        if profile is not None:
            profile.disable()
    return {name: seconds / count for name, seconds in stages.seconds.items()}


def plan(run: Artifacts, stages: Stages) -> None:
    """All that is done for one cluster."""
    request = Request(Mode.BALANCE)
    with stages("read"):
        snapshot = read_checked_snapshot(run)
        loads = run.read_table(RATES) if run.exists(RATES) else None
        groups = read_groups(run)
    with stages("model"):
        model = ClusterModel.of(snapshot, loads)
        scope = Scope.of(model, request)
    found = []
    for name in names(request):
        with stages(f"candidate {name}"):
            found.append(candidate(model, scope, request, name))
    with stages("compare candidates"):
        kept = undominated(found, request)
    with stages("certificate"):
        certificate = certificate_of(model, scope, request)
    with stages("verify"):
        check_candidates(model, request, kept)
    choice = Choice(model, request, kept, rates=loads, certificate=certificate)
    with stages("groups"):
        choice = with_groups(choice, groups)
    with stages("write"):
        write_choice(run / "plan", choice)


def consumer_groups(cluster: Cluster) -> Groups:
    """Groups that read ten topics each, with partitions shared out in turn, and have read all but a few records."""
    rng = np.random.default_rng([cluster.seed, 9])
    width = np.bincount(cluster.topic)
    members, offsets = list[dict[str, object]](), list[dict[str, object]]()
    for number in range(GROUPS):
        read = sorted(rng.choice(len(width), TOPICS, replace=False).tolist())
        topics = [cluster.topics[topic].as_py() for topic in read]
        group = f"group-{number:02d}"
        for member in range(MEMBERS):
            owned = [range(member, width[topic], MEMBERS) for topic in read]
            assignment = [
                {"topic": topic, "partitions": list(own)} for topic, own in zip(topics, owned, strict=True) if own
            ]
            names = {"group": group, "type": "classic", "state": "Stable", "assignor": "range"}
            client = {"member": f"m-{member}", "client_id": "c", "host": "/10.0.0.1", "rack": f"r{member % 3}"}
            members.append({**names, **client, "topics": topics, "assignment": assignment})
        offsets += [
            {"group": group, "topic": topic, "partition": partition, "committed": 1}
            for topic, number in zip(topics, read, strict=True)
            for partition in range(width[number])
        ]
    return Groups(*(pa.Table.from_pylist(*rows) for rows in ((members, GROUP_MEMBERS), (offsets, GROUP_OFFSETS))))


def _written(variant: str, seed: int, directory: Path) -> Artifacts:
    """A cluster in the files of a snapshot."""
    rates = variant != "plain"
    cluster = generate(Parameters(scenario="skew", partitions=PARTITIONS, brokers=BROKERS, seed=seed, rates=rates))
    write_snapshot(cluster, directory)
    run = Artifacts.at(directory)
    if (loads := cluster.loads()) is not None:
        run.write_table(RATES, loads)
    if variant == "groups":
        write_groups(run, consumer_groups(cluster))
    return run


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f}"


if __name__ == "__main__":
    main()
