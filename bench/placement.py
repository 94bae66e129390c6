"""Placement of 1,000,000 partitions over 1,000 brokers, beside Kafka's own Java in the same run.

    python -m bench.placement

Both sides place the same partitions, several times over in one process, and the best time counts. The two
results are compared replica by replica before anything is timed. Needs Java and Maven.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rebalance_lib.placement import assign_replicas, assign_replicas_array, place_replicas
from rebalance_lib.topology import Broker
from tests.java.reference import ADMIN_UTILS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JAVA = replace(ADMIN_UTILS, options=("-Xmx4g",))
START = 7
REPLICATION_FACTOR = 3
RACKS_OF_A_THOUSAND = {
    "no racks": (1000,),
    "3 racks": (334, 333, 333),
    "10 racks": (100,) * 10,
    "50 racks": (20,) * 50,
    "uneven: 450, 450, 100": (450, 450, 100),
    "uneven: 998, 1, 1": (998, 1, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time placement beside Kafka's AdminUtils.")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()

    clusters = {name: brokers(sizes, racked=len(sizes) > 1) for name, sizes in RACKS_OF_A_THOUSAND.items()}
    cases = [case(cluster, options.partitions) for cluster in clusters.values()]
    for (name, cluster), answer in zip(clusters.items(), JAVA.ask(cases), strict=True):
        if printed(assign_replicas(cluster, options.partitions, REPLICATION_FACTOR, start_index=START)) != answer:
            raise SystemExit(f"{name}: not what Kafka's AdminUtils places")

    print(f"{options.partitions:,} partitions, 1,000 brokers, {REPLICATION_FACTOR} replicas, seconds")
    print(f"{'':24}{'array':>8}{'dict':>8}{'Kafka':>8}{'array/Kafka':>14}{'dict/Kafka':>14}")
    for (name, cluster), asked in zip(clusters.items(), cases, strict=True):
        kafka = int(JAVA.ask([asked], "time", str(options.repetitions))[0]) / 1e9
        array, as_dict = (
            least_seconds(
                lambda place=place, cluster=cluster: place(
                    cluster, options.partitions, REPLICATION_FACTOR, start_index=START
                ),
                options.repetitions,
            )
            for place in (assign_replicas_array, assign_replicas)
        )
        print(f"{name:24}{array:8.3f}{as_dict:8.3f}{kafka:8.3f}{array / kafka:14.2f}{as_dict / kafka:14.2f}")
    kraft = least_seconds(
        lambda: place_replicas(clusters["3 racks"], options.partitions, REPLICATION_FACTOR, rng=START), 1
    )
    print(f"KRaft's placer, one partition after the other, 3 racks: {kraft:.3f}")


def brokers(sizes: Sequence[int], *, racked: bool) -> list[Broker]:
    racks = [f"rack{rack}" for rack, size in enumerate(sizes) for _ in range(size)]
    return [Broker(broker, rack if racked else None) for broker, rack in enumerate(racks)]


def case(cluster: Sequence[Broker], partitions: int) -> str:
    words = (f"{broker.id}" if broker.rack is None else f"{broker.id}={broker.rack}" for broker in cluster)
    return f"{partitions}\t{REPLICATION_FACTOR}\t{START}\t0\t{','.join(words)}"


def printed(placed: dict[int, list[int]]) -> str:
    return ";".join(f"{partition}={','.join(map(str, replicas))}" for partition, replicas in placed.items())


def least_seconds(work: Callable[[], object], repetitions: int) -> float:
    took = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        placed = work()
        took.append(time.perf_counter() - begin)
        del placed  # outside the time, as Java's is
    return min(took)


if __name__ == "__main__":
    main()
