"""``kafka-rebalance list``."""

from __future__ import annotations

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Output, brokers_text

EXAMPLE = r"""
kafka-rebalance list --bootstrap-server kafka:9092
"""


@command("list", example=EXAMPLE)
@cluster_options
@output_option
def list_reassignments(*, connection: Connection, output: Output) -> None:
    """Show every reassignment under way, whoever started it."""
    with connection.open() as cluster:
        reassignments = sorted(cluster.reassignments().items())
    if not reassignments:
        output.say("No partition reassignments found.")
    else:
        output.table(
            "Current partition reassignments",
            ("partition", "replicas", "adding", "removing"),
            [
                (str(tp), brokers_text(entry.replicas), brokers_text(entry.adding), brokers_text(entry.removing))
                for tp, entry in reassignments
            ],
        )
    output.result(
        {
            "reassignments": [
                {
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "replicas": list(entry.replicas),
                    "adding": list(entry.adding),
                    "removing": list(entry.removing),
                }
                for tp, entry in reassignments
            ]
        }
    )
