"""The content digest of a plan: what a person approves and what the run that follows must still hold.

Two files that Kafka reads as the same plan have the same digest: white space, the order of keys and the
order of entries do not count, and neither does it whether ``log_dirs`` is left out or says ``any`` for each
replica, because Kafka treats both alike. The order of replicas counts: the first one is the preferred
leader.

The canonical form is a reassignment JSON of version 1 without white space: entries by topic, then by
partition number; keys in the order topic, partition, replicas, log_dirs; no log_dirs where all are ``any``;
only ASCII. The digest is the SHA-256 of its bytes, so that an auditor can compute it without this package.

Example: the plan of ``foo-0`` on brokers 1 and 2 has the canonical form
``{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2]}]}``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rebalance_lib.plan.entry_json import entry_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


def digest_of(entries: pa.Table) -> str:
    """The digest, ``sha256:`` and 64 hexadecimal digits, of a plan's sorted and normalised entries."""
    return digest_of_texts(entry_texts(entries, ","))


def digest_of_texts(texts: Iterable[str]) -> str:
    """The digest of a plan whose entries are written already, many in each text; ends of lines do not count."""
    digest = hashlib.sha256(b'{"version":1,"partitions":[')
    separator = b""
    for text in texts:
        digest.update(separator)
        digest.update(text.encode("ascii").replace(b"\n", b""))
        separator = b","
    digest.update(b"]}")
    return f"sha256:{digest.hexdigest()}"
