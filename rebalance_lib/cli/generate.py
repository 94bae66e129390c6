"""``kafka-rebalance generate``."""

from __future__ import annotations

from pathlib import Path

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import FILE, broker_ids, command, output_option, read_text, write_text
from rebalance_lib.cli.output import Output, plan_document, plan_line
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution.commands.plan_state import live_assignment
from rebalance_lib.placement import brokers_to_place_on, propose
from rebalance_lib.plan import Plan, diff, format_plan, parse_topics_to_move

EXAMPLE = r"""
echo '{"version":1,"topics":[{"topic":"orders"}]}' > topics.json
kafka-rebalance generate --bootstrap-server kafka:9092 \
    --topics-to-move-json-file topics.json --broker-list 1,2,3 --out plan.json
"""


@command("generate", example=EXAMPLE)
@cluster_options
@click.option(
    "--topics-to-move-json-file",
    type=FILE,
    required=True,
    help='The topics: {"version":1,"topics":[{"topic":"orders"}]}.',
)
@click.option("--broker-list", required=True, help="The brokers to place on: 0,1,2.")
@click.option("--disable-rack-aware", is_flag=True, help="Place as if no broker had a rack.")
@click.option("--seed", type=int, help="Where the random placement starts; the same seed gives the same proposal.")
@click.option("--out", type=FILE, help="Also write the proposal to this file, as execute and Kafka's tool read it.")
@output_option
def generate(
    *,
    connection: Connection,
    output: Output,
    topics_to_move_json_file: Path,
    broker_list: str,
    disable_rack_aware: bool,
    seed: int | None,
    out: Path | None,
) -> None:
    """Propose a new placement of topics on a list of brokers; nothing is changed.

    Prints the current and the proposed assignment under Kafka's own headings. The proposal is Kafka's: each topic is
    placed anew, which moves most of it.
    """
    wanted = broker_ids(broker_list, "--broker-list")
    topics = parse_topics_to_move(read_text(topics_to_move_json_file))
    with connection.open() as cluster:
        brokers, absent = brokers_to_place_on(wanted, cluster.alive_brokers(), rack_aware=not disable_rack_aware)
        live = cluster.partitions(topics)
        if missing := sorted(set(topics) - {tp.topic for tp in live}):
            raise InvalidInputError(f"Topic {missing[0]} not found.")
        current = live_assignment(cluster, live, cluster.reassignments())
    proposed = Plan.from_assignment(propose(current.as_dict(), brokers, rng=seed))
    changes = diff(current, proposed)
    output.say(f"Current partition replica assignment\n{plan_line(current)}\n")
    output.say(f"Proposed partition reassignment configuration\n{plan_line(proposed)}")
    if absent:
        output.remark(f"left out of the broker list, because they are not alive: {absent}")
    output.remark(
        f"{changes.partitions_changed} of {len(proposed)} partitions change: {changes.replicas_moved} replicas move, "
        f"{changes.leaders_moved} preferred leaders change"
    )
    if out is not None:
        write_text(out, format_plan(proposed))
        output.remark(f"the proposal is in {out}")
    output.result(
        {
            "current": plan_document(current),
            "proposed": plan_document(proposed),
            "brokers_left_out": absent,
            "partitions_changed": changes.partitions_changed,
            "replicas_moved": changes.replicas_moved,
            "leaders_moved": changes.leaders_moved,
        }
    )
