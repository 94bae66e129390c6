"""What people ask of a run while it is under way: pause, resume, another throttle, other caps, ..., cancel.

There is one way to ask, from the command line and from Airflow alike: a small file in ``requests/`` of the run's
artifacts, with who asked and when. Whoever executes the plan reads them at every check, so that a request survives a
restart of the executor. They are numbered in the order in which they were made, and no clock is compared with another.
A request is removed when the run is finalized: the next one begins with its own settings.

    pause, resume                     begin nothing until resumed; what is under way goes on
    throttle                          bytes/s between brokers
    log_dir_throttle                  bytes/s between the log dirs of a broker
    moves_in, moves_out,              caps, 0 for no limit
    moves_in_cluster, bytes_in_flight
    window, order                     as in `Settings`; "" for no window
    exclude_topics                    topics, or patterns such as ``logs-*``, whose partitions do not begin any more
    max_run_time                      seconds since the run began, after which it ends in good order; 0 for no limit
    cancel                            cancel what is under way, restore throttles, end

Example: ``requests/000002-1f3a9c0e.json`` holds ``{"kind": "throttle", "value": 90000000, "by": "ada", "at": "..."}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.execution.settings import Settings

REQUESTS = "requests"


class Kind(StrEnum):
    """What can be asked of a run."""

    PAUSE = "pause"
    RESUME = "resume"
    THROTTLE = "throttle"
    LOG_DIR_THROTTLE = "log_dir_throttle"
    MOVES_IN = "moves_in"
    MOVES_OUT = "moves_out"
    MOVES_IN_CLUSTER = "moves_in_cluster"
    BYTES_IN_FLIGHT = "bytes_in_flight"
    WINDOW = "window"
    ORDER = "order"
    EXCLUDE_TOPICS = "exclude_topics"
    MAX_RUN_TIME = "max_run_time"
    CANCEL = "cancel"


SETTINGS = frozenset(Kind) - {Kind.PAUSE, Kind.RESUME, Kind.EXCLUDE_TOPICS, Kind.CANCEL}  # they change a setting


@dataclass(frozen=True, slots=True)
class Request:
    """One request: what, by whom and when."""

    name: str
    kind: Kind
    value: Any
    by: str
    at: str

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value}"
        return f"{self.kind}{value} requested by {self.by} at {self.at}"


def make_request(artifacts: Artifacts, kind: Kind, value: Any = None, *, by: str, clock: Clock = SYSTEM) -> Request:
    """Ask something of whoever executes the plan; it is done at the next check.

    Raises:
        InvalidInputError: The value is not acceptable for what is asked.
    """
    check_request(kind, value)
    directory = artifacts / REQUESTS
    number = max((int(name.split("-")[0]) for name in _names(directory)), default=0) + 1
    name = f"{number:06d}-{clock.unique_id()[:8]}.json"
    request = Request(name, kind, value, by, clock.timestamp())
    directory.write_json(name, {"kind": str(kind), "value": value, "by": by, "at": request.at}, durable=True)
    return request


def check_request(kind: Kind, value: Any) -> None:
    """Refuse a value that the run could not use."""
    if kind in SETTINGS:
        if value is None:
            raise InvalidInputError(f"{kind.replace('_', ' ')} is missing: give a value")
        Settings.from_dict({str(kind): value})
        if kind in (Kind.THROTTLE, Kind.LOG_DIR_THROTTLE) and int(value) < 1:
            raise InvalidInputError(f"a throttle of {value} bytes/s would stop replication: give a rate above 0")
    elif kind is Kind.EXCLUDE_TOPICS:
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
            raise InvalidInputError(f"topics to exclude are {value!r}: give a list of names or patterns")
    elif value is not None:
        raise InvalidInputError(f"{kind} takes no value, and was given {value!r}")


def read_requests(artifacts: Artifacts) -> list[Request]:
    """All requests of a run that has not ended, in the order in which they were made; a damaged one is left out."""
    directory = artifacts / REQUESTS
    found = []
    for name in _names(directory):
        request = _read(directory, name)
        if request is not None:
            found.append(request)
    return found


def forget_requests(artifacts: Artifacts, requests: Iterable[Request]) -> None:
    """Remove requests of a run that has ended."""
    (artifacts / REQUESTS).remove_files([request.name for request in requests])


def _names(directory: Artifacts) -> list[str]:
    return [name for name in directory.files() if name[:6].isdecimal() and name.endswith(".json")]


def _read(directory: Artifacts, name: str) -> Request | None:
    try:
        content = directory.read_json(name)
        kind, value = Kind(content["kind"]), content.get("value")
        check_request(kind, value)
        return Request(name, kind, value, str(content["by"]), str(content["at"]))
    except (InvalidInputError, UnicodeDecodeError, KeyError, TypeError, AttributeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Controls:
    """What all requests come to: the settings in force, and what is not a setting.

    ``throttled`` is the last request for a throttle, by which one that was raised for a stall is over.
    """

    settings: Settings
    paused: Request | None = None
    cancelled: Request | None = None
    throttled: Request | None = None
    excluded: dict[str, Request] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, requests: Sequence[Request]) -> Controls:
        """Settings as they were approved, and the requests since, the later ones over the earlier."""
        changes: dict[str, Any] = {}
        controls = cls(settings)
        for request in requests:
            if request.kind is Kind.CANCEL:
                controls = replace(controls, cancelled=controls.cancelled or request)
            elif request.kind is Kind.PAUSE:
                controls = replace(controls, paused=controls.paused or request)
            elif request.kind is Kind.RESUME:
                controls = replace(controls, paused=None)
            elif request.kind is Kind.EXCLUDE_TOPICS:
                controls.excluded.update(dict.fromkeys(request.value, request))
            else:
                changes[str(request.kind)] = request.value
                if request.kind is Kind.THROTTLE:
                    controls = replace(controls, throttled=request)
        return replace(controls, settings=settings.changed(changes)) if changes else controls

    def excludes(self, topic: str) -> Request | None:
        """The request by which no partition of this topic begins any more; None if there is none."""
        return next((one for pattern, one in self.excluded.items() if fnmatchcase(topic, pattern)), None)
