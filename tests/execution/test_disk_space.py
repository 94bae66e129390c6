"""Disk space on the log dirs, while old and new copies are side by side."""

from __future__ import annotations

from rebalance_lib.cluster import HeldReplica, LogDir
from rebalance_lib.execution.disk_space import Change, DiskSpace, first_without_space
from rebalance_lib.execution.progress import Copy
from rebalance_lib.topology import TopicPartition

A, B = TopicPartition("foo", 0), TopicPartition("foo", 1)


def log_dir(path, usable, *replicas):
    held = [HeldReplica(partition, size, future=False) for partition, size in replicas]
    return LogDir(path, online=True, total_bytes=100, usable_bytes=usable, replicas=held)


def test_a_copy_goes_where_most_space_is_left_after_those_under_way():
    log_dirs = {1: [log_dir("/a", 50, (A, 0)), log_dir("/b", 30)]}
    space = DiskSpace(log_dirs, [Copy(A, 1, 0, 25)], reserve=0.0)
    assert space.emptiest(1) == "/b"
    space.take(1, "/b", 20)
    assert space.lacking({1: space.emptiest(1)}, 20) is None
    space.take(1, "/a", 20)
    assert space.lacking({1: "/a"}, 20) == "20 bytes do not fit into /a of broker 1, 5 are free for it"


def test_a_part_of_every_log_dir_stays_free():
    assert DiskSpace({1: [log_dir("/a", 30)]}, [], reserve=0.2).lacking({1: "/a"}, 11) is not None
    assert DiskSpace({1: [log_dir("/a", 30)]}, [], reserve=0.2).lacking({1: "/a"}, 10) is None


def test_a_swap_fits_only_where_one_of_the_two_can_go_first():
    swap = [
        [Change(A, 40, {2: None}, ((1, "/d", 40),))],
        [Change(B, 40, {1: None}, ((2, "/d", 40),))],
    ]
    assert first_without_space(DiskSpace({1: [log_dir("/d", 10)], 2: [log_dir("/d", 40)]}, [], 0.0), swap) is None
    stuck = first_without_space(DiskSpace({1: [log_dir("/d", 10)], 2: [log_dir("/d", 30)]}, [], 0.0), swap)
    assert stuck == "foo-0: 40 bytes do not fit into /d of broker 2, 30 are free for it"
