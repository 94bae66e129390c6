"""How a plan is executed, and what can be requested of a run while it is under way."""

from __future__ import annotations

from airflow.sdk import Param

from kafka_rebalance_airflow.fields.kinds import HOW, choice, flag, lines, number


def settings_params() -> dict[str, Param]:
    """How a plan is executed; `rebalance_lib.execution.Settings` has the same names, but for moves per broker."""
    return {
        "throttle": number(
            "Throttle (bytes/s)",
            "Replication traffic of the moves on each broker, in and out. It must be above what is written to the "
            "topics that move. The reviewer can change it.",
            default=50_000_000,
            section=HOW,
        ),
        "log_dir_throttle": number(
            "Throttle between log dirs (bytes/s)",
            "For copies between the log dirs of one broker. Empty: none.",
            section=HOW,
        ),
        "moves_per_broker": number(
            "Moves per broker",
            "Replicas that may be coming to a broker, and leaving it, at the same time, those under 10 MB counted by "
            "their part of that; 0 for no limit. The reviewer can change it.",
            default=10,
            section=HOW,
        ),
        "moves_in_cluster": number(
            "Moves in the cluster",
            "Moves that may be under way altogether; 0 for no limit.",
            default=1000,
            section=HOW,
        ),
        "bytes_in_flight": number(
            "Bytes in flight",
            "Bytes of all moves under way together; 0 for no limit. The reviewer can change it.",
            default=0,
            section=HOW,
        ),
        "order": choice(
            "Order",
            "Which moves begin first; partitions at risk come before all others.",
            {"largest-first": "the largest first", "smallest-first": "the smallest first"},
            HOW,
        ),
        "one_replica_at_a_time": flag(
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
        "on_stall": choice(
            "When a move stalls",
            "What to do about a move that does not advance.",
            {
                "raise": "raise the throttle up to its ceiling, where it is the reason",
                "pause": "begin nothing more until it advances",
                "report": "only report it",
            },
            HOW,
        ),
        "throttle_ceiling": number(
            "Throttle ceiling (bytes/s)",
            "How far the throttle may be raised where it is why moves stall; 0: it is not raised.",
            default=0,
            section=HOW,
        ),
        "pause_under_min_isr": flag(
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
        "max_run_time": number(
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
        "action": choice(
            "Action",
            "What the run shall do at its next check.",
            {
                "adjust": "adjust: go on with what is filled in below",
                "pause": "pause: begin nothing more until it is resumed; what is under way goes on",
                "resume": "resume: begin moves again",
            },
        ),
        "throttle": number(
            settings["throttle"].schema["title"],
            "Replication traffic of the moves on each broker, in and out. Empty: unchanged.",
        ),
        "log_dir_throttle": number(
            settings["log_dir_throttle"].schema["title"],
            "For copies between the log dirs of one broker. Empty: unchanged.",
        ),
        **{name: number(title, f"{what}; 0 for no limit. Empty: unchanged.") for name, (title, what) in caps.items()},
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
        "exclude_topics": lines(
            "Topics to exclude",
            "Names or patterns such as logs-*, one per line; what has not begun is set aside. Empty: unchanged.",
        ),
        "max_run_time": number(
            settings["max_run_time"].schema["title"],
            "Seconds since the run began, after which nothing begins any more; 0 for no limit. Empty: unchanged.",
        ),
    }
