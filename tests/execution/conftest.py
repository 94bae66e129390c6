"""Jobs on a cluster: a plan for partitions of a topic, and what was before."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.execution import Executor, Job, clean_up, metadata_lag, preflight, set_throttles, stalls
from rebalance_lib.execution.commands.plan_state import live_assignment
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.intervals import shorten


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch):
    shorten(monkeypatch)


@pytest.fixture
def make_job(tmp_path):
    """``make_job(cluster, "orders", [[3, 2]])`` is a job that puts partition 0 of the topic on brokers 3 and 2."""

    def make(cluster, topic, targets, *, name="job", **options):
        plan = Plan.from_assignment({TopicPartition(topic, number): target for number, target in enumerate(targets)})
        live = cluster.partitions([topic])
        before = live_assignment(cluster, {tp: live[tp] for tp in plan.as_dict()}, {})
        return Job(plan, before, cluster.cluster_id(), Artifacts.at(tmp_path / name), **options)

    return make


@pytest.fixture
def started(cluster):
    """``started(job, settings)`` is an executor after preflight, with throttles set; the test ends with a clean-up."""
    jobs = []

    def start(job, chosen, **options):
        jobs.append((job, chosen))
        set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
        return Executor(cluster, job, chosen, **options)

    yield start
    for job, chosen in jobs:
        clean_up(cluster, job, chosen)


@pytest.fixture
def stalls_at_once(monkeypatch):
    """What rests has stalled, though the throttle explains it: how long it may rest is tested in test_stalls."""
    monkeypatch.setattr(stalls, "PARTITION_FETCH", 0)
    monkeypatch.setattr(stalls, "QUOTA_WINDOW_SECONDS", 0)


@pytest.fixture
def short_lag(monkeypatch):
    """What metadata shows counts after a second."""
    monkeypatch.setattr(metadata_lag, "LAG_SECONDS", 1.0)
