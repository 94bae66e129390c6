"""What a request allows in a cluster: which partitions may change, which brokers give, take, leave or lead.

Names are checked here, so that an ask about something that is not there costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.request import WHOLE_BROKERS, Mode, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel

_SHOWN = 5
_MODES_FOR_OFFLINE = frozenset(
    {Mode.REPAIR, Mode.DRAIN, Mode.REPLACE, Mode.REPLICATION_FACTOR, Mode.PARTITIONS, Mode.KAFKA}
)


@dataclass(frozen=True, eq=False)
class Scope:
    """Flags by partition and by broker."""

    movable: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    gives: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    may_lead: NDArray[np.bool_]
    excluded: NDArray[np.bool_]  # keep the leaders they have, besides all their replicas
    offline: int  # partitions left alone because a replica of theirs is on a dead broker
    remarks: tuple[str, ...] = ()  # what a reviewer should know of the request, a sentence each

    @classmethod
    def of(cls, model: ClusterModel, request: Request) -> Scope:
        """Check the names in a request and mark what it allows."""
        known_brokers(model, request)
        movable = chosen_topics(model, request)[model.topic] if model.partitions else np.zeros(0, np.bool_)
        if busy := np.flatnonzero(movable & model.moving)[:_SHOWN].tolist():
            names = some(map(model.name, busy), int((movable & model.moving).sum()))
            raise InvalidInputError(f"{names} are being reassigned now: wait until that ends, or leave them out")
        about = _flags(model, request.brokers)
        excluded = _flags(model, request.excluded_brokers)
        allowed = (
            _flags(model, request.allowed_brokers) if request.allowed_brokers else np.ones(model.brokers, np.bool_)
        )
        takes = model.alive & allowed & ~excluded
        gives = ~excluded
        leaves = np.zeros(model.brokers, np.bool_)
        if request.mode is Mode.DRAIN:
            leaves, takes = about, takes & ~about
        elif request.mode is Mode.EXPAND:
            new = about if about.any() else np.bincount(model.broker, minlength=model.brokers) == 0
            takes = takes & new
            if not takes.any():
                raise InvalidInputError(
                    "there is no new broker to expand onto: none is empty; give brokers, the ids of the new ones"
                )
        elif request.mode is Mode.REPAIR:
            leaves = ~model.alive & ~excluded
        elif request.mode is Mode.LIGHT and about.any():
            gives &= about
        offline = 0
        if request.mode not in _MODES_FOR_OFFLINE:
            dead = np.zeros(model.partitions, np.bool_)
            dead[model.slot_partition[~model.alive[model.broker]]] = True
            offline = int((dead & movable).sum())
            movable = movable & ~dead
        may_lead = model.alive & ~leaves & ~excluded
        return cls(movable, takes, gives, leaves, may_lead, excluded, offline, remarks_on(model, request))


def known_brokers(model: ClusterModel, request: Request) -> None:
    """Refuse brokers that the cluster does not have, or that are down where a live one is needed."""
    ids = set(model.broker_ids.tolist())
    alive = set(model.broker_ids[model.alive].tolist())
    need_alive = {*request.replacements, *request.allowed_brokers}
    if request.mode is Mode.EXPAND:
        need_alive |= set(request.brokers)
    if unknown := sorted({*request.brokers, *need_alive, *request.excluded_brokers} - ids):
        raise InvalidInputError(f"unknown brokers {unknown}: the cluster has {some(sorted(ids))}")
    if both := sorted(set(request.brokers) & set(request.excluded_brokers)):
        raise InvalidInputError(f"brokers {both} are both asked for and excluded; name each once")
    if dead := sorted(need_alive - alive):
        raise InvalidInputError(f"brokers {dead} are down: replicas can be placed on live brokers only")


def chosen_topics(model: ClusterModel, request: Request) -> NDArray[np.bool_]:
    """By topic, whether it may be moved."""
    topics = model.topics
    if not request.topics:
        chosen = ~model.internal | request.include_internal | (request.mode in WHOLE_BROKERS)
    else:
        chosen = np.zeros(len(topics), np.bool_)
        for pattern in request.topics:
            found = _matching(topics, pattern)
            if not found.any():
                problem = "check the name; a pattern looks like 'orders-*'"
                raise InvalidInputError(f"no topic is called {pattern!r}: {problem}")
            chosen |= found
    for pattern in request.excluded_topics:
        chosen = chosen & ~_matching(topics, pattern)
    return chosen


def remarks_on(model: ClusterModel, request: Request) -> tuple[str, ...]:
    """An exclusion that matches nothing harms nothing, and a standing one may be for topics that come and go."""
    unused = [pattern for pattern in request.excluded_topics if not _matching(model.topics, pattern).any()]
    return tuple(f"No topic matches {pattern!r}, which is to be left alone." for pattern in unused)


def some(values: Iterable[object], count: int | None = None) -> str:
    """A few of many, and how many more there are."""
    listed = list(values)
    more = (len(listed) if count is None else count) - len(listed[:_SHOWN])
    shown = ", ".join(map(str, listed[:_SHOWN]))
    return f"{shown} and {more} more" if more > 0 else shown


def _matching(topics: list[str], pattern: str) -> NDArray[np.bool_]:
    if any(sign in pattern for sign in "*?["):
        found = np.array([fnmatchcase(topic, pattern) for topic in topics], np.bool_)
    else:
        found = np.array([topic == pattern for topic in topics], np.bool_)
    return found


def _flags(model: ClusterModel, ids: Iterable[int]) -> NDArray[np.bool_]:
    return np.isin(model.broker_ids, np.array(sorted(ids), np.int32))
