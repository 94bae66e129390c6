"""Moves that do not advance: notice, and find out why.

A new replica advances when it lacks fewer bytes of its leader than ever before. That it grows says nothing: with a
throttle below what is written to the partition it grows for ever and never arrives. One that has not advanced in so
many checks, the first of them included, has stalled, unless the throttle explains it: Kafka checks a quota before a
fetch, not during it, so a broker that has fetched a megabyte of each partition waits until that is paid back. Why, the
first of these that is true:

    broker down         the receiving broker, or the leader's, is not alive
    not answering       the receiving broker, or the leader's, does not answer: it hangs, or is cut off
    disk                its log dirs on that broker are full or have failed
    throttle            somebody else has lowered it on one of the two brokers; or what is written to the moving
                        partitions of a broker is as much as the throttle lets through
    out of sync         all new replicas are in sync, but one that stays is not, and older controllers wait for it
    unknown             none of these

Example: ``foo-0`` gets 3 MB/s, the throttle is 2 MB/s. The new replica lacks 50, 51 and 52 MB at three checks: it has
stalled, because of the throttle, which would have to be above 3 MB/s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_lib.execution.plan_status import PlanStatus, Status
from rebalance_lib.execution.progress import Copy, Sizes
from rebalance_lib.reassignment.conditions import Conditions
from rebalance_lib.topology import TopicPartition

MARGIN = 1.1  # a throttle this little above what is written never catches up in any useful time
PARTITION_FETCH = Conditions().partition_fetch
QUOTA_WINDOW_SECONDS = 11.0  # quota.window.num samples of a second each, Kafka's default
FULL_BYTES = 64 * 1024 * 1024  # a log dir with less space than this takes no new segment for long


class Cause(StrEnum):
    """Why a move stalls."""

    BROKER_DOWN = "broker down"
    NOT_ANSWERING = "not answering"
    DISK = "disk"
    THROTTLE = "throttle"
    OUT_OF_SYNC = "out of sync"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """A move that has stalled: which, why, in words, and the throttle that it would take if that is why."""

    partition: TopicPartition
    broker: int
    cause: Cause
    words: str
    needed_rate: float | None = None

    def __str__(self) -> str:
        return f"{self.partition} to broker {self.broker}: {self.words}"


class StallWatch:
    """Counts, for each copy under way, the checks since it last came nearer to its leader, and the seconds."""

    def __init__(self, checks: int) -> None:
        self._enough = max(1, checks - 1)  # checks after the one that the others are compared with
        self._least: dict[tuple[TopicPartition, int], int] = {}
        self._least_of: dict[TopicPartition, int] = {}
        self._still: dict[tuple[TopicPartition, int], int] = {}
        self._since: dict[tuple[TopicPartition, int], float] = {}
        self._sizes: dict[TopicPartition, tuple[float, int]] = {}
        self._rates: dict[TopicPartition, float] = {}

    @property
    def write_rates(self) -> dict[TopicPartition, float]:
        """Bytes per second written to the partitions that moved at the last two checks."""
        return dict(self._rates)

    def observe(
        self, copies: Iterable[Copy], at: float, allowed: Mapping[tuple[TopicPartition, int], float] | None = None
    ) -> list[Copy]:
        """Take in a check; returns the copies that have stalled.

        Args:
            copies: the copies that others wait for, see `copying`.
            at: when they were measured, in seconds.
            allowed: for how many seconds each copy may rest because of its throttle, see `allowed_rests`.
        """
        listed = list(copies)
        wholes = {copy.partition: copy.whole for copy in listed}
        self._rates = {}
        for tp, whole in wholes.items():
            if tp in self._sizes and at > self._sizes[tp][0]:
                earlier, size = self._sizes[tp]
                self._rates[tp] = max(0.0, (whole - size) / (at - earlier))
        self._sizes = {tp: (at, whole) for tp, whole in wholes.items()}
        least, still, since = {}, {}, {}
        for copy in listed:
            key = (copy.partition, copy.broker)
            best = self._least.get(key)
            advanced = best is None or copy.remaining < best
            least[key] = copy.remaining if best is None else min(best, copy.remaining)
            still[key] = 0 if advanced else self._still[key] + 1
            since[key] = at if advanced else self._since[key]
        self._least, self._still, self._since = least, still, since
        together: dict[TopicPartition, int] = defaultdict(int)
        for (tp, _), lacking in least.items():
            together[tp] += lacking
        self._least_of = dict(together)
        return [
            copy
            for copy in listed
            if still[copy.partition, copy.broker] >= self._enough
            and at - since[copy.partition, copy.broker] >= (allowed or {}).get((copy.partition, copy.broker), 0.0)
        ]

    def least(self, tp: TopicPartition) -> int:
        """The fewest bytes that the copies of this partition have lacked, together."""
        return self._least_of.get(tp, 0)

    def forgive(self) -> None:
        """Start counting anew, after a remedy."""
        self._still = dict.fromkeys(self._still, 0)


def allowed_rests(
    copies: Iterable[Copy], status: PlanStatus, throttle: int | None
) -> dict[tuple[TopicPartition, int], float]:
    """For how many seconds each copy may rest, because the copies that share its throttle pay back what they fetched.

    Example: ten copies to one broker at 1 MB/s fetch ten megabytes at once, and then nothing for ten seconds; Kafka
    counts over eleven more. With a margin of a half, each may rest for some 32 seconds.
    """
    if throttle is None:
        return {}
    listed = list(copies)
    sharing: dict[tuple[str, int | None], int] = defaultdict(int)
    for copy in listed:
        sharing["in", copy.broker] += 1
        sharing["out", status.live[copy.partition].leader] += 1
    rests = {}
    for copy in listed:
        most = max(sharing["in", copy.broker], sharing["out", status.live[copy.partition].leader])
        rests[copy.partition, copy.broker] = 1.5 * (most * PARTITION_FETCH / throttle + QUOTA_WINDOW_SECONDS)
    return rests


def late_replicas(status: PlanStatus, alive: Collection[int]) -> list[Stall]:
    """Partitions whose reassignment has ended and whose replicas are not all in sync, with the brokers to look at."""
    found = []
    for tp in status.having(Status.MOVING):
        if tp in status.reassignments or tp not in status.live:
            continue
        live = status.live[tp]
        for broker in sorted(set(live.replicas) - live.in_sync):
            down = broker not in alive
            words = (
                f"it is at its target, but broker {broker} is down: start it"
                if down
                else f"it is at its target, but its replica on broker {broker} is not in sync: look at that broker"
            )
            found.append(Stall(tp, broker, Cause.BROKER_DOWN if down else Cause.OUT_OF_SYNC, words))
    return found


def copying(copies: Iterable[Copy], status: PlanStatus) -> list[Copy]:
    """The copies that their moves wait for: of replicas that are being added now, and not in sync yet.

    Where all that are being added are in sync and the move is still listed, it waits for something else: they count.
    """
    waiting = []
    for copy in copies:
        reassignment = status.reassignments.get(copy.partition)
        if reassignment is None or copy.broker not in reassignment.adding:
            continue
        in_sync = status.live[copy.partition].in_sync
        if copy.broker not in in_sync or in_sync.issuperset(reassignment.adding):
            waiting.append(copy)
    return waiting


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at a check, to find out why copies stall; also where somebody else has lowered the throttle."""

    status: PlanStatus
    sizes: Sizes
    alive: Collection[int]
    throttle: int | None
    needed: Mapping[int, float]
    lowered: Mapping[int, int] = field(default_factory=dict)


def diagnose(stalled: Iterable[Copy], evidence: Evidence) -> list[Stall]:
    """Why each of these copies has stalled: the first reason that is true of it."""
    return [next(found for rule in RULES if (found := rule(copy, evidence)) is not None) for copy in stalled]


def needed_rates(
    copies: Iterable[Copy], status: PlanStatus, write_rates: Mapping[TopicPartition, float]
) -> dict[int, float]:
    """What each broker must be let through to keep up with what is written to its partitions, to it or from it."""
    needed: dict[int, float] = defaultdict(float)
    out: dict[int, float] = defaultdict(float)
    for copy in copies:
        rate = write_rates.get(copy.partition, 0.0)
        leader = status.live[copy.partition].leader
        needed[copy.broker] += rate
        if leader is not None:
            out[leader] += rate
    return {broker: max(needed.get(broker, 0.0), out.get(broker, 0.0)) for broker in {*needed, *out}}


def _broker_down(copy: Copy, evidence: Evidence) -> Stall | None:
    live = evidence.status.live[copy.partition]
    if copy.broker not in evidence.alive:
        words = f"broker {copy.broker}, which is to receive it, is down: start it"
    elif live.leader is None:
        dead = sorted(broker for broker in live.replicas if broker not in evidence.alive)
        words = f"it has no leader, brokers {dead} are down: start one of them"
    else:
        return None
    return Stall(copy.partition, copy.broker, Cause.BROKER_DOWN, words)


def _not_answering(copy: Copy, evidence: Evidence) -> Stall | None:
    for broker, part in ((copy.broker, "receives"), (evidence.status.live[copy.partition].leader, "sends")):
        if broker in evidence.sizes.silent:
            words = f"broker {broker}, which {part} it, does not answer: look at it"
            return Stall(copy.partition, copy.broker, Cause.NOT_ANSWERING, words)
    return None


def _disk(copy: Copy, evidence: Evidence) -> Stall | None:
    log_dirs = evidence.sizes.log_dirs.get(copy.broker, [])
    for log_dir in log_dirs:
        holds = any(held.partition == copy.partition for held in log_dir.replicas)
        if holds and log_dir.usable_bytes is not None and log_dir.usable_bytes < min(copy.remaining, FULL_BYTES):
            words = (
                f"log dir {log_dir.path} of broker {copy.broker} has {log_dir.usable_bytes} bytes left, the copy lacks "
                f"{copy.remaining}: free some there, or cancel"
            )
            return Stall(copy.partition, copy.broker, Cause.DISK, words)
    failed = [log_dir.path for log_dir in log_dirs if not log_dir.online]
    if failed and copy.copied == 0:
        words = f"log dirs {failed} of broker {copy.broker} have failed: repair them, or plan again"
        return Stall(copy.partition, copy.broker, Cause.DISK, words)
    return None


def _throttled(copy: Copy, evidence: Evidence) -> Stall | None:
    leader = evidence.status.live[copy.partition].leader
    rate = max(evidence.needed.get(broker, 0.0) for broker in (copy.broker, leader) if broker is not None)
    if evidence.throttle is None or rate * MARGIN < evidence.throttle:
        return None
    words = f"{rate:.0f} bytes/s are written, the throttle lets {evidence.throttle} through: it must be higher"
    return Stall(copy.partition, copy.broker, Cause.THROTTLE, words, rate)


def _lowered(copy: Copy, evidence: Evidence) -> Stall | None:
    for broker in (copy.broker, evidence.status.live[copy.partition].leader):
        if broker is not None and broker in evidence.lowered:
            rate = evidence.lowered[broker]
            words = f"somebody else has set the throttle of broker {broker} to {rate} bytes/s, the run's is higher"
            return Stall(copy.partition, copy.broker, Cause.THROTTLE, words, float(rate))
    return None


def _out_of_sync(copy: Copy, evidence: Evidence) -> Stall | None:
    reassignment = evidence.status.reassignments.get(copy.partition)
    in_sync = evidence.status.live[copy.partition].in_sync
    if reassignment is None or not in_sync.issuperset(reassignment.adding):
        return None
    late = sorted(set(reassignment.target) - in_sync)
    if not late:
        return None
    words = f"its replicas on brokers {late}, which do not move, are not in sync: look at these brokers"
    return Stall(copy.partition, copy.broker, Cause.OUT_OF_SYNC, words)


def _unknown(copy: Copy, evidence: Evidence) -> Stall | None:
    leader = evidence.status.live[copy.partition].leader
    words = f"no reason found; it may be slow: look at broker {copy.broker}, and at {leader}, which sends"
    return Stall(copy.partition, copy.broker, Cause.UNKNOWN, words)


RULES = (_broker_down, _not_answering, _disk, _lowered, _throttled, _out_of_sync, _unknown)
