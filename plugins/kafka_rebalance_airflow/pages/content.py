"""What a run's page shows of a plan: the candidates beside each other, and one of them in detail."""

from __future__ import annotations

from typing import Any

from rebalance_lib.report.documents import fullest_log_dirs
from rebalance_lib.report.finish import why_never
from rebalance_lib.report.summary import changed_most

FIGURES = ("bytes", "replicas", "leaders")
EVENTS_SHOWN, NAMES_SHOWN = 20, 6


def candidates(summary: dict[str, Any], review: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Each candidate with all that is known of it: the recommended one first, then those that copy more bytes."""
    recommended, chosen = summary["recommended"], chosen_name(summary, review)
    listed = [
        {**found, "name": name, "recommended": name == recommended, "chosen": name == chosen}
        for name, found in summary["candidates"].items()
    ]
    return sorted(listed, key=lambda one: (not one["recommended"], -one["figures"]["bytes_moved"]))


def chosen_name(summary: dict[str, Any], review: dict[str, Any] | None) -> str | None:
    """The candidate that was approved, known by its digest; None before that, or if the plan was rejected."""
    if not review or "Reject" in (review.get("chosen_options") or ()):
        return None
    matching = [name for name, one in summary["candidates"].items() if one["digest"] == review.get("digest")]
    return matching[0] if matching else None


def shown(listed: list[dict[str, Any]], wanted: str | None) -> dict[str, Any]:
    """The candidate to show in detail: the one asked for, else the chosen, else the recommended one."""
    order = ([one for one in listed if fits(one)] for fits in (_named(wanted), _is("chosen"), _is("recommended")))
    return next(found[0] for found in (*order, listed) if found)


def _named(name: str | None) -> Any:
    return lambda one: one["name"] == name


def _is(what: str) -> Any:
    return lambda one: one[what]


def detail(candidate: dict[str, Any]) -> dict[str, Any]:
    """Brokers, moves and forecast of a candidate as the page draws them."""
    brokers = candidate["brokers"]
    forecast = candidate["forecast"] if (candidate["forecast"] or {}).get("partitions") else None
    return {
        "name": candidate["name"],
        "brokers": changed_most(brokers),
        "brokers_in_all": len(brokers),
        "most": {
            key: max((one[when][key] for one in brokers for when in ("before", "after")), default=0) for key in FIGURES
        },
        "largest_moves": candidate["largest_moves"],
        "groups": candidate.get("groups"),
        "forecast": forecast,
        "why_never": why_never(forecast) if forecast else "",
        "seconds_shown": _seconds_shown(forecast) if forecast else 0.0,
        "fullest": fullest_log_dirs(forecast["log_dirs"]) if forecast else [],
    }


def _seconds_shown(forecast: dict[str, Any]) -> float:
    """The time that the waves are drawn on; where some never end, up to a little after all others."""
    if forecast["seconds"] is not None:
        return float(forecast["seconds"])
    return 1.1 * max(moment for wave in forecast["waves"] for moment in (wave["begins"], wave["ends"] or 0.0))


def record(audit: dict[str, Any]) -> dict[str, Any]:
    """The record of a run, shortened for a page."""
    moves = audit["moves"]
    began = [move["began"] for move in moves]
    ended = [move["ended"] for move in moves if move["ended"]]
    events = sorted(
        (*audit["throttles"], *audit.get("requests", ()), *audit["other"]), key=lambda event: str(event["at"])
    )
    return {
        "verdict": audit["verdict"],
        "approved_by": audit["approved_by"],
        "approved_at": audit["approved_at"],
        "moves": len(moves),
        "open": len(moves) - len(ended),
        "bytes": sum(move["bytes"] for move in moves),
        "set_aside": dict(list(audit.get("set_aside", {}).items())[:EVENTS_SHOWN]),
        "set_aside_count": len(audit.get("set_aside", {})),
        "began": min(began, default=None),
        "ended": max(ended, default=None),
        "events": [_described(event) for event in events[:EVENTS_SHOWN]],
        "more_events": max(0, len(events) - EVENTS_SHOWN),
    }


def _described(event: dict[str, Any]) -> dict[str, str]:
    facts = {key: value for key, value in event.items() if key not in ("at", "event") and value not in (None, [], {})}
    return {
        "at": str(event["at"]),
        "event": str(event["event"]),
        "facts": "; ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in facts.items()),
    }


def _short(value: object) -> str:
    if not isinstance(value, list | dict):
        return str(value)
    more = f" and {len(value) - NAMES_SHOWN} more" if len(value) > NAMES_SHOWN else ""
    return ", ".join(map(str, list(value)[:NAMES_SHOWN])) + more
