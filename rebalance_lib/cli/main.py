"""The command and its groups; each subcommand is a module of its own."""

from __future__ import annotations

import sys

import click

from rebalance_lib import __version__
from rebalance_lib.cli.snapshot import snapshot
from rebalance_lib.errors import RebalanceError


class Group(click.Group):
    """A group whose subcommands end with one clear line, not with a traceback, where the project says what is wrong."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except RebalanceError as error:
            click.echo(f"kafka-rebalance: {error}", err=True)
            sys.exit(1)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kafka-rebalance")
def main() -> None:
    """Rebalance Apache Kafka clusters.

    The workflow itself runs in Airflow, as the DAG kafka_rebalance; these commands look at a cluster by hand.
    """


main.add_command(snapshot)
