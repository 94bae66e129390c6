"""The assignors beside the classes of Kafka's clients, on random groups, over three generations.

Java's answers are asked for in one go, for all cases of a generation. The groups go on with our answers.
"""

from __future__ import annotations

import pytest

from rebalance_lib.assignors import assign
from tests.assignors.groups import Case, answered, next_generation, random_case
from tests.assignors.judging import is_valid, judged
from tests.budget import cases as budgeted
from tests.java.reference import ASSIGNORS, FIRST_STICKY_ASSIGNORS

pytestmark = pytest.mark.programs

CASES = range(budgeted(300, long=10_000))
GENERATIONS = (1, 2, 3)


def is_uniform(case):
    return len({frozenset(one.topics) for one in case.members.values()}) == 1


def gives_what_nobody_wants(case, theirs):
    """Java gives a partition back to who had it before also where that member no longer subscribes to its topic."""
    return any(topic not in case.members[member].topics for member, owned in theirs.items() for topic, _ in owned)


def generations(strategy, cases):
    """The cases of each generation, each with our answer."""
    for generation in GENERATIONS:
        ours = [assign(strategy, case.partitions, case.members, racks=case.racks) for case in cases]
        yield list(zip(cases, ours, strict=True))
        cases = [next_generation(c, found, n, generation) for n, (c, found) in enumerate(zip(cases, ours, strict=True))]


@pytest.mark.parametrize("racks", [False, True], ids=["no racks", "racks"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_equals_the_class_of_4_3(strategy, racks):
    cases = [random_case(seed, racks=racks, instances=seed % 3 == 0) for seed in CASES]
    for case, java in zip(cases, ASSIGNORS.ask(case.line(strategy) for case in cases), strict=True):
        assert assign(strategy, case.partitions, case.members, racks=case.racks) == answered(java)


def test_a_group_without_members_gets_nothing_from_java_either():
    empty = Case({"orders": 3}, {})
    assert [answered(java) for java in ASSIGNORS.ask([empty.line("range")])] == [assign("range", empty.partitions, {})]


@pytest.fixture(scope="module")
def sticky_generations():
    return list(generations("sticky", [random_case(seed) for seed in CASES]))


def test_sticky_is_the_answer_of_4_3_where_subscriptions_are_equal(sticky_generations):
    for cases in sticky_generations:
        uniform = [(case, ours) for case, ours in cases if is_uniform(case)]
        assert len(uniform) > len(CASES) / 3
        for (_, ours), java in zip(uniform, ASSIGNORS.ask(case.line("sticky") for case, _ in uniform), strict=True):
            assert ours == answered(java)


@pytest.mark.parametrize("reference", [FIRST_STICKY_ASSIGNORS, ASSIGNORS], ids=["2.4.1", "4.3.1"])
def test_sticky_is_never_less_balanced_nor_moves_more_at_the_same_balance(sticky_generations, reference):
    for cases in sticky_generations:
        for (case, ours), java in zip(cases, reference.ask(case.line("sticky") for case, _ in cases), strict=True):
            theirs = answered(java)
            assert is_valid(case, ours)
            assert judged(case, ours) <= judged(case, theirs) or gives_what_nobody_wants(case, theirs)


@pytest.mark.parametrize("racks", [False, True], ids=["no racks", "racks"])
@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_what_is_forecast_is_what_clients_of_4_3_answer(strategy, racks):
    some = CASES[: max(1, len(CASES) // 10)]
    for cases in generations(strategy, [random_case(seed, racks=racks) for seed in some]):
        for (case, _), java in zip(cases, ASSIGNORS.ask(case.line(strategy) for case, _ in cases), strict=True):
            ours = assign(strategy, case.partitions, case.members, racks=case.racks, as_clients_do=True)
            theirs = answered(java)
            assert ours == theirs or gives_what_nobody_wants(case, theirs)
