"""What a right plan is: the one verifier, independent of any planner, that tests, jobs and commands ask.

Rules, each with the name that a violation carries:

    duplicate-partition   a partition has one entry
    unknown-partition     a partition is there already: a plan moves partitions, it creates none
    duplicate-broker      the replicas of a partition are on distinct brokers
    unknown-broker        a broker is one of the cluster's
    broker-not-allowed    a replica is added only to an allowed broker; one that stays may stay where it is
    broker-not-drained    a drained broker holds nothing afterwards, be the partition in the plan or not
    replication-factor    a partition keeps its number of replicas, or has the one that was asked for
    rack-spread           replicas are in no fewer racks than before and, unless more of them have a rack now,
                          no rack has more of them than the fullest one had before
    broker-set            a replica is added only to a broker of its topic's set, see ``verify_sets``
    log-dir-capacity, broker-capacity, cordoned, budget   see ``verify_limits``
    network-capacity                            see ``verify_traffic``
    leader-rack, min-topic-leaders              see ``verify_leaders``

A partition with fewer replicas than it had racks cannot be in as many: one rack a replica is enough then. Nor can it
use racks whose brokers are all drained: then it must be in as many as are left, shared as evenly as these allow.
As in Kafka, racks count only if all live brokers have one. Brokers that are dead or gone have no rack that could count,
nor have those outside of a topic's set, neither before nor after.

It is independent: it reads plan and snapshot, and nothing of how the plan was made.

A plan in memory has no duplicates, so the verifier also takes a plain table: what a program wrote can be
judged before it is trusted.

Example: brokers 1 and 2 are in rack a, 3 in rack b. ``foo-0`` going from ``[1, 3]`` to ``[1, 2]`` violates
rack-spread: its replicas were in 2 racks and would be in 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.columns import Lists, find_sorted, one_chunk, partition_at, partition_keys
from rebalance_lib.plan.plan import PLAN_SCHEMA, Plan, in_plan_schema
from rebalance_lib.plan.verify_sets import Membership
from rebalance_lib.topology.texts import encode_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from rebalance_lib.plan.verify_leaders import LeaderRule
    from rebalance_lib.plan.verify_limits import Breach, Limits
    from rebalance_lib.plan.verify_sets import SetRule
    from rebalance_lib.plan.verify_traffic import Traffic
    from rebalance_lib.topology import Broker, TopicPartition

ReplicationFactor: TypeAlias = int | Mapping[str, int] | None


class Rule(StrEnum):
    """What a plan must keep."""

    DUPLICATE_PARTITION = "duplicate-partition"
    UNKNOWN_PARTITION = "unknown-partition"
    DUPLICATE_BROKER = "duplicate-broker"
    UNKNOWN_BROKER = "unknown-broker"
    BROKER_NOT_ALLOWED = "broker-not-allowed"
    BROKER_NOT_DRAINED = "broker-not-drained"
    REPLICATION_FACTOR = "replication-factor"
    RACK_SPREAD = "rack-spread"
    BROKER_SET = "broker-set"
    LOG_DIR_CAPACITY = "log-dir-capacity"
    BROKER_CAPACITY = "broker-capacity"
    CORDONED = "cordoned"
    BUDGET = "budget"
    NETWORK_CAPACITY = "network-capacity"
    LEADER_RACK = "leader-rack"
    MIN_TOPIC_LEADERS = "min-topic-leaders"


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One rule that a plan breaks for one partition."""

    partition: TopicPartition
    rule: Rule
    message: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the request and the snapshot ask of a plan beside what always holds.

    ``allowed_brokers`` are those that may be given replicas, all brokers if None; ``dead_brokers`` may only keep what
    they have. ``replication_factor`` is the number of replicas that was requested, for all partitions of the plan or by
    topic; without one, partitions keep theirs, or come up to ``least_replication_factor``. With ``new_partitions`` the
    plan places partitions that the cluster does not have yet, and no others. What the snapshot and the request say of
    sets, disks, budgets, networks and leaders is in the last four; None leaves it out.
    """

    allowed_brokers: Collection[int] | None = None
    dead_brokers: Collection[int] = ()
    drained_brokers: Collection[int] = ()
    replication_factor: ReplicationFactor = None
    least_replication_factor: int | None = None
    new_partitions: bool = False
    broker_sets: SetRule | None = None
    limits: Limits | None = None
    traffic: Traffic | None = None
    leaders: LeaderRule | None = None


def verify_plan(
    plan: Plan | pa.Table, *, brokers: Iterable[Broker], before: Plan, rules: Rules | None = None
) -> list[Violation]:
    """Every violation of a plan, by partition; an empty list if the plan is right.

    ``before`` is the assignment of the whole cluster.
    """
    rules = rules or Rules()
    case = _Case.of(plan, before, list(brokers))
    allowed = case.broker_ids if rules.allowed_brokers is None else _ids(rules.allowed_brokers)
    drained = _ids(rules.drained_brokers)
    sets = rules.broker_sets
    return sorted(
        [
            *_partition_violations(case, new_partitions=rules.new_partitions),
            *_broker_violations(case, allowed, _ids(rules.dead_brokers)),
            *_drain_violations(case, drained),
            *_replication_factor_violations(case, rules.replication_factor, rules.least_replication_factor or 0),
            *_rack_violations(case, drained, Membership.of(case.entries["topic"], case.broker_ids, sets)),
            *_set_violations(case, sets),
            *_breaches(case, rules),
        ]
    )


@dataclass(frozen=True, eq=False)
class _Case:
    """A plan beside what was there before, row by row; ``known`` marks the rows that were there at all."""

    entries: pa.Table
    after: Lists
    known: NDArray[np.bool_]
    before: Lists
    outside: pa.Table
    broker_ids: NDArray[np.int32]
    racks: NDArray[np.int32] | None

    @classmethod
    def of(cls, plan: Plan | pa.Table, before: Plan, brokers: list[Broker]) -> _Case:
        entries = plan.entries if isinstance(plan, Plan) else _table(plan)
        keys, prior_keys = partition_keys(entries, before.entries)
        rows = find_sorted(prior_keys, keys)
        prior = Lists.from_column(before.entries["replicas"])
        lengths = np.where(rows >= 0, prior.lengths[rows] if len(prior.lengths) else 0, 0)
        outside = np.ones(len(before), dtype=np.bool_)
        outside[rows[rows >= 0]] = False
        ordered = sorted(brokers, key=lambda broker: broker.id)
        return cls(
            entries=entries,
            after=Lists.from_column(entries["replicas"]),
            known=rows >= 0,
            before=Lists.from_lengths(lengths, prior.take(rows[rows >= 0]).values),
            outside=before.entries.filter(pa.array(outside)),
            broker_ids=_ids(broker.id for broker in ordered),
            racks=_rack_numbers(ordered),
        )

    def rack_of(self, replicas: Lists) -> NDArray[np.int32]:
        """The number of the rack of each replica, -1 for a broker that the cluster does not have."""
        place = find_sorted(self.broker_ids, replicas.values)
        racks = np.append(np.empty(0, np.int32) if self.racks is None else self.racks, np.int32(-1))
        return racks[place]

    def violation(self, row: int | np.int64, rule: Rule, message: str) -> Violation:
        return Violation(partition_at(self.entries, row), rule, message)


def _table(table: pa.Table) -> pa.Table:
    entries = in_plan_schema(table)
    for field in PLAN_SCHEMA:
        nulls = entries[field.name].null_count
        if nulls and not field.nullable:
            raise InvalidInputError(f"the plan has no {field.name} in {nulls} rows; give each row all columns")
    if one_chunk(entries["replicas"]).flatten().null_count:
        raise InvalidInputError("the plan has replicas that are null; give the ids of brokers")
    return entries


def _ids(brokers: Iterable[int]) -> NDArray[np.int32]:
    return np.array(sorted(set(brokers)), dtype=np.int32)


def _rack_numbers(brokers: list[Broker]) -> NDArray[np.int32] | None:
    racks = {broker.id: broker.rack for broker in brokers}
    names = [rack for rack in racks.values() if rack is not None]
    if len(names) < len(racks):
        return None
    return np.unique(np.array(names, dtype=np.str_), return_inverse=True)[1].astype(np.int32)


def _partition_violations(case: _Case, *, new_partitions: bool) -> Iterator[Violation]:
    keys = partition_keys(case.entries)[0]
    order = np.argsort(keys, kind="stable")
    for row in order[1:][keys[order][1:] == keys[order][:-1]]:
        message = "the plan has more than one entry for it; keep one"
        yield case.violation(row, Rule.DUPLICATE_PARTITION, message)
    if new_partitions:
        for row in np.flatnonzero(case.known):
            message = "the cluster has this partition; only new ones may be placed"
            yield case.violation(row, Rule.DUPLICATE_PARTITION, message)
        return
    for row in np.flatnonzero(~case.known):
        message = "the cluster has no such partition; leave it out of the plan"
        yield case.violation(row, Rule.UNKNOWN_PARTITION, message)


def _broker_violations(case: _Case, allowed: NDArray[np.int32], dead: NDArray[np.int32]) -> Iterator[Violation]:
    after = case.after
    for value in after.repeated():
        message = f"broker {after.values[value]} is listed more than once; it can hold one replica"
        yield case.violation(after.rows[value], Rule.DUPLICATE_BROKER, message)
    known = np.isin(after.values, case.broker_ids) | np.isin(after.values, dead)
    for value in np.flatnonzero(~known):
        message = f"the cluster has no broker {after.values[value]}; use one that it has"
        yield case.violation(after.rows[value], Rule.UNKNOWN_BROKER, message)
    added = ~after.contained_in(case.before)
    for value in np.flatnonzero(known & added & ~np.isin(after.values, allowed)):
        message = f"broker {after.values[value]} would be given a replica, but is not an allowed broker"
        yield case.violation(after.rows[value], Rule.BROKER_NOT_ALLOWED, message)


def _drain_violations(case: _Case, drained: NDArray[np.int32]) -> Iterator[Violation]:
    if not len(drained):
        return
    outside = Lists.from_column(case.outside["replicas"])
    for value in np.flatnonzero(np.isin(case.after.values, drained)):
        message = f"broker {case.after.values[value]} is to be drained, but the plan has a replica on it"
        yield case.violation(case.after.rows[value], Rule.BROKER_NOT_DRAINED, message)
    for value in np.flatnonzero(np.isin(outside.values, drained)):
        partition = partition_at(case.outside, outside.rows[value])
        message = f"broker {outside.values[value]} is to be drained, but the plan leaves this replica on it"
        yield Violation(partition, Rule.BROKER_NOT_DRAINED, message)


def _replication_factor_violations(case: _Case, requested: ReplicationFactor, least: int) -> Iterator[Violation]:
    # 0 stands for nothing asked for and nothing there before: such a partition has no factor to keep.
    expected = np.where(case.known, np.maximum(case.before.lengths, least), 0)
    if isinstance(requested, Mapping):
        codes, topics = encode_texts(case.entries["topic"])
        by_topic = np.array([requested.get(topic, 0) for topic in topics.to_pylist()], dtype=np.int64)
        of_row = by_topic[codes]
        expected = np.where(of_row > 0, of_row, expected)
    elif requested is not None:
        expected = np.full(len(expected), requested, dtype=np.int64)
    for row in np.flatnonzero((expected > 0) & (case.after.lengths != expected)):
        message = f"it would have {case.after.lengths[row]} replicas; it must have {expected[row]}"
        yield case.violation(row, Rule.REPLICATION_FACTOR, message)


def _set_violations(case: _Case, rule: SetRule | None) -> Iterator[Violation]:
    if rule is None:
        return
    everyone = np.unique(np.r_[case.broker_ids, case.before.values, case.after.values])
    outside = ~Membership.of(case.entries["topic"], everyone, rule).inside(case.after)
    stays = case.after.contained_in(case.before)
    keeps = np.isin(case.after.values, sorted(rule.may_keep)) if rule.gathered else np.ones_like(stays)
    for value in np.flatnonzero(outside & ~(stays & keeps)):
        message = f"broker {case.after.values[value]} would hold a replica, but is outside of the topic's broker set"
        yield case.violation(case.after.rows[value], Rule.BROKER_SET, message)
    if not rule.gathered:
        return
    left = Lists.from_column(case.outside["replicas"])
    outside = ~Membership.of(case.outside["topic"], np.unique(left.values), rule).inside(left)
    for value in np.flatnonzero(outside & ~np.isin(left.values, sorted(rule.may_keep))):
        message = f"the plan leaves its replica on broker {left.values[value]}, outside of the topic's broker set"
        yield Violation(partition_at(case.outside, left.rows[value]), Rule.BROKER_SET, message)


def _breaches(case: _Case, rules: Rules) -> Iterator[Violation]:
    """What other modules find in the same case."""
    found: list[Breach] = []
    if rules.limits is not None:
        found += rules.limits.breaches(case.entries)
    if rules.traffic is not None:
        found += rules.traffic.breaches(case.entries, case.before, case.after)
    if rules.leaders is not None:
        found += rules.leaders.breaches(case.entries, case.before, case.after)
    for breach in found:
        yield case.violation(breach.row, Rule(breach.rule), breach.message)


def _rack_violations(case: _Case, drained: NDArray[np.int32], sets: Membership) -> Iterator[Violation]:
    if case.racks is None:
        return
    racks_before = np.where(sets.inside(case.before), case.rack_of(case.before), -1)
    spread_before, fullest_before = _spread(case.before, racks_before)
    racks = np.where(sets.inside(case.after), case.rack_of(case.after), -1)
    spread, fullest = _spread(case.after, racks)
    replicas = case.after.lengths
    stays = ~np.isin(case.broker_ids, drained)
    left = [np.bincount(case.racks[stays & of_set]) for of_set in sets.contains]
    racks_left = np.array([np.count_nonzero(of_set) for of_set in left])[sets.of_row]
    fewer = case.known & (spread < np.minimum(np.minimum(spread_before, replicas), racks_left))
    for row in np.flatnonzero(fewer):
        message = f"its replicas were in {spread_before[row]} racks and would be in {spread[row]}"
        yield case.violation(row, Rule.RACK_SPREAD, message)
    # Shares of racks can be compared where no more replicas than before have a rack.
    comparable = case.known & (case.after.count_by_row(racks >= 0) <= case.before.count_by_row(racks_before >= 0))
    allowed = fullest_before
    if len(drained) or len(left) > 1:
        forced = np.array([_least_fullest(of_set, int(replicas.max(initial=0))) for of_set in left])
        allowed = np.maximum(allowed, forced[sets.of_row, replicas])
    for row in np.flatnonzero(comparable & ~fewer & (fullest > allowed)):
        message = f"one rack had {fullest_before[row]} of its replicas and one would have {fullest[row]}"
        yield case.violation(row, Rule.RACK_SPREAD, message)


def _least_fullest(brokers_in_rack: NDArray[np.int64], most_replicas: int) -> NDArray[np.int64]:
    """By number of replicas: the fewest that the fullest rack must hold of them."""
    least = np.zeros(most_replicas + 1, dtype=np.int64)
    for number in range(1, most_replicas + 1):
        level = least[number - 1]
        least[number] = level if np.minimum(brokers_in_rack, level).sum() >= number else level + 1
    return least


def _spread(replicas: Lists, racks: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row, how many racks it is in, and how many replicas its fullest rack has."""
    size = len(replicas.offsets) - 1
    keys = np.sort(((replicas.rows << 32) + racks)[racks >= 0])
    begins = np.flatnonzero(np.append([True] * min(1, len(keys)), keys[1:] != keys[:-1]))
    rows, counts = keys[begins] >> 32, np.diff(np.append(begins, len(keys)))
    fullest = np.zeros(size, dtype=np.int64)
    np.maximum.at(fullest, rows, counts)
    return np.bincount(rows, minlength=size), fullest
