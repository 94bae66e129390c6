"""A scenario as a text file: the cluster, what is asked for, what is expected, and what each planner made of it.

    Four brokers, two of them large

    Disks are filled by their capacity, leaders and traffic are not.

    cluster
        broker 1-4 rack=a,b disk=16TB,16TB,4TB,4TB
        topic orders partitions=240 replicas=2 size=1GB~1.5 write=1MB
    request
        mode=balance goals=disk,leaders
    this project
        ...

A title, what is expected in prose, and blocks of indented lines: the cluster, the request, and a block of figures for
each planner. Lines of the cluster:

    ``broker IDS``    ``1-4`` or ``1,2,7``. Each value may be a list that the brokers take in turn: ``rack``, ``disk``,
                      ``network`` (in and out, a second); ``?`` where it is not known. ``dead``, ``cordoned``, and
                      ``log-dirs=/disk1:4TB,/disk2:4TB`` are said of all brokers of the line.
    ``topic NAME``    ``partitions``, ``replicas`` striped as Kafka does over the brokers ``on``, all by default, from
                      ``start`` and ``shift`` on; or ``lists=1,2,3/2,3,1``, taken in turn. ``size``, ``write`` and
                      ``read`` are lists too; ``1GB~1.5`` is log-normal with this median and sigma.
    ``generate ...``  a cluster of ``bench.clusters``, with its parameters.

``request`` has the fields of a request of the planner. Units are those of 1,000.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.clusters import Parameters, generate
from rebalance_lib.placement import assign_replicas_array
from rebalance_lib.planner import ClusterModel, Request
from rebalance_lib.topology import BROKERS, REPLICAS, Broker, Snapshot, parse_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLUSTER, REQUEST, OURS = "cluster", "request", "this project"
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_AMOUNT = re.compile(r"([0-9.]+)([kMGT]?)B?(?:~([0-9.]+))?")
INDENT = "    "


@dataclass
class Hosts:
    """Brokers and partitions as entries of a cluster's JSON, and what that cannot say: dead brokers and log dirs."""

    brokers: list[dict[str, Any]] = field(default_factory=list)
    partitions: list[dict[str, Any]] = field(default_factory=list)
    dead: set[int] = field(default_factory=set)
    log_dirs: dict[int, dict[str, int]] = field(default_factory=dict)
    add: list[int] = field(default_factory=list)
    remove: list[int] = field(default_factory=list)

    def document(self, scenario: str = "") -> bytes:
        """A cluster's JSON."""
        leaving = set(self.remove)
        return json.dumps(
            {
                "scenario": scenario,
                "seed": 1,
                "rf": max(len(entry["replicas"]) for entry in self.partitions),
                "brokers": self.brokers,
                "targets": [broker["id"] for broker in self.brokers if broker["id"] not in leaving],
                "add": self.add,
                "remove": self.remove,
                "partitions": self.partitions,
            }
        ).encode()

    def model(self) -> ClusterModel:
        """What the planner plans from."""
        file = parse_cluster(self.document())
        brokers, replicas = (table.to_pylist() for table in (file.snapshot.brokers, file.snapshot.replicas))
        used: dict[tuple[int, str], int] = {}
        for row in replicas:
            if paths := list(self.log_dirs.get(row["broker"], {})):
                row["log_dir"] = paths[row["partition"] % len(paths)]
                key = row["broker"], row["log_dir"]
                used[key] = used.get(key, 0) + row["size_bytes"]
            row["in_sync"] = row["broker"] not in self.dead
        for row in brokers:
            row["alive"] = row["broker"] not in self.dead
            row["log_dirs"] = [
                {"path": path, "total_bytes": size, "usable_bytes": size - used.get((row["broker"], path), 0)}
                for path, size in self.log_dirs.get(row["broker"], {}).items()
            ]
        tables = (pa.Table.from_pylist(brokers, BROKERS), pa.Table.from_pylist(replicas, REPLICAS))
        return ClusterModel.of(Snapshot("", "", *tables), file.loads)


@dataclass
class Scenario:
    """A file, read: its text up to the figures, the cluster, the request, and the figures by planner."""

    file: Path
    head: str
    hosts: Hosts
    request: Request
    figures: dict[str, list[str]]

    def text(self) -> str:
        """The file as it should be."""
        blocks = (f"{name}\n" + "".join(f"{INDENT}{line}\n" for line in lines) for name, lines in self.figures.items())
        return self.head + "".join(blocks)


def read_scenario(file: Path) -> Scenario:
    """Read a file; raises ValueError, naming the line, for what is none."""
    head, blocks, name = list[str](), dict[str, list[str]](), ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(INDENT) and name:
            blocks[name].append(line.removeprefix(INDENT))
        elif line in {CLUSTER, REQUEST} or REQUEST in blocks:
            if not line.strip() or line in blocks:
                raise ValueError(f"{file.name}:{number}: {line!r} is not the name of another block; correct it")
            name, blocks[line] = line, []
        if REQUEST not in blocks or name == REQUEST:
            head.append(line)
    missing = {CLUSTER, REQUEST} - set(blocks)
    if missing:
        raise ValueError(f"{file.name} has no block {missing.pop()!r}; add it")
    hosts = Hosts()
    for line in blocks.pop(CLUSTER):
        kind, _, rest = line.partition(" ")
        if kind not in _LINES:
            raise ValueError(f"{file.name}: {line!r} is none of {', '.join(_LINES)}; correct it")
        _LINES[kind](hosts, rest)
    request = read_request(" ".join(blocks.pop(REQUEST)), hosts)
    return Scenario(file, "\n".join(head) + "\n", hosts, request, blocks)


def read_request(text: str, hosts: Hosts) -> Request:
    """The request, about the brokers that a generated cluster adds or removes if it names none."""
    given: dict[str, Any] = {}
    for name, value in options(text).items():
        if name in {"brokers", "allowed_brokers", "excluded_brokers", "replacements"}:
            given[name] = ids(value)
        elif name in {"goals", "topics", "excluded_topics", "log_dirs"}:
            given[name] = value.split(",")
        elif name in {"byte_budget", "move_budget", "replication_factor", "partitions"}:
            given[name] = int(amount(value)[0])
        else:
            given[name] = float(value) if name in {"tolerance", "max_fill", "fill_level"} else value or True
    about = {"expand": hosts.add, "drain": hosts.remove}.get(given["mode"], [])
    return Request.from_dict({**({"brokers": about} if about else {}), **given})


def add_brokers(hosts: Hosts, text: str) -> None:
    """A line ``broker``."""
    numbers, _, rest = text.partition(" ")
    given = options(rest)
    brokers = ids(numbers)
    lists = {name: list(islice(cycle(given.get(name, "?").split(",")), len(brokers))) for name in _OF_BROKERS}
    for place, broker in enumerate(brokers):
        entry: dict[str, Any] = {"id": broker}
        said = {name: values[place] for name, values in lists.items() if values[place] != "?"}
        if "rack" in said:
            entry["rack"] = said["rack"]
        capacity = {"disk": int(amount(said["disk"])[0])} if "disk" in said else {}
        if "network" in said:
            capacity |= dict.fromkeys(("network_in", "network_out"), int(amount(said["network"])[0]))
        if capacity:
            entry["capacity"] = capacity
        if "cordoned" in given:
            entry["cordoned"] = True
        if "dead" in given:
            hosts.dead.add(broker)
        if "log-dirs" in given:
            pairs = (part.partition(":") for part in given["log-dirs"].split(","))
            hosts.log_dirs[broker] = {path: int(amount(size)[0]) for path, _, size in pairs}
        hosts.brokers.append(entry)


def add_topic(hosts: Hosts, text: str) -> None:
    """A line ``topic``."""
    name, _, rest = text.partition(" ")
    given = options(rest)
    count = int(given["partitions"])
    if "lists" in given:
        replicas = list(islice(cycle([ids(one) for one in given["lists"].split("/")]), count))
    else:
        chosen = set(ids(given["on"])) if "on" in given else {broker["id"] for broker in hosts.brokers}
        ring = [Broker(broker["id"], broker.get("rack")) for broker in hosts.brokers if broker["id"] in chosen]
        start, shift = int(given.get("start", 0)), int(given.get("shift", 0))
        placed = assign_replicas_array(ring, count, int(given["replicas"]), start_index=start, replica_shift=shift)
        replicas = placed.tolist()
    rng = np.random.default_rng([len(hosts.partitions), count])
    columns = {"size": drawn(rng, given.get("size", "1GB"), count)}
    columns |= {f"{key}_rate": drawn(rng, given[key], count) for key in ("write", "read") if key in given}
    for number in range(count):
        values = {key: column[number] for key, column in columns.items()}
        hosts.partitions.append({"topic": name, "partition": number, "replicas": replicas[number], **values})


def add_generated(hosts: Hosts, text: str) -> None:
    """A line ``generate``."""
    scenario, _, rest = text.partition(" ")
    fields = Parameters.__dataclass_fields__
    asked: dict[str, Any] = {}
    for name, value in options(rest).items():
        asked[name] = value == "" or (float(value) if fields[name].type == "float" else int(value))
    cluster = generate(Parameters(scenario=scenario, **asked))
    text_of_it = io.BytesIO()
    cluster.write_to(text_of_it)
    document = json.loads(text_of_it.getvalue())
    hosts.brokers, hosts.partitions = document["brokers"], document["partitions"]
    hosts.add, hosts.remove = document["add"], document["remove"]


_OF_BROKERS = ("rack", "disk", "network")
_LINES = {"broker": add_brokers, "topic": add_topic, "generate": add_generated}


def options(text: str) -> Mapping[str, str]:
    """``name=value`` and plain names, separated by spaces."""
    pairs = (word.partition("=") for word in text.split())
    return {name: value for name, _, value in pairs}


def ids(text: str) -> list[int]:
    """``1-3,7`` as numbers."""
    found = list[int]()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def amount(text: str) -> tuple[float, float]:
    """``1.5GB~0.8`` as a number and a sigma, 0 where there is none."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an amount such as 500, 10GB or 1GB~1.5")
    return float(found[1]) * UNITS[found[2]], float(found[3] or 0.0)


def drawn(rng: np.random.Generator, text: str, count: int) -> list[int]:
    """As many amounts, the given ones in turn."""
    means, sigmas = np.array([amount(part) for part in text.split(",")]).T
    place = np.arange(count) % len(means)
    values = means[place] * np.exp(sigmas[place] * rng.normal(size=count))
    return [int(value) for value in np.rint(values)]
