"""The command and its subcommands; each of them is a module of its own."""

from __future__ import annotations

import json
import sys

import click

from rebalance_lib import __version__
from rebalance_lib.cli.add_partitions import add_partitions
from rebalance_lib.cli.cancel import cancel
from rebalance_lib.cli.create_assignment import create_assignment
from rebalance_lib.cli.execute import execute
from rebalance_lib.cli.generate import generate
from rebalance_lib.cli.list import list_reassignments
from rebalance_lib.cli.options import AS_JSON, epilog
from rebalance_lib.cli.output import Exit
from rebalance_lib.cli.snapshot import snapshot
from rebalance_lib.cli.verify import verify
from rebalance_lib.errors import RebalanceError


class Group(click.Group):
    """A group whose subcommands end with one clear message, not with a traceback, where the project says what is wrong.

    Subcommands are listed in the order in which they are used.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The subcommands as they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand."""
        try:
            return super().invoke(ctx)
        except RebalanceError as error:
            click.echo(f"kafka-rebalance: {error}", err=True)
            if ctx.meta.get(AS_JSON):
                click.echo(json.dumps({"error": str(error)}))
            sys.exit(Exit.ERROR)


EXAMPLE = r"""
kafka-rebalance generate --bootstrap-server kafka:9092 \
    --topics-to-move-json-file topics.json --broker-list 1,2,3 --out plan.json
kafka-rebalance execute --bootstrap-server kafka:9092 \
    --reassignment-json-file plan.json --throttle 50000000
kafka-rebalance verify --bootstrap-server kafka:9092 --reassignment-json-file plan.json --wait
"""


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=epilog(EXAMPLE))
@click.version_option(__version__, prog_name="kafka-rebalance")
def main() -> None:
    """Rebalance Apache Kafka clusters by hand.

    generate, execute, verify, cancel and list take the files and options of kafka-reassign-partitions, and can be used
    in its place. The workflow with its review runs in Airflow, as the DAG kafka_rebalance.
    """


for subcommand in (
    snapshot,
    generate,
    execute,
    verify,
    cancel,
    list_reassignments,
    create_assignment,
    add_partitions,
):
    main.add_command(subcommand)
