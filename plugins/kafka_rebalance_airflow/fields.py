"""The fields of the form of a rebalance: what it asks; `form` says what the answers mean.

The same fields are the trigger form of every DAG that rebalances, with other defaults where a file gives them
(`clusters`). Their names are those of `rebalance_lib`'s requests and settings, so that a field needs no translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

WHAT, HOW, REVIEW = "What", "How", "Review"
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


def _list(title: str, description: str, section: str | None = None) -> Param:
    return Param([], type=["array", "null"], title=title, description=description, section=section)


def _number(
    title: str, description: str, *, default: float | None = None, section: str | None = None, **schema: Any
) -> Param:
    whole = not isinstance(schema.get("maximum", default), float)
    kind = ["integer" if whole else "number", "null"]
    return Param(default, type=kind, title=title, description=description, section=section, minimum=0, **schema)


def _choice(title: str, description: str, options: Mapping[str, str], section: str | None = None) -> Param:
    default = next(iter(options))
    return Param(
        default,
        type="string",
        enum=list(options),
        values_display=dict(options),
        title=title,
        description=description,
        section=section,
    )


def _flag(title: str, description: str, *, default: bool, section: str) -> Param:
    return Param(default, type="boolean", title=title, description=description, section=section)


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
        "mode": _choice("Mode", "What kind of plan.", MODES),
        "topics": _list(
            "Topics",
            "Names or patterns such as orders-* of those that may move, one per line. Empty: all but internal ones, "
            "and for drain, replace, repair, demote and drain-log-dirs these too. Required for topics, "
            "replication-factor and partitions.",
        ),
        "brokers": _list(
            "Brokers",
            "Ids of those the mode is about, one per line: the new ones to fill (expand), the ones to empty (drain), "
            "to replace (replace), to look into (disks), to relieve (light), or to take leadership from (demote).",
        ),
        "log_dirs": _list(
            "Log dirs", "For drain-log-dirs: those to empty, one per line, each as BROKER:PATH, such as 1:/disk2."
        ),
        "replacements": _list("Replacements", "For replace: the brokers that take their places, in the same order."),
        "replication_factor": _number(
            "Replication factor", "For replication-factor: the factor to reach. For repair: the least to restore."
        ),
        "partitions": _number("Partitions", "For partitions: how many each chosen topic shall have altogether."),
        "fill_level": _number(
            "Fill level", "For light: the part of its disk above which a broker is relieved, such as 0.8.", maximum=1.0
        ),
        "excluded_topics": _list("Topics left alone", "Names or patterns, one per line.", WHAT),
        "allowed_brokers": _list(
            "Allowed brokers", "Ids of those that may be given replicas, one per line. Empty: all that are alive.", WHAT
        ),
        "excluded_brokers": _list(
            "Brokers left alone", "Ids of those that neither give nor take, replicas or leaders, one per line.", WHAT
        ),
        "include_internal": _flag(
            "Internal topics too", "Move __consumer_offsets and its like.", default=False, section=WHAT
        ),
        "tolerance": _number(
            "Tolerance",
            "How far from its share a broker may be before anything moves, as a part of the share.",
            default=0.01,
            section=WHAT,
        ),
        "byte_budget": _number("Byte budget", "Bytes that may be copied at most. Empty: no limit.", section=WHAT),
        "move_budget": _number("Move budget", "Replicas that may be copied at most. Empty: no limit.", section=WHAT),
        "max_fill": _number(
            "Fill disks up to",
            "No log dir is filled beyond this part of its capacity.",
            default=0.9,
            maximum=1.0,
            section=WHAT,
        ),
        "leader_racks": _list(
            "Racks of leaders",
            "Leaders are kept in these racks, one per line, where a partition has a replica in sync there. Empty: all.",
            WHAT,
        ),
        "min_topic_leaders": _list(
            "Least leaders of topics",
            "For balance, expand, topics, leaders, and drain with balance: how many partitions of a topic each broker "
            "leads at least, such as metrics-*=1, one per line.",
            WHAT,
        ),
        "goals": _list(
            "Goals",
            "What to aim at, one per line, the first counting the most, each perhaps with a tolerance such as "
            "disk=0.02: disk, network_in, replicas, leaders, network_out, cpu, topic_leaders, failover, log_dirs, "
            "topic_replicas. Empty: all but the last, as far as loads are known.",
            WHAT,
        ),
        "polish": _number(
            "Polish in seconds",
            "For balance, expand and topics: look so long for a plan that is more even, or as even and copies less; "
            "for clusters too large to be planned exactly. 0: not at all.",
            default=0,
            maximum=3600.0,
            section=WHAT,
        ),
        "seed": _number(
            "Seed",
            "Where the choice between equals starts; the same seed gives the same plan.",
            default=0,
            section=WHAT,
        ),
        "history_hours": _number(
            "Hours of history",
            "How far back loads are looked up in the history of snapshots; 0: not at all.",
            default=24,
            section=WHAT,
        ),
        "load": _choice(
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
        "horizon_days": _number(
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
        f"threshold_{what}": _number(f"Threshold: {what}", text.format(what), maximum=1e9, section=WHAT)
        for what in ("bytes", "replicas", "leaders")
    }


def settings_params() -> dict[str, Param]:
    """How a plan is executed; `rebalance_lib.execution.Settings` has the same names, but for moves per broker."""
    return {
        "throttle": _number(
            "Throttle (bytes/s)",
            "Replication traffic of the moves on each broker, in and out. It must be above what is written to the "
            "topics that move. The reviewer can change it.",
            default=50_000_000,
            section=HOW,
        ),
        "log_dir_throttle": _number(
            "Throttle between log dirs (bytes/s)",
            "For copies between the log dirs of one broker. Empty: none.",
            section=HOW,
        ),
        "moves_per_broker": _number(
            "Moves per broker",
            "Replicas that may be coming to a broker, and leaving it, at the same time, those under 10 MB counted by "
            "their part of that; 0 for no limit. The reviewer can change it.",
            default=10,
            section=HOW,
        ),
        "moves_in_cluster": _number(
            "Moves in the cluster",
            "Moves that may be under way altogether; 0 for no limit.",
            default=1000,
            section=HOW,
        ),
        "bytes_in_flight": _number(
            "Bytes in flight",
            "Bytes of all moves under way together; 0 for no limit. The reviewer can change it.",
            default=0,
            section=HOW,
        ),
        "order": _choice(
            "Order",
            "Which moves begin first; partitions at risk come before all others.",
            {"largest-first": "the largest first", "smallest-first": "the smallest first"},
            HOW,
        ),
        "one_replica_at_a_time": _flag(
            "One new replica at a time",
            "A partition gets its new replicas one after the other: slower, but never twice its space.",
            default=False,
            section=HOW,
        ),
        "window": Param(
            None,
            type=["string", "null"],
            title="Window",
            description="When moves may begin, such as 22:00-06:00 Europe/Berlin; those under way go on after it. "
            "Empty: at any time.",
            section=HOW,
        ),
        "on_stall": _choice(
            "When a move stalls",
            "What to do about a move that does not advance.",
            {
                "raise": "raise the throttle up to its ceiling, where it is the reason",
                "pause": "begin nothing more until it advances",
                "report": "only report it",
            },
            HOW,
        ),
        "throttle_ceiling": _number(
            "Throttle ceiling (bytes/s)",
            "How far the throttle may be raised where it is why moves stall; 0: it is not raised.",
            default=0,
            section=HOW,
        ),
        "pause_under_min_isr": _flag(
            "Pause under min ISR",
            "Begin nothing while any partition of the cluster has fewer in-sync replicas than it must have.",
            default=True,
            section=HOW,
        ),
        "give_up_after": Param(
            1800,
            type="integer",
            minimum=1,
            title="Give up after (s)",
            description="How long a move may wait for something that somebody must repair (a broker that is down, a "
            "full disk, a stall) before it is set aside, so that the others can end. A closed window and a pause do "
            "not count.",
            section=HOW,
        ),
        "max_run_time": _number(
            "Maximum run time (s)",
            "Nothing begins after that time, and the run ends with what is under way; 0 for no limit.",
            default=0,
            section=HOW,
        ),
        "check_interval": Param(
            30,
            type="integer",
            minimum=1,
            maximum=3600,
            title="Check every (s)",
            description="How often the cluster is compared with the plan while data moves, 3600 at most.",
            section=HOW,
        ),
    }


def adjust_params() -> dict[str, Param]:
    """What can be asked of a run while it is under way; `rebalance_lib.execution.Kind` has the same names."""
    settings = settings_params()
    caps = {
        "moves_in": ("Moves to a broker", "Replicas that may be coming to a broker at the same time"),
        "moves_out": ("Moves from a broker", "Replicas that may be copied from a broker at the same time"),
        "moves_in_cluster": (settings["moves_in_cluster"].schema["title"], "Moves that may be under way altogether"),
        "bytes_in_flight": (settings["bytes_in_flight"].schema["title"], "Bytes of all moves under way together"),
    }
    return {
        "action": _choice(
            "Action",
            "What the run shall do at its next check.",
            {
                "adjust": "adjust: go on with what is filled in below",
                "pause": "pause: begin nothing more until it is resumed; what is under way goes on",
                "resume": "resume: begin moves again",
            },
        ),
        "throttle": _number(
            settings["throttle"].schema["title"],
            "Replication traffic of the moves on each broker, in and out. Empty: unchanged.",
        ),
        "log_dir_throttle": _number(
            settings["log_dir_throttle"].schema["title"],
            "For copies between the log dirs of one broker. Empty: unchanged.",
        ),
        **{name: _number(title, f"{what}; 0 for no limit. Empty: unchanged.") for name, (title, what) in caps.items()},
        "window": Param(
            None,
            type=["string", "null"],
            title=settings["window"].schema["title"],
            description="When moves may begin, such as 22:00-06:00 Europe/Berlin, or always. Empty: unchanged.",
        ),
        "order": Param(
            None,
            type=["string", "null"],
            enum=[*settings["order"].schema["enum"], None],
            title=settings["order"].schema["title"],
            description="Which moves begin first. Empty: unchanged.",
        ),
        "exclude_topics": _list(
            "Topics to exclude",
            "Names or patterns such as logs-*, one per line; what has not begun is set aside. Empty: unchanged.",
        ),
        "max_run_time": _number(
            settings["max_run_time"].schema["title"],
            "Seconds since the run began, after which nothing begins any more; 0 for no limit. Empty: unchanged.",
        ),
    }


def review_params() -> dict[str, Param]:
    """Who decides."""
    return {
        "review": _choice(
            "Review",
            "Who approves the plan.",
            {"required": "a person, always", "automatic": "nobody, if the plan has no risk and is within the limits"},
            REVIEW,
        ),
        "max_bytes": _number(
            "Automatic up to (bytes)",
            "A plan that copies more waits for a person. Needed for automatic.",
            section=REVIEW,
        ),
        "max_replicas": _number(
            "Automatic up to (replicas)", "A plan that copies more replicas waits for a person.", section=REVIEW
        ),
        "max_leaders": _number(
            "Automatic up to (leaders)", "A plan that changes more leaders waits for a person.", section=REVIEW
        ),
        "max_seconds": _number(
            "Automatic up to (s)", "A plan that takes longer by its forecast waits for a person.", section=REVIEW
        ),
        "approvers": _list(
            "Approvers",
            "Ids of the users who may answer, one per line; with Airflow's simple auth manager, their names. Empty: "
            "all who may.",
            REVIEW,
        ),
        "timeout_hours": _number(
            "Reject after (hours)",
            "A plan that nobody has answered by then is rejected; 0: it waits for ever.",
            default=72,
            maximum=1e6,
            section=REVIEW,
        ),
        "reminder_hours": _number(
            "Remind every (hours)",
            "How often a notification is sent while a plan waits; 0: never.",
            default=0,
            maximum=1e6,
            section=REVIEW,
        ),
        "on_busy": _choice(
            "If the cluster is busy",
            "What to do if another run, or another tool, is at work on the cluster.",
            {"wait": "wait until it has ended", "fail": "fail, with its name"},
            REVIEW,
        ),
    }


def rebalance_params(defaults: Mapping[str, Any] | None = None) -> dict[str, Param]:
    """All fields of a rebalance, with other defaults where some are given.

    Raises:
        ValueError: There is no such field, or its default is not acceptable; the message says which and why.
    """
    params = {
        "kafka_conn_id": connection_param(),
        **request_params(),
        **threshold_params(),
        **settings_params(),
        **review_params(),
    }
    return with_defaults(params, defaults or {})


def with_defaults(params: dict[str, Param], defaults: Mapping[str, Any]) -> dict[str, Param]:
    """The fields with these defaults, each checked against its schema."""
    for name, value in defaults.items():
        if name not in params:
            raise ValueError(f"there is no field {name!r}: use some of {', '.join(params)}")
        try:
            params[name].resolve(value)
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"{name} cannot be {value!r}: {reason}") from error
        params[name].value = value
    return params
