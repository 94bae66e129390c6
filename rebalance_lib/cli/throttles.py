"""``kafka-rebalance throttles``."""

from __future__ import annotations

from typing import Any

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Exit, Output
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution import restore_stale_throttles
from rebalance_lib.execution.throttles.apply import request_rate
from rebalance_lib.execution.throttles.config import ALL_RATES, REPLICA_LISTS
from rebalance_lib.execution.throttles.restore import Restored
from rebalance_lib.execution.throttles.saved import stale_throttles

EXAMPLE = r"""
kafka-rebalance throttles --bootstrap-server kafka:9092
kafka-rebalance throttles --bootstrap-server kafka:9092 --restore plan.json.state
kafka-rebalance throttles --bootstrap-server kafka:9092 --set 90000000 plan.json.state   # while it runs
"""


@command("throttles", example=EXAMPLE)
@cluster_options
@click.option("--restore", is_flag=True, help="Put back what the runs in PLACES left because they died.")
@click.option("--set", "rate", type=click.IntRange(min=1), help="Ask the run in PLACES for another rate, in bytes/s.")
@click.argument("places", nargs=-1)
@output_option
def throttles(
    *, connection: Connection, output: Output, restore: bool, rate: int | None, places: tuple[str, ...]
) -> None:
    """Show the replication throttles that stand on a cluster; restore or change those of a run.

    PLACES are directories or URIs: a plan's .state directory, a run's artifacts, or a directory of runs. A run saves
    what stood before it in throttles.json there. It is put back only when none of its moves is under way any more.
    """
    if (restore or rate is not None) and not places:
        raise click.UsageError("say where the run keeps its artifacts: its .state directory, or a directory of runs")
    if rate is not None:
        for place in places:
            request_rate(_run(place), rate, "kafka-rebalance throttles")
            output.say(f"The run in {place} sets {rate} bytes/s at its next check")
        output.result({"rate": rate, "places": list(places)})
        return
    with connection.open() as cluster:
        if restore:
            restored: dict[str, Restored] = {}
            for place in places:
                if not Artifacts.named(place).names():
                    raise InvalidInputError(f"{place} is not there, or empty: give a run's directory, or one of runs")
                restored |= restore_stale_throttles(cluster, Artifacts.named(place))
            _tell_restored(output, restored)
            code = Exit.NOT_FINISHED if any(one.left for one in restored.values()) else Exit.DONE
        else:
            _show(output, cluster)
            code = Exit.DONE
    click.get_current_context().exit(code)


def _run(place: str) -> Artifacts:
    directory = Artifacts.named(place)
    if not stale_throttles(directory):
        raise InvalidInputError(
            f"{place} holds no throttles of a run: give the .state directory, or the run's artifacts"
        )
    return directory


def _tell_restored(output: Output, restored: dict[str, Restored]) -> None:
    if not restored:
        output.say("Nothing to put back: no run there left throttles on this cluster")
    for uri, one in restored.items():
        output.say(f"{uri}: {one}")
    output.result(
        {uri: {"topics": one.topics, "brokers": one.brokers, "left": one.left} for uri, one in restored.items()}
    )


def _show(output: Output, cluster: Cluster) -> None:
    rates = {broker: cluster.broker_config(broker, ALL_RATES) for broker in sorted(cluster.alive_brokers())}
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
