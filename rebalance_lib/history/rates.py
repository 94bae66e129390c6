"""The write rates that a plan is made with: those of the hours before its snapshot, and of none after it.

Example: a snapshot taken at noon and a window of 24 hours have the rates from noon of the day before up to and with
noon. What the history knows of the afternoon is not looked at, so that an old snapshot gives the plan it would have
given then.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.history.dataset import clusters, files_between
from rebalance_lib.history.loads import Share, read_loads

RATE_COLUMNS = ("topic", "partition", "write_rate", "write_rate_p95")


def window_until(taken_at: str, hours: float) -> tuple[datetime, datetime]:
    """The window that ends with a snapshot taken then, or now if it is not said when; its end is not in it."""
    try:
        moment = datetime.fromisoformat(taken_at) if taken_at else datetime.now(UTC)
    except ValueError as error:
        raise InvalidInputError(f"the snapshot says it was taken at {taken_at!r}, which is no time: {error}") from error
    end = moment + timedelta(seconds=1)
    return end - timedelta(hours=hours), end


def write_rates(history: Artifacts, cluster_id: str, taken_at: str, hours: float) -> pa.Table | None:
    """The rates of a cluster's partitions, in `RATE_COLUMNS`; None where there are none, as of a single snapshot."""
    if cluster_id not in clusters(history):
        return None
    files = files_between(history, cluster_id, *window_until(taken_at, hours))
    if not files:
        return None
    loads = read_loads(history, Share(cluster_id, tuple(files)))
    known = loads.filter(pc.is_valid(loads["write_rate"])).select(RATE_COLUMNS)
    return known if known.num_rows else None
