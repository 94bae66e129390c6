"""Where a plan's cluster is read from, and where its files go."""

from __future__ import annotations

from pathlib import Path

from rebalance_lib.artifacts import GROUPS, RATES, SNAPSHOT, Artifacts, read_checked_snapshot, read_groups
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import ClusterFile, parse_cluster

FILES = {
    "plan.json",
    "candidates",
    "moves.parquet",
    "brokers_before_after.parquet",
    GROUPS,
    RATES,
    "summary.json",
    "review.md",
}


def read_cluster(place: str) -> ClusterFile:
    """A snapshot directory, a run that has one, or a cluster's JSON file."""
    file = Path(place)
    if "://" not in place and file.is_file():
        try:
            return parse_cluster(file.read_bytes())
        except OSError as error:
            raise InvalidInputError(f"{place} cannot be read: {error.strerror}") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: {error}") from error
    found = Artifacts.named(place)
    for directory in (found, found / SNAPSHOT):
        if directory.exists("brokers.parquet"):
            snapshot, groups = read_checked_snapshot(directory), read_groups(directory)
            return ClusterFile(snapshot, targets=None, add=(), remove=(), groups=groups)
    raise InvalidInputError(
        f"there is no snapshot at {place}: give a directory that kafka-rebalance snapshot --out wrote, the URI of a "
        "run, or a cluster's JSON file"
    )


def free_for_plans(out: Artifacts) -> None:
    """Refuse a directory that holds anything but an earlier plan: what is there will be replaced."""
    if foreign := sorted(set(out.names()) - FILES):
        raise InvalidInputError(
            f"{out.uri} has {foreign[0]!r} in it, and would be replaced as a whole: give a new directory, or that of "
            "an earlier plan"
        )
