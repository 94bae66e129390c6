"""``kafka-rebalance create-assignment``."""

from __future__ import annotations

from pathlib import Path

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import FILE, broker_ids, command, output_option, write_text
from rebalance_lib.cli.output import Output, brokers_text, plan_document, plan_line
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.placement import (
    RackMode,
    assign_replicas,
    check_replica_assignment,
    format_replica_assignment,
    parse_replica_assignment,
    place_replicas,
)
from rebalance_lib.placement.brokers import brokers_in_mode
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.topology import Broker, TopicPartition

rack_mode_option = click.option(
    "--rack-mode",
    type=click.Choice([mode.value for mode in RackMode]),
    default=RackMode.ENFORCED.value,
    show_default=True,
    help="Whether racks count: they must be known of all brokers or of none; never; only if known of all.",
)


EXAMPLE = r"""
kafka-rebalance create-assignment --bootstrap-server kafka:9092 --topic orders \
    --partitions 6 --replication-factor 3 --strategy striped --start-index 0
kafka-rebalance create-assignment --bootstrap-server kafka:9092 --topic orders \
    --replica-assignment 1:2,2:3
"""


@command("create-assignment", example=EXAMPLE)
@cluster_options
@click.option("--topic", required=True, help="The topic to be.")
@click.option("--partitions", type=int, help="How many partitions.")
@click.option("--replication-factor", type=int, help="How many replicas of each.")
@click.option(
    "--strategy",
    type=click.Choice(["kraft", "striped"]),
    default="kraft",
    show_default=True,
    help="As the controller of Kafka 4 places, or as Kafka's tools did before.",
)
@rack_mode_option
@click.option("--broker-list", help="Place on these brokers only: 0,1,2.")
@click.option("--start-index", type=int, help="Where striping starts; at random without it.")
@click.option("--seed", type=int, help="Seed of what is drawn at random.")
@click.option("--replica-assignment", help="Check this placement by hand instead: 0:1:2,1:2:3.")
@click.option("--out", type=FILE, help="Also write the reassignment JSON to this file.")
@output_option
def create_assignment(
    *,
    connection: Connection,
    output: Output,
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    strategy: str,
    rack_mode: str,
    broker_list: str | None,
    start_index: int | None,
    seed: int | None,
    replica_assignment: str | None,
    out: Path | None,
) -> None:
    """Place the partitions of a topic that does not exist yet; nothing is changed.

    Prints the placement as kafka-topics --create --replica-assignment takes it, and as reassignment JSON.
    """
    by_hand = replica_assignment is not None
    if by_hand == (partitions is not None or replication_factor is not None):
        raise click.UsageError("give --partitions and --replication-factor, or --replica-assignment")
    if not by_hand and (partitions is None or replication_factor is None):
        raise click.UsageError("--partitions and --replication-factor go together")
    if start_index is not None and strategy != "striped":
        raise click.UsageError("--start-index is striping's; add --strategy striped, or use --seed")
    with connection.open() as cluster:
        brokers = _chosen(cluster.alive_brokers(), broker_list)
        if cluster.partitions([topic]):
            raise InvalidInputError(f"Topic '{topic}' already exists; use add-partitions, or another name")
    if replica_assignment is not None:
        assignment = parse_replica_assignment(replica_assignment)
        check_replica_assignment(assignment, brokers)
    elif strategy == "striped":
        assignment = assign_replicas(
            sorted(brokers, key=lambda broker: broker.id),
            partitions or 0,
            replication_factor or 0,
            start_index=start_index,
            rack_mode=RackMode(rack_mode),
            rng=seed,
        )
    else:
        usable = brokers_in_mode(brokers, RackMode(rack_mode))
        assignment = place_replicas(usable, partitions or 0, replication_factor or 0, rng=seed)
    show_assignment(output, topic, assignment, brokers, out)


def show_assignment(
    output: Output, topic: str, assignment: dict[int, list[int]], brokers: list[Broker], out: Path | None
) -> None:
    """The placement as a table, as text for kafka-topics and as JSON."""
    plan = Plan.from_assignment({TopicPartition(topic, number): replicas for number, replicas in assignment.items()})
    racks = {broker.id: broker.rack or "-" for broker in brokers}
    output.table(
        f"Assignment of {topic}",
        ("partition", "replicas", "racks"),
        [
            (str(number), brokers_text(replicas), ",".join(racks[broker] for broker in replicas))
            for number, replicas in assignment.items()
        ],
    )
    text = format_replica_assignment(assignment)
    output.say(f"For kafka-topics --create\n--replica-assignment {text}\n")
    output.say(f"As reassignment JSON\n{plan_line(plan)}")
    if out is not None:
        write_text(out, format_plan(plan))
        output.remark(f"the reassignment JSON is in {out}")
    output.result({"topic": topic, "replica_assignment": text, "reassignment": plan_document(plan)})


def _chosen(alive: dict[int, Broker], broker_list: str | None) -> list[Broker]:
    if broker_list is None:
        return [alive[broker] for broker in sorted(alive)]
    wanted = broker_ids(broker_list, "--broker-list")
    if unknown := sorted(set(wanted) - set(alive)):
        raise InvalidInputError(f"Unknown broker id {unknown[0]}: the brokers alive are {sorted(alive)}")
    return [alive[broker] for broker in wanted]
