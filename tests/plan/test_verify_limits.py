"""The verifier counts disk space and budgets from plan and snapshot alone: a plan that breaks a limit is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lib.errors import RebalanceError
from rebalance_lib.plan import Limits, Plan, PlanEntry, Rule, Rules, current_assignment, verify_plan
from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.topology import Capacities
from tests.planner.clusters import Host, cluster

BEFORE = cluster(
    {1: Host(disks={"/a": 100}), 2: Host(disks={"/a": 100, "/b": 50}), 3: Host(disks={"/a": None})},
    {"t-0": ([1], 60), "t-1": ([2], 30), "t-2": ([3], 50)},
)


def found(plan, before=BEFORE, *, max_fill=0.9, brokers=None, **budgets):
    snapshot = before.snapshot()
    rules = Rules(limits=Limits.of(snapshot, max_fill, **budgets))
    known = current_assignment(snapshot)
    listed = verify_plan(Plan.from_entries(plan), brokers=snapshot.alive_brokers(), before=known, rules=rules)
    return [(str(one.partition), one.rule, one.message) for one in listed]


def to(partition, broker, log_dir=None):
    return PlanEntry("t", partition, (broker,), None if log_dir is None else (log_dir,))


@pytest.mark.parametrize(
    ("entry", "max_fill", "message"),
    [
        (to(2, 1), 0.9, "/a of broker 1 would get 50 bytes more than it gives, and may take 30"),
        (to(2, 1), 0.5, "/a of broker 1 would get 50 bytes more than it gives, and may take 0"),
        (to(0, 2, "/b"), 0.9, "/b of broker 2 would get 60 bytes more than it gives, and may take 45"),
        (to(2, 2, "/b"), 0.9, "/b of broker 2 would get 50 bytes more than it gives, and may take 45"),
    ],
)
def test_a_log_dir_that_would_be_too_full_is_found(entry, max_fill, message):
    assert found([entry], max_fill=max_fill) == [(f"t-{entry.partition}", Rule.LOG_DIR_CAPACITY, message)]


def test_a_log_dir_may_be_filled_to_the_last_byte_that_is_allowed():
    assert found([to(2, 1)], max_fill=1.0) != []
    assert found([to(2, 1), to(0, 3)]) == []  # what leaves makes room
    assert found([to(0, 2, "/a")]) == []
    assert found([to(2, 2, "/a")]) == []
    assert found([to(0, 3)]) == [], "a disk of unknown size has no limit"
    assert found([to(1, 2, "/b")]) == []
    assert found([to(1, 1)]) == []
    fuller = replace(BEFORE, partitions=dict(list(BEFORE.partitions.items())[:2]))
    assert found([to(1, 1)], fuller, max_fill=0.89) != []
    assert found([], fuller, max_fill=0.1) == [], "a plan may leave a log dir as full as it is"


def test_where_no_log_dir_is_named_each_replica_fits_in_one_and_all_of_them_together():
    assert found([to(0, 2)]) == []  # 60 of them go to /a
    assert found([to(0, 2), to(2, 2)])[0][1:] == (
        Rule.BROKER_CAPACITY,
        "broker 2 would get 110 bytes, the largest replica 60, and may take 105, 60 of them in one log dir",
    )
    assert found([to(0, 2)], max_fill=0.8)[0][2].endswith("may take 90, 50 of them in one log dir")


def test_moves_within_a_broker_fill_its_log_dirs():
    held = cluster({1: Host(disks={"/a": 100, "/b": 50})}, {"t-0": ([1], 60)})
    assert [one[1] for one in found([to(0, 1, "/b")], held)] == [Rule.LOG_DIR_CAPACITY]


def test_a_capacity_that_somebody_gave_counts_where_log_dirs_are_not_known():
    bare = cluster({1: Host(disks={}), 2: Host(disks={})}, {"t-0": ([1], 60), "t-1": ([2], 20)})
    snapshot = Capacities.from_dict({"brokers": {1: {"disk": 100}}}).apply(bare.snapshot())
    for max_fill, broken in ((0.9, 0), (0.75, 1)):
        rules = Rules(limits=Limits.of(snapshot, max_fill))
        listed = verify_plan(
            Plan.from_entries([to(1, 1)]),
            brokers=snapshot.alive_brokers(),
            before=current_assignment(snapshot),
            rules=rules,
        )
        assert len(listed) == broken


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ({"byte_budget": 109}, "the plan copies 110 bytes, but the budget is 109"),
        ({"move_budget": 1}, "the plan copies 2 replicas, but the budget is 1"),
        ({"byte_budget": 110, "move_budget": 2}, None),
    ],
)
def test_a_plan_beyond_its_budgets_is_found(budgets, message):
    plan = [to(0, 3), to(2, 2, "/a")]
    assert found(plan, **budgets) == ([] if message is None else [("t-0", Rule.BUDGET, message)])


def test_moves_within_a_broker_count_in_budgets_and_the_order_of_replicas_does_not():
    held = cluster({1: Host(disks={"/a": 100, "/b": 90}), 2: None}, {"t-0": ([1, 2], 60)})
    shifted = [PlanEntry("t", 0, (1, 2), ("/b", "any"))]
    assert [one[1] for one in found(shifted, held, byte_budget=59)] == [Rule.BUDGET]
    assert found([PlanEntry("t", 0, (2, 1), None)], held, byte_budget=0, move_budget=0) == []


def test_a_replica_of_unknown_size_counts_as_the_largest_and_a_copy_as_the_leader():
    known = cluster({1: None, 2: None, 3: Host(disks={"/a": 100})}, {"t-0": ([1, 2], 60)})
    sizes = next(iter(known.partitions.values()))
    for listed, copied in (((None, 70), 70), ((40, 70), 40), ((None, None), 0)):
        before = replace(known, partitions={next(iter(known.partitions)): replace(sizes, sizes=listed)})
        assert found([PlanEntry("t", 0, (1, 3), None)], before, byte_budget=copied) == []
        if copied:
            assert found([PlanEntry("t", 0, (1, 3), None)], before, byte_budget=copied - 1) != []


@pytest.mark.parametrize("stricter", [{"max_fill": 0.2}, {"byte_budget": 1}, {"move_budget": 1}])
def test_a_plan_made_for_wider_limits_is_not_written(stricter):
    disks = {id_: Host(disks={"/a": 100}) for id_ in (1, 2)}
    model = ClusterModel.of(cluster(disks, {f"t-{n}": ([1], 10) for n in range(6)}).snapshot())
    offered = candidates(model, Request(Mode.BALANCE))
    check_candidates(model, Request(Mode.BALANCE), offered)
    with pytest.raises(RebalanceError, match=r"capacity|budget"):
        check_candidates(model, Request(Mode.BALANCE, **stricter), offered)
