"""What a published plan must keep, as SQL over the snapshot and over the files that were written.

None of it uses the planner: who may take part is read from the request once more, loads are summed once more. `checks`
loads what was written and `views` builds on it. `INVARIANTS` are then plain: a row of a view for which the condition
holds breaks the rule, and the message names it.

A replica without a size counts as its partition's largest, a copy as the leader. Racks count if all live brokers have
one, and as long as a live broker of the topic's set that stays is in them. A plan may leave a broker as full as it was;
one that receives must keep the request's max fill.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

_ANY = "SELECT DISTINCT '{view}' AS view FROM {view} WHERE {broken}"
_EACH = "SELECT run, candidate, explode(array_compact(array({cases}))) AS rule FROM {view} WHERE {broken}"
_ALL = (
    "SELECT run, candidate, rule.name, count(*) AS places, min(rule.message) AS first "
    "FROM ({parts}) GROUP BY run, candidate, rule.name ORDER BY ALL"
)


class Invariant(NamedTuple):
    """A rule: rows of a view that break it, and what is then said."""

    view: str
    broken: str
    message: str


INVARIANTS = {
    "readable": Invariant("unreadable", "line IS NOT NULL", "concat('the plan file cannot be read: ', line)"),
    "one-entry": Invariant(
        "entered", "times > 1", "concat(topic, '-', partition, ': the plan has ', times, ' entries for it')"
    ),
    "distinct-brokers": Invariant(
        "changes",
        "size(array_distinct(replicas)) < size(replicas) OR size(replicas) = 0",
        "concat(name, ': its replicas would be on ', string(replicas), ', which are not distinct brokers')",
    ),
    "known-partitions": Invariant(
        "changes", ":mode <> 'partitions' AND NOT known", "concat(name, ': the cluster has no such partition')"
    ),
    "new-partitions": Invariant(
        "added",
        "known OR partitions IS NULL OR first <> partitions OR last <> :partitions - 1 "
        "OR number <> :partitions - partitions",
        "concat(topic, '-', last, ': new partitions of a topic that has ', coalesce(partitions, 0), "
        "' must be numbered on from there, up to ', :partitions, ' in all')",
    ),
    "allowed-brokers": Invariant(
        "slots",
        "comes AND takes IS NOT TRUE",
        "concat(name, ': broker ', broker, ' would get a replica, but ', "
        "if(takes IS NULL, 'the cluster has no such broker', 'may not take any'))",
    ),
    "broker-sets": Invariant(
        "slots",
        "outside AND NOT goes AND (comes OR candidate <> 'leaders' AND NOT excluded AND "
        "(:mode IN ('balance', 'topics', 'repair') OR :mode = 'drain' AND :balance))",
        "concat(name, ': broker ', broker, ' would hold a replica, but is outside of the topic\\'s broker set')",
    ),
    "known-log-dirs": Invariant(
        "slots",
        "named IS NOT NULL AND array_contains(paths, named) IS NOT TRUE",
        "concat(name, ': broker ', broker, ' has no log dir ', named)",
    ),
    "replication-factor": Invariant(
        "changes",
        "size(replicas) <> CASE WHEN NOT known THEN factor WHEN :mode = 'replication-factor' THEN :replication_factor "
        "WHEN :mode = 'repair' THEN greatest(size(before), :replication_factor) ELSE size(before) END",
        "concat(name, ': it has ', size(before), ' replicas and would have ', size(replicas))",
    ),
    "rack-spread": Invariant(
        "spread",
        "racks < least(racks_before, after)",
        "concat(name, ': its replicas were in ', racks_before, ' racks and would be in ', racks)",
    ),
    "fullest-rack": Invariant(
        "spread",
        "after <= before AND without_rack = 0 AND fullest > greatest(fullest_before, forced)",
        "concat(name, ': one rack had ', fullest_before, ' of its replicas and one would have ', fullest)",
    ),
    "drained": Invariant(
        "slots",
        "leaving AND NOT goes",
        "concat(name, ': broker ', broker, ' is to be drained, but would hold a replica')",
    ),
    "repaired": Invariant(
        "slots",
        ":mode = 'repair' AND NOT alive AND NOT excluded AND NOT goes",
        "concat(name, ': its replica on the dead broker ', broker, ' would stay')",
    ),
    "nothing-forgotten": Invariant(
        "forgotten",
        "name IS NOT NULL",
        "concat(name, ': its replica must leave broker ', broker, ', but the plan leaves it there')",
    ),
    "chosen-topics": Invariant(
        "changes", "NOT chosen", "concat(name, ': the topic is not among those that may change')"
    ),
    "excluded-brokers": Invariant(
        "slots",
        "excluded AND (comes OR goes)",
        "concat(name, ': the excluded broker ', broker, ' would ', if(comes, 'take', 'give'), ' a replica')",
    ),
    "excluded-leaders": Invariant(
        "leadership",
        "loses OR gets AND others",
        "concat(name, ': an excluded broker would ', if(loses, 'no longer', 'now'), ' lead it')",
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
        "(found.replicas_moved > :move_budget OR found.bytes_moved > :byte_budget)",
        "concat(found.replicas_moved, ' replicas of ', found.bytes_moved, ' bytes in all are beyond the budgets')",
    ),
    "leaders-only": Invariant(
        "changes",
        "(:mode IN ('leaders', 'demote') OR candidate = 'leaders') AND (moves OR log_dirs IS NOT NULL)",
        "concat(name, ': its replicas would move, but only their order may change')",
    ),
    "disks-only": Invariant(
        "changes",
        ":mode IN ('disks', 'drain-log-dirs') AND before <> replicas",
        "concat(name, ': its replicas would change brokers or order, but only log dirs may change')",
    ),
    "demoted": Invariant(
        "changes",
        ":mode = 'demote' AND array_contains(:brokers, get(replicas, 0)) AND NOT get(before, 0) <=> get(replicas, 0)",
        "concat(name, ': broker ', get(replicas, 0), ' is to be demoted, but would lead it')",
    ),
    "drained-log-dirs": Invariant(
        "slots",
        ":mode = 'drain-log-dirs' AND array_contains(:log_dirs, concat(broker, ':', coalesce(named, was.log_dir)))",
        "concat(name, ': a log dir of broker ', broker, ' is to be drained, but would hold its replica')",
    ),
    "drain-only": Invariant(
        "slots",
        ":mode = 'drain' AND NOT :balance AND goes AND NOT leaving",
        "concat(name, ': its replica on broker ', broker, ' would move, which is not to be drained')",
    ),
    "replace-only": Invariant(
        "changes",
        ":mode = 'replace' AND replicas <> "
        "transform(before, b -> coalesce(get(:replacements, CAST(array_position(:brokers, b) AS INT) - 1), b))",
        "concat(name, ': it would be on ', string(replicas), ', which is not ', string(before), "
        "' with brokers replaced')",
    ),
    "factor-only": Invariant(
        "changes",
        ":mode = 'replication-factor' AND size(array_except(replicas, before)) > 0 "
        "AND size(array_except(before, replicas)) > 0",
        "concat(name, ': replicas would be added and dropped, but only their number may change')",
    ),
    "digest": Invariant(
        "digests",
        "digest <> concat('sha256:', found)",
        "concat('the plan file is sha256:', found, ', but the summary says ', digest)",
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
        "copied",
        "copies <> found.replicas_moved OR bytes <> found.bytes_moved",
        "concat('moves.parquet has ', copies, ' copies of ', bytes, ' bytes, the plan ', string(found))",
    ),
}


VIEWS_ASKED = tuple(dict.fromkeys(rule.view for rule in INVARIANTS.values()))


def broken_views() -> str:
    """The views with a row that breaks a rule: mostly none, and then no message has to be worded."""
    return " UNION ALL ".join(_ANY.format(view=view, broken=_broken(view)) for view in VIEWS_ASKED)


def messages(views: Collection[str]) -> str:
    """One statement for all rules about these views: each view is read once, whatever the number of rules about it."""
    parts = []
    for view in VIEWS_ASKED:
        if view not in views:
            continue
        cases = ", ".join(
            f"CASE WHEN {rule.broken} THEN struct('{name}' AS name, {rule.message} AS message) END"
            for name, rule in INVARIANTS.items()
            if rule.view == view
        )
        parts.append(_EACH.format(cases=cases, view=view, broken=_broken(view)))
    return _ALL.format(parts=" UNION ALL ".join(parts))


def _broken(view: str) -> str:
    return " OR ".join(f"({rule.broken})" for rule in INVARIANTS.values() if rule.view == view)
