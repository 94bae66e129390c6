"""Maintain the throttle of a run: for what is under way, and for nothing else.

A move is throttled before it begins: its brokers get the rate, then its entries go into the lists of its topic. When it
has ended its entries leave, since Kafka would throttle any follower that is listed, also one that catches up after a
restart. Rates stay on the brokers until the run ends.

    before moves begin   `prepare`: rates on brokers that have none of ours, and what is new in the lists; rates that
                         were not read for some seconds are read again
    at every check       `maintain`: what others removed is set again, what ended leaves, a new rate is set

A move whose leader or receiver does not take the rate does not begin, and is not listed. Where somebody else set
another rate than ours, theirs stays and is reported. A rate that is raised because moves stall goes back when none does
any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from rebalance_lib.cluster import Cluster, ConfigValue, Entries
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.messages import Log
from rebalance_lib.execution.metadata_lag import LAG_SECONDS
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.throttles.apply import Lists, entries_of, note_entries
from rebalance_lib.execution.throttles.config import (
    ALL_RATES,
    ALL_REPLICAS,
    LOG_DIR_RATE,
    RATES,
    REPLICA_LISTS,
    UNREADABLE,
    alter_lists,
    check_rate,
    entries,
    fresh_configs,
    replica_lists,
)
from rebalance_lib.execution.throttles.saved import SavedThrottles, open_saved
from rebalance_lib.topology import TopicPartition

FOREIGN = "foreign"  # in place of a rate: somebody else's is there, and stays
READ_AGAIN_SECONDS = 10.0  # after which rates are read again before moves begin: a check takes longer if brokers hang


@dataclass(frozen=True, slots=True)
class ThrottledMove:
    """A move, or a stage of one: its leader, the replicas that may send, those that are added."""

    partition: TopicPartition
    leader: int | None
    senders: tuple[int, ...]
    receivers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second between brokers, and between the log dirs of a broker; None for no throttle."""

    between_brokers: int | None
    between_log_dirs: int | None

    def by_key(self) -> dict[str, int]:
        """The same by configuration."""
        between = {} if self.between_brokers is None else dict.fromkeys(RATES, self.between_brokers)
        return between if self.between_log_dirs is None else {**between, LOG_DIR_RATE: self.between_log_dirs}


@dataclass(frozen=True, slots=True)
class NotSet:
    """Where a throttle could not be set, and why: brokers without a rate, topics without their throttled replicas."""

    brokers: Mapping[int, str]
    topics: Mapping[str, str]


class ThrottleMaintainer:
    """Maintains the throttle of one run.

    ``foreign`` are the brokers where somebody else set another rate than ours, ``silent`` those that did not answer.
    """

    def __init__(self, cluster: Cluster, job: Job, journal: Journal, log: Log) -> None:
        self._cluster = cluster
        self._job = job
        self._journal = journal
        self._log = log
        self._known: SavedThrottles | None = None
        self._confirmed: dict[tuple[int, str], str] = {}  # rates that brokers took, or that are somebody else's
        self._read_at = float("-inf")  # when brokers were last asked for their rates
        self._listed_at: float | None = None  # when entries were last added to lists
        self._refusing: set[str] = set()  # topics that are known not to take a change, while moves are under way
        self.foreign: dict[int, int] = {}
        self.silent: frozenset[int] = frozenset()

    @property
    def _saved(self) -> SavedThrottles:
        """What is saved, read once: whoever executes a plan is the only one who writes it."""
        if self._known is None:
            self._known = open_saved(self._job.artifacts, self._job.cluster_id, self._log)
        return self._known

    def prepare(
        self, moves: Collection[ThrottledMove], within: Collection[int], rates: Rates, alive: Collection[int]
    ) -> dict[TopicPartition | int | str, str]:
        """Throttle moves that are about to begin, and copies between the log dirs of the brokers ``within``.

        Returns:
            Why some could not be throttled, by partition, by broker for copies within it, or by topic where that does
            not let its throttled replicas be listed; these must not begin.
        """
        copying = [move for move in moves if move.receivers and rates.between_brokers is not None]
        if rates.by_key() and self._cluster.clock.monotonic() - self._read_at > READ_AGAIN_SECONDS:
            self._maintain_rates(rates, alive)
        new = self._lacking(copying, within, rates, alive)
        without_rate = self._set({}, new, rates).brokers if new else {}
        unthrottled: dict[TopicPartition | int | str, str] = {
            broker: without_rate[broker] for broker in within if broker in without_rate
        }
        for move in copying:
            for one in (move.leader, *move.receivers):
                if one is not None and one in without_rate:
                    reason = without_rate[one]
                    unthrottled[move.partition] = f"the throttle of broker {one} could not be set: {reason}"
        # What does not begin is not listed: the next check would remove its entries, and the try after it add them.
        listed = [move for move in copying if move.partition not in unthrottled]
        refused = self._set(_lists(listed), {}, rates).topics if listed else {}
        for topic, reason in refused.items():
            unthrottled[topic] = f"the throttle of topic {topic} could not be set: {reason}"
        done = sorted(new.keys() - without_rate.keys())
        if listed or done:
            self._journal.note(
                events.THROTTLE_SET,
                rate=rates.between_brokers,
                log_dir_rate=rates.between_log_dirs,
                brokers=done,
                partitions=sum(move.partition.topic not in refused for move in listed),
            )
        return unthrottled

    def _lacking(
        self, copying: Collection[ThrottledMove], within: Collection[int], rates: Rates, alive: Collection[int]
    ) -> dict[int, set[str]]:
        """The rates that brokers which take part and live are not known to have."""
        wanted: dict[int, set[str]] = defaultdict(set)
        for move in copying:
            for broker in (*move.senders, *move.receivers):
                wanted[broker] |= set(RATES)
        if rates.between_log_dirs is not None:
            for broker in within:
                wanted[broker].add(LOG_DIR_RATE)
        lacking = {
            broker: {key for key in keys if self._lacks(broker, key, rates)}
            for broker, keys in wanted.items()
            if broker in alive
        }
        return {broker: keys for broker, keys in lacking.items() if keys}

    def _set(self, lists: Lists, new: Mapping[int, Collection[str]], rates: Rates) -> NotSet:
        """Save what is there, then add entries to lists and set rates; returns what did not take them."""
        by_key = rates.by_key()
        current_lists = replica_lists(self._cluster, lists) if lists else {}
        topics = {topic: UNREADABLE for topic in lists if topic not in current_lists}
        lists = {topic: wanted for topic, wanted in lists.items() if topic in current_lists}
        ours = self._saved.entries() if lists else {}
        change = note_entries(self._saved, current_lists, lists)
        before = fresh_configs(self._cluster, sorted(new), ALL_RATES) if new else {}
        changes: dict[int, dict[str, str]] = {}
        for broker, current in before.items():
            for key in sorted(new[broker]):
                if self._is_foreign(broker, key, current):
                    continue
                self._saved.note_rates(broker, current, (key,), by_key[key])
                changes.setdefault(broker, {})[key] = str(by_key[key])
        if change or before:
            self._saved.write()
        if change:
            topics |= self._alter_lists(change, ours)
            self._listed_at = self._cluster.clock.monotonic()
        failed = {broker: "it does not answer" for broker in sorted(new) if broker not in before}
        return NotSet(failed | self._alter(changes), topics)

    def _alter_lists(
        self, change: Mapping[str, Mapping[str, Entries]], ours: Mapping[str, Mapping[str, set[str]]]
    ) -> dict[str, str]:
        """Add entries to lists, once they are saved; returns the topics that did not take them.

        What such a topic had of ``ours`` before is still there; what it did not take need not be removed.
        """
        refused = alter_lists(self._cluster, change)
        if refused:
            self._saved.forget_entries(
                {
                    topic: {
                        key: set(added.values) - ours.get(topic, {}).get(key, set())
                        for key, added in change[topic].items()
                    }
                    for topic in refused
                }
            )
        return refused

    def _alter(self, changes: Mapping[int, Mapping[str, str]]) -> dict[int, str]:
        """Set rates, once they are saved; returns the brokers that did not take them."""
        failed = self._cluster.alter_broker_configs(changes) if changes else {}
        for broker, keys in changes.items():
            for key, value in keys.items():
                self._confirmed[broker, key] = "" if broker in failed else value
        return failed

    def _lacks(self, broker: int, key: str, rates: Rates) -> bool:
        """Whether a broker is not known to have the rate that is wanted, or one of somebody else's."""
        return self._confirmed.get((broker, key)) not in (str(rates.by_key()[key]), FOREIGN)

    def _is_foreign(self, broker: int, key: str, current: Mapping[str, ConfigValue]) -> bool:
        """Whether somebody else set this rate since the run began: neither ours nor the one before is there."""
        noted = self._saved.brokers.get(broker, {}).get(key)
        if noted is None or key not in current or not current[key].dynamic:
            return False
        value = current[key].value
        if value in (*noted["set"], noted["value"]):
            return False
        self._confirmed[broker, key] = FOREIGN
        if key in RATES:
            self.foreign[broker] = min(int(value), self.foreign.get(broker, int(value)))
        return True

    def set_rates(self, rates: Rates, between: Collection[int], within: Collection[int]) -> list[int]:
        """Set the rates on these brokers, and that between log dirs on those ``within``; returns those that took them.

        A broker that hangs sends and receives nothing: no move of its own begins before it has taken its rate.
        """
        wanted: dict[int, set[str]] = defaultdict(set)
        if rates.between_brokers is not None:
            check_rate(rates.between_brokers)
            for broker in between:
                wanted[broker] |= set(RATES)
        if rates.between_log_dirs is not None:
            check_rate(rates.between_log_dirs)
            for broker in within:
                wanted[broker].add(LOG_DIR_RATE)
        if not wanted:
            return []
        failed = self._set({}, wanted, rates)
        brokers = sorted(wanted.keys() - failed.brokers.keys())
        for broker, reason in sorted(failed.brokers.items()):
            self._log(f"the throttle of broker {broker} is not set yet: {reason}")
        self._journal.note(
            events.THROTTLE_SET, rate=rates.between_brokers, log_dir_rate=rates.between_log_dirs, brokers=brokers
        )
        return brokers

    def maintain(
        self, moves: Collection[ThrottledMove], within: Collection[int], rates: Rates, alive: Collection[int]
    ) -> None:
        """Make the throttle that is wanted now the one that is set, for the moves under way and no others."""
        if rates.between_brokers is None and rates.between_log_dirs is None and self._saved.empty:
            return
        copying = [move for move in moves if move.receivers and rates.between_brokers is not None]
        self._maintain_lists(copying)
        self._maintain_rates(rates, alive)
        if new := self._lacking(copying, within, rates, alive):  # of brokers that were down, or do not answer
            failed = self._set({}, new, rates)
            if done := sorted(new.keys() - failed.brokers.keys()):
                self._log(f"the throttle is set on brokers {done} too, which had none")
                self._journal.note(events.THROTTLE_SET, rate=rates.between_brokers, brokers=done)

    def _maintain_lists(self, copying: Collection[ThrottledMove]) -> None:
        """Entries of moves under way are in their lists, those of moves that have ended are not."""
        wanted, ours = _lists(copying), self._saved.entries()
        topics = {*wanted, *(topic for topic, lists in ours.items() if any(lists.values()))}
        current = replica_lists(self._cluster, sorted(topics)) if topics else {}
        lacking: Lists = {}
        ended: dict[str, dict[str, Entries]] = {}
        for topic in sorted(current):
            for key in REPLICA_LISTS:
                needed, there = wanted.get(topic, {}).get(key, []), current[topic].get(key)
                if there == ALL_REPLICAS:
                    continue
                if not set(needed) <= set(entries(there)):
                    lacking.setdefault(topic, {})[key] = needed
                if over := sorted(ours.get(topic, {}).get(key, set()) - set(needed)):
                    ended.setdefault(topic, {})[key] = Entries(tuple(over), out=True)
        if lacking:
            self._list_again(lacking)
        if ended:
            refused = alter_lists(self._cluster, ended)
            self._report_refused(refused, "entries of moves that have ended stay in its lists of throttled replicas")
            done = {
                topic: {key: change.values for key, change in lists.items()}
                for topic, lists in ended.items()
                if topic not in refused
            }
            if done:
                self._saved.forget_entries(done)

    def _list_again(self, lacking: Lists) -> None:
        """Add entries that their lists lack: somebody removed them, or the brokers do not show them yet."""
        listed_at, now = self._listed_at, self._cluster.clock.monotonic()
        refused = self._set(lacking, {}, Rates(None, None)).topics
        self._report_refused(refused, "moves of it that are under way are not throttled")
        done = sorted(lacking.keys() - refused.keys())
        if done and listed_at is not None and now - listed_at > LAG_SECONDS:
            self._log(f"somebody removed throttled replicas of {', '.join(done)}: they are set again")
            self._journal.note(events.THROTTLE_CHANGED, topics=done, reason="removed by somebody else")

    def _report_refused(self, refused: Mapping[str, str], effect: str) -> None:
        """Log topics that do not take a change, each once; the next checks try again."""
        for topic in sorted(refused.keys() - self._refusing):
            self._log(f"the throttle of topic {topic} could not be changed, so that {effect}: {refused[topic]}")
            self._journal.note("throttle not changed", topics=[topic], reason=refused[topic])
        self._refusing |= refused.keys()

    def _maintain_rates(self, rates: Rates, alive: Collection[int]) -> None:
        """Our brokers have the rate that is wanted now, but for those where somebody else set another one."""
        self.foreign, self.silent = {}, frozenset()
        self._read_at = self._cluster.clock.monotonic()
        by_key = rates.by_key()
        ours = {broker: noted for broker, noted in self._saved.brokers.items() if broker in alive}
        if not ours or not by_key:
            return
        found = fresh_configs(self._cluster, sorted(ours), sorted(by_key))
        self.silent = frozenset(ours.keys() - found.keys())
        for broker in self.silent:  # somebody may have deleted its rate: no move begins before it has taken it again
            for key in by_key:
                self._confirmed.pop((broker, key), None)
        changes: dict[int, dict[str, str]] = {}
        for broker in sorted(found):
            for key in sorted(ours[broker].keys() & by_key.keys()):
                value = found[broker].get(key)
                if value is not None and value.dynamic and value.value == str(by_key[key]):
                    self._confirmed[broker, key] = value.value
                elif not self._is_foreign(broker, key, found[broker]):
                    changes.setdefault(broker, {})[key] = str(by_key[key])
        self._change(changes, rates)

    def _change(self, changes: Mapping[int, Mapping[str, str]], rates: Rates) -> None:
        if not changes:
            return
        for broker, keys in changes.items():
            for key, value in keys.items():
                self._saved.note_rates(broker, {}, (key,), int(value))
        self._saved.write()
        failed = self._alter(changes)
        if done := sorted(changes.keys() - failed.keys()):
            text = ", ".join(f"{rate} bytes/s" for rate in sorted(set(rates.by_key().values())))
            self._log(f"throttle set to {text} on brokers {done}")
            self._journal.note(events.THROTTLE_CHANGED, rate=rates.between_brokers, brokers=done)

    def overrule(self, rates: Rates) -> dict[int, int]:
        """Set our rate again where somebody else had set a lower one; returns these, with the rates they had."""
        ours = rates.between_brokers
        lowered = {broker: rate for broker, rate in self.foreign.items() if ours is not None and rate < ours}
        self._change({broker: dict.fromkeys(RATES, str(ours)) for broker in lowered}, rates)
        return lowered


def _lists(moves: Iterable[ThrottledMove]) -> Lists:
    lists: Lists = {}
    for move in moves:
        for key, items in entries_of(move.partition, move.senders, move.receivers).items():
            lists.setdefault(move.partition.topic, {}).setdefault(key, []).extend(items)
    return lists
