"""Which partitions of the cluster have fewer in-sync replicas than producers with ``acks=all`` need.

A partition is short when its ISR is below ``min.insync.replicas``, or when it has no leader at all. One with fewer
replicas than the setting asks for can never satisfy it: it counts by its replicas.

The plan's partitions are known at every check anyway. All others are read now and then, since the metadata of a large
cluster takes seconds to read, and again at every check while one of them is short.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_lib.cluster import Cluster, PartitionMetadata
from rebalance_lib.cluster.snapshot import MIN_INSYNC
from rebalance_lib.execution.plan_status import PlanStatus
from rebalance_lib.topology import TopicPartition

KEPT_SECONDS = 60.0  # how long a topic's setting is taken for granted
WHOLE_CLUSTER_SECONDS = 30.0  # between two readings of the whole cluster, at least
WHOLE_CLUSTER_SHARE = 20  # and so many times as long as one takes


class MinIsr:
    """Looks ``min.insync.replicas`` up for the topics that need it, and remembers it for a while."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[float, int]] = {}

    def of(self, topic: str) -> int:
        """The setting of a topic."""
        self.learn([topic])
        return self._known[topic][1] if topic in self._known else 1

    def learn(self, topics: Iterable[str]) -> None:
        """Look the setting up for these topics, together."""
        now = self._cluster.clock.monotonic()
        unknown = [topic for topic in sorted(set(topics)) if now - self._read_at(topic) >= KEPT_SECONDS]
        if unknown:
            for topic, found in self._cluster.topic_configs(unknown, [MIN_INSYNC]).items():
                self._known[topic] = (now, int(found[MIN_INSYNC].value) if MIN_INSYNC in found else 1)

    def _read_at(self, topic: str) -> float:
        return self._known[topic][0] if topic in self._known else float("-inf")

    def needed(self, tp: TopicPartition, replicas: int) -> int:
        """The in-sync replicas that a partition with so many replicas needs."""
        return min(self.of(tp.topic), replicas)


class ClusterHealth:
    """Watches the cluster; ``short`` are the partitions that are short of in-sync replicas, in order."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._min_isr = MinIsr(cluster)
        self._others: dict[TopicPartition, PartitionMetadata] = {}
        self._due = float("-inf")
        self.short: list[TopicPartition] = []

    def min_isr(self, topic: str) -> int:
        """``min.insync.replicas`` of a topic."""
        return self._min_isr.of(topic)

    def check(self, status: PlanStatus) -> None:
        """Find the partitions that are short now."""
        clock = self._cluster.clock
        began = clock.monotonic()
        if began >= self._due:
            found = self._cluster.partitions()
            self._others = {tp: state for tp, state in found.items() if tp not in status.by_partition and _late(state)}
            self._due = began + max(WHOLE_CLUSTER_SECONDS, WHOLE_CLUSTER_SHARE * (clock.monotonic() - began))
        planned = {tp: state for tp, state in status.live.items() if _late(state)}
        suspects = {**self._others, **planned}
        self._min_isr.learn({tp.topic for tp in suspects})
        self.short = sorted(
            tp
            for tp, state in suspects.items()
            if state.leader is None or len(state.in_sync) < self._min_isr.needed(tp, len(state.replicas))
        )
        if any(tp in self._others for tp in self.short):
            self._due = began  # so that moves begin again as soon as it is not


def _late(state: PartitionMetadata) -> bool:
    return state.leader is None or len(state.in_sync) < len(state.replicas)
