"""A request to the planner: a mode, whom and what it is about, and limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.planner.resources import Resource

RATE_FACTOR = 3  # times the tolerance: rates are estimates, and a finer band would be noise
OF_TOLERANCE = {
    "disk": 1,
    "network_in": RATE_FACTOR,
    "replicas": 1,
    "leaders": 1,
    "network_out": RATE_FACTOR,
    "cpu": RATE_FACTOR,
}
"""The goals of resources in the order that they have by default, and their tolerances in those of the request."""
OWN_TOLERANCE = {"topic_leaders": 1.0, "failover": 0.15, "topic_replicas": 1.0, "log_dirs": 0.1}
"""The other goals, and their tolerances: whole leaders of small topics, and single busy partitions, are coarse; that of
log dirs is Cruise Control's default for disks (``disk.balance.threshold``), and in mode disks that of the request.
"""
HARD_GOALS = ("racks", "capacity", "broker_sets", "min_topic_leaders")
DEFAULT_GOALS = (*OF_TOLERANCE, "topic_leaders", "failover", "log_dirs")


class Mode(StrEnum):
    """The kinds of plans."""

    BALANCE = "balance"
    EXPAND = "expand"
    DRAIN = "drain"
    REPLACE = "replace"
    REPAIR = "repair"
    LEADERS = "leaders"
    DISKS = "disks"
    TOPICS = "topics"
    REPLICATION_FACTOR = "replication-factor"
    PARTITIONS = "partitions"
    LIGHT = "light"
    KAFKA = "kafka"
    DEMOTE = "demote"
    DRAIN_LOG_DIRS = "drain-log-dirs"

    @property
    def explained(self) -> str:
        """The mode in a few words."""
        return _EXPLAINED[self]


_EXPLAINED = {
    Mode.BALANCE: "even out disk, replicas and leaders over all brokers",
    Mode.EXPAND: "fill new brokers; nothing moves between the others",
    Mode.DRAIN: "empty the given brokers; nothing else moves",
    Mode.REPLACE: "put one broker in another's place",
    Mode.REPAIR: "replace replicas on dead brokers, spread racks, restore replication factors",
    Mode.LEADERS: "even out leaders by the order of replicas; no data moves",
    Mode.DISKS: "even out the log dirs within each broker",
    Mode.TOPICS: "balance by moving the chosen topics alone",
    Mode.REPLICATION_FACTOR: "give the chosen topics another replication factor",
    Mode.PARTITIONS: "place new partitions of the chosen topics",
    Mode.LIGHT: "only relieve brokers above a fill level",
    Mode.KAFKA: "stripe the chosen topics as Kafka's own tool does",
    Mode.DEMOTE: "take leadership from the given brokers; no data moves; mode leaders evens leaders out again",
    Mode.DRAIN_LOG_DIRS: "empty the given log dirs onto the others of the same broker",
}
EMPTYING = frozenset({Mode.DRAIN, Mode.REPLACE})
NEEDS_TOPICS = frozenset({Mode.TOPICS, Mode.REPLICATION_FACTOR, Mode.PARTITIONS})
NEEDS_BROKERS = EMPTYING | {Mode.DEMOTE}
WHOLE_BROKERS = frozenset({Mode.DRAIN, Mode.REPLACE, Mode.REPAIR, Mode.DEMOTE, Mode.DRAIN_LOG_DIRS})
"""Modes that internal topics are part of: a broker or a log dir that holds or leads some is not ready to be stopped."""
PLACING = frozenset({Mode.REPLACE, Mode.KAFKA})
"""Modes that say themselves where each replica goes, whatever networks can take."""
BALANCING = frozenset({Mode.BALANCE, Mode.EXPAND, Mode.TOPICS})


@dataclass(frozen=True, slots=True)
class Request:
    """One ask; what is left out has a default that suits most clusters.

    Args:
        mode: what kind of plan.
        brokers: those the mode is about: the new ones to fill, the ones to drain, to replace, to relieve or to demote.
        log_dirs: for ``drain-log-dirs``, those to empty, each as ``BROKER:PATH``.
        replacements: for ``replace``, the brokers that take their places, in the same order.
        allowed_brokers: those that may be given replicas; all live ones if empty.
        excluded_brokers: those that neither give nor take, replicas or leaders.
        topics: names or patterns (``orders-*``) of those that may be moved; if empty, all but internal ones, and in
            ``drain``, ``replace``, ``repair``, ``demote`` and ``drain-log-dirs`` these too.
        excluded_topics: names or patterns of those left alone.
        include_internal: move internal topics too.
        tolerance: how far from its share a broker may be before anything moves, as a part of the share.
        byte_budget: bytes that may be copied at most.
        move_budget: replicas that may be copied at most.
        max_fill: no log dir is filled beyond this part of its capacity.
        fill_level: for ``light``, the part of its capacity above which a broker is relieved.
        replication_factor: for ``replication-factor``; for ``repair``, the least that each partition shall have.
        partitions: for ``partitions``, how many each chosen topic shall have altogether.
        balance: for ``drain``, even out the others too.
        leader_racks: racks that leaders are kept in, as far as a partition has a replica in sync there; all if empty.
        min_topic_leaders: how many partitions of some topics each broker leads at least, each as ``PATTERN=NUMBER``;
            the greatest number counts where several match.
        goals: what to aim at, the first one counting the most, each perhaps with a tolerance (``disk=0.02``); all that
            are known if empty.
        polish: for ``balance``, ``expand`` and ``topics``, seconds to improve the plan of a large cluster in.
        seed: where the choice between equals starts; the same seed gives the same plan.
        shards: into how many parts a cluster is cut for planning; 0 for as many as it is large.
    """

    mode: Mode
    brokers: tuple[int, ...] = ()
    log_dirs: tuple[str, ...] = ()
    replacements: tuple[int, ...] = ()
    allowed_brokers: tuple[int, ...] = ()
    excluded_brokers: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    excluded_topics: tuple[str, ...] = ()
    include_internal: bool = False
    tolerance: float = 0.01
    byte_budget: int | None = None
    move_budget: int | None = None
    max_fill: float = 0.9
    fill_level: float | None = None
    replication_factor: int | None = None
    partitions: int | None = None
    balance: bool = False
    leader_racks: tuple[str, ...] = ()
    min_topic_leaders: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    polish: float = 0.0
    seed: int = 0
    shards: int = 0

    @property
    def limited(self) -> bool:
        """Whether there is a budget."""
        return self.byte_budget is not None or self.move_budget is not None

    @property
    def goal_tolerances(self) -> dict[str, float]:
        """The tolerance of each goal, in the order of the list."""
        defaults = {name: factor * self.tolerance for name, factor in OF_TOLERANCE.items()} | OWN_TOLERANCE
        # A mode that is about some brokers or topics reorders no lists of others for the sake of what may fail.
        default = DEFAULT_GOALS if self.mode in {*BALANCING, Mode.LEADERS} or self.balance else tuple(OF_TOLERANCE)
        if self.mode is Mode.DISKS:
            default, defaults["log_dirs"] = (*default, "log_dirs"), self.tolerance
        listed = (entry.partition("=") for entry in self.goals or default)
        return {name: float(given) if given else defaults[name] for name, _, given in listed}

    def tolerance_of(self, resource: Resource) -> float:
        """How far from its share of a resource a broker may be."""
        return self.goal_tolerances.get(resource, OF_TOLERANCE[resource] * self.tolerance)

    def goals_up_to(self, last: str) -> tuple[str, ...]:
        """The list of goals without those after this one."""
        names = list(self.goal_tolerances)
        return tuple(f"{name}={self.goal_tolerances[name]!r}" for name in names[: names.index(last) + 1])

    def weight_of(self, goal: str) -> float:
        """How much a goal counts: twice as much as the next one, and not at all if it is not in the list."""
        names = list(self.goal_tolerances)
        return 2.0 ** -names.index(goal) if goal in names else 0.0

    @property
    def named_log_dirs(self) -> dict[str, tuple[int, str]]:
        """By entry of `log_dirs`: the broker and the path that it names; raises for what is no such entry."""
        found: dict[str, tuple[int, str]] = {}
        for entry in self.log_dirs:
            parts = _LOG_DIR.fullmatch(entry)
            if parts is None or int(parts[1]) > _MOST_ID:
                raise InvalidInputError(f"log dir {entry!r} is not BROKER:PATH, such as 1:/disk2")
            if entry in found:
                raise InvalidInputError(f"log dir {entry!r} is named twice; name each once")
            found[entry] = int(parts[1]), parts[2]
        return found

    @property
    def least_leaders(self) -> dict[str, int]:
        """By name or pattern of `min_topic_leaders`: how many; raises for what is no such entry."""
        found: dict[str, int] = {}
        for entry in self.min_topic_leaders:
            parts = _LEAST_LEADERS.fullmatch(entry)
            if parts is None:
                raise InvalidInputError(
                    f"min topic leaders {entry!r} is not PATTERN=NUMBER with 1 to 999999, such as metrics-*=1"
                )
            if parts[1] in found:
                raise InvalidInputError(f"min topic leaders name {parts[1]!r} twice; name each once")
            found[parts[1]] = int(parts[2])
        return found

    def less(self, copied: int, moved: int) -> Request:
        """The same with what is left of the budgets once so many bytes and replicas are copied."""
        budgets = zip((self.byte_budget, self.move_budget), (copied, moved), strict=True)
        bytes_left, moves_left = (None if budget is None else max(0, budget - used) for budget, used in budgets)
        return replace(self, byte_budget=bytes_left, move_budget=moves_left)

    def without_budgets(self) -> Request:
        """The same, whatever it costs."""
        return replace(self, byte_budget=None, move_budget=None)

    def __post_init__(self) -> None:
        self._check_goals()
        self._check_limits()
        self._check_brokers()
        self._check_what_the_mode_needs()

    def _check_goals(self) -> None:
        names = [entry.partition("=")[0] for entry in self.goals]
        if unknown := [name for name in names if name not in OF_TOLERANCE and name not in OWN_TOLERANCE]:
            known = ", ".join((*OF_TOLERANCE, *OWN_TOLERANCE))
            if unknown[0] in HARD_GOALS:
                raise InvalidInputError(f"{unknown[0]} is a hard goal, which every plan keeps: leave it out of goals")
            raise InvalidInputError(f"there is no goal {unknown[0]!r}: use some of {known}")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInputError(f"goals name {twice[0]} twice; name each once")
        for entry in self.goals:
            _, given, tolerance = entry.partition("=")
            if given and not (re.fullmatch(r"[0-9.]+(e-?[0-9]+)?", tolerance, re.ASCII) and _is_tolerance(tolerance)):
                raise InvalidInputError(
                    f"goal {entry!r}: give a tolerance of 0 to {_MOST_TOLERANCE}, such as disk=0.02"
                )

    def _check_limits(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise InvalidInputError(f"tolerance is {self.tolerance}; give a part of a broker's share, such as 0.01")
        if not 0 < self.max_fill <= 1:
            raise InvalidInputError(f"max fill is {self.max_fill}; give a part of the capacity, such as 0.9")
        for name, least, most in _LIMITS:
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise InvalidInputError(f"{name.replace('_', ' ')} is {value}; give {least} to {most}")

    def _check_brokers(self) -> None:
        for name in ("brokers", "replacements", "allowed_brokers", "excluded_brokers"):
            if wrong := [one for one in getattr(self, name) if not 0 <= one <= _MOST_ID]:
                raise InvalidInputError(f"{name} has {wrong}; ids of brokers are 0 to {_MOST_ID}")
        if both := sorted({*self.brokers} & {*self.replacements}):
            raise InvalidInputError(f"brokers {both} are to be replaced and to replace; name each once")
        if both := sorted({*self.allowed_brokers} & {*self.excluded_brokers}):
            raise InvalidInputError(f"brokers {both} are allowed and excluded: leave them out of one of the two")
        if self.mode is Mode.DRAIN and self.allowed_brokers and {*self.allowed_brokers} <= {*self.brokers}:
            raise InvalidInputError(
                f"brokers {sorted(self.allowed_brokers)} are to be drained, and no others are allowed: allow some"
            )

    def _check_what_the_mode_needs(self) -> None:
        if self.mode is Mode.LIGHT and (self.fill_level is None or not 0 < self.fill_level <= 1):
            raise InvalidInputError("mode light needs a fill level, such as 0.8: brokers above it are relieved")
        if self.mode is Mode.DRAIN_LOG_DIRS and not self.named_log_dirs:
            raise InvalidInputError(f"mode {self.mode} needs log dirs: name those to empty, such as 1:/disk2")
        if self.mode in NEEDS_BROKERS and not self.brokers:
            raise InvalidInputError(f"mode {self.mode} needs brokers: name those to {self.mode}")
        if self.mode is Mode.REPLACE and len(self.replacements) != len(self.brokers):
            raise InvalidInputError(
                f"mode replace needs one replacement for each broker: {len(self.brokers)} brokers, "
                f"{len(self.replacements)} replacements"
            )
        if self.least_leaders and self.mode is Mode.DRAIN and not self.balance:
            raise InvalidInputError("mode drain has a use for min_topic_leaders only with balance; leave one out")
        if self.mode in NEEDS_TOPICS and not self.topics:
            raise InvalidInputError(f"mode {self.mode} needs topics: give names or patterns such as 'orders-*'")
        if self.mode is Mode.REPLICATION_FACTOR and self.replication_factor is None:
            raise InvalidInputError("mode replication-factor needs the factor to reach")
        if self.mode is Mode.PARTITIONS and self.partitions is None:
            raise InvalidInputError("mode partitions needs how many partitions each topic shall have")

    def as_dict(self) -> dict[str, Any]:
        """The mode, and all fields that are not as they are by default; JSON can hold it."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Request:
        """Read back what `as_dict` gave, or what a program wrote in its place; raises for what is no request."""
        known = {one.name: str(one.type) for one in fields(cls)}
        if unknown := sorted(set(given) - set(known)):
            raise InvalidInputError(f"a request has no field {unknown[0]!r}: use some of {', '.join(known)}")
        if given.get("mode") not in list(Mode):
            modes = ", ".join(Mode)
            raise InvalidInputError(f"the mode of a request is {given.get('mode')!r}: give one of {modes}")
        values = {
            name: _READERS[name if name in _READERS else known[name]](name, value) for name, value in given.items()
        }
        for name, meant in ONLY_FOR.items():
            if values.get(name) and given["mode"] not in meant:
                use = "; allowed_brokers and excluded_brokers say who takes part" if name == "brokers" else ""
                raise InvalidInputError(f"mode {given['mode']} has no use for {name}, only {', '.join(meant)}{use}")
        return cls(**values)


ONLY_FOR: Mapping[str, tuple[Mode, ...]] = {
    "brokers": (Mode.EXPAND, Mode.DRAIN, Mode.REPLACE, Mode.DISKS, Mode.LIGHT, Mode.DEMOTE),
    "log_dirs": (Mode.DRAIN_LOG_DIRS,),
    "replacements": (Mode.REPLACE,),
    "fill_level": (Mode.LIGHT,),
    "partitions": (Mode.PARTITIONS,),
    "replication_factor": (Mode.REPLICATION_FACTOR, Mode.REPAIR),
    "balance": (Mode.DRAIN,),
    "leader_racks": tuple(
        mode for mode in Mode if mode not in {Mode.REPLACE, Mode.DISKS, Mode.KAFKA, Mode.DRAIN_LOG_DIRS}
    ),
    "min_topic_leaders": (Mode.BALANCE, Mode.EXPAND, Mode.TOPICS, Mode.LEADERS, Mode.DRAIN),
    "polish": (Mode.BALANCE, Mode.EXPAND, Mode.TOPICS),
}
_MOST_ID = 2**31 - 1
_MOST_TOLERANCE = 10
_LOG_DIR = re.compile(r"(0|[1-9][0-9]{0,9}):(/.*\S|/)")
_LEAST_LEADERS = re.compile(r"([^=\s]+)=([1-9][0-9]{0,5})", re.ASCII)
_LIMITS = (
    ("byte_budget", 0, 2**62),
    ("move_budget", 0, 2**62),
    ("replication_factor", 1, 2**15 - 1),  # a replica's position is a short number in snapshots
    ("partitions", 1, 10_000_000),
    ("polish", 0, 86_400),
    ("seed", 0, 2**63 - 1),
    ("shards", 0, 10_000),
)


def _is_tolerance(text: str) -> bool:
    try:
        return 0 <= float(text) <= _MOST_TOLERANCE
    except ValueError:
        return False


def _refuse(name: str, value: object, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"{name} of a request is {value!r}: give {wanted}")


def _whole(name: str, value: object) -> int:
    if type(value) is not int:
        raise _refuse(name, value, "a whole number")
    return value


def _number(name: str, value: object) -> float:
    if type(value) not in {int, float}:
        raise _refuse(name, value, "a number")
    return float(value)  # type: ignore[arg-type]


def _flag(name: str, value: object) -> bool:
    if type(value) is not bool:
        raise _refuse(name, value, "true or false")
    return value


def _ids(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or any(type(one) is not int for one in value):
        raise _refuse(name, value, "a list of broker ids")
    return tuple(value)


def _texts(wanted: str, *, empty: bool = True) -> Callable[[str, object], tuple[str, ...]]:
    """A reader of lists of texts; none of them may be empty unless that is allowed."""

    def read(name: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or any(type(one) is not str or not (one or empty) for one in value):
            raise _refuse(name, value, wanted)
        return tuple(value)

    return read


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "leader_racks": _texts("a list of racks", empty=False),
    "log_dirs": _texts("a list of BROKER:PATH"),
    "min_topic_leaders": _texts("a list of PATTERN=NUMBER"),
    "Mode": lambda _, value: Mode(value),
    "tuple[int, ...]": _ids,
    "tuple[str, ...]": _texts("a list of names or patterns"),
    "bool": _flag,
    "float": _number,
    "float | None": lambda name, value: None if value is None else _number(name, value),
    "int": _whole,
    "int | None": lambda name, value: None if value is None else _whole(name, value),
}
