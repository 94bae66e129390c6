"""A real Prometheus tells the same as snapshots would, and what is no Prometheus tells nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history import (
    HISTORY,
    Credentials,
    Labels,
    Prometheus,
    Queries,
    Share,
    files_between,
    import_history,
    read_loads,
    read_samples,
)
from tests.history.conftest import PASSWORD, USER
from tests.waiting import wait_for

BROKERS = {"kafka-1:7071": 1, "kafka-2:7071": 2}
SECOND = timedelta(seconds=1)


@pytest.fixture
def source(prometheus):
    return Prometheus(prometheus.url, BROKERS, credentials=Credentials(user=USER, password=PASSWORD))


def page(replicas):
    """The lines of an exporter for replicas as (topic, partition, size, start, end)."""
    return [
        f'{metric}{{topic="{topic}",partition="{partition}"}} {value}'
        for topic, partition, size, start, end in replicas
        for metric, value in (
            ("kafka_log_log_size", size),
            ("kafka_log_log_log_start_offset", start),
            ("kafka_log_log_log_end_offset", end),
        )
    ]


def now():
    return datetime.now(UTC)


def wait_for_sizes(source, topic, sizes):
    """Wait until Prometheus shows these sizes of a topic's replicas, by broker; gives a second at which it does.

    A scrape counts from when it began, and may end a second later: what is shown of the last second can still change.
    """

    def shown():
        at = now().replace(microsecond=0) - 2 * SECOND
        ((_, rows),) = read_samples(source, start=at, end=at + SECOND, step=SECOND)
        return at, {row["broker"]: row["size_bytes"] for row in rows.to_pylist() if row["topic"] == topic}

    return wait_for(shown, lambda found: found[1] == sizes, passing=RebalanceError)[0]


def test_what_prometheus_scraped_is_history_like_any_other(prometheus, source, tmp_path):
    pages = prometheus.exporters.pages
    pages["/1"], pages["/2"] = page([("orders", 0, 100, 0, 9)]), page([("orders", 0, 110, 0, 10), ("logs", 3, 5, 1, 2)])
    first = wait_for_sizes(source, "orders", {1: 100, 2: 110})
    ((taken_at, rows),) = read_samples(source, start=first, end=first + SECOND, step=SECOND)
    assert taken_at == first
    assert rows.schema.equals(HISTORY)
    assert set(rows["taken_at"].to_pylist()) == {first}
    columns = ("topic", "partition", "broker", "leader", "size_bytes", "start_offset", "end_offset")
    assert [tuple(row[name] for name in columns) for row in rows.to_pylist()] == [
        ("logs", 3, 2, True, 5, 1, 2),
        ("orders", 0, 2, True, 110, 0, 10),
        ("orders", 0, 1, False, 100, 0, 10),
    ]
    pages["/2"] = page([("orders", 0, 330, 0, 30), ("logs", 3, "NaN", 1, 2)])
    last = wait_for_sizes(source, "orders", {1: 100, 2: 330})

    history = Artifacts.at(tmp_path)
    files = import_history(history, "c", source, start=first, end=last + SECOND, step=SECOND)
    assert files == files_between(history, "c", first, last + SECOND)
    seconds = (files[-1].taken_at - files[0].taken_at).total_seconds()
    logs, orders = read_loads(history, Share("c", tuple(files))).to_pylist()
    assert (orders["size_bytes"], orders["samples"]) == (330, len(files))
    assert orders["growth"] == pytest.approx(220 / seconds)
    assert orders["write_rate"] == pytest.approx(20 * (330 / 30) / seconds)
    assert (logs["topic"], logs["size_bytes"]) == ("logs", 5)


def tiered_page(size, end, local):
    """A topic of which the records before ``local`` are in remote storage alone."""
    return [
        *page([("tiered", 0, size, 0, end), ("plain", 0, size, 0, end)]),
        'kafka_server_brokertopicmetrics_remotelogsizebytes{topic="tiered"} 9000',
        'kafka_server_brokertopicmetrics_remotelogsizebytes{topic="plain"} 0',
        "kafka_server_brokertopicmetrics_remotelogsizebytes 9000",
        f'kafka_local_start{{topic="tiered",partition="0"}} {local}',
    ]


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (Queries(), (None, None)),
        (Queries(local_start_offset="kafka_local_start"), (90, 40 * 100)),
        (Queries(remote_size=""), (0, 40 * 5000 / 140)),
    ],
)
def test_of_tiered_topics_the_records_on_the_disk_count(prometheus, source, tmp_path, queries, expected):
    started, written = expected
    source = replace(source, queries=queries)
    prometheus.exporters.pages["/1"] = tiered_page(1000, 100, 90)
    first = wait_for_sizes(source, "tiered", {1: 1000})
    ((_, rows),) = read_samples(source, start=first, end=first + SECOND, step=SECOND)
    starts = {row["topic"]: row["start_offset"] for row in rows.to_pylist()}
    assert (starts["tiered"], starts["plain"]) == (started, 0)
    # The metric of remote storage is not in every scrape: the topic stays a tiered one.
    prometheus.exporters.pages["/1"] = [line for line in tiered_page(5000, 140, 90) if "remotelog" not in line]
    last = wait_for_sizes(source, "tiered", {1: 5000})
    history = Artifacts.at(tmp_path)
    files = import_history(history, "c", source, start=first, end=last + SECOND, step=SECOND)
    seconds = (files[-1].taken_at - files[0].taken_at).total_seconds()
    rates = {row["topic"]: row["write_rate"] for row in read_loads(history, Share("c", tuple(files))).to_pylist()}
    assert rates["tiered"] == (None if written is None else pytest.approx(written / seconds))
    assert rates["plain"] == pytest.approx(40 * 5000 / 140 / seconds)


def test_queries_and_labels_can_be_others_and_a_query_may_name_the_leaders(prometheus, source):
    names = '{name="replica",p="0"}'
    prometheus.exporters.pages["/1"] = [f"bytes{names} 70", f"first{names} 2", f"next{names} 9", f"isr{names} 2"]
    prometheus.exporters.pages["/2"] = [f"bytes{names} 80", f"first{names} 2", f"next{names} 9", f"isr{names} 0"]
    other = replace(
        source,
        queries=Queries(size="bytes", start_offset="first", end_offset="next", leader="isr > 0"),
        labels=Labels(topic="name", partition="p"),
    )
    wait_for_sizes(other, "replica", {1: 70, 2: 80})

    def last_second():
        second = now().replace(microsecond=0)
        return second, leaders(other, second)

    at, found = wait_for(last_second, lambda answer: answer[1], passing=RebalanceError)
    assert found == {"replica": 1}
    assert leaders(replace(other, queries=replace(other.queries, leader="")), at) == {"replica": 2}


def leaders(source, at):
    ((_, rows),) = read_samples(source, start=at, end=at + SECOND, step=SECOND)
    known = [row for row in rows.to_pylist() if row["end_offset"] is not None]
    return {row["topic"]: row["broker"] for row in known if row["leader"]}


def test_a_refused_query_is_answered_in_prometheus_own_words(source):
    wrong = replace(source, queries=Queries(size="kafka_log_log_size{"))
    with pytest.raises(RebalanceError, match=r"answered 400 Bad Request: bad_data: .*parse error"):
        list(read_samples(wrong, start=now(), end=now() + SECOND, step=SECOND))


@pytest.mark.parametrize("credentials", [Credentials(), Credentials(user=USER, password="-".join(("hunter", "2")))])
def test_a_wrong_password_is_refused_and_not_shown(source, credentials):
    with pytest.raises(RebalanceError, match="answered 401 Unauthorized") as raised:
        list(read_samples(replace(source, credentials=credentials), start=now(), end=now() + SECOND, step=SECOND))
    assert "hunter-2" not in str(raised.value)
    assert "hunter-2" not in repr(replace(source, credentials=credentials))


def test_brokers_that_prometheus_does_not_know_are_named(prometheus, source):
    prometheus.exporters.pages["/1"] = page([("orders", 0, 100, 0, 9)])
    with pytest.raises(RebalanceError, match=r"no values of kafka_log_log_size .* instance one of kafka-9:7071: check"):
        list(read_samples(replace(source, brokers={"kafka-9:7071": 9}), start=now(), end=now() + SECOND, step=SECOND))


@pytest.mark.parametrize(
    ("start", "end", "step", "message"),
    [
        (0, 0, SECOND, "is empty: swap its ends"),
        (0, 10, timedelta(seconds=0.5), "the step is 0:00:00.500000; give whole seconds"),
        (0, 10, -SECOND, "give whole seconds"),
    ],
)
def test_windows_that_make_no_sense_are_refused(start, end, step, message):
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    window = {"start": begin + start * SECOND, "end": begin + end * SECOND, "step": step}
    with pytest.raises(InvalidInputError, match=message):
        list(read_samples(Prometheus("http://127.0.0.1:1", BROKERS), **window))


def test_a_window_without_a_time_zone_is_refused():
    naive = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    with pytest.raises(InvalidInputError, match="no time zone"):
        list(read_samples(Prometheus("http://127.0.0.1:1", BROKERS), start=naive, end=naive + SECOND, step=SECOND))
