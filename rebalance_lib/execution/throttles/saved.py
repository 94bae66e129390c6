"""What stood in the throttle settings before a run, kept with its artifacts until it is put back.

The file is written before the first setting is changed, and alone is enough to undo the rest, at any later time and
from any machine. For each broker and rate: the value before, with the place that it came from, and every rate that the
run has set since. For each topic and list: the value before, and the entries that the run added. What is put back
leaves the file.

Example: ``{"brokers": {"1": {"leader.replication.throttled.rate": {"value": "777", "source": "DYNAMIC_BROKER_CONFIG",
"set": ["50000000"]}}}, "topics": {"foo": {"leader.replication.throttled.replicas": {"before": "7:1", "added": ["0:1",
"0:2"]}}}}``
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import ConfigValue
from rebalance_lib.errors import DriftError
from rebalance_lib.topology import TopicPartition

SAVED = "throttles.json"


class SavedThrottles:
    """The file of one run; change it, then `write` it, then change the cluster."""

    def __init__(self, artifacts: Artifacts, cluster_id: str) -> None:
        self._artifacts = artifacts
        self._content: dict[str, Any] = {"cluster_id": cluster_id, "topics": {}, "brokers": {}}
        if artifacts.exists(SAVED):
            self._content = artifacts.read_json(SAVED)
        found = self._content["cluster_id"]
        if found != cluster_id:
            raise DriftError(f"{artifacts.uri}/{SAVED} holds the throttles of cluster {found}, this is {cluster_id}")

    @property
    def brokers(self) -> dict[int, dict[str, dict[str, Any]]]:
        """The rates to put back, by broker and setting."""
        return {int(name): rates for name, rates in self._content["brokers"].items()}

    @property
    def topics(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The lists to put back, by topic and setting."""
        return dict(self._content["topics"])

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions that the run throttles."""
        return {
            TopicPartition(topic, int(item.split(":")[0]))
            for topic, lists in self._content["topics"].items()
            for entry in lists.values()
            for item in entry["added"]
        }

    def write(self) -> None:
        """Keep it."""
        self._artifacts.write_json(SAVED, self._content)

    def note_list(
        self, topic: str, key: str, standing: str | None, *, wanted: Iterable[str], adopted: Collection[str]
    ) -> None:
        """Note the value before the run, and which entries are ours; a second call adds entries, but forgets nothing.

        Entries of ``adopted`` partitions count as ours whoever wrote them.
        """
        before = [item for item in entries(standing) if item.split(":")[0] not in adopted]
        lists = self._content["topics"].setdefault(topic, {})
        entry = lists.setdefault(key, {"before": ",".join(before) or None, "added": []})
        stood = set(entries(entry["before"]))
        entry["added"] = sorted({*entry["added"], *(item for item in wanted if item not in stood)})

    def note_rates(
        self, broker: int, standing: Mapping[str, ConfigValue], keys: Sequence[str], rate: int, *, shared: bool
    ) -> None:
        """Note the rates before the run, once, and that ``rate`` is one of ours.

        A rate that stands on a ``shared`` broker belongs to reassignments of others, and ends with them: afterwards
        ours is taken off, and theirs is not put back.
        """
        rates = self._content["brokers"].setdefault(str(broker), {})
        for key in keys:
            value = standing.get(key)
            fresh: dict[str, Any] = {"value": None, "source": None, "set": []}
            if value is not None:
                fresh |= {"value": value.value, "source": value.source}
            if shared and value is not None and value.dynamic:
                fresh["shared"] = True
            entry = rates.setdefault(key, fresh)
            if str(rate) not in entry["set"]:
                entry["set"].append(str(rate))

    def forget_broker(self, broker: int) -> None:
        """Its rates are put back."""
        del self._content["brokers"][str(broker)]
        self.write()

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Their lists are put back."""
        for topic in topics:
            del self._content["topics"][topic]
        self.write()


def stale_throttles(artifacts: Artifacts) -> list[str]:
    """What the saved file of a run says is still to be put back."""
    if not artifacts.exists(SAVED):
        return []
    saved = artifacts.read_json(SAVED)
    return [*(f"topic {name}" for name in saved["topics"]), *(f"broker {name}" for name in saved["brokers"])]


def entries(value: str | None) -> list[str]:
    """The entries of a list of throttled replicas."""
    return [item for item in (value or "").split(",") if item]
