"""The dry run: what a plan does on the way, and how long it takes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, PlanEntry, waves
from rebalance_lib.plan.pace import Order, Pace
from rebalance_lib.reassignment import Conditions, simulate
from rebalance_lib.reassignment.fair_shares import fair_shares
from rebalance_lib.reassignment.least_throttle import LeastThrottle, rates_needed
from rebalance_lib.reassignment.log_dirs import Use
from rebalance_lib.reassignment.outline import outline
from rebalance_lib.reassignment.simulation import simulate_work
from rebalance_lib.reassignment.work import Cluster, Work
from rebalance_lib.topology import BROKERS, REPLICAS, Snapshot, TopicPartition, parse_cluster

IDEAL = Conditions.ideal()
ROOM = 10_000


def cluster(partitions, *, brokers=4, log_dirs=("/d",), usable=ROOM, dead=(), in_sync=None):
    """Partitions as {(topic, number): (replicas, size)}; the first replica leads and is in the first log dir."""
    broker_rows = [
        {
            "broker": id_,
            "rack": None,
            "host": "h",
            "port": 9092,
            "alive": id_ not in dead,
            "log_dirs": [{"path": path, "total_bytes": 2 * ROOM, "usable_bytes": usable} for path in log_dirs],
        }
        for id_ in range(1, brokers + 1)
    ]
    replica_rows = [
        {
            "topic": topic,
            "partition": number,
            "position": position,
            "broker": broker,
            "leader": position == 0 and broker not in dead,
            "in_sync": broker in (in_sync or replicas),
            "adding": False,
            "removing": False,
            "internal": False,
            "size_bytes": size,
            "log_dir": log_dirs[0] if log_dirs else None,
        }
        for (topic, number), (replicas, size) in sorted(partitions.items())
        for position, broker in enumerate(replicas)
    ]
    tables = (
        pa.Table.from_pylist(broker_rows, schema=BROKERS),
        pa.Table.from_pylist(replica_rows, schema=REPLICAS),
    )
    return Snapshot("c", "2026-01-01T00:00:00+00:00", *tables)


def plan_of(targets):
    return Plan.from_assignment({TopicPartition(*name): replicas for name, replicas in targets.items()})


def ends(forecast):
    return {f"{row['topic']}-{row['partition']}": row["ends"] for row in forecast.moves.to_pylist()}


@pytest.fixture(scope="module", autouse=True)
def _a_slot_for_each_byte():
    """Sizes here are some bytes, so that examples can be followed by hand: a move of any takes a slot of its own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(waves, "SLOT_BYTES", 1)
        yield


# --- by hand

EXAMPLE = cluster({("a", 0): ([1], 100), ("b", 0): ([1], 50), ("c", 0): ([1], 30)}, brokers=3)
EXAMPLE_PLAN = plan_of({("a", 0): [2], ("b", 0): [3], ("c", 0): [3]})
EXAMPLE_PACE = Pace(throttle=10, moves_in=1)


def test_the_example_of_the_module():
    forecast = simulate(EXAMPLE_PLAN, EXAMPLE, EXAMPLE_PACE, conditions=IDEAL)
    assert ends(forecast) == pytest.approx({"a-0": 18, "b-0": 10, "c-0": 16})
    assert forecast.seconds == pytest.approx(18)
    assert [(w.begins, w.ends, w.partitions, w.bytes, w.seconds_left) for w in forecast.waves] == [
        (0, pytest.approx(18), 2, 150, 0),
        (pytest.approx(10), pytest.approx(16), 1, 30, pytest.approx(2)),
    ]
    held = {one.broker: (one.bytes_before, one.bytes_peak, one.bytes_after) for one in forecast.log_dirs}
    assert held == {1: (180, 180, 0), 2: (0, 100, 100), 3: (0, 80, 80)}
    assert {one.broker: (one.peak_in, one.peak_out) for one in forecast.brokers} == {
        1: (0, pytest.approx(10)),
        2: (pytest.approx(10), 0),
        3: (pytest.approx(5), 0),
    }


def test_the_example_of_the_outline():
    forecast = outline(Work.of(EXAMPLE_PLAN, Cluster.of(EXAMPLE)), Pace(throttle=10), conditions=IDEAL)
    assert ends(forecast) == pytest.approx({"a-0": 10, "b-0": 15, "c-0": 18})
    assert not forecast.exact


def test_the_example_of_fair_shares():
    # Brokers 1 and 4 send (limits 0 and 1), 2 and 3 receive (limits 2 and 3).
    limits = np.full(4, 10.0)
    assert fair_shares(np.array([0, 0, 1]), np.array([2, 3, 3]), limits).tolist() == [5, 5, 5]
    assert fair_shares(np.array([0, 1]), np.array([3, 3]), limits).tolist() == [5, 5]
    assert fair_shares(np.array([0, 0, 0, 1]), np.array([2, 2, 2, 2]), limits) == pytest.approx([2.5] * 4)


def test_what_a_slow_side_leaves_is_for_others():
    # Three copies to one receiver leave its senders room: the fourth copy takes what is left of its sender.
    shares = fair_shares(np.array([0, 1, 1, 1]), np.array([2, 2, 2, 3]), np.full(4, 9.0))
    assert shares == pytest.approx([3, 3, 3, 3])
    shares = fair_shares(np.array([0, 0, 1]), np.array([2, 3, 2]), np.array([9.0, 9.0, 4.0, 9.0]))
    assert shares == pytest.approx([2, 7, 2])


def test_the_example_of_log_dirs():
    use = Use.of(np.array([100]), np.array([0, 0]), np.array([65.0, 5.0]), np.array([-40, 30]))
    assert (use.peak.tolist(), use.moment.tolist(), use.after.tolist()) == ([130], [5.0], [90])


def test_removed_replicas_stay_until_their_files_are_gone():
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([2], 100)}, brokers=2)
    plan = plan_of({("a", 0): [2], ("b", 0): [1]})
    slow = Pace(throttle=10, moves_in_cluster=1)
    held = [one.bytes_peak for one in simulate(plan, snapshot, slow, conditions=IDEAL).log_dirs]
    assert held == [200, 200]
    at_once = simulate(plan, snapshot, slow, conditions=replace(IDEAL, delete_delay=0.0))
    assert [one.bytes_peak for one in at_once.log_dirs] == [200, 200]  # a-0 has gone from 1 only when b-0 begins there
    later = cluster({("a", 0): ([1], 100), ("b", 0): ([2], 90), ("c", 0): ([2], 80)}, brokers=3)
    plan = plan_of({("a", 0): [3], ("b", 0): [3], ("c", 0): [1]})
    for delay, peak in ((0.0, 100), (60.0, 180)):
        forecast = simulate(plan, later, slow, conditions=replace(IDEAL, delete_delay=delay))
        assert forecast.log_dirs[0].bytes_peak == peak


def test_what_is_written_meanwhile_is_copied_too():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=2)
    rates = pa.table({"topic": ["a"], "partition": [0], "write_rate": [6.0]})
    plan, pace = plan_of({("a", 0): [2]}), Pace(throttle=10)
    assert simulate(plan, snapshot, pace, write_rates=rates, conditions=IDEAL).seconds == pytest.approx(25)


def test_loads_of_which_no_write_rate_is_known_are_none_to_count_with():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=2)
    loads = pa.table({"topic": ["a"], "partition": [0], "write_rate": pa.nulls(1, pa.float64())})
    forecast = simulate(plan_of({("a", 0): [2]}), snapshot, Pace(throttle=10), write_rates=loads)
    assert any(note.startswith("Write rates are not known") for note in forecast.assumptions)


def test_a_partition_that_is_written_to_faster_than_it_is_copied_never_ends():
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([3], 100)}, brokers=4)
    rates = pa.table({"topic": ["a"], "partition": [0], "write_rate": [11.0]})
    plan = plan_of({("a", 0): [2], ("b", 0): [4]})
    forecast = simulate(plan, snapshot, Pace(throttle=10), write_rates=rates, conditions=IDEAL)
    assert (forecast.never, forecast.seconds) == (("a-0",), None)
    assert [(wave.ends, wave.seconds_left) for wave in forecast.waves] == [(None, None)]
    assert forecast.least_throttle == LeastThrottle(12)
    assert ends(forecast) == {"a-0": None, "b-0": pytest.approx(10)}


def test_a_plan_that_never_finishes_gives_no_time_and_says_which_throttle_would_do():
    # b-0 waits for a-0, which never ends: it does not end either.
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([1], 50)}, brokers=2)
    rates = pa.table({"topic": ["a"], "partition": [0], "write_rate": [12.0]})
    plan, pace = plan_of({("a", 0): [2], ("b", 0): [2]}), Pace(throttle=10, moves_in=1)
    forecast = simulate(plan, snapshot, pace, write_rates=rates, conditions=IDEAL)
    assert forecast.seconds is None
    assert forecast.as_dict()["never"] == {
        "count": 2,
        "partitions": ["a-0", "b-0"],
        "least_throttle": 13,
        "least_log_dir_throttle": None,
    }
    enough = simulate(plan, snapshot, replace(pace, throttle=13), write_rates=rates, conditions=IDEAL)
    assert enough.as_dict()["never"] == {
        "count": 0,
        "partitions": [],
        "least_throttle": None,
        "least_log_dir_throttle": None,
    }
    assert enough.seconds == pytest.approx(100 + 50 / 13)


@pytest.mark.parametrize("count", [40, 100, 200])
def test_a_flow_that_ends_frees_its_share_for_those_that_do_not_end_yet(count):
    # Each gets less than is written to it until a-0, to which nothing is, has ended: fewer than end in one step.
    partitions = {("a", number): ([1], 1000) for number in range(count)}
    rates = {
        "topic": ["a"] * count,
        "partition": range(count),
        "write_rate": [0.0] + [100 / (count - 0.5)] * (count - 1),
    }
    plan, pace = plan_of({name: [2] for name in partitions}), Pace(throttle=100, moves_in=None, moves_out=None)
    snapshot = cluster(partitions, brokers=2)
    forecast = simulate(plan, snapshot, pace, write_rates=pa.table(rates), conditions=IDEAL)
    assert forecast.never == ()
    assert ends(forecast)["a-0"] == pytest.approx(1000 * count / 100)
    assert forecast.seconds > ends(forecast)["a-0"]


def test_the_example_of_the_least_throttle():
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([2], 100), ("c", 0): ([3], 100)}, brokers=4)
    rates = pa.table({"topic": ["a", "b", "c"], "partition": [0, 0, 0], "write_rate": [6.0, 5.0, 1.0]})
    work = Work.of(plan_of({(name, 0): [4] for name in "abc"}), Cluster.of(snapshot, rates))
    assert rates_needed(work, Pace(moves_in=1)).max() == 6
    assert rates_needed(work, Pace()).tolist() == [10, 10, 3]
    for forecast in (
        simulate_work(work, Pace(throttle=10), None, IDEAL),
        outline(work, Pace(throttle=10), conditions=IDEAL),
    ):
        assert (forecast.never, forecast.seconds, forecast.least_throttle.throttle) == (("a-0", "b-0"), None, 11)


def test_a_copy_between_log_dirs_that_never_ends_is_no_end_of_the_plan():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=1, log_dirs=("/d", "/e"))
    rates = pa.table({"topic": ["a"], "partition": [0], "write_rate": [20.0]})
    work = Work.of(Plan.from_entries([PlanEntry("a", 0, (1,), ("/e",))]), Cluster.of(snapshot, rates))
    pace = Pace(log_dir_throttle=10)
    for forecast in (simulate_work(work, pace, None, IDEAL), outline(work, pace, conditions=IDEAL)):
        assert (forecast.never, forecast.seconds) == (("a-0",), None)
        assert forecast.least_throttle == LeastThrottle(None, 21)


def test_the_outline_copies_what_is_written_meanwhile_too():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=2)
    rates = pa.table({"topic": ["a"], "partition": [0], "write_rate": [6.0]})
    work = Work.of(plan_of({("a", 0): [2]}), Cluster.of(snapshot, rates))
    assert outline(work, Pace(throttle=10), conditions=IDEAL).seconds == pytest.approx(25)


def test_without_a_throttle_the_rate_is_an_assumption_and_says_so():
    forecast = simulate(EXAMPLE_PLAN, EXAMPLE, Pace(), conditions=replace(IDEAL, unthrottled=90))
    assert forecast.seconds == pytest.approx(2)
    assert any("no throttle" in line for line in forecast.assumptions)
    throttled = simulate(EXAMPLE_PLAN, EXAMPLE, EXAMPLE_PACE, conditions=IDEAL)
    assert not any("no throttle" in line for line in throttled.assumptions)


def test_moves_between_log_dirs_have_a_throttle_of_their_own():
    snapshot = cluster({("a", 0): ([1, 2], 100)}, brokers=2, log_dirs=("/d", "/e"))
    plan = Plan.from_entries([PlanEntry("a", 0, (1, 2), ("/e", "/d"))])
    forecast = simulate(plan, snapshot, Pace(throttle=1, log_dir_throttle=20), conditions=IDEAL)
    assert forecast.seconds == pytest.approx(5)
    held = {(one.broker, one.path): (one.bytes_peak, one.bytes_after) for one in forecast.log_dirs}
    assert held == {(1, "/d"): (100, 0), (1, "/e"): (100, 100), (2, "/d"): (100, 100), (2, "/e"): (0, 0)}


def test_a_replica_changes_its_log_dir_when_its_partition_has_its_replicas():
    snapshot = cluster({("a", 0): ([1, 2], 100), ("b", 0): ([1], 60)}, brokers=3, log_dirs=("/d", "/e"))
    plan = Plan.from_entries([PlanEntry("a", 0, (1, 3), ("/e", "/d")), PlanEntry("b", 0, (1,), ("/e",))])
    pace = Pace(throttle=10, log_dir_throttle=20, moves_in=1)
    for settling, begins in ((0.0, 10), (1.0, 11)):
        forecast = simulate(plan, snapshot, pace, conditions=replace(IDEAL, settling=settling))
        times = {(row["topic"], row["to_broker"]): (row["begins"], row["ends"]) for row in forecast.copies.to_pylist()}
        assert times["a", 3] == (0, pytest.approx(10))
        assert times["a", 1] == (pytest.approx(begins), pytest.approx(begins + 5))
        assert times["b", 1] == (0, pytest.approx(3))
        assert ends(forecast) == pytest.approx({"a-0": begins + 5, "b-0": 3})


def test_a_replica_without_a_log_dir_goes_where_most_room_is():
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([1], 60), ("c", 0): ([1], 50)}, log_dirs=("/d", "/e"))
    plan = plan_of({("a", 0): [2], ("b", 0): [2], ("c", 0): [2]})
    copies = simulate(plan, snapshot, Pace(throttle=10), conditions=IDEAL).copies.to_pylist()
    assert [row["log_dir"] for row in copies] == ["/d", "/e", "/e"]


def test_a_log_dir_without_room_is_told():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=2, usable=99)
    forecast = simulate(plan_of({("a", 0): [2]}), snapshot, Pace(throttle=10), conditions=IDEAL)
    assert [(one.broker, one.overflows) for one in forecast.log_dirs] == [(1, False), (2, True)]
    assert forecast.as_dict()["overflows"]


def test_one_replica_at_a_time_never_has_two_copies_too_many():
    snapshot = cluster({("a", 0): ([1, 2], 100)})
    plan = plan_of({("a", 0): [3, 4]})
    pace = Pace(throttle=10, one_replica_at_a_time=True)
    forecast = simulate(plan, snapshot, pace, conditions=replace(IDEAL, delete_delay=0.0))
    assert forecast.moves["stage"].to_pylist() == [0, 1]
    assert forecast.moves["begins"].to_pylist() == pytest.approx([0, 10])
    assert forecast.seconds == pytest.approx(20)
    assert simulate(plan, snapshot, Pace(throttle=10), conditions=IDEAL).seconds == pytest.approx(20)


def test_partitions_at_their_min_isr():
    snapshot = cluster({("a", 0): ([1, 2], 10), ("b", 0): ([1, 2], 10)})
    plan = plan_of({("a", 0): [3], ("b", 0): [3, 4]})
    assert simulate(plan, snapshot).at_min_isr is None
    for forecast in (
        simulate(plan, snapshot, min_insync={"a": 1, "b": 1}),
        outline(Work.of(plan, Cluster.of(snapshot)), min_insync={"a": 1, "b": 1}),
    ):
        assert forecast.at_min_isr == ("a-0",)


def test_only_partitions_that_lose_in_sync_replicas_come_down_to_their_min_isr():
    lists = {("raised", 0): ([1], 10), ("moved", 0): ([1, 2], 10), ("lowered", 0): ([1, 2, 3], 10)}
    snapshot, least = cluster(lists), {"raised": 1, "moved": 2, "lowered": 2}
    plan = plan_of({("raised", 0): [1, 2, 3], ("moved", 0): [3, 4], ("lowered", 0): [1, 2]})
    for forecast in (
        simulate(plan, snapshot, min_insync=least),
        outline(Work.of(plan, Cluster.of(snapshot)), min_insync=least),
    ):
        assert forecast.at_min_isr == ("lowered-0",)


def test_a_partition_without_a_leader_is_not_waited_for():
    snapshot = cluster({("a", 0): ([1], 100), ("b", 0): ([2], 100)}, dead=(1,))
    plan = plan_of({("a", 0): [3], ("b", 0): [3]})
    for forecast in (
        simulate(plan, snapshot, Pace(throttle=10), conditions=IDEAL),
        outline(Work.of(plan, Cluster.of(snapshot)), Pace(throttle=10), conditions=IDEAL),
    ):
        assert forecast.blocked == ("a-0",)
        assert forecast.seconds == pytest.approx(10)


def test_a_partition_that_waits_for_a_dead_replica_holds_up_nobody():
    snapshot = cluster({("a", 0): ([1, 2, 3], 100), ("b", 0): ([1], 50)}, dead=(3,), in_sync=(1, 2))
    plan = plan_of({("a", 0): [1, 3], ("b", 0): [2]})
    forecast = simulate(plan, snapshot, Pace(throttle=10, moves_in_cluster=1), conditions=IDEAL)
    assert forecast.blocked == ("a-0",)
    assert forecast.never == ()
    assert forecast.seconds == pytest.approx(5)


def test_partitions_at_risk_come_first():
    partitions = {("a", 0): ([1], 100), ("b", 0): ([1, 2], 10)}
    snapshot = cluster(partitions, in_sync=(1,))
    plan = plan_of({("a", 0): [3], ("b", 0): [1, 3]})
    forecast = simulate(plan, snapshot, Pace(throttle=10, moves_in=1), conditions=IDEAL)
    assert forecast.moves["topic"].to_pylist() == ["b", "a"]


def test_an_empty_plan_takes_no_time():
    for plan in (Plan.from_assignment({}), plan_of({("a", 0): [1]})):
        forecast = simulate(plan, EXAMPLE, EXAMPLE_PACE)
        assert (forecast.seconds, forecast.partitions, forecast.waves) == (0, 0, ())
        assert outline(Work.of(plan, Cluster.of(EXAMPLE)), EXAMPLE_PACE).seconds == 0


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (plan_of({("x", 0): [1]}), "x-0 is in the plan but not in the snapshot"),
        (plan_of({("a", 0): [9]}), "no broker 9"),
        (Plan.from_entries([PlanEntry("a", 0, (2,), ("/nowhere",))]), "no log dir /nowhere"),
    ],
)
def test_a_plan_for_another_cluster_is_refused(plan, words):
    with pytest.raises(InvalidInputError, match=words):
        simulate(plan, EXAMPLE)


def test_log_dirs_that_are_not_known_are_counted_by_broker():
    snapshot = cluster({("a", 0): ([1], 100)}, brokers=2, log_dirs=())
    forecast = simulate(plan_of({("a", 0): [2]}), snapshot, Pace(throttle=10), conditions=IDEAL)
    assert [(one.path, one.bytes_peak) for one in forecast.log_dirs] == [(None, 100), (None, 100)]


def test_a_disk_without_a_known_log_dir_is_as_large_as_its_capacity():
    document = {
        "brokers": [{"id": 1}, {"id": 2, "capacity": {"disk": 150}}, {"id": 3, "capacity": {"disk": 1000}}],
        "partitions": [
            {"topic": "a", "partition": 0, "replicas": [1], "size": 100},
            {"topic": "b", "partition": 0, "replicas": [2], "size": 60},
        ],
    }
    snapshot = parse_cluster(json.dumps(document).encode()).snapshot
    forecast = simulate(plan_of({("a", 0): [2]}), snapshot, Pace(throttle=10), conditions=IDEAL)
    disks = {one.broker: (one.total_bytes, one.usable_bytes, one.overflows) for one in forecast.log_dirs}
    assert disks == {1: (None, None, False), 2: (150, 90, True), 3: (1000, 1000, False)}
    assert forecast.log_dirs[1].fill == pytest.approx(160 / 150)


def test_many_waves_are_shown_as_twenty():
    count = 100
    snapshot = cluster({("a", n): ([1], 10 + n) for n in range(count)}, brokers=2)
    plan = plan_of({("a", n): [2] for n in range(count)})
    forecast = simulate(plan, snapshot, Pace(throttle=10, moves_in=1))
    assert len(forecast.waves) <= 20
    assert sum(wave.partitions for wave in forecast.waves) == count
    assert [wave.number for wave in forecast.waves] == list(range(1, len(forecast.waves) + 1))


# --- whatever the plan

IDS = [1, 2, 3, 4]
DIRS = ("/d", "/e")
replica_lists = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)


@st.composite
def cases(draw):
    """A cluster, a plan for some of its partitions with or without log dirs, and a pace."""
    names = [("t", number) for number in range(draw(st.integers(1, 8)))]
    snapshot = cluster({name: (draw(replica_lists), draw(st.integers(0, 200))) for name in names}, log_dirs=DIRS)
    entries = []
    for topic, number in names:
        if draw(st.booleans()):
            target = draw(replica_lists)
            log_dirs = tuple(draw(st.sampled_from((*DIRS, "any"))) for _ in target) if draw(st.booleans()) else None
            entries.append(PlanEntry(topic, number, tuple(target), log_dirs))
    limit = st.none() | st.integers(1, 3)
    pace = Pace(
        throttle=draw(st.none() | st.integers(1, 100)),
        log_dir_throttle=draw(st.none() | st.integers(1, 100)),
        moves_in=draw(limit),
        moves_out=draw(limit),
        moves_in_cluster=draw(limit),
        bytes_in_flight=draw(st.none() | st.integers(1, 300)),
        order=draw(st.sampled_from(Order)),
        one_replica_at_a_time=draw(st.booleans()),
    )
    return snapshot, Plan.from_entries(entries), pace


CONDITIONS = st.sampled_from([IDEAL, Conditions(unthrottled=100, partition_fetch=20, fetch=50)])


@given(cases(), CONDITIONS)
def test_the_end_is_the_plan_and_bytes_are_neither_made_nor_lost(case, conditions):
    snapshot, plan, pace = case
    work = Work.of(plan, Cluster.of(snapshot))
    for forecast in (
        simulate(plan, snapshot, pace, conditions=conditions),
        outline(work, pace, conditions=conditions),
    ):
        assert forecast.never == forecast.blocked == ()
        assert forecast.copies["ends"].null_count == 0
        expected = expected_end(snapshot, plan, forecast.copies)
        assert {(one.broker, one.path): one.bytes_after for one in forecast.log_dirs} == expected
        for one in forecast.log_dirs:
            assert 0 <= one.bytes_after <= one.bytes_peak
            assert one.bytes_before <= one.bytes_peak
        for row in forecast.copies.to_pylist():
            assert 0 <= row["begins"] <= row["ends"] <= forecast.seconds + 1e-9


@given(cases(), CONDITIONS, st.lists(st.integers(0, 60), min_size=8, max_size=8))
def test_a_plan_that_never_finishes_does_at_the_least_throttle(case, conditions, written):
    snapshot, plan, pace = case
    rates = pa.table({"topic": ["t"] * 8, "partition": list(range(8)), "write_rate": [float(rate) for rate in written]})
    rates = rates.filter(pc.is_in(rates["partition"], pc.unique(snapshot.replicas["partition"]).cast(pa.int64())))
    work = Work.of(plan, Cluster.of(snapshot, rates))
    for forecasting in (simulate_work, lambda *given: outline(given[0], given[1], conditions=given[3])):
        slow = forecasting(work, pace, None, conditions)
        least = slow.least_throttle
        assert (slow.seconds is None) == bool(slow.never) == (least != LeastThrottle())
        enough = replace(
            pace,
            throttle=least.throttle or pace.throttle,
            log_dir_throttle=least.log_dir_throttle or pace.log_dir_throttle,
        )
        quick = forecasting(work, enough, None, conditions)
        assert quick.never == ()
        assert quick.seconds is not None


def expected_end(snapshot, plan, copies):
    """What each log dir holds when the plan is reached, from the tables alone."""
    held = {}
    for row in snapshot.replicas.to_pylist():
        held[row["topic"], row["partition"], row["broker"]] = (row["log_dir"], row["size_bytes"])
    for entry in plan:
        for key in [key for key in held if key[:2] == (entry.topic, entry.partition)]:
            if key[2] not in entry.replicas:
                del held[key]
    for row in copies.to_pylist():
        held[row["topic"], row["partition"], row["to_broker"]] = (row["log_dir"], row["bytes"])
    ends_with = {(broker, path): 0 for broker in IDS for path in DIRS}
    for (_, _, broker), (path, size) in held.items():
        ends_with[broker, path] += size
    return ends_with


@given(cases(), CONDITIONS)
def test_caps_and_throttle_hold_at_every_moment(case, conditions):
    snapshot, plan, pace = case
    forecast = simulate(plan, snapshot, pace, conditions=conditions)
    limit = conditions.between_brokers(pace) * (1 + 1e-9)
    assert all(one.peak_in <= limit and one.peak_out <= limit for one in forecast.brokers)
    moves = {}
    for row in forecast.copies.to_pylist():
        within = row["to_broker"] if row["from_broker"] == row["to_broker"] else None
        sender = None if within else row["from_broker"]
        moves.setdefault((row["topic"], row["partition"], row["begins"], within), []).append(
            {**row, "from_broker": sender}
        )
    under_way = [(copies, max(row["ends"] for row in copies) + conditions.settling) for copies in moves.values()]
    for moment in {copies[0]["begins"] for copies, _ in under_way}:
        now = [copies for copies, end in under_way if copies[0]["begins"] <= moment < end - 1e-9]
        for broker in IDS:
            for cap, way in ((pace.moves_in, "to_broker"), (pace.moves_out, "from_broker")):
                assert_held(
                    cap and cap * waves.SLOT,
                    [sum(waves.slots(row["bytes"]) for row in copies if row[way] == broker) for copies in now],
                )
        assert_held(pace.moves_in_cluster, [len(copies) for copies in now])
        assert_held(pace.bytes_in_flight, [sum(row["bytes"] for row in copies) for copies in now])


def assert_held(cap, amounts):
    """The moves under way are within the cap, unless it is one alone that is larger."""
    counting = [amount for amount in amounts if amount]
    assert cap is None or sum(counting) <= cap or len(counting) == 1


@given(cases())
def test_at_twice_the_throttle_nothing_is_slower_if_all_begins_at_once(case):
    snapshot, plan, pace = case
    free = replace(pace, throttle=50, moves_in=None, moves_out=None, moves_in_cluster=None, bytes_in_flight=None)
    fast = replace(free, throttle=100)
    slow_end, fast_end = (simulate(plan, snapshot, one, conditions=IDEAL).seconds for one in (free, fast))
    assert fast_end <= slow_end + 1e-9


@given(cases())
def test_at_twice_both_throttles_everything_takes_half_the_time(case):
    snapshot, plan, pace = case
    pace = replace(pace, throttle=50, log_dir_throttle=50)
    fast = replace(pace, throttle=100, log_dir_throttle=100)
    ideal = replace(IDEAL, delete_delay=0.0)
    slow_end, fast_end = (simulate(plan, snapshot, one, conditions=ideal).seconds for one in (pace, fast))
    assert fast_end == pytest.approx(slow_end / 2)
