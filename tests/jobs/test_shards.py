"""What goes from shard to join: what is wrong with a shard is said in its own words, and a shard may be empty."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rebalance_lib.jobs import shards
from rebalance_lib.jobs.rows import PLANNED_LOADS, ROWS, PlanTask, chunks_of, rows_of
from rebalance_lib.jobs.tasks import OUTCOMES, outcome
from rebalance_lib.planner import Mode, Request


def test_what_is_wrong_with_a_shard_is_what_the_run_fails_with(tmp_path):
    def refuse():
        raise ValueError("broker 1 is listed twice")

    task = PlanTask(tmp_path.as_uri(), Request(Mode.BALANCE), (tmp_path / "staging").as_uri(), shards=2)
    (answer,) = shards.join({7: task}, {})([outcome(7, refuse, OUTCOMES)])
    assert "broker 1 is listed twice" in answer["error"][0].as_py(), "there are no totals of a cluster that is refused"


def test_loads_without_a_row_are_no_rows_for_any_shard():
    batches = list(chunks_of(PLANNED_LOADS.empty_table(), ROWS, 0, np.empty(0, np.int64)))
    assert rows_of(batches, ROWS)[2] == pa.Table.from_batches([], ROWS)
