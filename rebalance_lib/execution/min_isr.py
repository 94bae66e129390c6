"""Which partitions have fewer in-sync replicas than producers with ``acks=all`` need.

A partition is short when its ISR is below ``min.insync.replicas``, or when it has no leader at all. One with fewer
replicas than the setting asks for can never satisfy it: it counts by its replicas.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lib.cluster import Cluster, PartitionMetadata
from rebalance_lib.cluster.snapshot import MIN_INSYNC
from rebalance_lib.topology import TopicPartition

KEPT_SECONDS = 60.0  # how long a topic's setting is believed


class MinIsr:
    """Looks the setting up for the topics that need it, and remembers it for a while."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, int]] = {}

    def short(self, cluster: Cluster, live: Mapping[TopicPartition, PartitionMetadata]) -> list[TopicPartition]:
        """The partitions that are short of in-sync replicas, in order."""
        suspects = {tp: state for tp, state in live.items() if len(state.in_sync) < len(state.replicas)}
        self._learn(cluster, {tp.topic for tp in suspects})
        return sorted(
            tp
            for tp, state in live.items()
            if state.leader is None
            or (tp in suspects and len(state.in_sync) < min(self._least(tp.topic), len(state.replicas)))
        )

    def _least(self, topic: str) -> int:
        return self._known[topic][1] if topic in self._known else 1

    def _learn(self, cluster: Cluster, topics: set[str]) -> None:
        now = cluster.clock.monotonic()
        unknown = [topic for topic in topics if now - self._known.get(topic, (-KEPT_SECONDS, 1))[0] >= KEPT_SECONDS]
        if unknown:
            for topic, found in cluster.topic_configs(unknown, [MIN_INSYNC]).items():
                self._known[topic] = (now, int(found[MIN_INSYNC].value) if MIN_INSYNC in found else 1)
