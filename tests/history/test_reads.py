"""What consumers read is told by what their groups commit."""

from __future__ import annotations

from itertools import count

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.history import Share, files_between, read_group_reads, read_loads
from tests.history.samples import READ_EXAMPLE, Row, window, write

DAY = 24 * 3600
FRESH = count()


def reads(by_second):
    """The loads of the partition, and of each group: its rates and how often it was reset."""
    history = Artifacts(f"memory://reads-{next(FRESH)}")
    write(history, "c", by_second)
    share = Share("c", tuple(files_between(history, "c", *window(DAY))))
    (load,) = read_loads(history, share).to_pylist()
    groups = {row["group"]: (row["read_rate"], row["resets"]) for row in read_group_reads(history, share).to_pylist()}
    return load, groups


def at(end, **committed):
    """Partition 0 of orders with 100 bytes per record, led by broker 1."""
    return [Row("orders", 0, 1, True, 100 * end, 0, end, committed)]


def unlisted(end):
    return [at(end)[0]._replace(committed=None)]


def test_the_example_of_the_design():
    load, groups = reads(READ_EXAMPLE)
    assert (load["read_rate"], load["read_rate_p95"], load["read_rate_last"]) == (20, pytest.approx(29), 10)
    assert load["groups_reset"] == ["billing"]
    assert groups == {"billing": (10, 1), "audit": (15, 0)}


def test_a_partition_that_no_group_reads_is_read_at_zero():
    load, groups = reads({0: at(10), 100: at(20)})
    assert (load["read_rate"], load["groups_reset"], groups) == (0, None, {})


@pytest.mark.parametrize("listed", [{}, {0: at(10, g=5)}])
def test_where_groups_were_not_listed_twice_nothing_is_known(listed):
    load, _ = reads({0: unlisted(10), 100: unlisted(20), 200: unlisted(20), **listed})
    assert (load["write_rate"], load["read_rate"], load["read_rate_p95"], load["read_rate_last"]) == (
        5,
        None,
        None,
        None,
    )


def test_a_snapshot_without_groups_makes_the_interval_longer():
    load, groups = reads({0: at(10, g=0), 100: unlisted(20), 200: at(30, g=20)})
    assert (load["read_rate"], groups) == (10, {"g": (10, 0)})


def test_a_group_that_is_missing_once_is_taken_to_stand_still():
    load, groups = reads({0: at(10, g=0), 100: at(20), 200: at(30, g=20)})
    assert (load["read_rate"], load["read_rate_last"], groups) == (10, 20, {"g": (10, 0)})


def test_a_topic_created_again_is_not_read_by_what_was_committed_for_the_old_one():
    load, groups = reads({0: at(50, g=0), 100: at(2, g=2), 200: at(4, g=4)})
    assert (load["read_rate"], load["groups_reset"], groups) == (2, None, {"g": (2, 0)})


def test_a_record_of_unknown_size_leaves_the_interval_out():
    gone = [Row("orders", 0, 1, True, 0, 20, 20, {"g": 20})]
    load, groups = reads({0: at(10, g=10), 100: gone})
    assert (load["read_rate"], groups) == (None, {"g": (None, 0)})
    load, groups = reads({0: at(10, g=20), 100: gone})
    assert (load["read_rate"], groups) == (0, {"g": (0, 0)})
