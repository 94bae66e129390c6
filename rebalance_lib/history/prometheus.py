"""The history of a cluster out of Prometheus: the same columns, for the time before the first snapshot.

Asked are three metrics, one series per replica, as the JMX exporter names them: the size of the log and its two
offsets. Which label holds the broker, and which broker its value is, is told by the caller; what comes from other
instances is of other clusters and is left out. Each instant of the window becomes one sample of the cluster.

Kafka's log metrics do not tell who leads. A fourth query may: it is to give a series for leaders only, such as
``kafka_cluster_partition_insyncreplicascount > 0``. Without it, or where it names none, the replica with the highest
end offset is taken for the leader, since followers only copy; then the largest, then the lowest broker id. As in a
snapshot, all replicas of a partition show the leader's offsets. Their order and log dirs are not known.

The bytes of a log are those on the disk, and its start offset must be of the disk, too. Of a tiered topic, Kafka's own
is that of the oldest record in remote storage, and Kafka has no metric of the oldest one on the disk: bytes per record
would come out too small, and so would what is written. Topics with bytes in remote storage are therefore asked for, and
their start offsets, and with them their rates, are unknown, unless an exporter of your own shows those on the disk.

Nothing that comes in is trusted: it must be the JSON that Prometheus documents, bounded in bytes and in time, with
topics that Kafka would accept. A value that no size and no offset can have, such as NaN, is unknown. Redirects are not
followed, since they would carry the credentials to another host, and credentials appear in no message.

Example: at one instant broker 1 (``kafka-1:7071``) shows a size of 100 and offsets 0..9 for partition 0 of ``orders``,
broker 2 a size of 110 and offsets 0..10. The sample has the rows ``orders 0 2 leader 110 0..10`` and
``orders 0 1 - 100 0..10``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.history.dataset import HISTORY, HistoryFile, append_sample
from rebalance_lib.history.prometheus_api import Credentials, PrometheusApi, Range
from rebalance_lib.history.prometheus_series import Labels, parse_matrix, parse_topics

INSTANTS = 20  # in one request: what a big cluster answers must fit into memory
REPLICA = ["at", "topic", "partition", "broker"]


@dataclass(frozen=True, slots=True)
class Queries:
    """What to ask for, in PromQL; add matchers such as ``{env="prod"}`` where one Prometheus knows many clusters."""

    size: str = "kafka_log_log_size"
    start_offset: str = "kafka_log_log_log_start_offset"
    end_offset: str = "kafka_log_log_log_end_offset"
    leader: str = ""  # a series for each leader; empty: not asked
    remote_size: str = "kafka_server_brokertopicmetrics_remotelogsizebytes"  # by topic; empty: no topic is tiered
    local_start_offset: str = ""  # of the oldest record on the disk, by replica; empty: no exporter shows it


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus that scrapes the brokers of one cluster.

    Args:
        url: Its base URL, without ``/api/v1``.
        brokers: Which broker each value of the broker label is: ``{"kafka-1:7071": 1, ...}``.
        queries: What to ask for.
        labels: The labels of topic, partition and broker.
        credentials: Who asks.
        timeout: Seconds that one request may take.
    """

    url: str
    brokers: Mapping[str, int]
    queries: Queries = field(default_factory=Queries)
    labels: Labels = field(default_factory=Labels)
    credentials: Credentials = field(default_factory=Credentials)
    timeout: float = 60.0


def import_history(
    history: Artifacts, cluster_id: str, source: Prometheus, *, start: datetime, end: datetime, step: timedelta
) -> list[HistoryFile]:
    """Append what Prometheus knows of the window to the history, one file an instant; what is there already stays."""
    samples = read_samples(source, start=start, end=end, step=step)
    return [append_sample(history, cluster_id, rows, taken_at) for taken_at, rows in samples]


def read_samples(
    source: Prometheus, *, start: datetime, end: datetime, step: timedelta
) -> Iterator[tuple[datetime, pa.Table]]:
    """Each instant of the window at which Prometheus knows a size, with the rows of `HISTORY`, by time.

    Args:
        source: Where to ask.
        start: The first instant, with a time zone.
        end: The end of the window, with a time zone; no instant itself.
        step: From one instant to the next, in whole seconds; no less than the scrape interval.

    Raises:
        InvalidInputError: The window, the step, the URL or a query is not acceptable.
        RebalanceError: Prometheus did not answer, or not as it should, or knows nothing of these brokers.
    """
    instants = _instants(start, end, step)
    api = PrometheusApi(source.url, source.credentials, source.timeout)
    found = False
    for begin in range(0, len(instants), INSTANTS):
        asked = instants[begin : begin + INSTANTS]
        rows = _rows(api, source, Range(asked[0], asked[-1], instants.step))
        for at in asked:
            if (sample := rows.filter(pc.equal(rows["at"], at))).num_rows:
                found = True
                yield _sample(sample, at)
    if not found:
        known = ", ".join(sorted(source.brokers)[:5])
        raise RebalanceError(
            f"Prometheus at {source.url} has no values of {source.queries.size} in the window with the label "
            f"{source.labels.broker} one of {known}: check the query, the label and the names of the brokers"
        )


def _instants(start: datetime, end: datetime, step: timedelta) -> range:
    if start.tzinfo is None or end.tzinfo is None:
        raise InvalidInputError("the window for Prometheus has no time zone: add one, such as +00:00")
    seconds = int(step.total_seconds())
    if seconds < 1 or step != timedelta(seconds=seconds):
        raise InvalidInputError(f"the step is {step}; give whole seconds, one at least")
    if start >= end:
        raise InvalidInputError(f"the window from {start.isoformat()} to {end.isoformat()} is empty: swap its ends?")
    return range(int(start.timestamp()), -int(-end.timestamp() // 1), seconds)


def _rows(api: PrometheusApi, source: Prometheus, asked: Range) -> pa.Table:
    """A row per instant and replica that has a size, with offsets and the leader's mark where they are known."""

    def ask(query: str, name: str) -> pa.Table:
        return _replicas(api, source, asked, query).rename_columns([*REPLICA, name])

    queries = source.queries
    rows = ask(queries.size, "size_bytes")
    for name, query in (("start_offset", queries.start_offset), ("end_offset", queries.end_offset)):
        rows = rows.join(ask(query, name), REPLICA, join_type="left outer")
    rows = _with_local_starts(rows, api, source, asked)
    if queries.leader:
        return rows.join(ask(queries.leader, "leads"), REPLICA, join_type="left outer")
    return rows.append_column("leads", pa.nulls(rows.num_rows, pa.int64()))


def _with_local_starts(rows: pa.Table, api: PrometheusApi, source: Prometheus, asked: Range) -> pa.Table:
    """The same with start offsets of what is on the disk; null where a topic is tiered and nothing tells.

    A topic that has bytes in remote storage at one of these instants counts as tiered at all of them: a scrape that
    Prometheus gave up leaves a gap, and a start offset that is wrong there would give a wrong rate.
    """
    queries = source.queries
    if queries.remote_size:
        tiered = parse_topics(api.query_range(queries.remote_size, asked), source.labels, source.brokers)
        is_tiered = pc.is_in(rows["topic"], pa.array(sorted(tiered), pa.string()))
        rows = _with_start(rows, pc.if_else(is_tiered, pa.scalar(None, pa.int64()), rows["start_offset"]))
    if queries.local_start_offset:
        local = _replicas(api, source, asked, queries.local_start_offset).rename_columns([*REPLICA, "local"])
        rows = rows.join(local, REPLICA, join_type="left outer")
        rows = _with_start(rows, pc.coalesce(rows["local"], rows["start_offset"])).drop_columns(["local"])
    return rows


def _with_start(rows: pa.Table, start: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index("start_offset"), "start_offset", start)


def _replicas(api: PrometheusApi, source: Prometheus, asked: Range, query: str) -> pa.Table:
    return parse_matrix(api.query_range(query, asked), source.labels, source.brokers)


def _sample(rows: pa.Table, at: int) -> tuple[datetime, pa.Table]:
    """The rows of one instant: leaders marked, and their offsets shown by all replicas of their partition."""
    rows = rows.append_column("named", pc.is_valid(rows["leads"]).cast(pa.int8()))
    best = [("named", "descending"), ("end_offset", "descending"), ("size_bytes", "descending")]
    rows = rows.sort_by([("topic", "ascending"), ("partition", "ascending"), *best, ("broker", "ascending")])
    topics = rows["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    partitions = rows["partition"].to_numpy()
    leads = np.ones(rows.num_rows, dtype=np.bool_)
    leads[1:] = (topics[1:] != topics[:-1]) | (partitions[1:] != partitions[:-1])
    leader = np.maximum.accumulate(np.where(leads, np.arange(rows.num_rows), 0))
    moment = datetime.fromtimestamp(at, UTC)
    columns = {
        "taken_at": pa.repeat(pa.scalar(moment, HISTORY.field("taken_at").type), rows.num_rows),
        "topic": rows["topic"],
        "partition": rows["partition"],
        "position": pa.nulls(rows.num_rows, HISTORY.field("position").type),
        "broker": rows["broker"],
        "leader": leads,
        "size_bytes": rows["size_bytes"],
        "start_offset": rows["start_offset"].take(leader),
        "end_offset": rows["end_offset"].take(leader),
        "log_dir": pa.nulls(rows.num_rows, pa.string()),
        "committed": pa.nulls(rows.num_rows, HISTORY.field("committed").type),
    }
    return moment, pa.table(columns, schema=HISTORY)
