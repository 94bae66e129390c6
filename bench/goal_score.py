"""How near a plan comes to each goal: every resource by its own capacity, topics spread, failures survived.

Part of what ``bench.score`` says of a plan, in code of its own: it shares nothing with the planner's goals, so that
neither can hide a fault of the other. Only target brokers count; a replica elsewhere is a fault and carries nothing. A
share is a broker's part of all capacity, an equal part where no capacities are known. 1 is ideal.

    ``disk``, ``replicas``, ``leaders``   the most loaded broker over its share; replicas and leaders have equal shares
    ``network_in``                        what is written to every replica held, likewise
    ``network_out``                       for every partition led, what is written once to each follower, and what
                                          consumers read, likewise
    ``topic_leaders``                     of topics with at least as many partitions as there are brokers: the most that
                                          one broker leads over an even number, rounded up; 99th percentile of topics
    ``failover``                          for each broker that may die, leaders go to the next in their lists: the most
                                          that a survivor then leads, over an even part; the worst death
    ``failover_rack``                     likewise for each rack
    ``failover_out``                      for each broker, the most that a survivor then sends, over its share

Those of traffic are None where no rates are known, ``topic_leaders`` where no topic is that wide.

Example: brokers 1, 2 and 3 lead two partitions each, and all that broker 1 leads has broker 2 next. When 1 dies, 2
leads four of six, where 3 would be even: ``failover`` is 1.33.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bench.cluster_json import Cluster

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

NAMES = (
    "disk",
    "network_in",
    "network_out",
    "replicas",
    "leaders",
    "topic_leaders",
    "failover",
    "failover_rack",
    "failover_out",
)


def goal_figures(cluster: Cluster, at: Ints) -> dict[str, float | None]:
    """By goal; ``at`` has for each partition the positions of its replicas' brokers in the cluster, -1 for none."""
    place = np.full(len(cluster.brokers) + 1, -1)  # one more: -1 stays -1
    targets = np.flatnonzero(np.isin([broker.id for broker in cluster.brokers], cluster.targets))
    place[targets] = np.arange(len(targets))
    held = place[at]
    shares = {name: share(cluster, targets, name) for name in ("disk", "network_in", "network_out", "")}
    leader = first_of(held)
    led = leader >= 0
    figures: dict[str, float | None] = dict.fromkeys(NAMES)
    figures["disk"] = most(replica_loads(held, cluster.size, len(targets)), shares["disk"])
    figures["replicas"] = most(replica_loads(held, np.ones(len(cluster)), len(targets)), shares[""])
    figures["leaders"] = most(np.bincount(leader[led], minlength=len(targets)).astype(float), shares[""])
    figures["topic_leaders"] = topic_leaders(cluster.topic[led], leader[led], len(targets))

    racks = np.unique([str(cluster.brokers[at].rack) for at in targets], return_inverse=True)[1]
    one_each, own = np.ones(len(cluster)), np.arange(len(targets))
    figures["failover"] = after_deaths(held, one_each, shares[""], own)
    figures["failover_rack"] = after_deaths(held, one_each, shares[""], racks)
    if (rates := cluster.rates) is not None:
        sent = rates.write * ((held >= 0).sum(axis=1) - 1) + rates.read
        out = np.bincount(leader[led], sent[led], minlength=len(targets))
        figures["network_in"] = most(replica_loads(held, rates.write, len(targets)), shares["network_in"])
        figures["network_out"] = most(out, shares["network_out"])
        figures["failover_out"] = after_deaths(held, sent.astype(float), shares["network_out"], own)
    return figures


def share(cluster: Cluster, targets: Ints, resource: str) -> Floats:
    """The part of each target in a resource, all of them together 1."""
    if cluster.capacities is None or not resource:
        return np.full(len(targets), 1 / len(targets))
    capacity = np.array([cluster.capacities[at][resource] for at in targets], dtype=float)
    part: Floats = capacity / capacity.sum()
    return part


def most(load: Floats, part: Floats) -> float:
    return float((load / part).max() / load.sum()) if load.any() else 1.0


def replica_loads(held: Ints, weight: npt.NDArray[np.generic], brokers: int) -> Floats:
    loads = np.zeros(brokers)
    for column in held.T:
        there = column >= 0
        loads += np.bincount(column[there], weight[there], minlength=brokers)
    return loads


def first_of(held: Ints) -> Ints:
    """By row: the first that is not -1; -1 if there is none."""
    first = held[:, 0].copy()
    for column in held.T[1:]:
        first = np.where(first < 0, column, first)
    return first


def topic_leaders(topic: npt.NDArray[np.int32], leader: Ints, brokers: int) -> float | None:
    """The 99th percentile over wide topics of the most leaders on one broker over an even number."""
    width = np.bincount(topic)
    pairs, times = np.unique(topic.astype(np.int64) * brokers + leader, return_counts=True)
    crowd = np.zeros(len(width), dtype=np.int64)
    np.maximum.at(crowd, pairs // brokers, times)
    wide = width >= brokers
    return float(np.quantile(crowd[wide] / -(-width[wide] // brokers), 0.99)) if wide.any() else None


def after_deaths(held: Ints, weight: Floats, part: Floats, dies_with: Ints) -> float:
    """The most that a survivor leads over its part; those of one number in ``dies_with`` die together."""
    leader = first_of(held)
    led = np.bincount(leader[leader >= 0], weight[leader >= 0], minlength=len(part))
    order = np.argsort(np.where(leader >= 0, dies_with[leader], -1), kind="stable")
    ends = np.searchsorted(np.where(leader >= 0, dies_with[leader], -1)[order], np.arange(dies_with.max() + 2))
    worst = 1.0
    for dying in range(int(dies_with.max()) + 1):
        dead = dies_with == dying
        if dead.all():
            continue
        rows = order[ends[dying] : ends[dying + 1]]
        lists = held[rows]
        heir = first_of(np.where((lists >= 0) & dead[lists], -1, lists))
        alive = heir >= 0
        then = np.where(dead, 0.0, led) + np.bincount(heir[alive], weight[rows][alive], minlength=len(part))
        if then.any():
            worst = max(worst, float((then[~dead] / part[~dead]).max() * part[~dead].sum() / then.sum()))
    return worst
