"""``kafka-rebalance add-partitions``."""

from __future__ import annotations

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.create_assignment import rack_mode_option
from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Output, brokers_text, plan_document, plan_line
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution.commands.plan_state import live_assignment
from rebalance_lib.placement import RackMode, parse_replica_assignment
from rebalance_lib.placement import add_partitions as place
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

EXAMPLE = r"""
kafka-rebalance add-partitions --bootstrap-server kafka:9092 --topic orders --partitions 12
kafka-rebalance add-partitions --bootstrap-server kafka:9092 --topic orders --partitions 12 --execute
"""


@command("add-partitions", example=EXAMPLE)
@cluster_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--partitions", type=int, required=True, help="How many partitions it shall have altogether.")
@click.option(
    "--replica-assignment",
    help="Place them by hand, for all partitions as kafka-topics --alter takes it; entries of existing ones are passed "
    "over.",
)
@rack_mode_option
@click.option("--execute", "really", is_flag=True, help="Add them; without this, only show where they would go.")
@output_option
def add_partitions(
    *,
    connection: Connection,
    output: Output,
    topic: str,
    partitions: int,
    replica_assignment: str | None,
    rack_mode: str,
    really: bool,
) -> None:
    """Give a topic more partitions; shows where they would go, and adds them with --execute.

    They are placed as Kafka did it before version 4: the stripes of the topic go on from partition 0's first replica.
    Records with a key may go to another partition afterwards, and partitions cannot be taken away again.
    """
    by_hand = None if replica_assignment is None else parse_replica_assignment(replica_assignment)
    with connection.open() as cluster:
        live = cluster.partitions([topic])
        if not live:
            raise InvalidInputError(f"Topic {topic} not found.")
        existing = live_assignment(cluster, live, cluster.reassignments())
        added = place(
            topic,
            {tp.partition: replicas for tp, replicas in existing.as_dict().items()},
            cluster.alive_brokers().values(),
            partitions,
            replica_assignment=by_hand,
            rack_mode=RackMode(rack_mode),
        )
        plan = Plan.from_assignment({TopicPartition(topic, number): replicas for number, replicas in added.items()})
        cluster.create_partitions(topic, partitions, list(added.values()), validate_only=not really)
    output.table(
        f"New partitions of {topic}",
        ("partition", "replicas"),
        [(str(number), brokers_text(replicas)) for number, replicas in added.items()],
    )
    output.say(plan_line(plan))
    done = f"{topic} has {partitions} partitions now" if really else "Nothing was changed; add --execute to add them"
    output.remark(done)
    output.result({"topic": topic, "partitions": partitions, "executed": really, "added": plan_document(plan)})
