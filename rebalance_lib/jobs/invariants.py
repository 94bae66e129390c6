"""What a published plan must keep, as SQL over the snapshot and over the files that were written.

None of it uses the planner: who may take part is read from the request once more, loads are summed once more. `checks`
loads what was written and `views` builds on it. `INVARIANTS` are then plain: a row of a view for which the condition
holds breaks the rule, and the message names it.

A replica without a size counts as its partition's largest, a copy as the leader. Racks count if all live brokers have
one, and as long as a live broker of the topic's set that stays is in them. A plan may leave a broker as full as it was;
one that receives must keep the request's max fill.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from rebalance_lib.planner import Mode, Request

_ANY = "SELECT '{view}' AS view FROM {view} WHERE {broken}"
_BROKEN = "SELECT DISTINCT view FROM ({each})"
_EACH = (
    "SELECT run, candidate, {number} AS number, explode(array_compact(array({cases}))) AS rule "
    "FROM {view} WHERE {broken}"
)
_ALL = (
    "SELECT run, candidate, rule.name, sum(number) AS places, min(rule.message) AS first "
    "FROM ({parts}) GROUP BY run, candidate, rule.name ORDER BY ALL"
)


def _always(_: Request) -> bool:
    return True


def _excludes_brokers(request: Request) -> bool:
    return bool(request.excluded_brokers)


def _mode(*modes: Mode) -> Callable[[Request], bool]:
    return lambda request: request.mode in modes


class Invariant(NamedTuple):
    """A rule: rows of a view that break it, what is then said, and which requests it is about."""

    view: str
    broken: str
    message: str
    applies: Callable[[Request], bool] = _always


INVARIANTS = {
    "readable": Invariant("files", "unreadable IS NOT NULL", "concat('the plan file cannot be read: ', unreadable)"),
    "one-entry": Invariant("changes", "repeated", "concat(first, ': the plan has several entries for it')"),
    "distinct-brokers": Invariant(
        "changes",
        "NOT distinct",
        "concat(first, ': its replicas would not be on distinct brokers')",
    ),
    "known-partitions": Invariant(
        "changes",
        "NOT known",
        "concat(first, ': the cluster has no such partition')",
        lambda request: request.mode is not Mode.PARTITIONS,
    ),
    "new-partitions": Invariant(
        "added",
        "known OR partitions IS NULL OR lowest <> partitions OR highest <> :partitions - 1 "
        "OR number <> :partitions - partitions",
        "concat(topic, '-', highest, ': new partitions of a topic that has ', coalesce(partitions, 0), "
        "' must be numbered on from there, up to ', :partitions, ' in all')",
        _mode(Mode.PARTITIONS),
    ),
    "allowed-brokers": Invariant(
        "broker_slots",
        "comes AND takes IS NOT TRUE",
        "concat(first, ': broker ', broker, ' would get a replica, but ', "
        "if(takes IS NULL, 'the cluster has no such broker', 'may not take any'))",
    ),
    "broker-sets": Invariant(
        "broker_slots",
        "outside AND NOT goes AND (comes OR candidate <> 'leaders' AND NOT excluded AND "
        "(:mode IN ('balance', 'topics', 'repair') OR :mode = 'drain' AND :balance))",
        "concat(first, ': broker ', broker, ' would hold a replica, but is outside of the topic\\'s broker set')",
    ),
    "known-log-dirs": Invariant(
        "broker_slots",
        "named IS NOT NULL AND array_contains(paths, named) IS NOT TRUE",
        "concat(first, ': broker ', broker, ' has no log dir ', named)",
    ),
    "replication-factor": Invariant(
        "changes",
        "after <> CASE WHEN NOT known THEN factor WHEN :mode = 'replication-factor' THEN :replication_factor "
        "WHEN :mode = 'repair' THEN greatest(before, :replication_factor) ELSE before END",
        "concat(first, ': it has ', before, ' replicas and would have ', after)",
    ),
    "rack-spread": Invariant(
        "spreads",
        "racks < least(racks_before, after)",
        "concat(first, ': its replicas were in ', racks_before, ' racks and would be in ', racks)",
    ),
    "fullest-rack": Invariant(
        "spreads",
        "after <= before AND without_rack = 0 AND fullest > fullest_before",
        "concat(first, ': one rack had ', fullest_before, ' of its replicas and one would have ', fullest)",
        lambda request: request.mode is not Mode.DRAIN,
    ),
    "fullest-rack-of-a-drain": Invariant(
        "forced_spreads",
        "after <= before AND without_rack = 0 AND fullest > greatest(fullest_before, forced)",
        "concat(first, ': one rack had ', fullest_before, ' of its replicas and one would have ', fullest)",
        _mode(Mode.DRAIN),
    ),
    "drained": Invariant(
        "broker_slots",
        "leaving AND NOT goes",
        "concat(first, ': broker ', broker, ' is to be drained, but would hold a replica')",
        _mode(Mode.DRAIN),
    ),
    "repaired": Invariant(
        "broker_slots",
        "NOT alive AND NOT excluded AND NOT goes",
        "concat(first, ': its replica on the dead broker ', broker, ' would stay')",
        _mode(Mode.REPAIR),
    ),
    "nothing-forgotten": Invariant(
        "forgotten",
        "number > 0",
        "concat(first, ': its replica must leave broker ', broker, ', but the plan leaves it there')",
        _mode(Mode.DRAIN, Mode.REPAIR),
    ),
    "chosen-topics": Invariant(
        "topic_changes", "NOT chosen", "concat(first, ': the topic is not among those that may change')"
    ),
    "excluded-brokers": Invariant(
        "broker_slots",
        "excluded AND (comes OR goes)",
        "concat(first, ': the excluded broker ', broker, ' would ', if(comes, 'take', 'give'), ' a replica')",
        _excludes_brokers,
    ),
    "excluded-leaders": Invariant(
        "broker_slots",
        "excluded AND (led AND NOT leads OR leads AND NOT led AND others_may_lead)",
        "concat(first, ': an excluded broker would ', if(led, 'no longer', 'now'), ' lead it')",
        _excludes_brokers,
    ),
    "log-dir-capacity": Invariant(
        "dir_loads",
        "receives AND bytes > free",
        "concat('broker ', broker, ': ', log_dir, ' would get ', bytes, ' bytes more than it gives and may take ', "
        "free)",
    ),
    "broker-capacity": Invariant(
        "broker_loads",
        "receives AND bytes > free",
        "concat('broker ', broker, ' would get ', bytes, ' bytes more than it gives and may take ', free)",
    ),
    "budgets": Invariant(
        "counted",
        "found.replicas_moved > :move_budget OR found.bytes_moved > :byte_budget",
        "concat(found.replicas_moved, ' replicas of ', found.bytes_moved, ' bytes in all are beyond the budgets')",
        lambda request: request.move_budget is not None or request.byte_budget is not None,
    ),
    "leaders-only": Invariant(
        "changes",
        "(:mode IN ('leaders', 'demote') OR candidate = 'leaders') AND (adds OR drops OR names_log_dirs)",
        "concat(first, ': its replicas would move, but only their order may change')",
    ),
    "disks-only": Invariant(
        "changes",
        "reordered",
        "concat(first, ': its replicas would change brokers or order, but only log dirs may change')",
        _mode(Mode.DISKS, Mode.DRAIN_LOG_DIRS),
    ),
    "demoted": Invariant(
        "broker_slots",
        "array_contains(:brokers, broker) AND leads AND NOT led",
        "concat(first, ': broker ', broker, ' is to be demoted, but would lead it')",
        _mode(Mode.DEMOTE),
    ),
    "drained-log-dirs": Invariant(
        "broker_slots",
        "array_contains(:log_dirs, concat(broker, ':', coalesce(named, log_dir)))",
        "concat(first, ': a log dir of broker ', broker, ' is to be drained, but would hold its replica')",
        _mode(Mode.DRAIN_LOG_DIRS),
    ),
    "drain-only": Invariant(
        "broker_slots",
        "goes AND NOT leaving",
        "concat(first, ': its replica on broker ', broker, ' would move, which is not to be drained')",
        lambda request: request.mode is Mode.DRAIN and not request.balance,
    ),
    "replace-only": Invariant(
        "changes",
        "NOT replaced",
        "concat(first, ': its replicas would not be the same with brokers replaced')",
        _mode(Mode.REPLACE),
    ),
    "factor-only": Invariant(
        "changes",
        "adds AND drops",
        "concat(first, ': replicas would be added and dropped, but only their number may change')",
        _mode(Mode.REPLICATION_FACTOR),
    ),
    "digest": Invariant(
        "files",
        "unreadable IS NULL AND NOT digest <=> said",
        "concat('the plan file is ', digest, ', but the summary says ', said)",
    ),
    "figures": Invariant(
        "counted", "NOT said <=> found", "concat('the summary says ', string(said), ', the plan is ', string(found))"
    ),
    "brokers-after": Invariant(
        "afterwards",
        "NOT said <=> found",
        "concat('broker ', broker, ' is said to hold ', string(said), ', but would hold ', string(found))",
    ),
    "moves": Invariant(
        "counted",
        "copies <> found.replicas_moved OR copied <> found.bytes_moved",
        "concat('moves.parquet has ', copies, ' copies of ', copied, ' bytes, the plan ', string(found))",
    ),
}


COUNTED = frozenset({"changes", "topic_changes", "broker_slots", "spreads", "forced_spreads", "added", "forgotten"})
"""Views whose rows stand for several partitions or replicas."""


def rules_for(request: Request) -> dict[str, Invariant]:
    """Those that are about this request."""
    return {name: rule for name, rule in INVARIANTS.items() if rule.applies(request)}


def broken_views(rules: Mapping[str, Invariant]) -> str:
    """The views with a row that breaks a rule: mostly none, and then no message has to be worded."""
    views = dict.fromkeys(rule.view for rule in rules.values())
    each = " UNION ALL ".join(_ANY.format(view=view, broken=_broken(rules, view)) for view in views)
    return _BROKEN.format(each=each)


def messages(rules: Mapping[str, Invariant], views: Collection[str]) -> str:
    """One statement for all rules about these views: each view is read once, whatever the number of rules about it."""
    parts = []
    for view in views:
        cases = ", ".join(
            f"CASE WHEN {rule.broken} THEN struct('{name}' AS name, {rule.message} AS message) END"
            for name, rule in rules.items()
            if rule.view == view
        )
        number = "number" if view in COUNTED else "1"
        parts.append(_EACH.format(number=number, cases=cases, view=view, broken=_broken(rules, view)))
    return _ALL.format(parts=" UNION ALL ".join(parts))


def _broken(rules: Mapping[str, Invariant], view: str) -> str:
    return " OR ".join(f"({rule.broken})" for rule in rules.values() if rule.view == view)
