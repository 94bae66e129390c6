"""What is to be planned, and for which cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from kafka_rebalance_airflow.fields.kinds import WHAT, choice, flag, lines, number

LOADS = ("history_hours", "load", "horizon_days")  # of the fields of a request, those that are not in `Request`
MODES = {
    "balance": "balance: even out disk, replicas and leaders over all brokers",
    "expand": "expand: fill new brokers; nothing moves between the others",
    "drain": "drain: empty the given brokers; nothing else moves",
    "replace": "replace: put one broker in another's place",
    "repair": "repair: replace replicas on dead brokers, spread racks, restore replication factors",
    "leaders": "leaders: even out leaders by the order of replicas; no data moves",
    "disks": "disks: even out the log dirs within each broker",
    "topics": "topics: balance by moving the chosen topics alone",
    "replication-factor": "replication-factor: give the chosen topics another replication factor",
    "partitions": "partitions: place new partitions of the chosen topics",
    "light": "light: only relieve brokers above a fill level",
    "kafka": "kafka: stripe the chosen topics as Kafka's own tool does",
    "demote": "demote: take leadership from the given brokers; no data moves; mode leaders evens leaders out again",
    "drain-log-dirs": "drain-log-dirs: empty the given log dirs onto the others of the same broker",
}


def connection_param() -> Param:
    """Which cluster."""
    return Param(
        "kafka_default",
        type="string",
        minLength=1,
        title="Cluster",
        description="The Airflow connection of the Kafka cluster.",
    )


def request_params() -> dict[str, Param]:
    """What is to be planned; `rebalance_lib.planner.Request` has the same names."""
    return {
        "mode": choice("Mode", "What kind of plan.", MODES),
        "topics": lines(
            "Topics",
            "Names or patterns such as orders-* of those that may move, one per line. Empty: all but internal ones, "
            "and for drain, replace, repair, demote and drain-log-dirs these too. Required for topics, "
            "replication-factor and partitions.",
        ),
        "brokers": lines(
            "Brokers",
            "Ids of those the mode is about, one per line: the new ones to fill (expand), the ones to empty (drain), "
            "to replace (replace), to look into (disks), to relieve (light), or to take leadership from (demote).",
        ),
        "log_dirs": lines(
            "Log dirs", "For drain-log-dirs: those to empty, one per line, each as BROKER:PATH, such as 1:/disk2."
        ),
        "replacements": lines("Replacements", "For replace: the brokers that take their places, in the same order."),
        "replication_factor": number(
            "Replication factor", "For replication-factor: the factor to reach. For repair: the least to restore."
        ),
        "partitions": number("Partitions", "For partitions: how many each chosen topic shall have altogether."),
        "fill_level": number(
            "Fill level", "For light: the part of its disk above which a broker is relieved, such as 0.8.", maximum=1.0
        ),
        "balance": flag("Balance the others too", "For drain: even out the brokers that stay.", default=False),
        "excluded_topics": lines("Topics left alone", "Names or patterns, one per line.", WHAT),
        "allowed_brokers": lines(
            "Allowed brokers", "Ids of those that may be given replicas, one per line. Empty: all that are alive.", WHAT
        ),
        "excluded_brokers": lines(
            "Brokers left alone", "Ids of those that neither give nor take, replicas or leaders, one per line.", WHAT
        ),
        "include_internal": flag(
            "Internal topics too", "Move __consumer_offsets and its like.", default=False, section=WHAT
        ),
        "tolerance": number(
            "Tolerance",
            "How far from its share a broker may be before anything moves, as a part of the share.",
            default=0.01,
            section=WHAT,
        ),
        "byte_budget": number("Byte budget", "Bytes that may be copied at most. Empty: no limit.", section=WHAT),
        "move_budget": number("Move budget", "Replicas that may be copied at most. Empty: no limit.", section=WHAT),
        "max_fill": number(
            "Fill disks up to",
            "No log dir is filled beyond this part of its capacity.",
            default=0.9,
            maximum=1.0,
            section=WHAT,
        ),
        "leader_racks": lines(
            "Racks of leaders",
            "Leaders are kept in these racks, one per line, where a partition has a replica in sync there. Empty: all.",
            WHAT,
        ),
        "min_topic_leaders": lines(
            "Least leaders of topics",
            "For balance, expand, topics, leaders, and drain with balance: how many partitions of a topic each broker "
            "leads at least, such as metrics-*=1, one per line.",
            WHAT,
        ),
        "goals": lines(
            "Goals",
            "What to aim at, one per line, the first counting the most, each perhaps with a tolerance such as "
            "disk=0.02: disk, network_in, replicas, leaders, network_out, cpu, topic_leaders, failover, log_dirs, "
            "topic_replicas. Empty: all but the last, as far as loads are known.",
            WHAT,
        ),
        "polish": number(
            "Polish in seconds",
            "For balance, expand and topics: look so long for a plan that is more even, or as even and copies less; "
            "for clusters too large to be planned exactly. 0: not at all.",
            default=0,
            maximum=3600.0,
            section=WHAT,
        ),
        "seed": number(
            "Seed",
            "Where the choice between equals starts; the same seed gives the same plan.",
            default=0,
            section=WHAT,
        ),
        "shards": number(
            "Shards",
            "Into how many parts the cluster is cut, each planned by itself first. 0: one for every million "
            "partitions.",
            default=0,
            section=WHAT,
        ),
        "history_hours": number(
            "Hours of history",
            "How far back loads are looked up in the history of snapshots; 0: not at all.",
            default=24,
            section=WHAT,
        ),
        "load": choice(
            "Load",
            "What is written and read in these hours, as the plan counts it. The percentile suits loads that come in "
            "peaks, the last interval a load that has just changed.",
            {
                "mean": "mean: over all these hours",
                "p95": "p95: the 95th percentile over the intervals between snapshots",
                "last": "last: the last interval between snapshots",
            },
            WHAT,
        ),
        "horizon_days": number(
            "Horizon in days",
            "Plan with the sizes that partitions will have after so many days, at the growth of these hours, so that "
            "the plan is still right then; 0: as they are.",
            default=0,
            maximum=3650.0,
            section=WHAT,
        ),
    }


def check_horizon(values: Mapping[str, Any]) -> None:
    """Raise ValueError if sizes are to be those of a later day, and nothing is to be read that tells of growth."""
    if values.get("horizon_days") and not values.get("history_hours"):
        raise ValueError("horizon_days needs a history that tells how partitions grow: set history_hours above 0")


def threshold_params() -> dict[str, Param]:
    """How uneven a cluster must be for the run to go on."""
    text = "Go on only if a broker's {} are this part of its share or more away from it. Empty: whatever they are."
    return {
        f"threshold_{what}": number(f"Threshold: {what}", text.format(what), maximum=1e9, section=WHAT)
        for what in ("bytes", "replicas", "leaders")
    }
