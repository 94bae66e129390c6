"""A plan is made with the loads of the hours before its snapshot, and with the sizes that partitions will have."""

from __future__ import annotations

import json
import math
from itertools import count, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import (
    PLANNED_LOADS,
    LoadOptions,
    Statistic,
    compact_day,
    cuts_of,
    group_reads,
    planned_loads,
    planned_part,
)
from rebalance_lib.topology.load_facts import LoadFacts
from tests.history.recomputed import recomputed
from tests.history.samples import EXAMPLE, READ_EXAMPLE, Row, moment, write
from tests.history.test_loads import histories, nearly

FRESH = count()
DAY = 86_400


def planned(by_second, options=None, at=400):
    """The loads for a snapshot of the cluster taken at this second."""
    history = Artifacts(f"memory://planned-{next(FRESH)}")
    write(history, "c", by_second)
    return planned_loads(history, "c", moment(at).isoformat(), options)


def only(by_second, **options):
    table = planned(by_second, LoadOptions(**options))
    assert table.schema.equals(PLANNED_LOADS)
    (row,) = table.to_pylist()
    return row


def test_the_example_of_the_design():
    assert only(EXAMPLE, horizon_days=1) == {
        "topic": "orders",
        "partition": 0,
        "size_bytes": 300 + round(700 / 300 * DAY),
        "write_rate": pytest.approx(1700 / 300),
        "read_rate": None,
        "write_rate_p95": pytest.approx(9.5),
    }


@pytest.mark.parametrize(
    ("statistic", "written", "read"), [("mean", 1700 / 300, 20), ("p95", 9.5, 29), ("last", 2, 10)]
)
def test_rates_are_the_mean_the_percentile_or_the_last_interval(statistic, written, read):
    found = only(EXAMPLE, statistic=Statistic(statistic))
    assert (found["write_rate"], found["write_rate_p95"]) == (pytest.approx(written), pytest.approx(9.5))
    assert only(READ_EXAMPLE, statistic=Statistic(statistic))["read_rate"] == pytest.approx(read)


def test_without_a_horizon_the_snapshots_own_sizes_count():
    assert only(EXAMPLE)["size_bytes"] is None


def at_rest(size, end):
    return [Row("t", 0, 1, True, size, 0, end)]


def test_what_became_smaller_is_not_counted_on_to_become_smaller_still():
    assert only({0: at_rest(1000, 10), 100: at_rest(500, 11)}, horizon_days=7)["size_bytes"] == 500


def test_where_retention_keeps_a_size_level_the_horizon_changes_nothing():
    sizes = {0: 1000, 100: 1500, 200: 1000, 300: 1500, 400: 1000}
    found = only({at: at_rest(size, at) for at, size in sizes.items()}, horizon_days=30)
    assert (found["size_bytes"], found["write_rate"] > 0) == (1000, True)


def test_growth_is_known_without_offsets_and_no_size_is_beyond_what_sums_can_bear():
    rows = {at: [Row("t", 0, 1, True, size, None, None)] for at, size in ((0, 0), (1, 10**15))}
    found = only(rows, horizon_days=3650)
    assert (found["size_bytes"], found["write_rate"], found["read_rate"]) == (2**62, None, None)


@pytest.mark.parametrize("horizon", [0, 7])
def test_of_one_snapshot_nothing_is_known(horizon):
    assert planned({0: EXAMPLE[0]}, LoadOptions(horizon_days=horizon)) is None
    assert planned({0: EXAMPLE[0]}, LoadOptions(horizon_days=horizon), at=5 * DAY) is None, "out of the window"


def test_what_came_after_the_snapshot_is_not_looked_at():
    assert planned(EXAMPLE, at=150)["write_rate"].to_pylist() == [10]
    assert planned_loads(Artifacts("memory://planned-nothing"), "c", moment(0).isoformat()) is None


def test_the_table_says_where_it_is_from_also_as_a_file(tmp_path):
    options = LoadOptions(hours=6, statistic=Statistic.P95, horizon_days=7)
    history = Artifacts.at(tmp_path)
    history.write_table("loads.parquet", planned(READ_EXAMPLE, options))
    assert LoadFacts.of(history.read_table("loads.parquet")) == LoadFacts("p95", 6, 7, ("billing",))
    assert LoadFacts.of(PLANNED_LOADS.empty_table()) is None


def test_what_each_group_reads_is_there_by_partition():
    history = Artifacts(f"memory://planned-{next(FRESH)}")
    write(history, "c", READ_EXAMPLE)
    rows = group_reads(history, "c", moment(300).isoformat()).to_pylist()
    assert [(row["group"], row["read_rate"], row["resets"]) for row in rows] == [("audit", 15, 0), ("billing", 10, 1)]
    assert group_reads(history, "other", moment(300).isoformat()) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hours": 0}, "the window is 0 hours: give more than 0"),
        ({"hours": math.nan}, "the window is nan hours"),
        ({"hours": math.inf}, "the window is inf hours"),
        ({"hours": True}, "hours is True: give a number"),
        ({"horizon_days": "7"}, "horizon_days is '7': give a number"),
        ({"statistic": "median"}, "there is no load 'median': give one of mean, p95, last"),
        ({"horizon_days": -1}, "the horizon is -1 days: give 0 up to 3,650"),
        ({"horizon_days": math.nan}, "the horizon is nan days"),
        ({"horizon_days": 1e9}, "the horizon is 1000000000.0 days"),
    ],
)
def test_options_that_make_no_sense_are_refused(given, message):
    with pytest.raises(InvalidInputError, match=message):
        LoadOptions(**given)


def test_options_go_through_json():
    options = LoadOptions(6, Statistic.P95, 7)
    assert LoadOptions.from_dict(json.loads(json.dumps(options.as_dict()))) == options
    assert LoadOptions.from_dict({"hours": None}) == LoadOptions()
    with pytest.raises(InvalidInputError, match="loads have no 'days': give some of hours, statistic, horizon_days"):
        LoadOptions.from_dict({"days": 7})


@given(by_second=histories, statistic=st.sampled_from(Statistic), days=st.sampled_from([0, 0.5, 7]))
def test_planned_loads_are_what_a_plain_recomputation_gives(by_second, statistic, days):
    expected = {}
    for key, load in recomputed(by_second).items():
        rates = [load[statistic.column(name)] for name in ("write_rate", "read_rate")]
        size = None
        if days and load["growth"] is not None:
            size = load["size_bytes"] + max(load["growth"], 0) * days * DAY
        if (size, *rates) != (None, None, None):
            expected[key] = (size, *rates, load["write_rate_p95"])
    table = planned(by_second, LoadOptions(statistic=statistic, horizon_days=days), at=500)
    found = {tuple(row.values())[:2]: tuple(row.values())[2:] for row in table.to_pylist()} if table else {}
    assert set(found) == set(expected)
    for key, (size, *rates) in expected.items():
        assert found[key][0] == (None if size is None else pytest.approx(size, abs=0.51)), key
        assert list(found[key][1:]) == [nearly(rate) for rate in rates], key


def test_parts_that_several_tasks_read_are_the_whole_though_the_history_is_compacted_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr("rebalance_lib.history.shares.SAMPLES_WORTH_A_TASK", 1)
    history, partitions = Artifacts.at(tmp_path), 9_000
    for at in (0, 100, 200):
        rows = [Row(f"t{p // 100:03d}", p % 100, 1, True, 1000 + at, 0, 10 + at) for p in range(partitions)]
        write(history, "c", {at: rows})
    options, taken_at = LoadOptions(), moment(200).isoformat()
    whole = planned_loads(history, "c", taken_at, options)
    cuts = cuts_of(history, "c", taken_at, options, 3)
    first, *others = pairwise([None, *cuts, None])
    assert others
    tables = [planned_part(history, "c", taken_at, options, first)]
    (day,) = (history / "cluster=c").directories()
    compact_day(history, f"cluster=c/{day}")
    tables += [planned_part(history, "c", taken_at, options, between) for between in others]
    assert pa.concat_tables(tables).equals(whole)
    assert len(whole) == partitions
