"""The form of a rebalance, filled in: checked as a whole, and taken apart into what `rebalance_lib` takes.

`fields` has what the form asks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kafka_rebalance_airflow.fields import LOADS, check_horizon, is_finite, request_params


@dataclasses.dataclass(frozen=True)
class Form:
    """A form that was filled in, checked and taken apart; JSON can hold it."""

    kafka_conn_id: str
    request: dict[str, Any]
    settings: dict[str, Any]
    pace: dict[str, Any]
    thresholds: dict[str, float | None]
    review: dict[str, Any]
    loads: dict[str, Any]  # as `rebalance_lib.history.LoadOptions` reads them; empty: no history is looked at

    def as_dict(self) -> dict[str, Any]:
        """For XCom."""
        return dataclasses.asdict(self)


LIMITS = ("max_bytes", "max_replicas", "max_leaders", "max_seconds")
SETTINGS = (
    "throttle",
    "log_dir_throttle",
    "moves_in_cluster",
    "bytes_in_flight",
    "order",
    "one_replica_at_a_time",
    "window",
    "on_stall",
    "throttle_ceiling",
    "pause_under_min_isr",
    "give_up_after",
    "max_run_time",
)


def read_form(params: Mapping[str, Any]) -> Form:
    """Check a form as a whole: each field is right by itself already. Parts that a DAG has no fields for are empty.

    Raises:
        ValueError: It does not hold together; the message has all reasons.
    """
    from rebalance_lib.approval.limits import ApprovalLimits, Thresholds
    from rebalance_lib.errors import RebalanceError
    from rebalance_lib.execution import Settings
    from rebalance_lib.execution.settings import check_seconds
    from rebalance_lib.planner import Request

    wrong = [f"{name} is {value}: give a finite number" for name, value in params.items() if not is_finite(value)]

    def checked(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (RebalanceError, ValueError, OverflowError) as error:
            wrong.append(str(error))
            return None

    request = checked(lambda: Request.from_dict(_request(params)).as_dict() if "mode" in params else {})
    settings = checked(lambda: Settings.from_dict(_settings(params)))
    limits = checked(lambda: ApprovalLimits.from_dict({name: params.get(name) for name in LIMITS}))
    thresholds = checked(
        lambda: Thresholds.from_dict(
            {name: params.get(f"threshold_{name}") for name in ("bytes", "replicas", "leaders")}
        )
    )
    loads = checked(lambda: _loads(params))
    if (interval := params.get("check_interval")) is not None:
        checked(lambda: check_seconds("check_interval", float(interval)))
    automatic = params.get("review") == "automatic"
    if automatic and params.get("max_bytes") is None:
        wrong.append("automatic review needs a limit in bytes: set max_bytes")
    if wrong:
        raise ValueError("; ".join(wrong))
    return Form(
        kafka_conn_id=params.get("kafka_conn_id", ""),
        request=request,
        settings=settings.as_dict(),
        pace=settings.pace.as_dict(),
        thresholds=dataclasses.asdict(thresholds),
        review={
            "automatic": automatic,
            "limits": dataclasses.asdict(limits),
            "approvers": _names(params.get("approvers")),
            "timeout_hours": params.get("timeout_hours") or 0,
            "reminder_hours": params.get("reminder_hours") or 0,
        },
        loads=loads,
    )


def _request(params: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that are filled in."""
    from rebalance_lib.planner import Request

    readers: dict[str, Callable[[str, Any], Any]] = {
        "tuple[int, ...]": _ids,
        "tuple[str, ...]": lambda _, lines: _names(lines),
    }
    types = {field.name: str(field.type) for field in dataclasses.fields(Request)}
    given = {
        name: readers[types[name]](name, params.get(name)) if types[name] in readers else params.get(name)
        for name in request_params()
        if name not in LOADS
    }
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def _loads(params: Mapping[str, Any]) -> dict[str, Any]:
    """Which loads of the history count; empty where no history is looked at."""
    from rebalance_lib.history import LoadOptions

    check_horizon(params)
    if not (hours := params.get("history_hours")):
        return {}
    given = {"hours": hours, "statistic": params.get("load"), "horizon_days": params.get("horizon_days")}
    return LoadOptions.from_dict(given).as_dict()


def _settings(params: Mapping[str, Any]) -> dict[str, Any]:
    caps = dict.fromkeys(("moves_in", "moves_out"), params.get("moves_per_broker"))
    return {**{name: params.get(name) for name in SETTINGS}, **caps}


def _names(values: Any) -> list[str]:
    return [str(value).strip() for value in values or () if str(value).strip()]


def _ids(name: str, values: Any) -> list[int]:
    try:
        return [int(value) for value in _names(values)]
    except ValueError as error:
        raise ValueError(f"{name} are {values!r}: give the ids of brokers, one per line") from error
