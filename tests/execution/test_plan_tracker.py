"""What a poll reads: the topics of what is under way, however large plan and cluster are."""

from __future__ import annotations

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import PartitionMetadata, Reassignment
from rebalance_lib.execution import Job
from rebalance_lib.execution.next_moves import Step
from rebalance_lib.execution.plan_status import Ends, Status
from rebalance_lib.execution.plan_tracker import PlanTracker
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition
from tests.execution.running import StoppedClock

TOPICS = 100


class ManyTopics:
    """A cluster of topics with one partition on broker 1 each, which notes the topics that it is asked for."""

    def __init__(self):
        self.clock = StoppedClock()
        self.read = []
        self.moving = {}
        self.states = {tp: self._at(1) for tp in map(self.partition, range(TOPICS))}

    @staticmethod
    def partition(number):
        return TopicPartition(f"topic-{number:03d}", 0)

    @staticmethod
    def _at(*replicas):
        return PartitionMetadata(replicas, frozenset(replicas), replicas[0], internal=False)

    def begin(self, tp):
        self.moving[tp] = Reassignment((2, 1), (2,), (1,))
        self.states[tp] = self._at(2, 1)

    def end(self, tp):
        del self.moving[tp]
        self.states[tp] = self._at(2)

    def partitions(self, topics=None):
        assert topics is not None, "the whole cluster was read"
        self.read.append(sorted(topics))
        return {tp: state for tp, state in self.states.items() if tp.topic in topics}

    def reassignments(self, partitions=None):
        return {tp: entry for tp, entry in self.moving.items() if partitions is None or tp in partitions}


def test_a_check_reads_the_plan_and_a_poll_what_is_under_way(tmp_path):
    cluster = ManyTopics()
    planned = [cluster.partition(number) for number in range(10)]
    plan, before = (Plan.from_assignment({tp: [broker] for tp in planned}) for broker in (2, 1))
    job = Job(plan, before, "c", Artifacts.at(tmp_path))
    journal = Journal(job.artifacts, cluster.clock)
    tracker = PlanTracker(cluster, job, journal, lambda _: 1, Ends(job.targets, job.origins))
    tracker.read()
    assert cluster.read == [[tp.topic for tp in planned]]
    under_way = planned[3:5]
    tracker.begin([Step(tp, 1, (2,), 1, replicas=(2,)) for tp in under_way], accepted=True)
    for tp in under_way:
        cluster.begin(tp)
    cluster.read.clear()
    assert tracker.read_moving() == []
    cluster.end(under_way[0])
    assert tracker.read_moving() == [under_way[0]]
    assert tracker.read_moving() == []
    asked = {topic for topics in cluster.read for topic in topics}
    assert asked <= {tp.topic for tp in under_way}
    assert under_way[0].topic not in (cluster.read[2] if len(cluster.read) > 2 else [])
    assert tracker.status.by_partition[under_way[0]] is Status.DONE
