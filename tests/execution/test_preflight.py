"""What is refused before anything is changed; points that FIELD asks for are in test_field."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import HeldReplica, LogDir
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution import preflight
from rebalance_lib.execution.disk_space import Change, DiskSpace, first_without_space
from rebalance_lib.execution.progress import Copy
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_replicas
from tests.execution.running import settings
from tests.waiting import wait_for

A, B = TopicPartition("foo", 0), TopicPartition("foo", 1)


def log_dir(path, usable, *replicas):
    held = [HeldReplica(partition, size, future=False) for partition, size in replicas]
    return LogDir(path, online=True, total_bytes=100, usable_bytes=usable, replicas=held)


def test_a_copy_goes_where_most_room_is_left_after_those_under_way():
    log_dirs = {1: [log_dir("/a", 50, (A, 0)), log_dir("/b", 30)]}
    room = DiskSpace(log_dirs, [Copy(A, 1, 0, 25)], reserve=0.0)
    assert room.roomiest(1) == "/b"
    room.take(1, "/b", 20)
    assert room.lacking({1: room.roomiest(1)}, 20) is None
    room.take(1, "/a", 20)
    assert room.lacking({1: "/a"}, 20) == "20 bytes do not fit into /a of broker 1, 5 are free for it"


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


def test_all_reasons_are_told_at_once(cluster, topic, make_job):
    name = topic("preflight-all", [[1, 2], [1, 2]])
    job = make_job(cluster, name, [[3, 2], [3, 9]])
    cluster.reassign({TopicPartition(name, 0): [2, 4]})
    wait_for(cluster.reassignments, {})
    wait_for_replicas(cluster, name, {0: (2, 4), 1: (1, 2)})
    with pytest.raises(DriftError) as refused:
        preflight(cluster, job, settings())
    drifted, dead = str(refused.value).split("; ")
    assert drifted == "1 partitions are no longer where the snapshot saw them (preflight-all-0): plan again"
    assert dead.startswith("target brokers [9] are not alive")


def test_a_plan_is_for_its_own_cluster(cluster, topic, make_job, tmp_path):
    name = topic("preflight-cluster", [[1, 2]])
    job = make_job(cluster, name, [[3, 2]])
    other = type(job)(job.plan, job.before, "another", Artifacts.at(tmp_path))
    with pytest.raises(ClusterError, match="the plan is for cluster another"):
        preflight(cluster, other)


def test_a_rate_that_the_history_knows_counts_too(cluster, topic, make_job):
    name = topic("preflight-history", [[1]])
    job = make_job(cluster, name, [[2]], write_rates={TopicPartition(name, 0): 3_000_000.0})
    with pytest.raises(ClusterError, match=r"up to 3000000 bytes/s are written .* it would take 4500000 or more"):
        preflight(cluster, job, settings(throttle=2_000_000))
