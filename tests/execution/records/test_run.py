"""A run on a live cluster: preflight, submission, progress and the end, each of them again at any moment."""

from __future__ import annotations

import pytest

from rebalance_lib.cluster import Replica, ReplicaLogDir, take_snapshot
from rebalance_lib.errors import DriftError
from rebalance_lib.execution import Executor, Run, Settings, finalize_run, prepare_rollback, set_throttles
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.throttles.restore import restore_throttles
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.report import publish_plan
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_leaders, wait_for_replicas
from tests.execution.running import SLOW, settings
from tests.kafka_data import delete_topics
from tests.waiting import wait_for


@pytest.fixture
def start(cluster, tmp_path):
    """A run with a snapshot and a plan for partition 0 of a topic."""

    def make(topic, target):
        run = Run(tmp_path.as_uri())
        snapshot = take_snapshot(cluster)
        run.write_snapshot(snapshot)
        publish_plan(run.artifacts / "plan", Plan.from_assignment({TopicPartition(topic, 0): target}), snapshot)
        return run, run.plan().digest

    return make


SLOWLY = settings(throttle=SLOW)


def begin(run, cluster, digest, chosen=None):
    """Preflight and throttles, then everything at once, as an executor begins it; returns its report."""
    chosen, job = chosen or settings(), run.job(digest)
    set_throttles(cluster, job, run.preflight(cluster, digest).status, chosen)
    return Executor(cluster, job, chosen).check()


def finish(run, cluster):
    return wait_for(lambda: run.progress(cluster), lambda progress: progress.finished)


def end(run, cluster, failed_steps=()):
    return finalize_run(cluster, run, Settings(), approved_by="a person", approved_at="now", failed_steps=failed_steps)


def test_a_plan_is_executed_verified_and_reported(cluster, topic, start):
    name = topic("run-whole", [[1, 2]], size=200_000)
    run, digest = start(name, [3, 2])
    assert run.status(cluster).having(Status.PENDING) == [TopicPartition(name, 0)]
    begin(run, cluster, digest)
    assert str(finish(run, cluster)).startswith("1 of 1 partitions done")
    outcome = end(run, cluster)
    assert outcome.completed
    assert outcome.verdict == "1 of 1 partitions are where the plan says."
    wait_for_leaders(cluster, name, {0: 3})
    page = run.artifacts.read_text("report.html")
    assert "a person" in page
    assert digest in page
    assert run.snapshot("after").load_per_broker()["bytes"].to_pylist()[2] >= 200_000


def test_a_move_under_way_is_seen_and_not_submitted_again(cluster, topic, start):
    name = topic("run-moving", [[1]], size=1_000_000)
    run, digest = start(name, [2])
    begin(run, cluster, digest, SLOWLY)
    progress = run.progress(cluster)
    assert (progress.moving, progress.finished) == (1, False)
    assert 0 <= progress.bytes_copied < progress.bytes_to_copy
    assert progress.bytes_to_copy >= 1_000_000
    assert begin(run, cluster, digest, SLOWLY).progress.moving == 1
    assert "moving: run-moving-0" in end(run, cluster).verdict
    assert "Throttles left on the cluster" in run.artifacts.read_text("report.html")
    restore_throttles(cluster, run.artifacts)
    finish(run, cluster)
    wait_for_replicas(cluster, name, {0: (2,)})
    assert begin(run, cluster, digest).state == "completed"


def test_a_cancelled_move_is_seen_as_stopped(cluster, topic, start):
    name = topic("run-cancelled", [[1]], size=1_000_000)
    run, digest = start(name, [2])
    begin(run, cluster, digest, SLOWLY)
    assert not run.progress(cluster).stopped
    cluster.reassign({TopicPartition(name, 0): None})
    restore_throttles(cluster, run.artifacts)
    progress = wait_for(lambda: run.progress(cluster), lambda found: found.stopped)
    assert (progress.pending, progress.finished) == (1, False)


def test_other_bytes_than_were_approved_are_refused(cluster, topic, start):
    name = topic("run-digest", [[1, 2]])
    run, digest = start(name, [3, 2])
    text = (run.artifacts / "plan").read_text("plan.json")
    (run.artifacts / "plan").write_text("plan.json", text.replace("[3,2]", "[4,2]"))
    with pytest.raises(DriftError, match=f"approved was {digest}"):
        run.preflight(cluster, digest)


@pytest.mark.usefixtures("short_lag")
def test_a_deleted_topic_is_left_out_and_reported(cluster, kafka, topic, start):
    name = topic("run-deleted", [[1, 2]])
    run, digest = start(name, [3, 2])
    with kafka.admin() as admin:
        delete_topics(admin, [name])
    assert "run-deleted-0" in run.preflight(cluster, digest).remarks[0]
    executor = Executor(cluster, run.job(digest), Settings())
    wait_for(lambda: executor.check().progress.missing == 1)
    outcome = end(run, cluster)
    assert outcome.completed
    assert "1 missing: run-deleted-0" in outcome.verdict


def test_the_report_of_a_failed_run_names_the_steps(cluster, topic, start):
    name = topic("run-failed", [[1, 2]])
    run, _ = start(name, [3, 2])
    outcome = end(run, cluster, failed_steps=["execute_plan"])
    assert not outcome.completed
    assert "Failed steps: execute_plan." in run.artifacts.read_text("report.html")


def test_a_rollback_is_a_run_of_its_own(cluster, topic, start, tmp_path):
    name = topic("run-back", [[1, 2]], size=100_000)
    run, digest = start(name, [3, 2])
    begin(run, cluster, digest)
    finish(run, cluster)
    wait_for_replicas(cluster, name, {0: (3, 2)})
    back = Run((tmp_path / "back").as_uri())
    assert prepare_rollback(cluster, run, back, log=pytest.fail).as_dict() == {TopicPartition(name, 0): (1, 2)}
    assert back.plan().digest in (back.artifacts / "plan").read_text("review.md")
    begin(back, cluster, back.plan().digest)
    finish(back, cluster)
    wait_for_replicas(cluster, name, {0: (1, 2)})
    assert len(prepare_rollback(cluster, run, Run((tmp_path / "again").as_uri()), log=pytest.fail)) == 0


def test_a_rollback_of_log_dirs_names_the_former_ones(cluster, topic, tmp_path):
    name = topic("run-back-log-dirs", [[1]], size=10_000)
    run, snapshot = Run(tmp_path.as_uri()), take_snapshot(cluster)
    replica = Replica(name, 0, 1)
    held = cluster.replica_log_dirs([1])[replica].current
    other = next(log_dir.path for log_dir in cluster.log_dirs(1) if log_dir.path != held)
    run.write_snapshot(snapshot)
    publish_plan(run.artifacts / "plan", Plan.from_entries([PlanEntry(name, 0, (1,), (other,))]), snapshot)
    begin(run, cluster, run.plan().digest)
    wait_for(lambda: cluster.replica_log_dirs([1])[replica], ReplicaLogDir(other, None))
    back = prepare_rollback(cluster, run, Run((tmp_path / "back").as_uri()), log=pytest.fail)
    assert [entry.log_dirs for entry in back] == [(held,)]
