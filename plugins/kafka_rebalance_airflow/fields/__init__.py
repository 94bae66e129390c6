"""The fields of the form of a rebalance: what it asks; `form` says what the answers mean.

The same fields are the trigger form of every DAG that rebalances, with other defaults where a file gives them
(`clusters`). Their names are those of `rebalance_lib`'s requests and settings, so that a field needs no translation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from airflow.sdk import Param

from kafka_rebalance_airflow.fields.execution import adjust_params, settings_params
from kafka_rebalance_airflow.fields.request import (
    LOADS,
    MODES,
    check_horizon,
    connection_param,
    request_params,
    threshold_params,
)
from kafka_rebalance_airflow.fields.review import review_params

__all__ = [
    "LOADS",
    "MODES",
    "adjust_params",
    "check_horizon",
    "check_names",
    "connection_param",
    "is_finite",
    "rebalance_params",
    "request_params",
    "review_params",
    "settings_params",
    "threshold_params",
    "with_defaults",
]


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
    check_names(defaults, params)
    for name, value in defaults.items():
        if not is_finite(value):
            raise ValueError(f"{name} cannot be {value!r}: give a finite number")
        try:
            params[name].resolve(value)
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"{name} cannot be {value!r}: {reason}") from error
        params[name].value = value
    return params


def is_finite(value: object) -> bool:
    """Whether a value is neither NaN nor infinite. The schema of a field lets NaN pass: no comparison with it holds."""
    return not isinstance(value, float) or math.isfinite(value)


def check_names(given: Iterable[str], fields: Iterable[str]) -> None:
    """Raise ValueError for names that no field has, with the name that is meant, if there is one like it."""
    known = list(fields)
    unknown = [name for name in given if name not in known]
    if unknown:
        near = {name: get_close_matches(name, known, 1) or [f"some of {', '.join(known)}"] for name in unknown}
        raise ValueError("; ".join(f"there is no field {name!r}: use {near[name][0]}" for name in unknown))
