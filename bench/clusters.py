"""Synthetic clusters for benchmarks: any size, always the same for the same arguments.

    python -m bench.clusters expand --partitions 100000 --brokers 100 -o cluster.json
    python -m bench.clusters skew --partitions 1000000 --brokers 1000 --snapshot run
    python -m bench.clusters skew --partitions 10000 --brokers 30 --rates --capacities -o cluster.json

Goal:
    Clusters like real ones in what makes planning hard: many topics of very different width, partitions whose sizes
    span orders of magnitude, racks, and one reason to rebalance. ``cluster_json`` documents the file.

Scenarios, over B brokers that hold data at the start:
    ============  ============================================================================================
    steady        nothing to do: placed by Kafka, sizes as they fell
    expand        then ``round(B * (grow - 1))`` empty brokers join
    decommission  the ``remove`` brokers with the highest ids are to be emptied
    skew          a share of the brokers, spread over the racks, hold ``skew_factor`` times as much as the others
    ============  ============================================================================================

Algorithm:
    Racks are dealt to the brokers in turn. The width of a topic is log-uniform between its limits, the last one is cut
    to fit; the size of a partition is the median times e to a normal number.

    Data is placed as Kafka places it: striped topic by topic from a random start and shift. The walk of
    ``rebalance_lib.placement.striped_array`` only asks where each partition's leader stands and where its search
    begins, so all topics are placed in one go. In ``skew`` a partition draws one broker from each rack, heavy ones
    with more weight, and takes the racks in random order; it needs as many racks as replicas.

    ``rates`` are log-normal by topic and by partition and have nothing to do with sizes; a tenth of the topics is hot,
    and consumers read a topic 0, 1, 2 or 5 times. ``capacities`` have two classes of disks and, independent of them,
    two of networks, spread over each rack; disks are half full. Both are drawn apart, so that the cluster is the same
    with and without them.

Example:
    Three brokers in three racks, one topic, start 1 and shift 0: partition 0 is led by the second broker of the ring
    and followed by the third and the first.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.cluster_json import Cluster, Rates
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.placement.striped import rack_alternated
from rebalance_lib.placement.striped_array import fill_with_racks
from rebalance_lib.topology import Broker

SCENARIOS = ("steady", "expand", "decommission", "skew")
MEDIAN_RATE, HOT_SHARE, HOT_FACTOR = 50_000.0, 0.1, 20.0
NETWORK = 1_250_000_000
"""Bytes per second: 10 Gbit/s, and 20 in the larger class."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything a synthetic cluster depends on."""

    scenario: str
    partitions: int
    brokers: int
    racks: int = 3
    rf: int = 3
    seed: int = 1
    first_id: int = 1
    topic_min: int = 1
    topic_max: int = 256
    sigma: float = 1.5
    topic_sigma: float = 0.0
    median_bytes: float = float(1 << 30)
    grow: float = 1.5
    remove: int = 1
    skew_fraction: float = 0.2
    skew_factor: float = 2.0
    rates: bool = False
    capacities: bool = False

    def __post_init__(self) -> None:
        if self.scenario not in SCENARIOS:
            raise ValueError(f"no scenario {self.scenario!r}; there are {', '.join(SCENARIOS)}")
        if self.rf > self.brokers:
            raise ValueError(f"{self.rf} replicas do not fit on {self.brokers} brokers")
        if self.scenario == "skew" and self.rf > min(self.racks, self.brokers):
            raise ValueError(f"skew places one replica a rack: {self.rf} replicas need as many racks, not {self.racks}")
        if self.scenario == "decommission" and self.brokers - self.remove < self.rf:
            raise ValueError(f"without {self.remove} of {self.brokers} brokers, {self.rf} replicas have no place")


def generate(parameters: Parameters) -> Cluster:
    """Draw the cluster."""
    p = parameters
    rng = np.random.default_rng(p.seed)
    joining = round(p.brokers * (p.grow - 1)) if p.scenario == "expand" else 0
    brokers = [Broker(p.first_id + n, f"r{n % p.racks}") for n in range(p.brokers + joining)]
    holding = brokers[: p.brokers]

    widths = topic_widths(rng, p)
    topic = np.repeat(np.arange(len(widths), dtype=np.int32), widths)
    first = np.cumsum(widths) - widths
    partition = (np.arange(p.partitions) - first[topic]).astype(np.int32)
    place = skewed if p.scenario == "skew" else striped
    replicas = place(rng, holding, topic, partition, p)
    digits = max(5, len(str(len(widths))))
    size = sizes(rng, topic, p)
    return Cluster(
        scenario=p.scenario,
        seed=p.seed,
        brokers=brokers,
        add=[broker.id for broker in brokers[p.brokers :]],
        remove=[broker.id for broker in holding[-p.remove :]] if p.scenario == "decommission" else [],
        topics=pa.array([f"t{number:0{digits}d}" for number in range(len(widths))], pa.string()),
        topic=topic,
        partition=partition,
        replicas=replicas,
        size=size,
        rates=rates(topic, p) if p.rates else None,
        capacities=capacities(len(brokers), int(size.sum()), p) if p.capacities else None,
    )


def topic_widths(rng: np.random.Generator, p: Parameters) -> npt.NDArray[np.int64]:
    """How many partitions each topic has; together as many as asked for."""
    low, high = math.log(p.topic_min), math.log(p.topic_max + 1)
    expected = max(1.0, (p.topic_max - p.topic_min) / (high - low))
    widths = np.empty(0, dtype=np.int64)
    while widths.sum() < p.partitions:
        more = np.exp(rng.uniform(low, high, size=math.ceil(p.partitions / expected)))
        widths = np.append(widths, np.clip(more.astype(np.int64), p.topic_min, p.topic_max))
    ends = np.cumsum(widths)
    widths = widths[: np.searchsorted(ends, p.partitions) + 1]
    widths[-1] -= ends[len(widths) - 1] - p.partitions
    return widths


def striped(
    rng: np.random.Generator,
    brokers: list[Broker],
    topic: npt.NDArray[np.int32],
    partition: npt.NDArray[np.int32],
    p: Parameters,
) -> npt.NDArray[np.int32]:
    """Kafka's placement of new topics, all of them at once."""
    ring = rack_alternated(brokers)
    names = sorted({str(broker.rack) for broker in ring})
    start, shift = rng.integers(len(ring), size=(2, int(topic[-1]) + 1))
    positions = np.empty((p.rf, len(topic)), dtype=np.int32)
    positions[0] = (partition + start[topic]) % len(ring)
    steps = (shift[topic] + partition // len(ring)) * len(names) % max(len(ring) - 1, 1)
    racks = np.array([names.index(str(broker.rack)) for broker in ring], dtype=np.int32)
    fill_with_racks(positions, steps.astype(np.int32), racks)
    ids = np.array([broker.id for broker in ring], dtype=np.int32)
    return np.ascontiguousarray(ids[positions].T)


def skewed(
    rng: np.random.Generator,
    brokers: list[Broker],
    topic: npt.NDArray[np.int32],
    partition: npt.NDArray[np.int32],  # noqa: ARG001 - the signature of `striped`
    p: Parameters,
) -> npt.NDArray[np.int32]:
    """One broker from each rack, drawn by weight, the racks in random order."""
    heavy = {broker.id for broker in rack_alternated(brokers)[: round(len(brokers) * p.skew_fraction)]}
    racks = sorted({str(broker.rack) for broker in brokers})
    drawn = np.empty((len(topic), len(racks)), dtype=np.int32)
    for column, rack in enumerate(racks):
        ids = np.array([broker.id for broker in brokers if broker.rack == rack], dtype=np.int32)
        weights = np.array([p.skew_factor if id_ in heavy else 1.0 for id_ in ids])
        drawn[:, column] = rng.choice(ids, size=len(topic), p=weights / weights.sum())
    order = np.argsort(rng.random((len(topic), len(racks)), dtype=np.float32), axis=1)[:, : p.rf]
    return np.take_along_axis(drawn, order, axis=1)


def sizes(rng: np.random.Generator, topic: npt.NDArray[np.int32], p: Parameters) -> npt.NDArray[np.int64]:
    """Bytes of one replica of each partition, at least one."""
    exponent = rng.normal(0.0, p.sigma, len(topic))
    if p.topic_sigma:
        exponent += rng.normal(0.0, p.topic_sigma, int(topic[-1]) + 1)[topic]
    return np.maximum(1, np.rint(p.median_bytes * np.exp(exponent))).astype(np.int64)


def rates(topic: npt.NDArray[np.int32], p: Parameters) -> Rates:
    """What is written to and read from each partition."""
    rng = np.random.default_rng([p.seed, 7])
    topics = int(topic[-1]) + 1
    hot = np.where(rng.random(topics) < HOT_SHARE, HOT_FACTOR, 1.0)
    by_topic = hot * np.exp(rng.normal(0.0, 1.0, topics))
    write = MEDIAN_RATE * by_topic[topic] * np.exp(rng.normal(0.0, 0.5, len(topic)))
    readers = rng.choice([0, 1, 1, 2, 5], topics)
    return Rates(*(np.rint(rate).astype(np.int64) for rate in (write, write * readers[topic])))


def capacities(brokers: int, size: int, p: Parameters) -> list[Mapping[str, int]]:
    """What each broker can take."""
    half_full = 2.0 * size * p.rf / brokers
    found = list[Mapping[str, int]]()
    for number in range(brokers):
        place = number // p.racks
        network = NETWORK * (2 if place // 2 % 2 else 1)
        disk = int(half_full * (1.5 if place % 2 else 0.75))
        found.append({"disk": disk, "network_in": network, "network_out": network})
    return found


def write_snapshot(cluster: Cluster, directory: Path) -> None:
    """Write the cluster's tables as ``kafka-rebalance snapshot`` does: brokers.parquet and replicas.parquet."""
    brokers, replicas = cluster.snapshot().tables()
    artifacts = Artifacts.at(directory)
    artifacts.write_table("brokers.parquet", brokers)
    artifacts.write_table("replicas.parquet", replicas)


def main() -> None:
    parser = argparse.ArgumentParser(description="Generate a synthetic cluster.")
    defaults = Parameters(scenario="steady", partitions=1, brokers=3)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--brokers", type=int, required=True, help="brokers that hold data at the start")
    for name, meaning in {
        "racks": "racks, dealt to the brokers in turn",
        "rf": "replicas of each partition",
        "seed": "the same seed, the same cluster",
        "first_id": "id of the first broker",
        "topic_min": "partitions of the smallest topic",
        "topic_max": "partitions of the largest topic",
        "sigma": "how far sizes spread: sigma of their logarithm",
        "topic_sigma": "a further sigma that a topic's partitions share",
        "median_bytes": "median size of a replica",
        "grow": "expand: brokers afterwards over brokers before",
        "remove": "decommission: brokers to empty",
        "skew_fraction": "skew: share of heavy brokers",
        "skew_factor": "skew: load of a heavy broker over that of a light one",
    }.items():
        default = getattr(defaults, name)
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default, help=f"{meaning} ({default})")
    parser.add_argument("--rates", action="store_true", help="give partitions write and read rates")
    parser.add_argument("--capacities", action="store_true", help="give brokers capacities of two classes")
    parser.add_argument("-o", "--out", type=Path, help="write the JSON here")
    parser.add_argument("--snapshot", type=Path, help="write brokers.parquet and replicas.parquet to this directory")
    options = vars(parser.parse_args())
    out, snapshot = options.pop("out"), options.pop("snapshot")
    if out is None and snapshot is None:
        parser.error("nothing to write: give --out, --snapshot or both")
    cluster = generate(Parameters(**options))
    if out is not None:
        cluster.write(out)
    if snapshot is not None:
        write_snapshot(cluster, snapshot)


if __name__ == "__main__":
    main()
