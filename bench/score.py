"""Scores any reassignment plan against the cluster it was made for: what it costs, and how even it leaves things.

    python -m bench.score cluster.json plan.json [--json]

Partitions that the plan leaves out keep their replicas; the first replica counts as the leader; log dirs do not count.
Loads are those of the target brokers. Every planner of a benchmark is judged by this module and nothing else.

Cost:
    ``bytes_moved``, ``replicas_moved``    replicas on brokers that did not hold them before
    ``partitions_changed``                 partitions whose replica list differs, order included
    ``leaders_moved``                      partitions whose first replica differs
    ``lower_bound_bytes``                  what brokers gained, added up: no plan that ends with these loads moves less
    ``lower_bound_leaders``                the same for leaders
    ``move_efficiency``                    lower_bound_bytes / bytes_moved: 1 where no byte was moved in vain
    ``leaders_over_least``                 leaders_moved / lower_bound_leaders
    ``mandatory_bytes``                    bytes on brokers that are no targets: they move whatever the plan
    ``ideal_bytes``                        lower_bound_bytes of a plan that ends with ideally even disks
    ``bytes_over_least``                   bytes_moved / ideal_bytes; below 1 the disks cannot have become even
Balance:
    ``before``, ``after``                  max, mean, max/mean, min/mean, standard deviation and its ratio to the mean,
                                           of bytes, replicas and leaders a broker; before over the brokers that held
                                           data, after over the targets
    ``best_max_over_mean_bytes``           the least that any placement over the racks can reach (see below); also
                                           for replicas
    ``best_max_replicas``, ``..._leaders`` the same for counts: a whole number, the mean or a rack's share rounded up
    ``{bytes,replicas,leaders}_over_best`` the most loaded target over the least possible: 1 cannot be beaten
                                           where racks are kept apart
Right or wrong:
    ``rack_violations``                    partitions on fewer racks than they could be on
    ``errors``                             unknown partitions and brokers, replicas on brokers that are no targets,
                                           changed replication factors; a plan that names a partition or a broker
                                           twice is refused when it is read

Goals:
    ``goals``                              how near to each goal, by capacity, rate and failure: ``bench.goal_score``

The least possible load:
    A partition of ``rf`` replicas puts at most ``ceil(rf / racks)`` of them into a rack, so a rack takes at most that
    many copies of everything, and brokers of a small rack cannot take more than their share of it. The level to which
    brokers fill is the smallest at which all racks together take the total, ``min(cap, brokers * level)`` each.

Example:
    One copy is 12 bytes, two replicas, racks of 1 and 3 brokers. Each rack must take a copy: the lone broker holds 12,
    the others 4 each. The mean is 6, the least possible maximum 12: ``best_max_over_mean_bytes`` is 2.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.cluster_json import read_cluster
from bench.goal_score import goal_figures
from rebalance_lib.plan import Plan, parse_plan
from rebalance_lib.plan.columns import Lists, find_sorted, partition_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from bench.cluster_json import Cluster

NO_BROKER = -1
"""Fills the rows of partitions that have fewer replicas than others."""


@dataclass(frozen=True)
class Loads:
    """What each broker holds, in the order of the cluster's brokers."""

    bytes: npt.NDArray[np.int64]
    replicas: npt.NDArray[np.int64]
    leaders: npt.NDArray[np.int64]


class Outcome:
    """A plan laid over its cluster: replicas before and after, as ids and as positions among the brokers."""

    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self.cluster = cluster
        self.new, self.planned, self.unknown_partitions = planned_replicas(cluster, plan)
        self.present = self.new != NO_BROKER
        ids = np.array([broker.id for broker in cluster.brokers], dtype=np.int64)
        self.old_at, self.new_at = positions(cluster.replicas, ids), positions(self.new, ids)
        self.before, self.after = (loads(at, cluster.size, len(ids)) for at in (self.old_at, self.new_at))
        self.targets = np.isin(ids, cluster.targets)
        racks = [broker.rack for broker in cluster.brokers]
        numbers = {rack: number for number, rack in enumerate(dict.fromkeys(racks))}
        self.rack_of = np.array([numbers[rack] for rack in racks])
        self.rack_sizes = Counter(self.rack_of[self.targets].tolist())

    def even(self, total_of_one_copy: int) -> dict[int, float]:
        """Load a target of each rack where all replicas together are as even as the racks allow."""
        copies_a_rack = -(-self.cluster.rf // len(self.rack_sizes))
        return even_loads(total_of_one_copy * self.cluster.rf, total_of_one_copy * copies_a_rack, self.rack_sizes)


def score(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """All figures of a plan."""
    outcome = Outcome(cluster, plan)
    return {
        "partitions": len(cluster),
        "brokers": len(cluster.brokers),
        "targets": len(cluster.targets),
        "planned_partitions": outcome.planned,
        **cost(outcome),
        **balance(outcome),
        **faults(outcome),
        "goals": goal_figures(cluster, outcome.new_at),
    }


def cost(outcome: Outcome) -> dict[str, Any]:
    """What the plan moves, and what it could not have moved less of."""
    cluster, before, after = outcome.cluster, outcome.before, outcome.after
    old, new = cluster.replicas, outcome.new
    moved = (outcome.present & ~np.any(new[:, :, None] == old[:, None, :], axis=2)).sum(axis=1)
    same = new[:, : cluster.rf] == old
    longer = outcome.present[:, cluster.rf :].any(axis=1)
    bytes_total, bytes_moved = int(cluster.size.sum()) * cluster.rf, int(moved @ cluster.size)
    leaders_moved = int(np.count_nonzero(~same[:, 0]))
    lower_bytes, lower_leaders = gain(before.bytes, after.bytes), gain(before.leaders, after.leaders)
    even = outcome.even(int(cluster.size.sum()))
    level = np.array([even.get(rack, 0.0) for rack in outcome.rack_of.tolist()])
    ideal = float(np.maximum(level - before.bytes, 0.0)[outcome.targets].sum())
    return {
        "partitions_changed": int(np.count_nonzero(longer | ~same.all(axis=1))),
        "replicas_moved": int(moved.sum()),
        "leaders_moved": leaders_moved,
        "bytes_total": bytes_total,
        "bytes_moved": bytes_moved,
        "bytes_moved_share": bytes_moved / bytes_total,
        "lower_bound_bytes": lower_bytes,
        "lower_bound_leaders": lower_leaders,
        "move_efficiency": lower_bytes / bytes_moved if bytes_moved else 1.0,
        "leaders_over_least": leaders_moved / lower_leaders if lower_leaders else None,
        "mandatory_bytes": int(before.bytes[~outcome.targets].sum()),
        "ideal_bytes": int(ideal),
        "bytes_over_least": bytes_moved / ideal if ideal else None,
    }


def balance(outcome: Outcome) -> dict[str, Any]:
    """How even the targets become, beside the best that racks and whole numbers allow."""
    cluster, targets = outcome.cluster, outcome.targets
    one_copy, count = int(cluster.size.sum()), len(cluster)
    best_bytes = max(outcome.even(one_copy).values())
    level_of_replicas = max(outcome.even(count).values())
    best_replicas = ceil_of(level_of_replicas)
    best_leaders = -(-count // len(cluster.targets))
    return {
        "best_max_over_mean_bytes": best_bytes / (one_copy * cluster.rf / len(cluster.targets)),
        "best_max_over_mean_replicas": level_of_replicas / (count * cluster.rf / len(cluster.targets)),
        "best_max_replicas": best_replicas,
        "best_max_leaders": best_leaders,
        "bytes_over_best": int(outcome.after.bytes[targets].max()) / best_bytes,
        "replicas_over_best": int(outcome.after.replicas[targets].max()) / best_replicas,
        "leaders_over_best": int(outcome.after.leaders[targets].max()) / best_leaders,
        "before": statistics(outcome.before, outcome.before.replicas > 0),
        "after": statistics(outcome.after, targets),
    }


def faults(outcome: Outcome) -> dict[str, Any]:
    """Partitions on too few racks, and what makes a plan wrong."""
    rf, present, at = outcome.cluster.rf, outcome.present, outcome.new_at
    least = min(rf, len(outcome.rack_sizes))
    errors = {
        "unknown_partition": outcome.unknown_partitions,
        "unknown_broker": int(np.count_nonzero(present & (at < 0))),
        "non_target_broker": int(np.count_nonzero((at >= 0) & ~outcome.targets[at])),
        "rf_changed": int(np.count_nonzero(present.sum(axis=1) != rf)),
    }
    return {
        "rack_violations_before": too_few_racks(outcome.old_at, outcome.rack_of, outcome.old_at >= 0, least),
        "rack_violations": too_few_racks(at, outcome.rack_of, present, least),
        "errors": {name: times for name, times in errors.items() if times},
    }


def planned_replicas(cluster: Cluster, plan: Plan) -> tuple[npt.NDArray[np.int32], int, int]:
    """The replicas as the plan would have them, how many partitions it names, and how many of those are unknown."""
    topics = pa.DictionaryArray.from_arrays(pa.array(cluster.topic), cluster.topics)
    keys, wanted = partition_keys(pa.table({"topic": topics, "partition": cluster.partition}), plan.entries)
    order = np.argsort(keys, kind="stable")
    found = find_sorted(keys[order], wanted)
    known = np.flatnonzero(found >= 0)
    lists = Lists.from_column(plan.entries["replicas"]).take(known)
    width = max(cluster.rf, int(lists.lengths.max(initial=0)))
    replicas = np.full((len(cluster), width), NO_BROKER, dtype=np.int32)
    replicas[:, : cluster.rf] = cluster.replicas
    rows = order[found[known]]
    replicas[rows] = NO_BROKER
    place = np.arange(len(lists.values)) - np.repeat(lists.offsets[:-1], lists.lengths)
    replicas[np.repeat(rows, lists.lengths), place] = lists.values
    return replicas, len(known), len(wanted) - len(known)


def positions(replicas: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each replica's broker stands among the cluster's; -1 where there is none."""
    sorter = np.argsort(ids)
    found = find_sorted(ids[sorter], replicas.ravel())
    return np.where(found >= 0, sorter[found], -1).reshape(replicas.shape)


def loads(at: npt.NDArray[np.int64], size: npt.NDArray[np.int64], brokers: int) -> Loads:
    held = np.zeros(brokers, dtype=np.int64)
    for column in at.T:
        known = column >= 0
        np.add.at(held, column[known], size[known])
    leaders = at[:, 0]
    return Loads(
        bytes=held,
        replicas=np.bincount(at[at >= 0], minlength=brokers),
        leaders=np.bincount(leaders[leaders >= 0], minlength=brokers),
    )


def gain(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> int:
    return int(np.maximum(after - before, 0).sum())


def even_loads(total: int, cap: int, rack_sizes: Mapping[int, int]) -> dict[int, float]:
    """Load a broker of each rack, as even as can be where no rack takes more than its cap."""
    load: dict[int, float] = {}
    left, brokers = float(total), sum(rack_sizes.values())
    # A large rack meets its cap at a lower level than a small one, so racks fill up in this order.
    for rack, size in sorted(rack_sizes.items(), key=lambda item: -item[1]):
        taken = min(cap, left * size / brokers)
        load[rack] = taken / size
        left, brokers = left - taken, brokers - size
    return load


def ceil_of(level: float) -> int:
    """The level rounded up, unless it is above a whole number by no more than the error of a float."""
    return math.ceil(level - 1e-6)


def too_few_racks(
    at: npt.NDArray[np.int64], rack_of: npt.NDArray[np.int64], present: npt.NDArray[np.bool_], least: int
) -> int:
    racks = np.sort(np.where(present, np.where(at >= 0, rack_of[at], rack_of.max() + 1), rack_of.max() + 2), axis=1)
    distinct = 1 + np.count_nonzero(racks[:, 1:] != racks[:, :-1], axis=1) - (~present).any(axis=1)
    return int(np.count_nonzero(distinct < least))


def statistics(held: Loads, which: npt.NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    figures = {}
    for name in ("bytes", "replicas", "leaders"):
        values = getattr(held, name)[which].astype(float)
        mean = float(values.mean())
        figures[name] = {
            "max": float(values.max()),
            "mean": mean,
            "max_over_mean": float(values.max()) / mean if mean else 0.0,
            "min_over_mean": float(values.min()) / mean if mean else 0.0,
            "stdev": float(values.std()),
            "cv": float(values.std()) / mean if mean else 0.0,
        }
    return figures


def show(figures: Mapping[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"{figures['partitions']:,} partitions, {figures['targets']} of {figures['brokers']} brokers are targets",
        f"moved: {figures['replicas_moved']:,} replicas, {figures['leaders_moved']:,} leaders",
        f"bytes moved: {figures['bytes_moved_share']:.1%} of all, efficiency {figures['move_efficiency']:.3f}",
        f"{'max over':10}{'mean before':>14}{'mean after':>14}{'least possible':>16}",
    ]
    for name in ("bytes", "replicas", "leaders"):
        before, after = (figures[when][name]["max_over_mean"] for when in ("before", "after"))
        lines.append(f"{name:10}{before:14.4f}{after:14.4f}{figures[f'{name}_over_best']:16.4f}")
    measured = {name: value for name, value in figures["goals"].items() if value is not None}
    lines.append("goals: " + ", ".join(f"{name} {value:.4f}" for name, value in measured.items()))
    lines.append(f"rack violations {figures['rack_violations']}, errors {figures['errors'] or 'none'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Score a reassignment plan.")
    parser.add_argument("cluster", type=Path)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    options = parser.parse_args()
    figures = score(read_cluster(options.cluster), parse_plan(options.plan.read_bytes()))
    print(json.dumps(figures, indent=2) if options.json else show(figures))


if __name__ == "__main__":
    main()
