"""What is refused before anything is changed; the points of docs/execution.md are in test_field."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import ClusterError, DriftError
from rebalance_lib.execution import preflight
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_replicas
from tests.execution.running import settings
from tests.waiting import wait_for


def test_all_reasons_are_given_at_once(cluster, topic, make_job):
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
