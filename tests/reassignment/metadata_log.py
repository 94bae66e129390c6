"""Read a controller's log as a run: the inputs to each partition and the registration that each left.

Two kinds of input are not in the log as such and are deduced from it: which request a record answers (a
marker, a config record on a topic of its own, is written before each request), and the ISR that a leader
asked for when its request completed a reassignment (all that were in the ISR before, and those being added).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

Answer = tuple[str, dict[str, object], str | None]
MARKS, FIRST_MARK = "marks", 10_000_000


@dataclass
class Registration:
    """A partition as the controller's log describes it so far."""

    state: dict[str, object]
    first: dict[str, object]
    steps: list[dict[str, object]] = field(default_factory=list)

    def step(self, request: dict[str, object], error: str | None = None) -> None:
        step = {**request, "after": dict(self.state)}
        self.steps.append(step if error is None else {**step, "error": error})


def merge(state: dict[str, object], change: dict[str, object]) -> dict[str, object]:
    """The registration after a PartitionChangeRecord: absent fields stay, a named leader opens an epoch."""
    names = {
        "replicas": "replicas",
        "addingReplicas": "adding",
        "removingReplicas": "removing",
        "isr": "isr",
        "eligibleLeaderReplicas": "elr",
        "lastKnownElr": "last_known_elr",
        "leader": "leader",
    }
    merged = dict(state)
    for record_name, name in names.items():
        if change.get(record_name) is not None:
            merged[name] = change[record_name]
    merged["leader"] = None if merged["leader"] == -1 else merged["leader"]
    merged["leader_epoch"] = state["leader_epoch"] + ("leader" in change)
    return merged


def first_registration(record: dict[str, object]) -> dict[str, object]:
    return {
        "replicas": record["replicas"],
        "adding": [],
        "removing": [],
        "isr": record["isr"],
        "elr": [],
        "last_known_elr": [],
        "leader": record["leader"],
        "leader_epoch": record["leaderEpoch"],
    }


class Reader:
    """Reads the log record by record and keeps, topic by topic, the inputs and what each left."""

    def __init__(self, records: list[dict], answers: dict[int, Answer]) -> None:
        self.records, self.answers = records, answers
        self.names: dict[str, str] = {}
        self.topics: dict[str, Registration] = {}
        self.awaited: Answer | None = None

    def read(self) -> dict[str, dict]:
        handlers = {
            "TOPIC_RECORD": self.topic_created,
            "CONFIG_RECORD": self.marked,
            "PARTITION_RECORD": self.partition_created,
            "PARTITION_CHANGE_RECORD": self.partition_changed,
            "REMOVE_TOPIC_RECORD": self.topic_removed,
            "BROKER_REGISTRATION_CHANGE_RECORD": self.broker_changed,
        }
        for position, record in enumerate(self.records):
            if record["type"] in handlers:
                handlers[record["type"]](position, record["data"])
        self.close()
        for topic in self.topics.values():
            for step in topic.steps:
                step.pop("record", None)
        return {name: {"first": topic.first, "steps": topic.steps} for name, topic in self.topics.items()}

    def close(self) -> None:
        """Write down the answered request, whether or not it left a record."""
        if self.awaited is not None:
            topic, request, error = self.awaited
            self.topics[topic].step(request, error)
        self.awaited = None

    def topic_created(self, _: int, data: dict) -> None:
        self.names[data["topicId"]] = data["name"]

    def marked(self, _: int, data: dict) -> None:
        if data["name"] == "retention.ms":
            self.close()
            self.awaited = self.answers[int(data["value"]) - FIRST_MARK]

    def partition_created(self, _: int, data: dict) -> None:
        name = self.names[data["topicId"]]
        if name != MARKS:
            first = first_registration(data)
            self.topics[name] = Registration(first, first)

    def topic_removed(self, _: int, data: dict) -> None:
        self.topics[self.names[data["topicId"]]].state = {}
        self.close()

    def partition_changed(self, position: int, data: dict) -> None:
        name = self.names[data["topicId"]]
        topic = self.topics[name]
        before, topic.state = topic.state, merge(topic.state, data)
        if self.awaited is not None and self.awaited[0] == name:
            self.close()
        elif before != topic.state:
            self.deduce(topic, before, position)

    def broker_changed(self, position: int, data: dict) -> None:
        if not data.get("fenced"):
            return
        event = {"fenced" if data["fenced"] == 1 else "unfenced": data["brokerId"]}
        for topic in self.topics.values():
            if topic.state and not (topic.steps and topic.steps[-1].get("record") == position):
                topic.step({**event, "record": position})

    def deduce(self, topic: Registration, before: dict, position: int) -> None:
        """Name the input of a change that no request explains: a broker's coming or going, or a leader's."""
        earlier, later = self.around(position)
        previous, following = self.records[earlier], self.records[later]
        after = topic.state
        broker = following["data"].get("brokerId")
        fences = following["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and following["data"].get("fenced") == 1
        if fences and broker in before["isr"] and broker not in after["isr"]:
            topic.step({"fenced": broker, "record": later})
        elif following["type"] == "REGISTER_BROKER_RECORD" and broker in before["elr"]:
            topic.step({"unclean_shutdown": broker})
        elif previous["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and before["leader"] is None:
            topic.steps[-1]["after"] = dict(after)
        else:
            completes = before["adding"] + before["removing"] and not after["adding"] + after["removing"]
            joining = [*after["isr"], *before["adding"]]
            requested = list(dict.fromkeys(before["isr"] + joining)) if completes else after["isr"]
            topic.step({"alter_partition": requested})

    def around(self, position: int) -> tuple[int, int]:
        """The nearest records on both sides that are no partition changes: a broker's, if it caused them."""
        before = after = position
        while self.records[before]["type"] == "PARTITION_CHANGE_RECORD":
            before -= 1
        while after < len(self.records) - 1 and self.records[after]["type"] == "PARTITION_CHANGE_RECORD":
            after += 1
        return before, after


def records_of(dump: str) -> list[dict]:
    return [json.loads(match) for match in re.findall(r"payload: (\{.*\})\s*$", dump, flags=re.MULTILINE)]
