"""New partitions of a plan that adds them: they are created where the plan says; there is nothing to copy.

Example: ``orders`` has partitions 0 and 1, and the plan has orders-2 on [1, 3] and orders-3 on [2, 1]. One request
gives ``orders`` four partitions. Run again, it finds them there and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from rebalance_lib.cluster import Cluster, PartitionMetadata
from rebalance_lib.execution.job import Job
from rebalance_lib.topology import TopicPartition


def add_partitions(cluster: Cluster, job: Job) -> list[TopicPartition]:
    """Create those partitions of the job that are not there yet; returns them."""
    if not job.adds:
        return []
    live = cluster.partitions({tp.topic for tp in job.targets})
    missing = sorted(tp for tp in job.targets if tp not in live and tp not in job.origins)
    for topic, partitions in groupby(missing, key=lambda tp: tp.topic):
        new = list(partitions)
        cluster.create_partitions(topic, new[-1].partition + 1, [job.targets[tp] for tp in new])
    return missing


def not_next(new: Iterable[TopicPartition], live: Mapping[TopicPartition, PartitionMetadata]) -> list[TopicPartition]:
    """Of partitions to be added, those that would not follow right behind the ones that their topic has."""
    strange = []
    for topic, partitions in groupby(sorted(new), key=lambda tp: tp.topic):
        present = sum(tp.topic == topic for tp in live)
        numbered = enumerate(partitions, start=present)
        strange += [tp for number, tp in numbered if tp.partition != number or not present]
    return strange
