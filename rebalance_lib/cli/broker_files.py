"""The files that say what the cluster does not know of its brokers: ``--capacities`` and ``--broker-sets``.

Each holds a section of the file of clusters, in YAML or JSON; `rebalance_lib.topology.capacities` says what it means.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import yaml

from rebalance_lib.cli.options import FILE, Command, read_text, with_options
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import BrokerSets, Capacities, ClusterFile


def broker_file_options(function: Command) -> Command:
    """Add ``--capacities`` and ``--broker-sets``."""
    options = [
        click.option(
            "--capacities",
            type=FILE,
            help="What brokers can take (disk, network_in, network_out, cpu), by broker, rack, default: YAML or JSON.",
        ),
        click.option(
            "--broker-sets", type=FILE, help="Sets of brokers, each with its ids and perhaps topics: YAML or JSON."
        ),
    ]
    return with_options(function, options)


def with_broker_files(cluster: ClusterFile, capacities: Path | None, broker_sets: Path | None) -> ClusterFile:
    """The cluster with what these files say of its brokers; errors name the file and the entry."""
    snapshot = cluster.snapshot
    for path, kind in ((capacities, Capacities), (broker_sets, BrokerSets)):
        if path is not None:
            try:
                snapshot = kind.from_dict(_read(path)).apply(snapshot)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error}") from error
    return replace(cluster, snapshot=snapshot)


class _Loader(yaml.SafeLoader):
    """YAML itself takes the last one of equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise InvalidInputError(
                    f"{key.value} is there twice, in line {key.start_mark.line + 1} again: keep one"
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _read(path: Path) -> object:
    text = read_text(path)
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise InvalidInputError(f"this is no YAML or JSON: {' '.join(str(error).split())}") from error
    except (RecursionError, ValueError) as error:  # such as a date that is none
        raise InvalidInputError(f"this cannot be read: {error}") from error
