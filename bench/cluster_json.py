"""A synthetic cluster in memory, in the JSON that every planner of a benchmark reads, and as a snapshot.

The file is one JSON object::

    {"scenario": "expand", "seed": 1, "rf": 3,
     "brokers": [{"id": 1, "rack": "r0"}, ...],
     "targets": [1, 2, ...],
     "add": [...],
     "remove": [...],
     "partitions": [{"topic": "t00000", "partition": 0, "replicas": [4, 9, 2], "size": 1073741824}, ...]}

``brokers`` has them all, those that hold nothing yet (``add``) and those to be emptied (``remove``) too; ``targets``
are the brokers that may hold replicas afterwards. The first of ``replicas`` is the preferred leader; ``size`` is the
bytes of one replica. Every partition has ``rf`` replicas.

Where rates are known, each partition also has ``write_rate``, what producers write, and ``read_rate``, what consumers
read, in bytes per second. Where capacities are, each broker has ``"capacity": {"disk": ..., "network_in": ...,
"network_out": ...}``.

In memory the partitions are columns: a topic is a number until it is written, and the replicas are an array with a row
per partition. Files are written some thousand partitions at a time and read by Arrow, so that ten million of them
need no more than the arrays and the text itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from rebalance_lib.topology import BROKERS, LOADS, REPLICAS, Broker, Snapshot
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

PARTITIONS_AT_ONCE = 1 << 16
LOG_DIR = "/data"
CAPACITIES = ("disk", "network_in", "network_out")
TAKEN_AT = "2026-01-01T00:00:00+00:00"
"""A made-up cluster has no moment; a constant keeps the same arguments giving the same files."""

_PARTITION = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("replicas", pa.list_(pa.int32())),
        pa.field("size", pa.int64()),
        pa.field("write_rate", pa.int64()),
        pa.field("read_rate", pa.int64()),
    ]
)
_CAPACITY = pa.struct([pa.field(name, pa.int64()) for name in CAPACITIES])
_BROKER = pa.struct([pa.field("id", pa.int32()), pa.field("rack", pa.string()), pa.field("capacity", _CAPACITY)])
_DOCUMENT = pa.schema(
    [
        pa.field("scenario", pa.string()),
        pa.field("seed", pa.int64()),
        pa.field("rf", pa.int32()),
        pa.field("brokers", pa.list_(_BROKER)),
        pa.field("targets", pa.list_(pa.int32())),
        pa.field("add", pa.list_(pa.int32())),
        pa.field("remove", pa.list_(pa.int32())),
        pa.field("partitions", pa.list_(_PARTITION)),
    ]
)


@dataclass(frozen=True)
class Rates:
    """Bytes per second of each partition, from producers and to consumers."""

    write: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cluster:
    """Brokers and the columns of their partitions; ``topic`` numbers the names in ``topics``.

    ``capacities`` has what each broker can take, in the order of the brokers; None where that is not known.
    """

    scenario: str
    seed: int
    brokers: list[Broker]
    add: list[int]
    remove: list[int]
    topics: pa.Array[Any]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    replicas: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    rates: Rates | None = None
    capacities: list[Mapping[str, int]] | None = None

    def __len__(self) -> int:
        return len(self.size)

    @property
    def rf(self) -> int:
        return int(self.replicas.shape[1])

    @property
    def targets(self) -> list[int]:
        leaving = set(self.remove)
        return [broker.id for broker in self.brokers if broker.id not in leaving]

    def write(self, file: Path) -> None:
        """Write the JSON to a file."""
        with file.open("wb") as out:
            self.write_to(out)

    def write_to(self, out: BinaryIO) -> None:
        """Write the JSON."""
        header = {
            "scenario": self.scenario,
            "seed": self.seed,
            "rf": self.rf,
            "brokers": [
                {"id": broker.id, "rack": broker.rack} | ({} if capacity is None else {"capacity": capacity})
                for broker, capacity in zip(self.brokers, self._capacity_of_each(), strict=True)
            ],
            "targets": self.targets,
            "add": self.add,
            "remove": self.remove,
        }
        opening = json.dumps(header, separators=(",", ":")).removesuffix("}")
        out.write(f'{opening},"partitions":['.encode())
        out.writelines(b"," * (number > 0) + text for number, text in enumerate(self._partition_texts()))
        out.write(b"]}\n")

    def snapshot(self) -> Snapshot:
        """The cluster as the live one would be seen: in sync, one log dir a broker, no reassignment running."""
        count = len(self)
        rows = np.lexsort((self.partition, self._rank_of_topic()))
        of_replica = np.repeat(rows, self.rf)
        position = np.tile(np.arange(self.rf, dtype=np.int16), count)
        none = pa.array(np.zeros(len(of_replica), dtype=bool))
        unknown = pa.nulls(len(of_replica), pa.int64())
        columns = {
            "topic": decode_texts(self.topic[of_replica], self.topics),
            "partition": self.partition[of_replica],
            "position": position,
            "broker": self.replicas[rows].ravel(),
            "leader": position == 0,
            "in_sync": np.ones(len(of_replica), dtype=bool),
            "adding": none,
            "removing": none,
            "internal": none,
            "size_bytes": self.size[of_replica],
            "start_offset": unknown,
            "end_offset": unknown,
            "min_insync_replicas": pa.nulls(len(of_replica), pa.int16()),
            "log_dir": pa.DictionaryArray.from_arrays(np.zeros(len(of_replica), np.int8), [LOG_DIR]).cast(pa.string()),
        }
        disks = [{"path": LOG_DIR, "total_bytes": None, "usable_bytes": None}]
        same = {"port": 9092, "alive": True, "log_dirs": disks}
        hosts = [
            {"broker": b.id, "rack": b.rack, "host": f"b{b.id}", "capacity": capacity, **same}
            for b, capacity in zip(self.brokers, self._capacity_of_each(), strict=True)
        ]
        return Snapshot(
            cluster_id=f"{self.scenario}-{count}-{self.seed}",
            taken_at=TAKEN_AT,
            brokers=pa.Table.from_pylist(hosts, BROKERS),
            replicas=pa.table(columns, schema=REPLICAS),
        )

    def loads(self) -> pa.Table | None:
        """The rates of each partition as a plan takes them; None where they are not known."""
        if self.rates is None:
            return None
        rows = np.lexsort((self.partition, self._rank_of_topic()))
        topic = self.topics.take(pa.array(self.topic[rows]))
        rates = (rate[rows].astype(np.float64) for rate in (self.rates.write, self.rates.read))
        return pa.table([topic, self.partition[rows], *rates], schema=LOADS)

    def _capacity_of_each(self) -> list[Mapping[str, int]] | list[None]:
        return [None] * len(self.brokers) if self.capacities is None else self.capacities

    def _rank_of_topic(self) -> npt.NDArray[np.int64]:
        order = pc.array_sort_indices(self.topics).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[self.topic]

    def _partition_texts(self) -> Iterator[bytes]:
        for begin in range(0, len(self), PARTITIONS_AT_ONCE):
            part = slice(begin, begin + PARTITIONS_AT_ONCE)
            replicas = [_text(self.replicas[part, place]) for place in range(self.rf)]
            rates = []
            if self.rates is not None:
                rates = [',"write_rate":', _text(self.rates.write[part]), ',"read_rate":', _text(self.rates.read[part])]
            entries = pc.binary_join_element_wise(
                '{"topic":"',
                self.topics.take(pa.array(self.topic[part])),
                '","partition":',
                _text(self.partition[part]),
                ',"replicas":[',
                pc.binary_join_element_wise(*replicas, ","),
                '],"size":',
                _text(self.size[part]),
                *rates,
                "}",
                "",
            )
            yield ",\n".join(entries.to_pylist()).encode()


def read_cluster(file: Path) -> Cluster:
    """Read what ``Cluster.write`` wrote; raises ValueError if a partition does not have ``rf`` replicas."""
    data = file.read_bytes()
    document = arrow_json.read_json(
        pa.BufferReader(data),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=_DOCUMENT, newlines_in_values=True),
    )
    partitions = document["partitions"].chunk(0).flatten()
    rf = document["rf"][0].as_py()
    lists = partitions.field("replicas")
    if not pc.all(pc.equal(pc.list_value_length(lists), rf), min_count=0).as_py():
        raise ValueError(f"{file}: a partition has other than {rf} replicas")
    topic = partitions.field("topic").dictionary_encode()
    rates = [partitions.field(name) for name in ("write_rate", "read_rate")]
    brokers = document["brokers"][0].as_py()
    capacities = [broker["capacity"] for broker in brokers]
    return Cluster(
        scenario=document["scenario"][0].as_py(),
        seed=document["seed"][0].as_py(),
        brokers=[Broker(broker["id"], broker["rack"]) for broker in brokers],
        add=document["add"][0].as_py(),
        remove=document["remove"][0].as_py(),
        topics=topic.dictionary,
        topic=topic.indices.to_numpy(),
        partition=partitions.field("partition").to_numpy(),
        replicas=lists.flatten().to_numpy().reshape(-1, rf),
        size=partitions.field("size").to_numpy(),
        rates=None if any(rate.null_count for rate in rates) else Rates(*(rate.to_numpy() for rate in rates)),
        capacities=None if None in capacities else capacities,
    )


def _text(numbers: npt.NDArray[Any]) -> pa.Array[Any]:
    return pc.cast(pa.array(np.ascontiguousarray(numbers)), pa.string())
