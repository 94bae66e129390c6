"""``kafka-rebalance throttles``."""

from __future__ import annotations

from typing import Any

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Exit, Output, brokers_text
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution import restore_stale_throttles
from rebalance_lib.execution.throttles.config import ALL_RATES, REPLICA_LISTS
from rebalance_lib.execution.throttles.restore import Restored

EXAMPLE = r"""
kafka-rebalance throttles --bootstrap-server kafka:9092
kafka-rebalance throttles --bootstrap-server kafka:9092 --restore plan.json.state
"""


@command("throttles", example=EXAMPLE)
@cluster_options
@click.option("--restore", is_flag=True, help="Restore what runs in PLACES that died have left.")
@click.argument("places", nargs=-1)
@output_option
def throttles(*, connection: Connection, output: Output, restore: bool, places: tuple[str, ...]) -> None:
    """Show the replication throttles that are set on a cluster, or restore those that a run has left.

    PLACES are directories or URIs: a plan's .state directory, a run's artifacts, or a directory of runs. A run saves
    the throttles that were set before it in throttles.json there. They are restored only when none of its moves is
    under way any more. The throttle of a run that is under way is changed with `kafka-rebalance adjust`.
    """
    if restore and not places:
        raise click.UsageError("say where the run keeps its artifacts: its .state directory, or a directory of runs")
    if places and not restore:
        raise click.UsageError("PLACES are for --restore; without it, the throttles of the cluster are shown")
    with connection.open() as cluster:
        if restore:
            restored: dict[str, Restored] = {}
            for place in places:
                if not Artifacts.named(place).names():
                    raise InvalidInputError(f"{place} is not there, or empty: give a run's directory, or one of runs")
                restored |= restore_stale_throttles(cluster, Artifacts.named(place))
            _print_restored(output, restored)
            code = Exit.NOT_FINISHED if any(one.left for one in restored.values()) else Exit.DONE
        else:
            _show(output, cluster)
            code = Exit.DONE
    click.get_current_context().exit(code)


def _print_restored(output: Output, restored: dict[str, Restored]) -> None:
    if not restored:
        output.say("Nothing to restore: no run there has left throttles on this cluster")
    for uri, one in restored.items():
        output.say(f"{uri}: {one}")
    output.result(
        {uri: {"topics": one.topics, "brokers": one.brokers, "left": one.left} for uri, one in restored.items()}
    )


def _show(output: Output, cluster: Cluster) -> None:
    alive = cluster.alive_brokers().keys()
    rates = cluster.broker_configs(sorted(alive), ALL_RATES)
    if silent := sorted(alive - rates.keys()):
        output.remark(f"Brokers {brokers_text(silent)} do not answer: their rates are not shown")
    topics = {tp.topic for tp in cluster.partitions()}
    lists = {topic: found for topic, found in cluster.topic_configs(topics, REPLICA_LISTS).items() if found}
    rows = [
        (str(broker), key, value.value, value.source) for broker, found in rates.items() for key, value in found.items()
    ]
    if rows:
        output.table("Rates, in bytes/s", ("broker", "setting", "value", "source"), rows)
    else:
        output.say("No broker has a throttle rate")
    if lists:
        output.table(
            "Throttled replicas",
            ("topic", "setting", "replicas"),
            [(topic, key, value.value) for topic, found in sorted(lists.items()) for key, value in found.items()],
        )
    else:
        output.say("No topic has throttled replicas")
    document: dict[str, Any] = {
        "brokers": {
            str(broker): {key: {"value": value.value, "source": value.source} for key, value in found.items()}
            for broker, found in rates.items()
        },
        "topics": {topic: {key: value.value for key, value in found.items()} for topic, found in lists.items()},
    }
    output.result(document)
