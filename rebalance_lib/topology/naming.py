"""Names and values as messages show them, and which names a topic can have."""

from __future__ import annotations

import json
import re

_MAX_TOPIC_LENGTH = 249
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")


def shown(value: object) -> str:
    """A value as an error message shows it: as JSON writes it, and never longer than a line."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def printable(text: str) -> str:
    """Text that any client can choose, such as a group's name, in one line and without what a terminal obeys."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def partition_name(topic: object, partition: object) -> str:
    """Whatever was given as topic and partition, as Kafka prints them, and no longer than a line."""
    name = f"{topic}-{partition}"
    return name if len(name) <= 100 else f"{name[:60]}...{name[-37:]}"


def topic_problem(topic: str) -> str | None:
    """Why Kafka would not take this as a topic's name, or None if it would."""
    if topic in {"", ".", ".."}:
        return "no topic can have this name; give the topic's name"
    if len(topic) > _MAX_TOPIC_LENGTH:
        limit = f"a topic's name has at most {_MAX_TOPIC_LENGTH} characters, this has {len(topic)}"
        return f"{limit}; give the topic's name"
    if not _LEGAL_TOPIC.fullmatch(topic):
        return "a topic's name has only letters, digits, '.', '_' and '-'; give the topic's name"
    return None
