"""Where a table of partitions' loads comes from: carried by the table itself, through files and tasks, to its reader.

Example: loads that are the 95th percentile of 24 hours, with sizes as they will be in a week, have the metadata
``{"loads": '{"groups_reset": ["billing"], "horizon_days": 7.0, "hours": 24.0, "statistic": "p95"}'}``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

import pyarrow as pa

KEY = b"loads"


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """Of loads out of the history: which statistic, over how many hours, and for when.

    Args:
        statistic: mean, p95 or last.
        hours: Of history that were read.
        horizon_days: Sizes are those after so many days; with 0, those of the snapshot count.
        groups_reset: The consumer groups whose offsets were set back meanwhile: what they read then counts as 0.
    """

    statistic: str
    hours: float
    horizon_days: float
    groups_reset: tuple[str, ...] = ()

    def attach(self, table: pa.Table) -> pa.Table:
        """The table with these facts."""
        return table.replace_schema_metadata({KEY: json.dumps(asdict(self), sort_keys=True)})

    @classmethod
    def of(cls, table: pa.Table) -> Self | None:
        """The facts of a table; None for one that is from elsewhere, or of an older version."""
        text = (table.schema.metadata or {}).get(KEY)
        if text is None:
            return None
        facts = json.loads(text)
        return cls(**{**facts, "groups_reset": tuple(facts["groups_reset"])})
