"""The YAML of the file of clusters, taken apart into the entries of clusters, each readable for itself.

A file that YAML cannot read as a whole is cut by its indentation, so that an entry with a missing quote is wrong alone:

    clusters:
      production:                    <- an entry: a name with the indentation of the first one
        schedule: "0 20 * * sat      <- what is indented more belongs to it
      staging:
        kafka_conn_id: kafka_staging
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_ENTRY = re.compile(r"""( +)["']?([\w-]+)["']?:(\s|$)""")
_CONNECTION = re.compile(r"""^ +kafka_conn_id: *["']?([\w.-]+)["']? *(#.*)?$""", re.MULTILINE)


class BadBlockError(ValueError):
    """An entry that is no YAML.

    Args:
        reason: What YAML says of it.
        text: The entry, of which the connection is taken nevertheless: a run that is under way needs it.
    """

    def __init__(self, reason: yaml.YAMLError, text: str) -> None:
        super().__init__(f"this is no YAML: {reason}")
        named = _CONNECTION.search(text)
        self.kafka_conn_id = named[1] if named else ""


Entries = list[tuple[str, yaml.Node | BadBlockError]]


def compose(text: str) -> tuple[yaml.Node | None, Entries, str]:
    """The file, the entries of its clusters by their names, and what is wrong with it beside these.

    Raises:
        ValueError: It is no YAML, and no entries can be found.
    """
    try:
        file = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        rest, blocks = _split(text)
        if not blocks:
            raise ValueError(f"this is no YAML: {error}") from error
        entries: Entries = [(name, _value(block)) for name, block in blocks]
        try:
            return yaml.compose(rest, yaml.SafeLoader), entries, ""
        except yaml.YAMLError as of_rest:
            return None, entries, f"this is no YAML: {of_rest}"
    for key, value in file.value if isinstance(file, yaml.MappingNode) else ():
        if key.value == "clusters" and isinstance(value, yaml.MappingNode):
            return file, [(str(name.value), entry) for name, entry in value.value], ""
    return file, [], ""


def construct(node: yaml.Node | None) -> Any:
    """What a node of YAML stands for.

    Raises:
        ValueError: It stands for nothing that is known here.
    """
    if node is None:
        return {}
    try:
        return yaml.constructor.SafeConstructor().construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(f"this is no YAML: {error}") from error


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The file without its entries, and these; empty lines keep the numbers of lines as they are."""
    rest: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    inside, indent = False, ""
    for number, line in enumerate(text.splitlines()):
        if line[:1] not in ("", " ", "#"):
            inside = line.startswith("clusters:")
        elif inside and (entry := _ENTRY.match(line)) and entry[1] == (indent or entry[1]):
            indent = entry[1]
            blocks.append((entry[2], [""] * number))
        within = inside and bool(blocks) and line[:1] in ("", " ", "#")
        (blocks[-1][1] if within else rest).append(line)
        if within:
            rest.append("")
    return "\n".join(rest), [(name, "\n".join(lines)) for name, lines in blocks]


def _value(block: str) -> yaml.Node | BadBlockError:
    """The value in an object with one key."""
    try:
        node: yaml.Node = yaml.compose(block, yaml.SafeLoader).value[0][1]
    except yaml.YAMLError as error:
        return BadBlockError(error, block)
    return node
