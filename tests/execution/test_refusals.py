"""What the engine bears with, and for how long: refused requests, storage out of reach, brokers a moment behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lib.clock import Clock
from rebalance_lib.cluster import Cluster, PartitionMetadata
from rebalance_lib.errors import ClusterError, RebalanceError
from rebalance_lib.execution import Executor, State, ask_to_cancel, executor, leave, metadata_lag
from rebalance_lib.execution.executor import RefusedError
from rebalance_lib.execution.metadata_lag import SETTLE_SECONDS, MetadataLag
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.topology import TopicPartition
from tests.execution.running import settings
from tests.waiting import wait_for


class Refusing(Cluster):
    """A cluster whose controller takes no reassignment."""

    requests = 0

    def reassign(self, targets, **_):
        if targets:
            self.requests += 1
            raise ClusterError("the controller refused it on purpose")


@pytest.fixture
def refusing(kafka):
    with Refusing({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as opened:
        yield opened


def test_requests_that_are_refused_one_after_the_other_end_the_run(refusing, topic, make_job, monkeypatch):
    name = topic("refused-always", [[1]])
    job = make_job(refusing, name, [[2]])
    monkeypatch.setattr(metadata_lag, "SETTLE_SECONDS", 0.5)  # a refused move is asked for again after these
    monkeypatch.setattr(executor, "REFUSED_SECONDS", 1.0)
    with pytest.raises(RefusedError, match="moves could not be begun for 1 s: the controller refused it on purpose"):
        Executor(refusing, job, settings()).run(0.2)


def test_refusals_far_apart_have_nothing_to_do_with_each_other(refusing, topic, make_job, monkeypatch):
    name = topic("refused-seldom", [[1]])
    monkeypatch.setattr(metadata_lag, "SETTLE_SECONDS", 0.5)
    monkeypatch.setattr(executor, "REFUSED_SECONDS", 0.1)
    monkeypatch.setattr(executor, "REFUSED_APART_SECONDS", 0.1)
    running = Executor(refusing, make_job(refusing, name, [[2]]), settings())
    wait_for(lambda: running.check().state is State.MOVING and refusing.requests == 2)


def test_storage_out_of_reach_is_waited_for_and_ends_nothing(cluster, topic, make_job, monkeypatch):
    name = topic("storage-hiccup", [[1], [1]], size=300_000)
    job, told = make_job(cluster, name, [[2], [2]]), []
    chosen = settings(throttle=5_000_000, moves_in_cluster=1)
    read, out_of_reach = type(job.artifacts).read_bytes, [1, 2, 3]

    def hiccup(self, name):
        if out_of_reach:
            out_of_reach.pop()
            raise RebalanceError(f"{self.uri}/{name} cannot be read: Stale file handle")
        return read(self, name)

    running = Executor(cluster, job, chosen, tell=told.append)
    running.check()
    with monkeypatch.context() as patched:
        patched.setattr(type(job.artifacts), "read_bytes", hiccup)
        assert running.run(0.2).state is State.REACHED
    assert any(line.startswith("it cannot go on now") and "Stale file handle" in line for line in told)
    leave(cluster, job, chosen)


def test_a_wish_to_cancel_that_cannot_be_read_counts_as_unchanged(cluster, topic, make_job):
    name = topic("storage-cancel", [[1]])
    job = make_job(cluster, name, [[2]])
    running = Executor(cluster, job, settings())
    job.artifacts.write_text("cancel.json", "half of a fi")
    assert running.check().state is State.MOVING
    ask_to_cancel(job.artifacts, "ada")
    running.check()
    job.artifacts.write_text("cancel.json", "half of a fi")
    assert running.check().state in (State.CANCELLED, State.REACHED)
    leave(cluster, job, settings())


TP = TopicPartition("foo", 0)


def seen(status, *replicas):
    live = PartitionMetadata(replicas, frozenset(replicas), replicas[0], internal=False)
    return PlanStatus({TP: status}, {TP: live}, {})


def test_a_move_that_has_just_ended_does_not_begin_again(tmp_path, monkeypatch):
    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.execution import Job
    from rebalance_lib.plan import Plan

    job = Job(Plan.from_assignment({TP: [3, 2]}), Plan.from_assignment({TP: [1, 2]}), "c", Artifacts.at(tmp_path))
    now = [0.0]
    monkeypatch.setattr(clock := Clock(), "monotonic", lambda: now[0])
    believed = MetadataLag(job, Journal(job.artifacts), lambda _: 1, clock)
    believed.begin([Step(TP, 1, (3,), 1, replicas=(3, 2))], seen(Status.PENDING, 1, 2), accepted=True)
    assert believed.believe(seen(Status.DONE, 3, 2), []).by_partition[TP] is Status.DONE
    now[0] += SETTLE_SECONDS - 1
    assert believed.believe(seen(Status.PENDING, 1, 2), []).by_partition[TP] is Status.DONE  # a broker behind
    now[0] += 2
    assert believed.believe(seen(Status.PENDING, 1, 2), []).by_partition[TP] is Status.PENDING


def test_a_stage_that_has_just_ended_does_not_begin_again(tmp_path):
    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.execution import Job
    from rebalance_lib.plan import Plan

    job = Job(Plan.from_assignment({TP: [3, 4]}), Plan.from_assignment({TP: [1, 2]}), "c", Artifacts.at(tmp_path))
    believed = MetadataLag(job, Journal(job.artifacts), lambda _: 1, Clock())
    believed.begin([Step(TP, 1, (3,), 1, replicas=(3, 2))], seen(Status.PENDING, 1, 2), accepted=True)
    ended = seen(Status.PENDING, 3, 2)
    assert believed.believe(ended, []).by_partition[TP] is Status.PENDING  # for the next stage
    assert believed.believe(seen(Status.PENDING, 1, 2), []).by_partition[TP] is Status.MOVING
    assert believed.believe(replace(ended), []).by_partition[TP] is Status.PENDING
