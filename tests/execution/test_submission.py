"""Requests that are refused or not answered, and storage that is unreachable: what the executor does, and how long."""

from __future__ import annotations

from collections import Counter

import pytest

from rebalance_lib.cluster import Cluster, RefusedError
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution import Kind, RunState, executor, make_request, submission
from rebalance_lib.topology import TopicPartition
from tests.everywhere import wait_for_replicas
from tests.execution.running import SLOW, run_to_end, settings
from tests.waiting import wait_for


class Unreliable(Cluster):
    """A cluster whose controller refuses some partitions, or whose answers or requests are lost; it counts requests."""

    refused: frozenset[TopicPartition] = frozenset()
    lost_requests = lost_answers = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.requests = Counter()

    def reassign(self, targets, **options):
        self.requests.update(tp for tp, target in targets.items() if target is not None)
        if self.lost_requests:
            self.lost_requests -= 1
            raise ClusterError("the request was lost on purpose")
        super().reassign({tp: target for tp, target in targets.items() if tp not in self.refused}, **options)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ClusterError("the answer was lost on purpose")
        if refused := sorted(self.refused & targets.keys()):
            raise RefusedError("the controller refused some", dict.fromkeys(refused, "refused on purpose"))


@pytest.fixture
def unreliable(kafka):
    with Unreliable({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as opened:
        yield opened


def test_a_partition_that_is_refused_for_long_is_set_aside_and_the_rest_completes(
    unreliable, topic, make_job, monkeypatch
):
    name = topic("refused-one", [[1], [1]], size=100_000)
    job, refused = make_job(unreliable, name, [[2], [2]]), TopicPartition(name, 0)
    unreliable.refused = frozenset({refused})
    monkeypatch.setattr(submission, "REFUSED_AGAIN_SECONDS", 0.3)
    monkeypatch.setattr(executor, "REFUSED_SECONDS", 1.0)
    report = run_to_end(unreliable, job, settings())
    assert report.state is RunState.INCOMPLETE
    assert dict(report.set_aside) == {refused: "the controller refused it: refused on purpose"}
    assert unreliable.requests[refused] > 1
    wait_for_replicas(unreliable, name, {0: (1,), 1: (2,)})


def test_an_answer_that_is_lost_is_not_requested_again(unreliable, topic, make_job):
    name = topic("answer-lost", [[1], [1]], size=100_000)
    job = make_job(unreliable, name, [[2], [2]])
    unreliable.lost_answers = 1
    assert run_to_end(unreliable, job, settings()).state is RunState.COMPLETED
    assert set(unreliable.requests.values()) == {1}
    wait_for_replicas(unreliable, name, {0: (2,), 1: (2,)})


def test_a_request_to_cancel_counts_until_the_run_has_ended(cluster, topic, make_job, started):
    name = topic("storage-cancel", [[1]], size=1_000_000)
    job = make_job(cluster, name, [[2]])
    running = started(job, settings(throttle=SLOW))
    (job.artifacts / "requests").write_text("000001-damaged.json", "half of a fi")
    assert running.check().state is RunState.MOVING
    wait_for(cluster.reassignments)
    request = make_request(job.artifacts, Kind.CANCEL, by="ada")
    assert running.check().state is RunState.CANCELLED
    (job.artifacts / "requests").write_text(request.name, "half of a fi")
    assert running.check().state is RunState.CANCELLED, "what was read once counts"
