"""Plan a run on Spark: read its snapshot, place the chosen topics, check the plan, publish it.

    spark-submit compute_placement.py --run file:///.../RUN [--topics T,U] [--brokers 1,2] [--seed N]

Placement is Kafka's own: each topic is striped over the chosen brokers, racks alternating where all of them have one,
as ``kafka-reassign-partitions --generate`` does it. The start of each topic's stripe is drawn from the seed and the
topic's name, so that the same call gives the same plan, on one machine or on a hundred.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from rebalance_lib.artifacts import PLAN, SNAPSHOT, Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.placement import RackMode, assign_replicas
from rebalance_lib.plan import Plan, changes_only, current_assignment, verify_plan
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import Broker, Snapshot

PLACED = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("replicas", pa.list_(pa.int32()), nullable=False),
    ]
)
PLACED_DDL = "topic string, partition int, replicas array<int>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; errors are one clear line and exit code 1, and wrong input costs no Spark session."""
    options = _parse(arguments)
    run = Artifacts(options.run)
    try:
        snapshot = read_snapshot(run)
        topics = choose_topics(snapshot, options.topics)
        brokers = choose_brokers(snapshot, options.brokers)
        spark = SparkSession.builder.appName("kafka-rebalance compute_placement").getOrCreate()
        try:
            target = place(spark, run, topics, brokers, options.seed)
        finally:
            spark.stop()
        publish_plan(run / PLAN, checked(target, snapshot), snapshot)
    except RebalanceError as error:
        print(f"compute_placement: {error}", file=sys.stderr)
        return 1
    return 0


def read_snapshot(run: Artifacts) -> Snapshot:
    """The cluster as the run's snapshot saw it."""
    taken = run / SNAPSHOT
    return Snapshot.from_tables(taken.read_table("brokers.parquet"), taken.read_table("replicas.parquet"))


def place(spark: SparkSession, run: Artifacts, topics: list[str], brokers: list[Broker], seed: int) -> Plan:
    """The placement of these topics, each topic a task of its own."""
    replicas = spark.read.parquet(f"{run.uri}/{SNAPSHOT}/replicas.parquet").where(f.col("topic").isin(topics))
    return Plan.from_table(replicas.groupBy("topic").applyInArrow(striping(brokers, seed), PLACED_DDL).toArrow())


def checked(target: Plan, snapshot: Snapshot) -> Plan:
    """What of the placement differs from the cluster, if it breaks no rule."""
    before = current_assignment(snapshot)
    plan = changes_only(before, target)
    if violations := verify_plan(plan, brokers=snapshot.alive_brokers(), before=before):
        raise RebalanceError(f"the plan breaks {len(violations)} rules, nothing is published: {violations[0].message}")
    return plan


def choose_brokers(snapshot: Snapshot, ids: Sequence[int]) -> list[Broker]:
    """The brokers to place on: all that are alive, or the ones asked for if they are."""
    alive = {broker.id: broker for broker in snapshot.alive_brokers()}
    if unknown := sorted(set(ids) - set(alive)):
        raise InvalidInputError(f"brokers {unknown} are not alive in this cluster; alive are {sorted(alive)}")
    return [alive[id_] for id_ in sorted(set(ids) or alive)]


def choose_topics(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    """The topics to place: all but internal ones, or the ones asked for; none that is being reassigned now."""
    table = snapshot.replicas
    known = set(table["topic"].to_pylist())
    if unknown := sorted(set(names) - known):
        raise InvalidInputError(f"topics {unknown} are not in this cluster: check their names")
    internal = set(table.filter(table["internal"])["topic"].to_pylist())
    chosen = set(names) or known - internal
    moving = set(table.filter(pc.or_(table["adding"], table["removing"]))["topic"].to_pylist())
    if busy := sorted(chosen & moving):
        raise InvalidInputError(f"topics {busy} are being reassigned now: wait until that ends, or leave them out")
    return sorted(chosen)


def striping(brokers: list[Broker], seed: int) -> Callable[[pa.Table], pa.Table]:
    """Place one topic: runs in Spark's workers, on the rows of that topic."""

    def place(rows: pa.Table) -> pa.Table:
        topic = rows["topic"][0].as_py()
        partitions = sorted(set(rows["partition"].to_pylist()))
        first = rows.filter(pc.equal(rows["partition"], partitions[0]))
        placed = assign_replicas(
            brokers, len(partitions), first.num_rows, rack_mode=RackMode.SAFE, rng=seed ^ zlib.crc32(topic.encode())
        )
        return pa.table(
            {
                "topic": [topic] * len(partitions),
                "partition": partitions,
                "replicas": [placed[i] for i in range(len(partitions))],
            },
            schema=PLACED,
        )

    return place


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="URI of the run's artifacts; its snapshot must be there")
    parser.add_argument("--topics", type=_names, default=[], help="topics to place, with commas; default all")
    parser.add_argument("--brokers", type=_ids, default=[], help="brokers to place on, with commas; default all")
    parser.add_argument("--seed", type=int, default=0, help="start of the stripes; the same seed gives the same plan")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _ids(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"broker ids are numbers, with commas, not {text!r}") from error


if __name__ == "__main__":
    sys.exit(main())
