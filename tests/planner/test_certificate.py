"""Certificates: no placement is better than the bounds, and the optimum is what brute force finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product
from random import Random

import numpy as np
import pytest

from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.certificate import Loads, Problem, evenness, exact, least_bytes
from rebalance_lib.planner.certified import certificate_of
from tests.budget import cases
from tests.planner.clusters import cluster, topic

SEEDS = range(cases(150, long=3000))


def problem(lists, sizes, loads, *, brokers, racks=None, movable=None, **flags):
    """`flags` are gives, takes and leaves, each the brokers that do not, do not, and do."""
    every = np.ones(brokers, np.bool_)
    marked = {name: np.isin(np.arange(brokers), flags.get(name, ())) for name in ("gives", "takes", "leaves")}
    return Problem(
        offsets=np.cumsum([0, *map(len, lists)]),
        broker=np.array([b for listed in lists for b in listed], np.int32),
        size=np.array(sizes, np.int64),
        movable=np.array([True] * len(lists) if movable is None else movable, np.bool_),
        rack=np.array(racks if racks is not None else [0] * brokers, np.int32),
        gives=every & ~marked["gives"],
        takes=every & ~marked["takes"] & ~marked["leaves"],
        leaves=marked["leaves"],
        loads=tuple(loads),
    )


def band(name, per_replica, share, tolerance=0.0):
    return Loads.within(name, np.array(per_replica, float), np.array(share, float), tolerance)


def small_problem(random):
    brokers = random.randint(1, 4)
    racks = random.choice([None, None, [b % 2 for b in range(brokers)], [b % 3 for b in range(brokers)]])
    if racks and random.random() < 0.2:
        racks = [-1 if random.random() < 0.3 else rack for rack in racks]
    lists = [
        random.sample(range(brokers), random.randint(1, min(2 + (brokers > 3), brokers)))
        for _ in range(random.randint(1, 4))
    ]
    if random.random() < 0.15:
        lists[0][0] = -1
    sizes = [random.choice([0, 1, random.randint(1, 9), random.randint(1, 40)]) for _ in lists]
    rates = [random.choice([0, random.randint(1, 9)]) for _ in lists]
    leaves = [brokers - 1] if brokers > 1 and random.random() < 0.3 else []
    some = {name: [b for b in range(brokers) if random.random() < 0.15] for name in ("gives", "takes")}
    weight = np.array([0 if b in leaves else random.choice([1, 1, 2, 3]) for b in range(brokers)])
    tolerance = random.choice([0.02, 0.2, 0.5])

    def shared(name, load):
        total = sum(one * len(listed) for one, listed in zip(load, lists, strict=True))
        return band(name, load, weight * total / weight.sum(), tolerance)

    ones = [1] * len(lists)
    loads = [shared("disk", sizes), shared("replicas", ones), shared("network_in", rates)]
    loads = random.sample(loads, random.randint(1, 3))
    movable = [random.random() < 0.85 for _ in lists]
    return problem(lists, sizes, loads, brokers=brokers, racks=racks, movable=movable, leaves=leaves, **some)


def listed(one, p):
    return one.broker[one.offsets[p] : one.offsets[p + 1]].tolist()


def racks_are_kept(one, before, after):
    had = Counter(one.rack[b] for b in before if b >= 0 and one.rack[b] >= 0)
    has = Counter(one.rack[b] for b in after if one.rack[b] >= 0)
    in_rack = Counter(one.rack[b] for b in range(one.brokers) if not one.leaves[b] and one.rack[b] >= 0)
    if len(has) < min(len(had), len(after), len(in_rack)):
        return False
    if sum(had.values()) < len(before):
        return True
    most = max(had.values())
    if one.leaves.any():
        spread = (m for m in range(len(after) + 1) if sum(min(m, n) for n in in_rack.values()) >= len(after))
        most = max(most, next(spread, len(after)))
    return max(has.values(), default=0) <= most


def choices(one, p):
    """All that may become of a partition: its set of replicas."""
    before = listed(one, p)
    if not one.movable[p]:
        return [frozenset(b for b in before if b >= 0)]
    found = []
    for after in combinations([b for b in range(one.brokers) if not one.leaves[b]], len(before)):
        comes, goes = set(after) - set(before), set(before) - set(after) - {-1}
        may_move = all(one.takes[b] for b in comes) and all(one.gives[b] or one.leaves[b] for b in goes)
        if may_move and racks_are_kept(one, before, after):
            found.append(frozenset(after))
    return found


def placements(one):
    """All allowed ones: bytes copied, and the loads of brokers."""
    for chosen in product(*(choices(one, p) for p in range(one.partitions))):
        copied = sum(int(one.size[p]) * len(after - set(listed(one, p))) for p, after in enumerate(chosen))
        held = np.zeros((len(one.loads), one.brokers))
        for number, loads in enumerate(one.loads):
            for p, after in enumerate(chosen):
                for b in after:
                    held[number, b] += loads.per_replica[p]
        yield copied, held


def within_bands(one, held):
    return all(
        np.all(load >= low - 1e-9) and np.all(load <= high + 1e-9)
        for load, (low, high) in zip(held, map(one.band, one.loads), strict=True)
    )


def level(one, loads, load):
    counted = (loads.share > 0) & ~one.leaves
    return float((load[counted] / loads.share[counted]).max()) if counted.any() else 0.0


def test_no_placement_is_better_than_the_bounds_and_the_optimum_is_the_best_placement():
    reached, beaten = 0, 0
    for seed in SEEDS:
        one = small_problem(Random(seed))
        every = list(placements(one))
        fitting = [copied for copied, held in every if within_bands(one, held)]
        bound, optimum = least_bytes.least_bytes(one), exact.least_bytes(one, checks=None)
        if fitting:
            assert bound is not None, seed
            assert bound <= min(fitting) == optimum.value, seed
            reached += 1
            beaten += bound == min(fitting)
        else:
            assert optimum.value is None, seed
        assert optimum.exact, seed
        for number, loads in enumerate(one.loads):
            if every:
                lowest = min(level(one, loads, held[number]) for _, held in every)
                even = evenness.best_possible(one, loads)
                assert even <= lowest + 1e-9, (seed, loads.name)
                best = exact.best_possible(one, loads, checks=None)
                assert best.exact, seed
                found = max(even, best.value)
                assert found == pytest.approx(lowest, rel=2 * exact.LEVEL_GAP), (seed, loads.name)
    assert reached > len(SEEDS) / 5
    assert beaten > reached / 2  # or the bound would be worth little


def medium_problem(random, tolerance, partitions=None):
    brokers, partitions = random.randint(3, 12), partitions or random.randint(20, 200)
    racks = random.choice([None, [b % 3 for b in range(brokers)]])
    heavy = [random.choice([1, 1, 4]) for _ in range(brokers)]
    lists = []
    for _ in range(partitions):
        if racks:
            hosts = [[b for b in range(brokers) if racks[b] == rack] for rack in range(3)]
            lists.append([random.choices(own, [heavy[b] for b in own])[0] for own in hosts])
        else:
            first = random.choices(range(brokers), heavy)[0]
            lists.append([first, (first + random.randint(1, brokers - 1)) % brokers])
    size = np.array([int(random.lognormvariate(10, 1.5)) for _ in lists])
    rate = np.array([random.lognormvariate(5, 1.5) for _ in lists])
    factor = len(lists[0])
    weight = [np.array([random.choice([1, 2]) for _ in range(brokers)]) for _ in range(2)]
    loads = [
        band("disk", size, weight[0] * size.sum() * factor / weight[0].sum(), tolerance),
        band("network_in", rate, weight[1] * rate.sum() * factor / weight[1].sum(), tolerance),
        band("replicas", np.ones(partitions), np.full(brokers, partitions * factor / brokers), tolerance),
    ]
    return problem(lists, size, loads, brokers=brokers, racks=racks)


def test_a_wider_tolerance_never_asks_for_more_bytes():
    for seed in range(cases(20, long=300)):
        bounds = [least_bytes.least_bytes(medium_problem(Random(seed), width)) for width in (0.02, 0.1, 0.3, 0.6, 5.0)]
        for narrow, wide in pairwise(bounds):
            assert narrow is None or (wide is not None and wide <= narrow * (1 + 3 * least_bytes.GAP) + 1)


def test_within_its_bands_a_cluster_needs_no_bytes():
    for seed in range(cases(20, long=300)):
        one = medium_problem(Random(seed), 0.02)
        one = replace(one, loads=tuple(loads.including(one.held(loads)) for loads in one.loads))
        assert least_bytes.least_bytes(one) == 0


def test_by_disk_alone_the_bound_is_what_lies_above_the_bands_or_lacks_below():
    for seed in range(cases(20, long=300)):
        one = medium_problem(Random(seed), 0.05)
        one = replace(one, loads=one.loads[:1])
        held = one.held(one.loads[0])
        above, lack = np.maximum(0, held - one.loads[0].high).sum(), np.maximum(0, one.loads[0].low - held).sum()
        found = least_bytes.least_bytes(one)
        if found is not None:
            assert found >= max(above, lack) * (1 - 1e-6)


def test_more_loads_never_ask_for_fewer_bytes():
    more = 0
    for seed in range(cases(20, long=300)):
        one = medium_problem(Random(seed), 0.1)
        every, single = least_bytes.least_bytes(one), [replace(one, loads=(loads,)) for loads in one.loads]
        bounds = [least_bytes.least_bytes(each) for each in single]
        if every is None or None in bounds:
            assert every is None  # what cannot be had of one load cannot be had of all
            more += None not in bounds
            continue
        assert every >= max(bounds) * (1 - 3 * least_bytes.GAP)
        more += every > max(bounds) * 1.005
    assert more > 3


RATES = [1, 3, 2, 0]


@pytest.mark.parametrize(("high", "bound"), [(6, 4), (9, 2)])
def test_example_of_least_bytes(high, bound):
    """The one in the module."""
    disk, rate = band("disk", [6, 3, 1, 2], [6, 6]), band("network_in", RATES, [3, 3])
    disk = replace(disk, low=np.zeros(2), high=np.array([high, 100.0]))
    rate = replace(rate, low=np.zeros(2), high=np.array([3.0, 100.0]))
    one = problem([[0], [0], [0], [1]], [6, 3, 1, 2], [disk, rate], brokers=2)
    assert least_bytes.least_bytes(one) == bound
    assert least_bytes.least_bytes(replace(one, loads=(rate,))) == 2


def test_example_of_fractional_moves():
    """The one in the module."""
    loads = band("replicas", [1, 1, 1], [1, 1, 1])
    one = problem([[0], [0], [0]], [1, 2, 9], [loads], brokers=3)
    assert least_bytes.least_bytes(one) == exact.least_bytes(one, checks=None).value == 3


def test_example_of_evenness():
    """The one in the module."""
    for sizes, best in [([7, 3, 2], 7 / 4), ([3, 3, 3, 3], 6 / 4)]:
        loads = band("disk", sizes, [4, 4, 4])
        one = problem([[0]] * len(sizes), sizes, [loads], brokers=3)
        assert evenness.best_possible(one, loads) == pytest.approx(best)


def test_example_of_the_exact_optimum():
    """The one in the module."""
    one = problem([[0]] * 4, [4, 3, 2, 1], [band("disk", [4, 3, 2, 1], [5, 5])], brokers=2)
    assert exact.least_bytes(one, checks=None) == exact.Optimum(5, exact=True)
    assert exact.best_possible(one, one.loads[0], checks=None).value == pytest.approx(1, rel=1e-5)


def test_data_of_brokers_that_leave_and_replicas_without_a_broker_are_copied_in_any_case():
    anything = Loads("disk", np.array([5.0, 7, 2]), np.ones(4), np.zeros(4), np.full(4, 100.0))
    one = problem([[0, 3], [3, 1], [1, -1]], [5, 7, 2], [anything], brokers=4, leaves=[3])
    assert least_bytes.least_bytes(one) == exact.least_bytes(one, checks=None).value == 14


def test_each_rack_needs_its_own_bytes_where_each_holds_a_copy():
    """In rack 0 one broker has 8 too much, in rack 1 one has 8 too little: no move serves both."""
    lists = [[0, 1], [0, 1], [0, 1], [0, 3], [0, 3], [0, 3], [2, 1], [2, 1], [2, 1], [2, 3]]
    share = Loads("disk", np.full(10, 4.0), np.ones(4), np.array([0.0, 0, 0, 20]), np.array([16.0, 100, 100, 100]))
    one = problem(lists, [4] * 10, [share], brokers=4, racks=[0, 1, 0, 1])
    assert least_bytes.least_bytes(one) == 8 + 4
    assert least_bytes.least_bytes(replace(one, rack=np.zeros(4, np.int32))) == 8


def test_a_broker_that_takes_nothing_may_end_with_less_than_its_share():
    """Broker 0 has 3 replicas too many and no byte too many: what it gives for the number leaves it short of bytes."""
    sizes = [1] * 6 + [6]
    loads = [band("disk", sizes, [6, 6]), band("replicas", [1] * 7, [3, 4])]
    loads[0] = replace(loads[0], low=np.array([6.0, 0]), high=np.array([6.0, 12]))
    one = problem([[0]] * 6 + [[1]], sizes, loads, brokers=2, takes=[0], gives=[1])
    assert least_bytes.least_bytes(one) == exact.least_bytes(one, checks=None).value == 3
    fitting = [copied for copied, held in placements(one) if within_bands(one, held)]
    assert min(fitting) == 3


def test_one_broker_is_as_even_as_can_be():
    one = problem([[0], [0]], [3, 0], [band("disk", [3, 0], [3]), band("replicas", [1, 1], [2])], brokers=1)
    assert least_bytes.least_bytes(one) == 0
    assert [evenness.best_possible(one, loads) for loads in one.loads] == pytest.approx([1.0, 1.0])


def test_nothing_at_all_has_bounds():
    assert least_bytes.least_bytes(problem([], [], [band("disk", [], [0, 0])], brokers=2)) == 0


def test_the_certificate_of_a_small_cluster_knows_that_replicas_are_whole():
    """Three replicas of 10 bytes on two brokers: fractions of them can be shared out evenly, they cannot."""
    model = ClusterModel.of(cluster([1, 2], topic("t", [[1], [1], [1]], [10, 10, 10])).snapshot())
    request = Request(Mode.BALANCE, goals=("disk",))
    found = certificate_of(model, Scope.of(model, request), request)
    assert found.best["disk"] == pytest.approx(20 / 15)
    assert found.least_bytes is None
    request = Request(Mode.BALANCE, goals=("disk",), tolerance=0.4)
    assert certificate_of(model, Scope.of(model, request), request).least_bytes == 10


def test_sizes_far_apart_leave_a_bound():
    """Two partitions of a terabyte beside some of a few bytes, which HiGHS cannot tell from nothing."""
    for seed in range(cases(10, long=200)):
        random = Random(seed)
        sizes = [10**12, 10**12, *(random.randint(1, random.choice([1000, 50_000])) for _ in range(4))]
        loads = [
            band("disk", sizes, [sum(sizes) / 2] * 2, 0.01),
            band("replicas", [1] * len(sizes), [len(sizes) / 2] * 2, 0.3),
        ]
        one = problem([[0], [1], *[[0]] * 4], sizes, loads, brokers=2)
        fewest = min(copied for copied, held in placements(one) if within_bands(one, held))
        assert exact.least_bytes(one).value <= fewest, seed


def test_a_failure_of_the_solver_finds_nothing_and_proves_nothing(monkeypatch):
    def fails(_solver):
        raise ValueError("vector::reserve")

    monkeypatch.setattr("highspy.Highs.run", fails)
    one = problem([[0]] * 4, [4, 3, 2, 1], [band("disk", [4, 3, 2, 1], [5, 5])], brokers=2)
    assert exact.least_bytes(one) == exact.Optimum(0.0, exact=False)
