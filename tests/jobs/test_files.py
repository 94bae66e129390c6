"""What the checks read of the files of a plan: the one at the top is the recommended one, and what is torn is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.jobs.files import Staged, whole_clusters
from rebalance_lib.planner import Mode, Request
from tests.jobs.test_plans import written

REQUEST = Request(Mode.BALANCE)


@pytest.fixture
def staged(tmp_path):
    directory = written(tmp_path, REQUEST)
    return Staged(0, (directory / "..") / "snapshot", directory)


def files(staged):
    """The rows about files, as the rules see them."""
    place = pa.RecordBatch.from_pydict({"id": [0]})
    rows = pa.Table.from_batches(whole_clusters([staged], REQUEST)([place]))["files"].to_pylist()
    return [row for row in rows if row is not None]


def test_all_digests_of_a_good_plan_are_one(staged):
    assert len({digest for row in files(staged) for digest in (row["digest"], row["said"])}) == 1


def test_another_plan_at_the_top_is_found_though_the_summary_has_its_digest(staged):
    summary = staged.directory.read_json("summary.json")
    staged.directory.write_json("summary.json", {**summary, "digest": "sha256:of-another"})
    assert [row["digest"] for row in files(staged) if row["digest"] != row["said"]] == ["sha256:of-another"]
    staged.directory.write_text("plan.json", '{"version":1,"partitions":[]}\n')
    assert len([row for row in files(staged) if row["digest"] != row["said"]]) == 2


def test_files_that_cannot_be_read_are_a_row_of_their_run(staged):
    staged.directory.write_text("summary.json", "{}")
    (row,) = files(staged)
    assert "KeyError" in row["unreadable"]
