"""The options that say which cluster a command is about."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rebalance_lib.cli.options import FILE, Command, read_text
from rebalance_lib.cluster import Cluster, client_settings, read_properties


@dataclass(frozen=True, slots=True)
class Connection:
    """Which cluster, and how to reach it."""

    bootstrap_server: str
    command_config: Path | None

    def open(self) -> Cluster:
        """Connect; use it as a context manager."""
        settings: dict[str, Any] = {}
        if self.command_config is not None:
            settings = client_settings(read_properties(read_text(self.command_config)))
        servers = [server.strip() for server in self.bootstrap_server.split(",") if server.strip()]
        if not servers:
            raise click.BadParameter("give host:port, with commas for more", param_hint="--bootstrap-server")
        return Cluster({**settings, "bootstrap_servers": servers})


def cluster_options(function: Command) -> Command:
    """Add the options that say which cluster, and hand the function a `Connection`."""

    @click.option("--bootstrap-server", required=True, help="Brokers to connect to: host:port, with commas for more.")
    @click.option(
        "--command-config", type=FILE, help="Client settings, a properties file as Kafka's own tools read it."
    )
    @functools.wraps(function)
    def wrapped(*arguments: Any, bootstrap_server: str, command_config: Path | None, **options: Any) -> Any:
        return function(*arguments, connection=Connection(bootstrap_server, command_config), **options)

    return wrapped
