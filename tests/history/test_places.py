"""What places hold and can hold, and the row that is forecast for each."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history import append_sample
from rebalance_lib.history.places import FORECASTS, Question, finish, forecast_place
from rebalance_lib.history.usage import read_log_dirs, read_usage
from rebalance_lib.report.capacity import capacity_text
from rebalance_lib.topology import BROKERS, REPLICAS, Capacities, Snapshot
from tests.history.samples import Row, moment, sample, write

DAY = 86_400


def samples(scope="cluster", *, days=20, first=160, growth=4, **more):
    """A place with a sample an hour, ending with ``days`` days; the example of the module by default."""
    hours = range(days * 24 + 1)
    columns = {
        "cluster": "c",
        "scope": scope,
        "broker": None if scope == "cluster" else 1,
        "log_dir": None,
        "replicas": 100,
        "unknown": 0,
        "total_bytes": 400,
        "other_bytes": 0,
        "brokers": 4,
        **more,
    }
    rows = [{**columns, "taken_at": moment(h * 3600), "bytes": round(first + growth * h / 24)} for h in hours]
    types = {"broker": pa.int32(), "log_dir": pa.string(), "taken_at": pa.timestamp("us", "UTC")}
    whole = {"total_bytes", "other_bytes", "brokers"}
    fields = [(name, types.get(name, pa.int64() if name in whole else None)) for name in rows[0]]
    table = pa.Table.from_pylist(rows)
    return pa.table({name: table[name].cast(kind) if kind else table[name] for name, kind in fields})


def days_until(row, name):
    return (row[name] - row["last_sample"]).total_seconds() / DAY


def test_the_example_of_more_brokers():
    question = Question(more_brokers=1)
    broker = samples("broker", first=40, growth=2, total_bytes=100, brokers=1)
    rows = [forecast_place(table, question) for table in (samples(), broker)]
    whole, own = finish(pa.concat_tables(rows)).to_pylist()
    assert (whole["used_bytes"], whole["fill"]) == (240, 0.6)
    assert days_until(whole, "passes_likely") == pytest.approx(30, abs=0.3)
    assert days_until(whole, "full_likely") == pytest.approx(40, abs=0.4)
    assert days_until(whole, "passes_with_more") == pytest.approx(52.5, abs=0.5)
    assert whole["passes_postponed_days"] == pytest.approx(22.5, abs=0.3)
    assert days_until(own, "passes_likely") == pytest.approx(5, abs=0.3)
    assert own["passes_postponed_days"] == pytest.approx(47.5, abs=0.5)
    text = capacity_text([whole, own], 0.9, 1)
    assert "c: 1 more broker would postpone 90% by 22 days" in text or "by 23 days" in text
    assert text.splitlines()[0].split()[:5] == ["place", "used", "of", "fill", "a"]


def test_other_data_takes_its_part():
    (row,) = forecast_place(samples(other_bytes=40), Question()).to_pylist()
    assert (row["fill"], days_until(row, "passes_likely")) == (0.7, pytest.approx(20, abs=0.3))


def test_without_a_capacity_growth_is_said_and_no_day():
    (row,) = forecast_place(samples(total_bytes=None, other_bytes=None, brokers=None), Question()).to_pylist()
    assert row["growth_per_day"] == pytest.approx(4, abs=0.05)
    assert (row["passes_likely"], row["note"]) == (None, "no capacity is known")


def test_moments_with_unknown_sizes_are_no_samples():
    table = samples()
    unknown = pa.array([2 if n == 100 else 1 for n in range(table.num_rows)], pa.int64())
    table = table.set_column(table.schema.get_field_index("unknown"), "unknown", unknown)
    (row,) = forecast_place(table, Question()).to_pylist()
    assert row["samples"] == table.num_rows - 1
    all_unknown = table.set_column(table.schema.get_field_index("unknown"), "unknown", table["replicas"])
    assert forecast_place(all_unknown, Question()).num_rows == 0


def test_a_place_without_a_recent_sample_is_not_forecast():
    rows = [forecast_place(table, Question()) for table in (samples(), samples("broker", days=18))]
    _, broker = finish(pa.concat_tables(rows)).to_pylist()
    assert (broker["note"], broker["passes_likely"]) == (f"no size since {moment(18 * DAY):%Y-%m-%d %H:%M}", None)
    assert finish(FORECASTS.empty_table()).num_rows == 0


@pytest.mark.parametrize("wrong", [{"fill": 0}, {"fill": 1.1}, {"more_brokers": -1}])
def test_a_question_that_makes_no_sense(wrong):
    with pytest.raises(InvalidInputError):
        Question(**wrong)


def test_sizes_are_summed_by_moment_and_log_dir():
    history = Artifacts("memory://usage")
    write(
        history,
        "c",
        {0: [Row("t", 0, 1, True, 10, 0, 1), Row("t", 1, 1, True, None, 0, 1), Row("t", 2, 2, True, 5, 0, 1)]},
    )
    name = "cluster=c/day=2026-01-01/2026-01-01T000000Z.parquet"
    rows = read_usage(history, name, [moment(0)]).sort_by("broker").to_pylist()
    assert [(row["broker"], row["bytes"], row["replicas"], row["unknown"]) for row in rows] == [
        (1, 10, 2, 1),
        (2, 5, 1, 0),
    ]
    assert read_usage(history, name, [moment(1)]).num_rows == 0
    history.write_table("other.parquet", pa.table({"taken_at": [moment(0)]}))
    with pytest.raises(InvalidInputError, match=r"other.parquet cannot be read: .*no column broker"):
        read_usage(history, "other.parquet", [moment(0)])


def test_a_snapshot_taken_within_a_second_is_of_the_moment_that_its_file_has():
    history = Artifacts("memory://fraction")
    rows = sample([Row("t", 0, 1, True, 10, 0, 1)], 0.25)
    file = append_sample(history, "c", rows, moment(0.25))
    assert read_usage(history, file.name, [file.taken_at])["bytes"].to_pylist() == [10]


def test_the_example_of_log_dirs():
    directory = Artifacts("memory://log-dirs")
    dirs = [{"path": "/a", "total_bytes": 100, "usable_bytes": 55}, {"path": "/b", "total_bytes": 300}]
    brokers = [
        {"broker": 1, "host": "h", "port": 1, "alive": True, "log_dirs": dirs},
        {"broker": 2, "host": "h", "port": 1, "alive": False, "log_dirs": []},
    ]
    flags = dict.fromkeys(("leader", "in_sync", "adding", "removing", "internal"), False)
    replica = {"topic": "t", "partition": 0, "position": 0, "broker": 1, "size_bytes": 40, "log_dir": "/a", **flags}
    tables = pa.Table.from_pylist(brokers, BROKERS), pa.Table.from_pylist([replica], REPLICAS)
    snapshot = Snapshot("c", (moment(0) + timedelta(days=1)).isoformat(), *tables)
    for name, table in zip(("brokers", "replicas"), snapshot.tables(), strict=True):
        directory.write_table(f"{name}.parquet", table)

    def found(given=None):
        rows = read_log_dirs(directory, given).to_pylist()
        return [(row["broker"], row["log_dir"], row["total_bytes"], row["other_bytes"]) for row in rows]

    assert found() == [(1, "/a", 100, 5), (1, "/b", 300, 0), (2, None, None, 0)]
    given = Capacities.from_dict({"default": {"disk": 800}})
    assert found(given) == [(1, "/a", 200, 0), (1, "/b", 600, 0), (2, None, 800, 0)]
