"""The command and its subcommands; each of them is a module of its own."""

from __future__ import annotations

import json
import sys
from importlib import import_module

import click

from rebalance_lib import __version__
from rebalance_lib.cli.options import AS_JSON, epilog
from rebalance_lib.cli.output import Exit
from rebalance_lib.errors import RebalanceError

# In the order in which they are used. Each is imported when it is used: Kafka's client and the planner's compiler
# take longer to import than most commands to run.
COMMANDS = {
    "snapshot": "snapshot.snapshot",
    "groups": "groups.groups",
    "plan": "plan.plan",
    "simulate": "simulate.simulate",
    "run": "run.run",
    "pause": "requests.pause",
    "resume": "requests.resume",
    "adjust": "requests.adjust",
    "throttles": "throttles.throttles",
    "generate": "generate.generate",
    "execute": "execute.execute",
    "verify": "verify.verify",
    "cancel": "cancel.cancel",
    "list": "list.list_reassignments",
    "create-assignment": "create_assignment.create_assignment",
    "add-partitions": "add_partitions.add_partitions",
    "compile": "compile.compile_loops",
}


class Group(click.Group):
    """A group whose subcommands end with one clear message, not a traceback, where the project says what is wrong."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The subcommands in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """A subcommand by its name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(".")
        found: click.Command = getattr(import_module(f"rebalance_lib.cli.{module}"), name)
        return found

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

    snapshot, plan, simulate and run are a rebalance from end to end: run executes the plan until it is completed, and
    pause, resume, adjust and cancel change a run while it is under way. generate, execute, verify, cancel and list take
    the files and options of kafka-reassign-partitions, and can be used in its place. The workflow with its review runs
    in Airflow, as the DAG kafka_rebalance.
    """
