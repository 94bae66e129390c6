"""What Prometheus answered, checked and as columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_lib.errors import RebalanceError

TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
PARTITION = re.compile(r"\d{1,10}")
LARGEST = 2.0**63
COLUMNS = ("at", "topic", "partition", "broker", "value")


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that name a replica."""

    topic: str = "topic"
    partition: str = "partition"
    broker: str = "instance"


def parse_matrix(data: object, labels: Labels, brokers: Mapping[str, int]) -> pa.Table:
    """The values of a range query: instant, topic, partition, broker and a whole number, one row for each.

    What comes from instances that are no brokers of this cluster is left out, and so is a value that no size or offset
    can have. Where several series are of one replica, the largest value counts.

    Raises:
        RebalanceError: This is not what Prometheus answers to a range query.
    """
    names: list[tuple[str, int, int]] = []
    counts: list[int] = []
    points: list[Any] = []
    for metric, values, broker in _of_brokers(data, labels, brokers):
        names.append((*_partition(metric, labels), broker))
        counts.append(len(values))
        points += values
    at, numbers = _points(points)
    owner = np.repeat(np.arange(len(names)), counts)
    good = (numbers >= 0) & (numbers < LARGEST)
    columns = [
        pa.array(at[good]),
        *(pa.array([name[n] for name in names], kind).take(pa.array(owner[good])) for n, kind in _KINDS),
        pa.array(np.rint(numbers[good]).astype(np.int64)),
    ]
    table = pa.Table.from_arrays(columns, names=COLUMNS)
    return table.group_by(list(COLUMNS[:4])).aggregate([("value", "max")]).rename_columns(list(COLUMNS))


def parse_topics(data: object, labels: Labels, brokers: Mapping[str, int]) -> set[str]:
    """The topics of a range query for which any broker of this cluster has a value above 0 at any instant.

    Series without a topic, such as a sum over all of them, are left out.

    Raises:
        RebalanceError: This is not what Prometheus answers to a range query.
    """
    series = [(metric, values) for metric, values, _ in _of_brokers(data, labels, brokers) if labels.topic in metric]
    return {_topic(metric, labels) for metric, values in series if (_points(values)[1] > 0).any()}


def _of_brokers(
    data: object, labels: Labels, brokers: Mapping[str, int]
) -> Iterator[tuple[dict[str, Any], list[Any], int]]:
    """The labels, the values and the broker of each series that is of this cluster."""
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise RebalanceError("Prometheus answered something else than a matrix: is the URL that of a Prometheus?")
    for series in data["result"]:
        metric, values = _fields(series)
        if (broker := brokers.get(str(metric.get(labels.broker)))) is not None:
            yield metric, values, broker


_KINDS = ((0, pa.string()), (1, pa.int32()), (2, pa.int32()))


def _fields(series: object) -> tuple[dict[str, Any], list[Any]]:
    if isinstance(series, dict):
        metric, values = series.get("metric"), series.get("values")
        if isinstance(metric, dict) and isinstance(values, list):
            return metric, values
    raise RebalanceError("Prometheus answered a series without labels or values: is a proxy in between?")


def _partition(metric: Mapping[str, Any], labels: Labels) -> tuple[str, int]:
    topic, partition = _topic(metric, labels), metric.get(labels.partition)
    if not isinstance(partition, str) or not PARTITION.fullmatch(partition) or int(partition) >= 2**31:
        raise RebalanceError(
            f"the label {labels.partition} of a series of {topic} is {str(partition)[:80]!r}, which is no partition"
        )
    return topic, int(partition)


def _topic(metric: Mapping[str, Any], labels: Labels) -> str:
    topic = metric.get(labels.topic)
    if not isinstance(topic, str) or not TOPIC.fullmatch(topic):
        raise RebalanceError(f"the label {labels.topic} of a series is {str(topic)[:80]!r}, which is no topic's name")
    return topic


def _points(points: list[Any]) -> tuple[Any, Any]:
    """Instants in whole seconds and values."""
    try:
        moments = np.array([point[0] for point in points], dtype=np.float64)
        numbers = np.array([point[1] for point in points], dtype=np.float64)
        if moments.shape != numbers.shape or moments.ndim != 1 or not np.isfinite(moments).all():
            raise ValueError("not pairs of a time and a value")
    except (ValueError, TypeError, LookupError) as error:
        raise RebalanceError("Prometheus answered values that are not pairs of a time and a number") from error
    return np.rint(moments).astype(np.int64), numbers
