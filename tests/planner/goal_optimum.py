"""The best that each goal can come to, by integer programs of its own, and small random clusters to try it on.

Written from what docs/planner.md says of goals and of what a plan may do, from a cluster's JSON and the plan's lists
alone: nothing of the planner is used. Goals of where replicas are have all allowed placements to choose from; goals of
leaders the orders of the lists that the plan has, since no replica moves for their sake.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Lists = list[tuple[int, ...]]

MAX_FILL = 0.9
LEADER_IN, LEADER_OUT, FOLLOWER_IN = 0.7, 0.15, 0.15
CAPACITY_OF = {"disk": "disk", "network_in": "network_in", "network_out": "network_out", "cpu": "cpu"}
HELD, LED = ("disk", "network_in", "replicas"), ("leaders", "network_out", "cpu", "topic_leaders", "failover")
HARD = ("racks", "capacity")
GOALS = (*HELD, *LED, *HARD)
ROUNDING = 1e-6
GAP = 5e-4  # of the objective: what HiGHS need not prove
NODES = 2_000


def random_cluster(random: Random) -> dict[str, Any]:
    """Up to 10 brokers and 60 partitions, in every second case nearly as many.

    Sizes, rates and capacities are odd, alike, 0 or not there; racks are even, uneven or not there; topics have one
    replication factor or several, of up to 5; a cluster is skewed or nearly even; a broker may be cordoned, or lead
    what it is not the preferred leader of.
    """
    large = random.random() < 0.5
    hosts: list[dict[str, Any]] = [{"id": 1 + n} for n in range(random.randint(7 if large else 2, 10))]
    _give_racks(random, hosts)
    size, rate = random.choice(_SIZES), random.choice([None, *_RATES])
    popular = [random.choice([1, 1, 4]) for _ in hosts] if random.random() < 0.6 else [1] * len(hosts)
    factors = random.choice([[1], [2], [3], [3], [1, 2, 3], [2, 3, 4, 5]])
    partitions: list[dict[str, Any]] = []
    count, topic = random.randint(40 if large else 1, 60), 0
    while len(partitions) < count:
        factor = min(random.choice(factors), len(hosts))
        for number in range(min(random.choice([1, 3, 12, 40]), count - len(partitions))):
            replicas = _drawn(random, hosts, popular, factor)
            one = {"topic": f"t{topic}", "partition": number, "replicas": replicas, "size": size(random)}
            if random.random() < 0.1:
                one["leader"] = random.choice(replicas)
            if rate is not None:
                written = rate(random)
                one |= {"write_rate": written, "read_rate": round(written * random.choice([0, 1, 2, 5]), 1)}
            partitions.append(one)
        topic += 1
    if random.random() < 0.5:
        _give_capacities(random, hosts, partitions)
    if random.random() < 0.1:
        random.choice(hosts)["cordoned"] = True
    return {"brokers": hosts, "partitions": partitions}


_SIZES: tuple[Callable[[Random], int], ...] = (
    lambda random: int(random.lognormvariate(10, 1.5)),
    lambda random: random.randint(1, 1000),
    lambda random: random.randint(900, 1100),
    lambda random: random.choice([100, 200, 300]),
    lambda random: random.choice([0, 7, 50, 5000]),
    lambda _: 1 << 30,
)
_RATES: tuple[Callable[[Random], float], ...] = (
    lambda random: round(random.lognormvariate(5, 1.2), 1),
    lambda random: round(random.uniform(90, 110), 1),
    lambda random: random.choice([0.0, 100.0, 100.0, 1000.0]),
)


def _give_racks(random: Random, hosts: list[dict[str, Any]]) -> None:
    racks = random.choice([0, 0, 2, 3, 4])
    stray = random.choice([0.0, 0.2])
    for n, host in enumerate(hosts):
        if racks:
            host["rack"] = f"r{0 if random.random() < stray else n % racks}"


def _drawn(random: Random, hosts: list[dict[str, Any]], popular: list[int], factor: int) -> list[int]:
    """Brokers of one partition; in three of four cases in as many racks as there are."""
    racks = {host.get("rack") for host in hosts}
    spread = len(racks) > 1 and random.random() < 0.75
    while True:
        chosen: list[int] = []
        while len(chosen) < factor:
            one = random.choices(hosts, popular)[0]["id"]
            if one not in chosen:
                chosen.append(one)
        used = {host.get("rack") for host in hosts if host["id"] in chosen}
        if not spread or len(used) == min(factor, len(racks)):
            return chosen


def _give_capacities(random: Random, hosts: list[dict[str, Any]], partitions: list[dict[str, Any]]) -> None:
    held = Counter[int]()
    for one in partitions:
        for broker in one["replicas"]:
            held[broker] += one["size"]
    unit = max(1, sum(held.values()) // len(hosts))
    for host in hosts:
        disk = max(int(held[host["id"]] * random.choice([1.02, 1.3])), unit * random.choice([2, 2, 3, 4])) + 1
        host["capacity"] = {
            "disk": disk,
            "network_in": random.choice([10**6, 10**6, 2 * 10**6]),
            "network_out": random.choice([10**6, 2 * 10**6]),
            "cpu": random.choice([4, 8]),
        }


@dataclass(frozen=True)
class Small:
    """A cluster's JSON, and the lists that a plan leaves."""

    cluster: dict[str, Any]
    after: Lists

    @property
    def ids(self) -> list[int]:
        return [host["id"] for host in self.cluster["brokers"]]

    @property
    def rack(self) -> dict[int, str | None]:
        return {host["id"]: host.get("rack") for host in self.cluster["brokers"]}

    @property
    def takes(self) -> dict[int, bool]:
        return {host["id"]: not host.get("cordoned", False) for host in self.cluster["brokers"]}

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.cluster["partitions"]

    @property
    def has_racks(self) -> bool:
        return all(name is not None for name in self.rack.values())

    @property
    def disks(self) -> dict[int, int]:
        return {host["id"]: host["capacity"]["disk"] for host in self.cluster["brokers"] if "capacity" in host}

    @property
    def free(self) -> dict[int, int]:
        """By broker whose disk is known: the bytes that may arrive beside all that is there now."""
        held = Counter[int]()
        for one in self.rows:
            held.update(dict.fromkeys(one["replicas"], one["size"]))
        return {id_: size - held[id_] - int(np.ceil(size * (1 - MAX_FILL))) for id_, size in self.disks.items()}

    def part(self, resource: str) -> dict[int, float]:
        """By broker: its part of a resource."""
        given = {
            host["id"]: host.get("capacity", {}).get(CAPACITY_OF.get(resource, "")) for host in self.cluster["brokers"]
        }
        if any(value is None for value in given.values()):
            return dict.fromkeys(given, 1 / len(given))
        return {id_: value / sum(given.values()) for id_, value in given.items()}

    def of_replica(self, resource: str) -> list[float]:
        written = [one.get("write_rate", 0.0) for one in self.rows]
        return {
            "disk": [float(one["size"]) for one in self.rows],
            "replicas": [1.0] * len(self.rows),
            "network_in": written,
            "cpu": [FOLLOWER_IN * rate for rate in written],
        }.get(resource, [0.0] * len(self.rows))

    def of_leader(self, resource: str) -> list[float]:
        found = []
        for one, lists in zip(self.rows, self.after, strict=True):
            written = one.get("write_rate", 0.0)
            sent = written * (len(lists) - 1) + one.get("read_rate", written)
            cpu = (LEADER_IN - FOLLOWER_IN) * written + LEADER_OUT * sent
            found.append({"leaders": 1.0, "network_out": sent, "cpu": cpu}.get(resource, 0.0))
        return found

    def share(self, resource: str) -> dict[int, float]:
        held, led = self.of_replica(resource), self.of_leader(resource)
        total = sum(each * len(lists) + first for each, first, lists in zip(held, led, self.after, strict=True))
        return {id_: part * total for id_, part in self.part(resource).items()}


@dataclass(frozen=True)
class Optimum:
    """What HiGHS has proven that nothing is below, and the best it has found: the same where it has proven it."""

    bound: float
    found: float


class _Level:
    """A program whose objective is a level that no load over its share exceeds, and that counts from a limit on.

    It starts from what the plan has, and looks at nothing worse; what the plan has must be allowed here, too.
    """

    def __init__(self, limit: float, reached: float = np.inf) -> None:
        self.program = highspy.Highs()
        self.program.silent()
        self.level = self.program.addVariable(lb=limit, ub=reached * (1 + ROUNDING), obj=1.0)
        self._start: dict[int, float] = {}
        self._most: dict[float, Any] = {}  # by share: the largest count of its rows

    def choose(self, allowed: dict[Any, bool]) -> dict[Any, Any]:
        """A column for each key, all of them 0 or 1; as True in the plan, or not."""
        columns = {key: self.program.addBinary() for key in allowed}
        self._start |= {column.index: float(allowed[key]) for key, column in columns.items()}
        return columns

    def add(self, terms: list[Any], fixed: float, share: float) -> None:
        if share > 0 and terms:
            self.program.addConstr(self.program.qsum(terms) + fixed / share <= self.level)
        elif share > 0:
            self.program.addConstr(self.level >= fixed / share)

    def count(self, columns: list[Any], share: float) -> None:
        """How many of these are chosen, over a share: a whole number that all rows of this share have in common."""
        if share not in self._most:
            self._most[share] = self.program.addIntegral()
            self.program.addConstr(self._most[share] / share <= self.level)
        self.program.addConstr(self.program.qsum(columns) <= self._most[share])

    def least(self) -> Optimum:
        """Of all allowed solutions."""
        program = self.program
        options = {"threads": 1, "mip_rel_gap": GAP, "mip_max_nodes": NODES, "mip_feasibility_tolerance": 1e-9}
        for option, value in options.items():
            program.setOptionValue(option, value)
        index, value = np.array([*self._start], np.int32), np.array([*self._start.values()])
        program.setSolution(len(index), index, value)
        program.run()
        if program.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            raise AssertionError("the plan does what no plan may do")
        info = program.getInfo()
        return Optimum(float(info.mip_dual_bound), float(info.objective_function_value))


def best(small: Small, goal: str, limit: float, reached: float) -> Optimum:
    """What the goal can at best come to, at least its limit; the plan has reached so much."""
    if goal in {"disk", "network_in", "replicas", "capacity"}:
        return _best_placement(small, goal, _Level(limit, reached))
    if goal == "racks":
        return _best_racks(small, _Level(limit, reached))
    if goal == "topic_leaders":
        return _best_topics(small, limit)
    return _best_order(small, goal, _Level(limit, reached))


def _best_placement(small: Small, goal: str, level: _Level) -> Optimum:
    program, ids = level.program, small.ids
    holds = _placements(small, level)
    if small.has_racks:
        for after, mine in zip(small.after, holds, strict=True):
            _keep_racks(small, program, after, mine)
    _keep_space(small, program, holds)
    resource = "disk" if goal == "capacity" else goal
    weight = small.of_replica(resource)
    share = {id_: MAX_FILL * size for id_, size in small.disks.items()} if goal == "capacity" else small.share(resource)
    for id_ in ids:
        terms = [w / share[id_] * mine[id_] for w, mine in zip(weight, holds, strict=True) if w and share[id_] > 0]
        level.add(terms, 0.0, share[id_])
    return level.least()


def _best_racks(small: Small, level: _Level) -> Optimum:
    """The fewest partitions that are in fewer racks than there are: brokers may be cordoned, or have no space."""
    program, racks = level.program, set(small.rack.values())
    holds, short = _placements(small, level), []
    for after, mine in zip(small.after, holds, strict=True):
        wanted = min(len(after), len(racks))
        used = {rack: program.addBinary() for rack in racks}
        for rack, is_used in used.items():
            inside = program.qsum([column for id_, column in mine.items() if small.rack[id_] == rack])
            program.addConstr(inside >= is_used)
        short.append(program.addBinary())
        program.addConstr(program.qsum(used.values()) + wanted * short[-1] >= wanted)
    _keep_space(small, program, holds)
    level.add([one / len(short) for one in short], 1.0, 1.0)
    return level.least()


def _placements(small: Small, level: _Level) -> list[dict[int, Any]]:
    """By partition: a column for each broker. As many replicas as it has, and none that a cordoned broker would get."""
    holds = [level.choose({id_: id_ in after for id_ in small.ids}) for after in small.after]
    for row, mine in zip(small.rows, holds, strict=True):
        level.program.addConstr(level.program.qsum(mine.values()) == len(row["replicas"]))
        cordoned = [column for id_, column in mine.items() if not small.takes[id_] and id_ not in row["replicas"]]
        if cordoned:
            level.program.addConstr(level.program.qsum(cordoned) == 0)
    return holds


def _keep_space(small: Small, program: Any, holds: list[dict[int, Any]]) -> None:
    """What arrives fits beside all that is there now; where a plan waits for space that it frees, as much as it has.

    A disk that is fuller than allowed gets nothing, not even what has no bytes yet.
    """
    arriving, planned, given = defaultdict(list), Counter[int](), set[int]()
    for one, after, mine in zip(small.rows, small.after, holds, strict=True):
        for id_ in set(small.free) - set(one["replicas"]):
            arriving[id_].append((one["size"], mine[id_]))
            if id_ in after:
                planned[id_] += one["size"]
                given.add(id_)
    for id_, columns in arriving.items():
        if small.free[id_] < 0 and id_ not in given:
            program.addConstr(program.qsum([column for _, column in columns]) == 0)
        elif terms := [size * column for size, column in columns if size]:
            program.addConstr(program.qsum(terms) <= max(0, small.free[id_], planned[id_]))


def _keep_racks(small: Small, program: Any, after: tuple[int, ...], mine: dict[int, Any]) -> None:
    """In as many racks as the plan has it in, and no more in one: racks are the first goal of all."""
    has = Counter(small.rack[id_] for id_ in after)
    used = {rack: program.addBinary() for rack in set(small.rack.values())}
    for rack, is_used in used.items():
        inside = program.qsum([column for id_, column in mine.items() if small.rack[id_] == rack])
        program.addConstr(inside <= max(has.values()))
        program.addConstr(inside >= is_used)
    program.addConstr(program.qsum(used.values()) >= len(has))


def _best_topics(small: Small, limit: float) -> Optimum:
    """Each topic by itself, then their percentile."""
    by_topic = defaultdict(list)
    for one, lists in zip(small.rows, small.after, strict=True):
        by_topic[one["topic"]].append(lists)
    found = []
    for lists in by_topic.values():
        if len(lists) < len(small.ids):
            continue
        even = float(np.ceil(len(lists) / len(small.ids)))
        level = _Level(0.0)
        leads = [level.choose({id_: id_ == own[0] for id_ in own}) for own in lists]
        for mine in leads:
            level.program.addConstr(level.program.qsum(mine.values()) == 1)
        for id_ in small.ids:
            level.add([mine[id_] / even for mine in leads if id_ in mine], 0.0, even)
        found.append(np.ceil(level.least().bound * even - 1e-3) / even)
    least = max(limit, float(np.quantile(found, 0.99))) if found else limit
    return Optimum(least, least)


def _best_order(small: Small, goal: str, level: _Level) -> Optimum:
    resources = ["leaders", "network_out"] if goal == "failover" else [goal]
    resources = [one for one in resources if any(small.of_leader(one))]
    program = level.program
    columns = []
    for own in small.after:
        orders = list(permutations(own)) if goal == "failover" else [(id_,) for id_ in own]
        planned = own if goal == "failover" else own[:1]
        now = (own[0], *_heirs(small, planned))
        keys = [(order[0], *_heirs(small, order)) for order in orders]
        seen = level.choose({key: key == now for key in keys})
        program.addConstr(program.qsum(seen.values()) == 1)
        columns.append(seen)
    for resource in resources:
        held, led, part = small.of_replica(resource), small.of_leader(resource), small.part(resource)
        fixed = Counter[int]()
        for weight, own in zip(held, small.after, strict=True):
            for id_ in own:
                fixed[id_] += weight
        if goal == "failover":
            _after_failures(small, level, columns, (led, part))
            continue
        share = small.share(resource)
        for id_ in small.ids:
            terms = [
                w / share[id_] * column
                for w, seen in zip(led, columns, strict=True)
                for (first, *_), column in seen.items()
                if first == id_ and w
            ]
            level.add(terms, fixed[id_], share[id_])
    return level.least()


def _heirs(small: Small, order: tuple[int, ...]) -> tuple[int | None, int | None]:
    """Who leads once the leader's broker has died, and once its rack has."""
    others = order[1:]
    elsewhere = [id_ for id_ in others if small.rack[id_] != small.rack[order[0]]]
    return next(iter(others), None), next(iter(elsewhere), None)


def _after_failures(
    small: Small, level: _Level, columns: list[dict], loads: tuple[list[float], dict[int, float]]
) -> None:
    led, part = loads
    deaths: list[tuple[int, set[int]]] = [(1, {id_}) for id_ in small.ids]
    racks = set(small.rack.values())
    if small.has_racks and len(racks) > 1:
        deaths += [(2, {id_ for id_ in small.ids if small.rack[id_] == rack}) for rack in racks]
    for heir, dead in deaths:
        lost = sum(w for w, own in zip(led, small.after, strict=True) if set(own) <= dead)
        left, survivors = sum(led) - lost, [id_ for id_ in small.ids if id_ not in dead]
        whole = sum(part[id_] for id_ in survivors)
        for id_ in survivors:
            share = part[id_] / whole * left
            if share <= 0:
                continue
            leads = [
                (w, column)
                for w, seen in zip(led, columns, strict=True)
                for key, column in seen.items()
                if w and (key[0] == id_ or (key[0] in dead and key[heir] == id_))
            ]
            if set(led) == {1.0}:
                level.count([column for _, column in leads], share)
            else:
                level.add([w / share * column for w, column in leads], 0.0, share)
