"""Plans for small clusters beside the optimum of an integer program."""

from __future__ import annotations

from random import Random
from statistics import median

from rebalance_lib.planner import Mode, Request
from tests.planner.clusters import cluster, planned, topic
from tests.planner.examples import EXAMPLES
from tests.planner.optimum import least_bytes

CASES = range(max(8, EXAMPLES))  # a median needs some


def small_cluster(random):
    """Three to six brokers, up to 16 partitions, spread over racks, some brokers fuller than others."""
    count = random.randint(3, 6)
    racks = random.choice([1, 3] if count < 6 else [1, 2, 3])
    hosts = {id_: f"r{id_ % racks}" for id_ in range(count)}
    factor = random.randint(1, min(racks, 3)) if racks > 1 else random.randint(1, 2)
    lists, sizes = [], []
    for _ in range(random.randint(8, 16)):
        drawn: list[int] = []
        while len(drawn) < factor:
            broker = random.choices(range(count), [1 + 3 * (id_ % 2) for id_ in range(count)])[0]
            if broker not in drawn and (racks == 1 or hosts[broker] not in {hosts[id_] for id_ in drawn}):
                drawn.append(broker)
        lists.append(drawn)
        sizes.append(random.choice([random.randint(1, 100), random.randint(1, 20)]))
    return cluster(hosts, topic("orders", lists, sizes))


def outcomes(request_for):
    for seed in CASES:
        before = small_cluster(Random(seed))
        request, staying = request_for(before)
        one = planned(before, request)
        held = before.after(one.plan).bytes_by_broker()
        low, high = min(held[id_] for id_ in staying), max(held[id_] for id_ in staying)
        best = least_bytes(before, dict.fromkeys(staying, low), dict.fromkeys(staying, high), staying=staying)
        yield one.figures, best


def test_a_balanced_plan_is_near_the_optimum_and_the_bound_below_it():
    ratios = []
    for figures, best in outcomes(lambda before: (Request(mode=Mode.BALANCE), tuple(before.hosts))):
        assert figures.least_bytes_for_balance <= best <= figures.bytes_moved
        if best:
            ratios.append(figures.bytes_moved / best)
    assert median(ratios) <= 1.25
    assert sorted(ratios)[int(0.9 * len(ratios))] <= 2.5


def test_a_drain_copies_as_little_as_any_could():
    drained = 0
    for seed in CASES:
        before = small_cluster(Random(seed))
        staying = tuple(id_ for id_ in before.hosts if id_ != 0)
        if before.rack(0) not in {before.rack(id_) for id_ in staying}:
            continue
        anything = dict.fromkeys(staying, 0), dict.fromkeys(staying, 10_000)
        figures = planned(before, Request(mode=Mode.DRAIN, brokers=(0,))).figures
        assert figures.bytes_moved == before.bytes_by_broker()[0] == least_bytes(before, *anything, staying=staying)
        drained += 1
    assert drained > len(CASES) // 3
