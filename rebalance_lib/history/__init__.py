"""What the clusters were over time, and what that says about the load of each partition."""

from rebalance_lib.history.compaction import Compacted, compact_day, days_over
from rebalance_lib.history.dataset import (
    HISTORY,
    HistoryFile,
    append_sample,
    append_snapshot,
    clusters,
    files_between,
    sample_of,
)
from rebalance_lib.history.loads import GROUP_READS, LOADS, read_group_reads, read_loads
from rebalance_lib.history.planned import (
    PLANNED_LOADS,
    LoadOptions,
    Statistic,
    cuts_of,
    group_reads,
    planned,
    planned_loads,
    planned_part,
    window_until,
)
from rebalance_lib.history.prometheus import Prometheus, Queries, import_history, read_samples
from rebalance_lib.history.prometheus_api import Credentials
from rebalance_lib.history.prometheus_series import Labels
from rebalance_lib.history.retention import Retained, thin_history
from rebalance_lib.history.shares import Share, shares_of

__all__ = [
    "GROUP_READS",
    "HISTORY",
    "LOADS",
    "PLANNED_LOADS",
    "Compacted",
    "Credentials",
    "HistoryFile",
    "Labels",
    "LoadOptions",
    "Prometheus",
    "Queries",
    "Retained",
    "Share",
    "Statistic",
    "append_sample",
    "append_snapshot",
    "clusters",
    "compact_day",
    "cuts_of",
    "days_over",
    "files_between",
    "group_reads",
    "import_history",
    "planned",
    "planned_loads",
    "planned_part",
    "read_group_reads",
    "read_loads",
    "read_samples",
    "sample_of",
    "shares_of",
    "thin_history",
    "window_until",
]
