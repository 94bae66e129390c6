"""The topics-to-move JSON, version 1: the topics that a plan shall be generated for.

The document that ``kafka-reassign-partitions --generate`` reads::

    {"version":1,"topics":[{"topic":"foo"},{"topic":"bar"}]}

It is read as strictly as a reassignment: one version, no unknown keys, legal names, no topic twice. A
document without a topic is refused too, since there is nothing to generate for it. The order of the topics
is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.errors import PlanFormatError
from rebalance_lib.plan.documents import check_keys, check_text, decoded, load_document
from rebalance_lib.topology.naming import shown, topic_problem

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_topics_to_move(text: str | bytes) -> tuple[str, ...]:
    """Read a topics-to-move JSON; raises PlanFormatError, naming the entry, for anything that is not one."""
    entries = load_document(decoded(text), keys=("topics",))["topics"]
    if type(entries) is not list:
        raise PlanFormatError(f'topics is {shown(entries)}, not a list; write "topics":[{{"topic":...}}]')
    topics = []
    for number, entry in enumerate(entries):
        where = f"entry {number}"
        if type(entry) is not dict:
            raise PlanFormatError(f'{where} is {shown(entry)}, not an object; write {{"topic":...}}')
        check_keys(where, entry, required=("topic",))
        check_text(where, "topic", entry["topic"])
        topics.append(entry["topic"])
    return _checked(topics)


def _checked(topics: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, int] = {}
    for number, topic in enumerate(topics):
        problem = topic_problem(topic)
        if topic in first:
            problem = f"entry {first[topic]} has this topic already; keep one of the two"
        if problem is not None:
            raise PlanFormatError(f"entry {number}: topic is {shown(topic)}: {problem}")
        first[topic] = number
    if not first:
        raise PlanFormatError("there is no topic to move; list at least one")
    return tuple(first)
