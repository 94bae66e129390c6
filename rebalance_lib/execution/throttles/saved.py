"""The throttle configurations as they were before a run, kept with its artifacts until they are restored.

The file is written before the first configuration is changed, and alone is enough to undo the rest, at any later time
and from any machine. For each broker and rate: the value before, with the source that it came from, and every rate that
the run has set since. For each topic and list: the value before, and the entries that the run added and has not
removed. What is restored leaves the file.

There are two copies, each written through to the disk: one that is damaged is replaced by the other. Only one process
at a time may write them: whoever does holds the lock of the run, or, in an object store, the workflow's lock of the
cluster.

Example: ``{"brokers": {"1": {"leader.replication.throttled.rate": {"value": "777", "source": "DYNAMIC_BROKER_CONFIG",
"set": ["50000000"]}}}, "topics": {"foo": {"leader.replication.throttled.replicas": {"before": "7:1", "added": ["0:1",
"0:2"]}}}}``
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import ConfigValue
from rebalance_lib.errors import DriftError, InvalidInputError
from rebalance_lib.execution.throttles.config import entries
from rebalance_lib.topology import TopicPartition

SAVED, BACKUP = "throttles.json", "throttles.backup.json"
DAMAGED = "throttles.damaged.json"


class DamagedThrottlesError(InvalidInputError):
    """Neither copy of the saved throttles can be read."""


class SavedThrottles:
    """The file of one run; change it, then `write` it, then change the cluster."""

    def __init__(self, artifacts: Artifacts, cluster_id: str) -> None:
        self._artifacts = artifacts
        found = read_saved(artifacts)
        self._content = found or {"cluster_id": cluster_id, "topics": {}, "brokers": {}}
        known = self._content["cluster_id"]
        if known != cluster_id:
            raise DriftError(f"{artifacts.uri}/{SAVED} holds the throttles of cluster {known}, this is {cluster_id}")

    @property
    def brokers(self) -> dict[int, dict[str, dict[str, Any]]]:
        """The rates to restore, by broker and configuration."""
        return {int(name): rates for name, rates in self._content["brokers"].items()}

    @property
    def topics(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The lists to restore, by topic and configuration."""
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

    @property
    def empty(self) -> bool:
        """Whether nothing is to be restored."""
        return not (self._content["brokers"] or self._content["topics"])

    def write(self) -> None:
        """Write both copies through to the disk."""
        for name in (BACKUP, SAVED):
            self._artifacts.write_json(name, self._content, durable=True)

    def entries(self) -> dict[str, dict[str, set[str]]]:
        """The entries of the run, by topic and list."""
        return {
            topic: {key: set(noted["added"]) for key, noted in lists.items()} for topic, lists in self.topics.items()
        }

    def note_list(
        self, topic: str, key: str, current: str | None, *, wanted: Iterable[str], adopted: Collection[str] = ()
    ) -> None:
        """Note the value before the run, and which entries are ours; a second call adds entries, but forgets nothing.

        Entries of ``adopted`` partitions count as ours whoever wrote them.
        """
        before = [item for item in entries(current) if item.split(":")[0] not in adopted]
        lists = self._content["topics"].setdefault(topic, {})
        entry = lists.setdefault(key, {"before": ",".join(before) or None, "added": []})
        others = set(entries(entry["before"]))
        entry["added"] = sorted({*entry["added"], *(item for item in wanted if item not in others)})

    def note_rates(
        self, broker: int, current: Mapping[str, ConfigValue], keys: Sequence[str], rate: int, *, shared: bool = False
    ) -> None:
        """Note the rates before the run, once, and that ``rate`` is one of ours.

        A rate that is set on a ``shared`` broker belongs to reassignments of others, and ends with them: afterwards
        ours is removed, and theirs is not restored.
        """
        rates = self._content["brokers"].setdefault(str(broker), {})
        for key in keys:
            value = current.get(key)
            fresh: dict[str, Any] = {"value": None, "source": None, "set": []}
            if value is not None:
                fresh |= {"value": value.value, "source": value.source}
            if shared and value is not None and value.dynamic:
                fresh["shared"] = True
            entry = rates.setdefault(key, fresh)
            if str(rate) not in entry["set"]:
                entry["set"].append(str(rate))

    def forget_brokers(self, brokers: Iterable[int]) -> None:
        """Their rates are restored."""
        for broker in brokers:
            self._content["brokers"].pop(str(broker), None)
        self.write()

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Their lists are restored."""
        for topic in topics:
            self._content["topics"].pop(topic, None)
        self.write()

    def forget_entries(self, removed: Mapping[str, Mapping[str, Collection[str]]]) -> None:
        """These entries of ours are out of their lists; what the lists were before the run stays noted."""
        for topic, lists in removed.items():
            for key, items in lists.items():
                noted = self._content["topics"][topic][key]
                noted["added"] = [item for item in noted["added"] if item not in items]
        self.write()


def read_saved(artifacts: Artifacts) -> dict[str, Any] | None:
    """What is saved, from whichever copy is whole; None if nothing is.

    Raises:
        DamagedThrottlesError: There are copies, and none is whole.
    """
    faults = []
    for name in (SAVED, BACKUP):
        if not artifacts.exists(name):
            continue
        try:
            return _checked(artifacts.read_json(name))
        except (InvalidInputError, UnicodeDecodeError) as error:
            faults.append(f"{name}: {error}")
    if not faults:
        return None
    raise DamagedThrottlesError(
        f"the saved throttles of the run in {artifacts.uri} are damaged ({'; '.join(faults)}), so that nobody knows "
        "what was set before it: see `kafka-rebalance throttles` for what is set now"
    )


def open_saved(artifacts: Artifacts, cluster_id: str, log: Callable[[str], None]) -> SavedThrottles:
    """The file of a run that goes on; one that is damaged is set aside and logged, and begun anew."""
    try:
        return SavedThrottles(artifacts, cluster_id)
    except DamagedThrottlesError as error:
        set_aside_damaged(artifacts)
        log(f"{error}. It is kept as {DAMAGED}, and the run goes on with what is set now")
        return SavedThrottles(artifacts, cluster_id)


def set_aside_damaged(artifacts: Artifacts) -> None:
    """Keep damaged copies under another name, so that they stop nobody any more."""
    for name in (SAVED, BACKUP):
        if artifacts.exists(name):
            artifacts.write_bytes(DAMAGED, artifacts.read_bytes(name))
            artifacts.remove_files([name])


def _checked(content: Any) -> dict[str, Any]:
    """The content, if it has the shape that `SavedThrottles` writes."""
    try:
        whole = (
            isinstance(content["cluster_id"], str)
            and all(str(int(broker)) == broker for broker in content["brokers"])
            and all(
                isinstance(rate["set"], list) and {"value", "source"} <= rate.keys()
                for rates in content["brokers"].values()
                for rate in rates.values()
            )
            and all(
                {"before", "added"} <= entry.keys() and all(item.split(":")[0].isdigit() for item in entry["added"])
                for lists in content["topics"].values()
                for entry in lists.values()
            )
        )
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"it is not what a run saves: {type(error).__name__} {error}") from error
    if not whole:
        raise InvalidInputError("it is not what a run saves")
    return dict(content)


def stale_throttles(artifacts: Artifacts) -> list[str]:
    """What the saved file of a run says is still to be restored."""
    saved = read_saved(artifacts)
    if saved is None:
        return []
    return [*(f"topic {name}" for name in saved["topics"]), *(f"broker {name}" for name in saved["brokers"])]
