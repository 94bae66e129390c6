"""What a request allows in a cluster: which partitions may change, which brokers give, take, leave or lead.

Names are checked here, so that an ask about something that is not there costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.request import WHOLE_BROKERS, Mode, Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rebalance_lib.planner.broker_sums import BrokerSums
    from rebalance_lib.planner.model import ClusterModel

_SHOWN = 5
_CORDON = "kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type brokers --entity-name"
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
    may_lead: NDArray[np.bool_]  # and share leaders and what they send
    excluded: NDArray[np.bool_]  # keep the leaders they have, besides all their replicas
    offline: int  # partitions left alone because a replica of theirs is on a dead broker
    remarks: tuple[str, ...] = ()  # what a reviewer should know of the request, a sentence each
    may_lead_else: NDArray[np.bool_] | None = None  # where a partition has nobody that may; None if that is no choice
    min_leaders: NDArray[np.int64] | None = None  # by topic: how many partitions each broker that may lead shall lead

    @classmethod
    def of(cls, model: ClusterModel, request: Request, totals: BrokerSums | None = None) -> Scope:
        """Check the names in a request and mark what it allows.

        Args: `totals` are those of the whole cluster, for a model of some partitions alone: topics that are named may
        be among the others.
        """
        known_brokers(model, request)
        drained_log_dirs(model, request)
        chosen_by_name = chosen_topics(model, request, part=totals is not None)
        movable = chosen_by_name[model.topic] if model.partitions else np.zeros(0, np.bool_)
        if busy := np.flatnonzero(movable & model.moving)[:_SHOWN].tolist():
            names = some(map(model.name, busy), int((movable & model.moving).sum()))
            raise InvalidInputError(f"{names} are being reassigned now: wait until that ends, or leave them out")
        about = _flags(model, request.brokers)
        excluded = _flags(model, request.excluded_brokers)
        allowed = (
            _flags(model, request.allowed_brokers) if request.allowed_brokers else np.ones(model.brokers, np.bool_)
        )
        takes = model.alive & allowed & ~excluded & ~cordoned_brokers(model)
        gives = ~excluded
        leaves = np.zeros(model.brokers, np.bool_)
        if request.mode is Mode.DRAIN:
            leaves, takes = about, takes & ~about
        elif request.mode is Mode.EXPAND:
            new = about if about.any() else _held(model, totals) == 0
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
            offline = int((dead & movable).sum()) + (0 if model.rest is None else model.rest.sums.total("offline"))
            movable = movable & ~dead
        may_lead = model.alive & ~leaves & ~excluded
        if request.mode is Mode.DEMOTE:
            may_lead &= ~about
        remarks = (*remarks_on(model, request), *_kept_in_log_dirs(model, request, movable)) if totals is None else ()
        chosen = leader_racks(model, request)
        if chosen is None:
            may_lead_else = None
        else:
            may_lead, may_lead_else = may_lead & chosen, may_lead
        flags = (movable, takes, gives, leaves, may_lead, excluded)
        return cls(*flags, offline, remarks, may_lead_else, min_leaders(model, request))


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
        raise InvalidInputError(f"brokers {both} are both requested and excluded; name each once")
    if dead := sorted(need_alive - alive):
        raise InvalidInputError(f"brokers {dead} are down: replicas can be placed on live brokers only")
    to_fill = need_alive - set(request.allowed_brokers)
    if barred := sorted(to_fill & set(model.broker_ids[cordoned_brokers(model)].tolist())):
        raise InvalidInputError(
            f"brokers {barred} are cordoned, so they are given nothing: remove their cordoned.log.dirs, or name others"
        )


def leader_racks(model: ClusterModel, request: Request) -> NDArray[np.bool_] | None:
    """By broker: whether it is in a rack that leaders are kept in; None if any will do."""
    if not request.leader_racks:
        return None
    if not model.has_racks:
        raise InvalidInputError(
            "leaders cannot be kept in racks: some live brokers have none, so racks do not count; leave the option out"
        )
    if unknown := [rack for rack in request.leader_racks if rack not in model.rack_names]:
        raise InvalidInputError(f"leader rack {unknown[0]!r} is not there: the cluster has {some(model.rack_names)}")
    numbers = [model.rack_names.index(rack) for rack in request.leader_racks]
    chosen: NDArray[np.bool_] = np.isin(model.rack, numbers)
    if not (chosen & model.alive).any():
        raise InvalidInputError(f"leader racks {', '.join(request.leader_racks)} have no live broker: name others")
    return chosen


def min_leaders(model: ClusterModel, request: Request) -> NDArray[np.int64] | None:
    """By topic: how many partitions each broker shall lead at least; None if no topic is chosen for it."""
    if not request.least_leaders:
        return None
    least = np.zeros(len(model.topics), np.int64)
    for pattern, number in request.least_leaders.items():
        least = np.maximum(least, np.where(_matching(model.topics, pattern), number, 0))
    return least


def cordoned_brokers(model: ClusterModel) -> NDArray[np.bool_]:
    """By broker: whether it is given no replicas, because it is cordoned as a whole or in each of its log dirs."""
    dirs, rows = model.log_dirs, model.snapshot.brokers
    owner = np.repeat(np.arange(model.brokers), np.diff(dirs.offsets))
    open_dirs = np.bincount(owner, ~dirs.cordoned, minlength=model.brokers)
    said = rows.filter(rows["cordoned"])["broker"].to_pylist() if "cordoned" in rows.column_names else []
    flags: NDArray[np.bool_] = _flags(model, said) | ((np.diff(dirs.offsets) > 0) & (open_dirs == 0))
    return flags


def drained_log_dirs(model: ClusterModel, request: Request) -> NDArray[np.bool_]:
    """By log dir: whether the request names it; raises, with the entry, for one that cannot be drained."""
    dirs, ids = model.log_dirs, model.broker_ids.tolist()
    flags = np.zeros(len(dirs.paths), np.bool_)
    for entry, (id_, path) in request.named_log_dirs.items():
        if id_ not in ids:
            raise InvalidInputError(f"log dir {entry!r}: the cluster has no broker {id_}, but {some(ids)}")
        b = ids.index(id_)
        if not model.alive[b] or id_ in request.excluded_brokers:
            state = "excluded" if model.alive[b] else "down"
            raise InvalidInputError(f"log dir {entry!r}: broker {id_} is {state}, so nothing moves within it")
        paths = dirs.paths[dirs.offsets[b] : dirs.offsets[b + 1]]
        if path not in paths:
            raise InvalidInputError(
                f"log dir {entry!r} is not there: broker {id_} has {some(paths) or 'no known log dirs'}"
            )
        flags[dirs.offsets[b] + paths.index(path)] = True
    return flags


def chosen_topics(model: ClusterModel, request: Request, *, part: bool = False) -> NDArray[np.bool_]:
    """By topic, whether it may be moved; of a `part` of a cluster, names may match nothing."""
    topics = model.topics
    if not request.topics:
        chosen = ~model.internal | request.include_internal | (request.mode in WHOLE_BROKERS)
    else:
        chosen = np.zeros(len(topics), np.bool_)
        for pattern in request.topics:
            found = _matching(topics, pattern)
            if not found.any() and not part and not _matches_others(model, pattern):
                problem = "check the name; a pattern looks like 'orders-*'"
                raise InvalidInputError(f"no topic is called {pattern!r}: {problem}")
            chosen |= found
    for pattern in request.excluded_topics:
        chosen = chosen & ~_matching(topics, pattern)
    return chosen


def remarks_on(model: ClusterModel, request: Request) -> tuple[str, ...]:
    """What a reviewer should know, a sentence each.

    An exclusion that matches nothing harms nothing, and a standing one may be for topics that come and go. It is the
    same with topics that each broker shall lead some of.
    """
    unused = [
        pattern
        for pattern in request.excluded_topics
        if not _matching(model.topics, pattern).any() and not _matches_others(model, pattern)
    ]
    remarks = [f"No topic matches {pattern!r}, which is to be left alone." for pattern in unused]
    leaderless = [pattern for pattern in request.least_leaders if not _matching(model.topics, pattern).any()]
    remarks += [f"No topic matches {pattern!r}, which each broker is to lead some of." for pattern in leaderless]
    if model.sets is not None:
        remarks += model.sets.remarks(model)
    if request.mode is Mode.DRAIN:
        remarks += _how_to_cordon(model, request)
    if request.mode is Mode.DEMOTE:
        remarks += _led_without_preference(model, request)
    return tuple(remarks)


def _how_to_cordon(model: ClusterModel, request: Request) -> list[str]:
    """A sentence if brokers to be drained may be given new partitions meanwhile, and can be kept from it.

    Brokers before Kafka 4.3 cannot be cordoned: they do not say whether they are.
    """
    rows = model.snapshot.brokers
    if "cordoned" not in rows.column_names:
        return []
    may_be = set(rows.filter(pc.and_(rows["alive"], pc.invert(rows["cordoned"])))["broker"].to_pylist())
    named = [id_ for id_ in request.brokers if id_ in may_be]
    if not named:
        return []
    brokers = f"Broker {named[0]} is" if len(named) == 1 else f"Brokers {', '.join(map(str, named))} are"
    each = "" if len(named) == 1 else ", and the same for each of the others"
    command = f"{_CORDON} {named[0]} --add-config 'cordoned.log.dirs=*'{each}"
    return [
        f"{brokers} not cordoned: new partitions can be created there meanwhile. To prevent that, first run {command}."
    ]


def _led_without_preference(model: ClusterModel, request: Request) -> list[str]:
    """A sentence if demoted brokers lead partitions that another broker is the preferred leader of already."""
    rows = model.snapshot.replicas
    leads = pc.and_(rows["leader"], pc.is_in(rows["broker"], value_set=pa.array(request.brokers, pa.int32())))
    count = rows.filter(pc.and_(leads, pc.greater(rows["position"], 0))).num_rows
    if not count:
        return []
    brokers = ", ".join(map(str, request.brokers))
    led = f"Brokers {brokers} lead {count} partitions now without being their preferred leaders"
    return [f"{led}: no plan changes that, run kafka-leader-election.sh --election-type preferred."]


def _kept_in_log_dirs(model: ClusterModel, request: Request, movable: NDArray[np.bool_]) -> list[str]:
    """A sentence for each log dir that is to be emptied, but holds replicas that may not move."""
    if not request.log_dirs:
        return []
    stay = model.log_dir[~movable[model.slot_partition]]
    held = np.bincount(stay[stay >= 0], minlength=len(model.log_dirs.paths))
    owner = np.repeat(model.broker_ids, np.diff(model.log_dirs.offsets))
    paths = model.log_dirs.paths
    return [
        f"Log dir {paths[at]} of broker {owner[at]} keeps {held[at]} replicas that may not move: it will not be empty."
        for at in np.flatnonzero(drained_log_dirs(model, request) & (held > 0)).tolist()
    ]


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


def matched_patterns(topics: list[str], request: Request) -> frozenset[str]:
    """The names and patterns of a request that match one of these topics."""
    named = {*request.topics, *request.excluded_topics}
    return frozenset(pattern for pattern in named if _matching(topics, pattern).any())


def _matches_others(model: ClusterModel, pattern: str) -> bool:
    """Whether a topic is called so that has no partition in the model."""
    return model.rest is not None and pattern in model.rest.matched


def _held(model: ClusterModel, totals: BrokerSums | None) -> NDArray[np.float64]:
    """By broker: its replicas in the whole cluster."""
    if totals is not None:
        return totals.by_broker("replicas", model.brokers)
    held = np.bincount(model.broker, minlength=model.brokers).astype(np.float64)
    return held if model.rest is None else held + model.rest.sums.by_broker("replicas", model.brokers)


def _flags(model: ClusterModel, ids: Iterable[int]) -> NDArray[np.bool_]:
    return np.isin(model.broker_ids, np.array(sorted(ids), np.int32))
