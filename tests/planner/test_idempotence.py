"""Once a plan is carried out there is nothing left to plan, and the same ask always gives the same plan."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bench.clusters import Parameters, generate
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.candidates import FULL, candidate, candidates
from rebalance_lib.planner.request import OF_TOLERANCE, OWN_TOLERANCE
from rebalance_lib.topology import Capacities, Snapshot
from tests.planner.clusters import DISK, Host, cluster, odd_clusters, planned, topic
from tests.planner.examples import EXAMPLES

AGAIN = [mode for mode in Mode if mode is not Mode.REPLACE]
"""Once a broker is replaced, its replacement holds its replicas; the rules' test looks at what a second one says."""


def options_for(mode, before):
    ids = sorted(before.live)
    disks = max(ids, key=lambda id_: len(before.hosts[id_].disks))
    return {
        Mode.DRAIN: {"brokers": (ids[0],), "balance": len(ids) % 2 == 0},
        Mode.EXPAND: {"brokers": tuple(ids[-2:])},
        Mode.TOPICS: {"topics": ("*",)},
        Mode.REPLICATION_FACTOR: {"topics": ("*",), "replication_factor": 2},
        Mode.PARTITIONS: {"topics": ("*",), "partitions": 6},
        Mode.REPAIR: {"replication_factor": 2},
        Mode.LIGHT: {"fill_level": 0.6},
        Mode.DEMOTE: {"brokers": (ids[0],)},
        Mode.DRAIN_LOG_DIRS: {"log_dirs": (f"{disks}:{next(iter(before.hosts[disks].disks), '/none')}",)},
    }.get(mode, {})


def carried_out_for_good(before, request):
    """The plan of a request and the cluster after it, in which planning again finds nothing; None if it is refused."""
    assume(before.partitions)
    try:
        first = planned(before, request)
    except InvalidInputError:
        return None
    after = before.after(first.plan)
    assert planned(after, request).plan.as_dict() == {}
    return first, after


@pytest.mark.parametrize("mode", AGAIN)
@settings(max_examples=EXAMPLES)
@given(before=odd_clusters(sizes=st.one_of(st.integers(0, 30), st.integers(1, 1000)), alike=True))
def test_planning_again_after_a_plan_finds_nothing_to_do(mode, before):
    carried_out_for_good(before, Request(mode=mode, **options_for(mode, before)))


BUDGETED = (Mode.BALANCE, Mode.EXPAND, Mode.TOPICS, Mode.DRAIN, Mode.DISKS, Mode.LIGHT, Mode.REPAIR)


@pytest.mark.parametrize("mode", BUDGETED)
@settings(max_examples=EXAMPLES)
@given(
    before=odd_clusters(sizes=st.one_of(st.integers(0, 30), st.integers(1, 1000)), alike=True),
    budget=st.sampled_from([{"byte_budget": 1 << 61}, {"move_budget": 10_000}]),
)
def test_a_budget_that_does_not_bind_changes_nothing(mode, before, budget):
    request = Request(mode=mode, **options_for(mode, before), **budget)
    if found := carried_out_for_good(before, request):
        assert found[0].plan.digest == planned(before, request.without_budgets()).plan.digest


@pytest.mark.parametrize("shards", [1, 3])
def test_a_budget_that_is_just_enough_changes_nothing(shards):
    snapshot = generate(Parameters(scenario="skew", partitions=1500, brokers=12, seed=5)).snapshot()
    request = Request(Mode.BALANCE, shards=shards)
    whole = candidates(ClusterModel.of(snapshot), request)[0]
    enough = replace(request, byte_budget=whole.figures.bytes_moved, move_budget=whole.figures.replicas_moved)
    found = candidates(ClusterModel.of(snapshot), enough)[0]
    if shards == 1:  # else the last pass has the partitions of one more candidate to choose from
        assert found.plan.digest == whole.plan.digest
    assert found.figures.bytes_moved <= whole.figures.bytes_moved
    assert found.figures.bytes_after.most < 1.005 * whole.figures.bytes_after.most
    less = replace(request, byte_budget=whole.figures.bytes_moved - 1)
    spent = candidates(ClusterModel.of(snapshot), less)[0].figures
    assert 0.9 * whole.figures.bytes_moved < spent.bytes_moved < whole.figures.bytes_moved
    assert spent.bytes_after.most < spent.bytes_before.most


def test_a_replaced_broker_has_nothing_left_to_replace():
    before = generate(Parameters(scenario="expand", partitions=60, brokers=6, grow=1.5)).snapshot()
    request = Request(mode=Mode.REPLACE, brokers=(1,), replacements=(7,))
    (one,) = candidates(ClusterModel.of(before), request)
    assert len(one.plan) > 0
    (again,) = candidates(ClusterModel.of(carried_out(before, one.plan)), request)
    assert len(again.plan) == 0


def carried_out(snapshot, plan):
    """The snapshot once the plan is done: brokers by place in each list."""
    planned_lists = plan.as_dict()
    rows = snapshot.replicas.to_pylist()
    for row in rows:
        key = (row["topic"], row["partition"])
        if key in planned_lists:
            row["broker"] = planned_lists[key][row["position"]]
    table = type(snapshot.replicas).from_pylist(rows, snapshot.replicas.schema)
    return Snapshot(snapshot.cluster_id, snapshot.taken_at, snapshot.brokers, table)


@pytest.mark.parametrize("scenario", ["skew", "expand", "decommission", "steady"])
def test_planning_again_for_a_large_cluster_finds_nothing_to_do(scenario):
    cluster = generate(Parameters(scenario=scenario, partitions=2000, brokers=12, seed=5))
    mode = {"expand": Mode.EXPAND, "decommission": Mode.DRAIN}.get(scenario, Mode.BALANCE)
    request = Request(mode=mode, brokers=tuple(cluster.remove or cluster.add), balance=True)
    first = candidates(ClusterModel.of(cluster.snapshot()), request)[0]
    after = carried_out(cluster.snapshot(), first.plan)
    assert len(candidates(ClusterModel.of(after), request)[0].plan) == 0


@pytest.mark.parametrize("scenario", ["skew", "expand"])
@pytest.mark.parametrize("seed", [1, 2])
def test_planning_again_in_shards_finds_next_to_nothing(scenario, seed):
    cluster = generate(Parameters(scenario=scenario, partitions=3000, brokers=30, seed=seed))
    request = Request(Mode(scenario) if scenario == "expand" else Mode.BALANCE, brokers=tuple(cluster.add), shards=3)
    first = candidates(ClusterModel.of(cluster.snapshot()), request)[0]
    assert len(first.plan) > 0
    again = candidates(ClusterModel.of(carried_out(cluster.snapshot(), first.plan)), request)[0]
    assert len(again.plan) < 0.005 * 3000  # the last pass had some of the partitions, and a shard has all of its own


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.KAFKA])
def test_the_same_seed_gives_the_same_plans(mode):
    snapshot = generate(Parameters(scenario="skew", partitions=300, brokers=9)).snapshot()
    first, second = (candidates(ClusterModel.of(snapshot), Request(mode=mode, seed=3)) for _ in range(2))
    assert [one.plan.digest for one in first] == [one.plan.digest for one in second]


UNKNOWN = 0.3  # of capacities
NETWORKS = {"network_in": 10**9, "network_out": 3 * 10**9, "cpu": 8}


class Partly:
    """A cluster with rates, in which about a third of all capacities is not known, and a request with any goals."""

    def __init__(self, seed):
        random = Random(seed)
        self.ids = range(1, random.randint(4, 9) + 1)
        racks = random.choice([None, 2, 3])
        hosts = {
            id_: Host(f"r{id_ % racks}" if racks else None, disks={DISK: self.drawn(random, 4 * 10**9)})
            for id_ in self.ids
        }
        weight = {id_: random.uniform(0.2, 2) for id_ in self.ids}
        copies = random.randint(1, 3)
        lists = [
            sorted(self.ids, key=lambda id_: random.random() ** (1 / weight[id_]))[:copies]
            for _ in range(random.randint(8, 60))
        ]
        held = {}
        for number in range(0, len(lists), 10):
            some = lists[number : number + 10]
            held |= topic(f"t{number}", some, [int(random.lognormvariate(16, 1.2)) for _ in some])
        self.before = cluster(hosts, held)
        self.rates = [random.lognormvariate(8, 1.3) for _ in self.before.partitions]
        given = {id_: {one: self.drawn(random, least) for one, least in NETWORKS.items()} for id_ in self.ids}
        self.capacities = {
            id_: {one: value for one, value in of.items() if value} for id_, of in given.items() if any(of.values())
        }
        self.goals = tuple(random.sample([*OF_TOLERANCE, *OWN_TOLERANCE], random.randint(0, 6)))

    @staticmethod
    def drawn(random, least):
        return None if random.random() < UNKNOWN else least * random.choice([1, 1, 2, 4])

    def request(self, mode):
        options = {Mode.DRAIN: {"brokers": (1,), "balance": True}, Mode.EXPAND: {"brokers": (self.ids[-1],)}}
        return Request(mode, goals=self.goals, **options.get(mode, {}))

    def plan(self, layout, request):
        snapshot = Capacities.from_dict({"brokers": self.capacities}).apply(layout.snapshot())
        names = list(layout.partitions)
        loads = {
            "topic": [name.topic for name in names],
            "partition": pa.array([name.partition for name in names], pa.int32()),
            "write_rate": self.rates,
            "read_rate": self.rates[::-1],
        }
        model = ClusterModel.of(snapshot, pa.table(loads))
        return candidate(model, Scope.of(model, request), request, FULL)


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.EXPAND, Mode.DRAIN])
@settings(max_examples=EXAMPLES)
@example(seed=126)  # a drain whose moves for later goals are left out
@given(seed=st.integers(0, 1 << 32))
def test_planning_again_finds_nothing_where_capacities_are_unknown_whatever_the_goals(mode, seed):
    partly = Partly(seed)
    request = partly.request(mode)
    after = partly.before.after(partly.plan(partly.before, request).plan)
    assert partly.plan(after, request).plan.as_dict() == {}


@pytest.mark.parametrize("first", ["network_in", "replicas", "leaders", "network_out"])
def test_no_goal_gets_worse_for_one_later_in_the_list(first):
    request = Request(Mode.BALANCE, goals=(first, "disk"))
    gained = 0
    for seed in (4, *range(25, 40)):
        partly = Partly(seed)
        one = partly.plan(partly.before, request)
        found = {verdict.goal: verdict for verdict in one.outcome.verdicts(request)}
        if any(verdict.hard and verdict.before > verdict.limit for verdict in found.values()):
            continue  # these come before all in the list
        assert found[first].after <= max(found[first].before, found[first].limit) * (1 + 1e-9), seed
        gained += found["disk"].after < found["disk"].before
        after = partly.before.after(one.plan)
        assert partly.plan(after, request).plan.as_dict() == {}, seed
    assert gained > 2  # it is still pursued where it does no harm


def test_planning_again_finds_nothing_where_log_dirs_are_of_unknown_size():
    """What a step of an exact plan has put on such a log dir says nothing about its free space."""
    disks = {0: 2, 33: 2, 45: 2, 51: 3, 52: 2, 57: 2, 59: 3}
    hosts = {id_: Host("a", disks={f"/d{n}": None for n in range(count)}) for id_, count in disks.items()}
    partitions = {
        "t0-0": ([0, 57, 33, 59], 9),
        "t1-0": ([0, 33], 129),
        **topic("t2", [[0, 45, 51, 33], [33, 45, 52, 51], [0, 52, 57, 59]], [11, 366, 806]),
        **topic("t3", [[45, 33], [45, 33], [0, 51]], [176, 12, 206]),
    }
    elsewhere = {("t2", 2): ("/d0", "/d0", "/d0", "/d1"), ("t3", 2): ("/d0", "/d2")}
    before, request = cluster(hosts, partitions), Request(Mode.BALANCE)
    for name, held in before.partitions.items():
        log_dirs = elsewhere.get((name.topic, name.partition), held.log_dirs)
        before.partitions[name] = replace(held, log_dirs=log_dirs)
    assert planned(before.after(planned(before, request).plan), request).plan.as_dict() == {}
