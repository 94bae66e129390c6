"""What each mode does, and what it leaves alone."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from itertools import permutations
from random import Random

import pyarrow as pa
import pytest

from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from tests.planner.clusters import GB, Host, choices, cluster, planned, topic
from tests.planner.rules import arrivals, bytes_moved, racks_of

RACKS = {id_: "abc"[id_ % 3] for id_ in range(9)}
DISKS = {id_: Host(disks={"/d0": None, "/d1": None, "/d2": None}) for id_ in range(4)}


def lopsided(hosts, *, partitions=60, factor=3, seed=1, holding=None):
    """Partitions of different sizes on brokers drawn with different weights, a rack each where there are racks."""
    random = Random(seed)
    ids = list(holding or hosts)
    lists = []
    for _ in range(partitions):
        drawn: list[int] = []
        while len(drawn) < factor:
            broker = random.choices(ids, [1 + id_ % 4 for id_ in ids])[0]
            racks = {hosts[id_] for id_ in drawn} if isinstance(hosts, dict) and isinstance(hosts[broker], str) else ()
            if broker not in drawn and hosts[broker] not in racks:
                drawn.append(broker)
        lists.append(drawn)
    return cluster(hosts, topic("orders", lists, [random.randint(1, 50) * GB // 10 for _ in lists]))


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.DRAIN, Mode.EXPAND])
def test_excluded_brokers_keep_the_leaders_they_have_and_the_others_share_the_rest(mode):
    hosts = {**RACKS, 9: "a", 10: "b", 11: "c"}
    before = lopsided(hosts, partitions=120, holding=RACKS)
    request = Request(mode, brokers={Mode.DRAIN: (0,), Mode.EXPAND: (9, 10, 11)}.get(mode, ()), excluded_brokers=(1, 2))
    plan = planned(before, request)
    after = before.after(plan.plan)
    for broker in (1, 2):
        assert led_by(before, broker) == led_by(after, broker)
        assert led_by(before, broker)
    others = [after.leaders_by_broker()[id_] for id_ in hosts if id_ not in (1, 2, *request.brokers)]
    if mode is not Mode.EXPAND:
        busy = [count for count in others if count]
        assert max(busy) - min(busy) <= 2


def led_by(cluster, broker):
    return {name for name, held in cluster.partitions.items() if held.replicas[0] == broker}


@pytest.mark.parametrize("broker", [0, 4])
def test_drain_copies_exactly_the_brokers_bytes(broker):
    before = lopsided(RACKS)
    plan = planned(before, Request(mode=Mode.DRAIN, brokers=(broker,)))
    after = before.after(plan.plan)
    assert after.replicas_by_broker()[broker] == 0
    assert plan.figures.bytes_moved == before.bytes_by_broker()[broker]
    assert all(broker in before.partitions[name].replicas for name, _, _ in named_arrivals(before, after))


def named_arrivals(before, after):
    names = {str(name): name for name in before.partitions}
    return [(names[name], broker, size) for name, broker, size in arrivals(before, after)]


def test_drain_of_a_whole_rack_spreads_over_those_left():
    before = cluster({1: "a", 2: "b", 3: "c", 4: "b", 5: "c"}, topic("orders", [[1, 2, 3], [2, 1, 5]]))
    after = before.after(planned(before, Request(Mode.DRAIN, brokers=(1,))).plan)
    racks = [racks_of(after, held.replicas) for held in after.partitions.values()]
    assert [sorted(counts.values()) for counts in racks] == [[1, 2], [1, 2]]


def test_drain_with_balance_evens_out_the_others_too():
    before = lopsided(RACKS)
    held = before.after(planned(before, Request(mode=Mode.DRAIN, brokers=(0,), balance=True)).plan).bytes_by_broker()
    alone = before.after(planned(before, Request(mode=Mode.DRAIN, brokers=(0,))).plan).bytes_by_broker()
    assert held[0] == 0
    assert max(held.values()) < max(alone.values())


def test_drain_takes_internal_topics_unless_topics_are_named():
    before = cluster(
        [1, 2], {**topic("orders", [[1]]), **topic("__consumer_offsets", [[1]])}, internal=["__consumer_offsets"]
    )
    emptied = before.after(planned(before, Request(mode=Mode.DRAIN, brokers=(1,))).plan)
    assert emptied.replicas_by_broker() == {2: 2}
    named = before.after(planned(before, Request(mode=Mode.DRAIN, brokers=(1,), topics=("orders",))).plan)
    assert named.replicas_by_broker() == {1: 1, 2: 1}


def test_balance_leaves_internal_topics_alone_unless_asked():
    before = cluster([1, 2], topic("__consumer_offsets", [[1]] * 4, 5), internal=["__consumer_offsets"])
    assert len(planned(before, Request(mode=Mode.BALANCE)).plan) == 0
    moved = before.after(planned(before, Request(mode=Mode.BALANCE, include_internal=True)).plan)
    assert moved.bytes_by_broker() == {1: 10, 2: 10}


def test_expand_moves_nothing_between_old_brokers():
    hosts = {**RACKS, 9: "a", 10: "b", 11: "c"}
    before = lopsided(hosts, holding=RACKS)
    for one in choices(before, Request(mode=Mode.EXPAND)):
        came = {broker for _, broker, _ in arrivals(before, before.after(one.plan))}
        assert came <= {9, 10, 11}


def test_expand_again_onto_the_same_brokers_moves_nothing():
    hosts = {**RACKS, 9: "a", 10: "b", 11: "c"}
    before = lopsided(hosts, holding=RACKS)
    request = Request(mode=Mode.EXPAND, brokers=(9, 10, 11))
    after = before.after(planned(before, request).plan)
    assert len(planned(after, request).plan) == 0


def test_leaders_moves_no_bytes():
    before = lopsided(RACKS)
    plan = planned(before, Request(mode=Mode.LEADERS))
    after = before.after(plan.plan)
    assert bytes_moved(before, after) == plan.figures.bytes_moved == 0
    assert plan.figures.order_only == len(plan.plan) > 0
    led = after.leaders_by_broker()
    assert max(led[id_] for id_ in RACKS) - min(led[id_] for id_ in RACKS) <= 1


def test_disks_moves_nothing_between_brokers():
    before = lopsided(DISKS, factor=2)
    plan = planned(before, Request(mode=Mode.DISKS))
    after = before.after(plan.plan)
    assert after.assignment() == before.assignment()
    assert plan.figures.log_dir_moves > 0
    for broker in DISKS:
        disks = [after.bytes_by_disk()[broker, path] for path in ("/d0", "/d1", "/d2")]
        assert max(disks) - min(disks) <= 2 * max(held.size for held in before.partitions.values())


def test_disks_counts_what_may_not_move_and_leaves_excluded_brokers_alone():
    disks = Host(disks={"/d0": None, "/d1": None})
    before = cluster({1: disks}, {**topic("big", [[1]], 100), **topic("small", [[1]] * 10, 1)})
    after = before.after(planned(before, Request(mode=Mode.DISKS, topics=("small",))).plan)
    assert after.bytes_by_disk()[1, "/d1"] >= 9
    apart = before.after(planned(before, Request(mode=Mode.DISKS)).plan)
    assert len(planned(apart, Request(mode=Mode.DISKS, topics=("small",))).plan) == 0
    assert len(planned(before, Request(mode=Mode.DISKS, excluded_brokers=(1,))).plan) == 0


def test_replace_keeps_every_place():
    before = lopsided({**RACKS, 12: "a"}, holding=RACKS)
    plan = planned(before, Request(mode=Mode.REPLACE, brokers=(0,), replacements=(12,)))
    expected = {
        name: tuple(12 if broker == 0 else broker for broker in held.replicas)
        for name, held in before.partitions.items()
        if 0 in held.replicas
    }
    assert plan.plan.as_dict() == expected


@pytest.mark.parametrize("registered", [True, False])
def test_repair_replaces_replicas_on_dead_brokers_and_nothing_else(registered):
    before = lopsided(RACKS)
    gone = Host("a" if registered else None, alive=False, registered=registered, disks={})
    before = replace(before, hosts={**before.hosts, 0: gone})
    plan = planned(before, Request(mode=Mode.REPAIR)).plan
    assert set(plan.as_dict()) == {name for name, held in before.partitions.items() if 0 in held.replicas}
    after = before.after(plan)
    assert after.replicas_by_broker()[0] == 0
    assert all(set(before.partitions[n].replicas) - {0} <= set(held.replicas) for n, held in after.partitions.items())


@pytest.mark.parametrize(
    ("racks", "replicas", "spread"),
    [
        ({1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}, [1, 2, 3], [1, 1, 1]),
        ({1: "a", 2: "a", 3: "a", 4: "b"}, [1, 2, 3], [1, 2]),
        ({1: "a", 2: "a", 3: "a", 4: "b", 5: "b"}, [1, 2, 3, 4], [2, 2]),
        ({1: "a", 2: "a", 3: "a", 4: "b"}, [1, 2, 3, 4], [1, 3]),
        ({1: "a", 2: "b"}, [1, 2], [1, 1]),
    ],
)
@pytest.mark.parametrize("mode", [Mode.REPAIR, Mode.BALANCE])
def test_racks_are_repaired_as_far_as_their_sizes_allow(racks, replicas, spread, mode):
    before = cluster(racks, topic("orders", [replicas], 5))
    after = before.after(planned(before, Request(mode=mode)).plan)
    (held,) = after.partitions.values()
    assert sorted(racks_of(after, held.replicas).values()) == spread


def test_topics_moves_the_chosen_ones_alone():
    before = cluster([1, 2, 3], {**topic("orders", [[1]] * 6, 5), **topic("payments", [[1]] * 6, 5)})
    for one in choices(before, Request(mode=Mode.TOPICS, topics=("pay*",))):
        assert {entry.topic for entry in one.plan} <= {"payments"}


def test_a_higher_factor_adds_replicas_in_other_racks_and_moves_none():
    before = lopsided(RACKS, factor=2)
    after = before.after(
        planned(before, Request(mode=Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=3)).plan
    )
    for name, held in after.partitions.items():
        assert set(before.partitions[name].replicas) < set(held.replicas)
        assert len(racks_of(after, held.replicas)) == 3


@pytest.mark.parametrize("brokers", [3, 4, 6])
@pytest.mark.parametrize("alone", [True, False])
def test_a_higher_factor_spreads_the_leaders_of_each_topic_also_where_a_broker_leads_little_else(brokers, alone):
    ids = list(range(1, brokers + 1))
    raised = {**topic("a", [[1]] * 4), **topic("b", [[ids[n % brokers]] for n in range(4)])}
    others = {} if alone else topic("others", [[ids[n % (brokers - 1)]] for n in range(50)])
    before = cluster(ids, {**raised, **others})
    request = Request(Mode.REPLICATION_FACTOR, topics=("a", "b"), replication_factor=3)
    after = before.after(planned(before, request).plan)
    for name in ("a", "b"):
        led = Counter(held.replicas[0] for partition, held in after.partitions.items() if partition.topic == name)
        assert max(led.values()) <= 2  # four partitions, and three brokers or more hold replicas of each


def test_new_partitions_of_a_topic_are_not_all_led_by_the_broker_that_leads_the_least():
    before = cluster([1, 2, 3], {**topic("grows", [[1, 2, 3]]), **topic("others", [[1], [2]] * 20)})
    after = before.after(planned(before, Request(Mode.PARTITIONS, topics=("grows",), partitions=9)).plan)
    led = Counter(held.replicas[0] for name, held in after.partitions.items() if name.topic == "grows")
    assert led == {1: 3, 2: 3, 3: 3}


def test_a_lower_factor_drops_the_dead_replica_be_it_the_preferred_leader():
    before = cluster({1: Host(alive=False), 2: None, 3: None}, topic("orders", [[1, 2], [2, 1], [2, 3]]))
    after = before.after(
        planned(before, Request(mode=Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=1)).plan
    )
    assert set(after.assignment().values()) == {(2,)}


def test_a_lower_factor_copies_nothing_and_its_bound_is_nothing():
    before = lopsided(RACKS)
    figures = planned(before, Request(mode=Mode.REPLICATION_FACTOR, topics=("orders",), replication_factor=2)).figures
    assert (figures.bytes_moved, figures.least_bytes, figures.least_bytes_for_balance) == (0, 0, 0)


@pytest.mark.parametrize("alive", [True, False])
def test_new_partitions_are_numbered_on_and_spread_whatever_the_order_of_topics(alive):
    before = cluster(
        {1: "a", 2: "b", 3: "a", 4: Host("b", alive=alive)},
        {**topic("t2", [[1, 4], [1, 2]]), **topic("t10", [[1, 2]]), **topic("a", [[4]])},
    )
    plan = planned(before, Request(mode=Mode.PARTITIONS, topics=("t*",), partitions=4)).plan.as_dict()
    assert sorted(map(str, plan)) == ["t10-1", "t10-2", "t10-3", "t2-2", "t2-3"]
    for replicas in plan.values():
        assert racks_of(before, replicas) == {"a": 1, "b": 1}


def test_light_relieves_a_broker_that_is_a_little_too_full():
    disk = Host(disks={"/data": 100})
    before = cluster({1: disk, 2: disk}, {**topic("a", [[1]] * 9, 10), **topic("b", [[2]] * 2, 10)})
    (only,) = choices(before, Request(mode=Mode.LIGHT, fill_level=0.85))
    assert before.after(only.plan).bytes_by_broker() == {1: 80, 2: 30}


def test_light_lifts_nobody_above_the_level():
    disk = Host(disks={"/data": 100})
    before = cluster({1: disk, 2: disk, 3: disk}, {**topic("a", [[1]] * 9, 10), **topic("b", [[2], [3]], [75, 60])})
    plan = planned(before, Request(mode=Mode.LIGHT, fill_level=0.8)).plan
    assert before.after(plan).bytes_by_broker() == {1: 80, 2: 75, 3: 70}


def test_light_does_what_a_budget_allows():
    disk = Host(disks={"/data": 100})
    before = cluster({1: disk, 2: disk}, topic("a", [[1]] * 9, 10))
    only = planned(before, Request(mode=Mode.LIGHT, fill_level=0.5, byte_budget=25))
    assert before.after(only.plan).bytes_by_broker() == {1: 70, 2: 20}


def test_kafka_keeps_the_bytes_and_log_dirs_of_what_only_changes_its_place():
    disks = Host(disks={"/d0": None, "/d1": None})
    before = cluster(dict.fromkeys((1, 2), disks), topic("orders", [[1, 2]] * 6, 7))
    figures = planned(before, Request(mode=Mode.KAFKA)).figures
    assert (figures.bytes_moved, figures.least_bytes, figures.log_dir_moves) == (0, 0, 0)


def test_kafka_keeps_partitions_whose_racks_striping_would_crowd():
    before = cluster({id_: "a" if id_ < 6 else "b" for id_ in range(1, 8)}, topic("orders", [[1, 2, 6, 7]] * 2))
    seed = zlib.crc32(b"orders")  # which the topic's name is taken out of again
    plan = planned(before, Request(mode=Mode.KAFKA, seed=seed))
    assert list(before.after(plan.plan).assignment().values()) == [(4, 6, 2, 7), (1, 2, 6, 7)]
    assert plan.figures.partitions_kept == 1
    crowded = cluster(before.hosts, topic("orders", [[1, 2, 6, 7], [1, 2, 3, 6]]))
    plan = planned(crowded, Request(mode=Mode.KAFKA, seed=seed))
    assert list(before.after(plan.plan).assignment().values()) == [(4, 6, 2, 7), (5, 7, 3, 4)]
    assert plan.figures.partitions_kept == 0


def test_shares_follow_capacity():
    hosts = {1: Host(disks={"/data": 4000}), 2: Host(disks={"/data": 2000}), 3: Host(disks={"/data": 2000})}
    before = cluster(hosts, topic("orders", [[1 + n % 3] for n in range(120)], 10))
    after = before.after(planned(before, Request(mode=Mode.BALANCE)).plan)
    assert after.bytes_by_broker() == {1: 600, 2: 300, 3: 300}


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.REPAIR])
def test_a_cluster_in_balance_gets_an_empty_plan(mode):
    before = cluster({1: "a", 2: "b", 3: "c"}, topic("orders", [list(one) for one in permutations((1, 2, 3))] * 2, 10))
    (only,) = choices(before, Request(mode=mode))
    assert len(only.plan) == 0


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.LEADERS, Mode.REPAIR, Mode.KAFKA])
def test_a_cluster_without_topics_gets_an_empty_plan(mode):
    (only,) = choices(cluster({1: "a", 2: "b"}), Request(mode=mode))
    assert len(only.plan) == 0


def test_new_partitions_are_placed_where_rates_are_known_and_replicas_are_out_of_sync():
    held = cluster([1, 2, 3], topic("t", [[1, 2], [2, 3]], 5))
    lagging = {name: replace(one, lagging=one.replicas[1:]) for name, one in held.partitions.items()}
    snapshot = replace(held, partitions=lagging).snapshot()
    loads = pa.table({"topic": ["t", "t"], "partition": pa.array([0, 1], pa.int32()), "write_rate": [5.0, 7.0]})
    for known in (None, loads):
        model = ClusterModel.of(snapshot, known)
        plan = candidates(model, Request(Mode.PARTITIONS, topics=("t",), partitions=4))[0].plan
        assert [len(entry.replicas) for entry in plan] == [2, 2]
