"""How long moves run without their throttle, and how long entries stay in lists after their moves: two invariants.

Others delete throttles, brokers come back without, leaders change: the executor puts the throttle back at its next
check. So seconds are counted in which it could have done so, and more than two checks are a violation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.topology import TopicPartition
from simulator.configs import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, REPLICA_LISTS
from simulator.ledger import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.world import World

TICK_SECONDS = 1.0  # between two looks at moves under way that nobody changed


class ThrottleInvariants:
    """Watches the throttles of one simulation; ``violate`` takes the name of an invariant, and what broke it."""

    def __init__(self, world: World, grace: float, violate: Callable[[str, str], None]) -> None:
        self._world = world
        self._cluster = world.cluster
        self._ledger = world.ledger
        self._scheduler = world.scheduler
        self._throttle = world.settings.pace.throttle
        self._grace = grace
        self._violate = violate
        self._bare: dict[TopicPartition, float] = {}  # seconds without throttle in which the executor could act
        self._left_over: dict[tuple[str, str, str], float] = {}  # seconds that entries of ended moves are in lists
        self._ticked = 0.0

    def judge_begun(self, tp: TopicPartition) -> None:
        """A move begins with its throttle."""
        missing = self._not_throttled(tp)
        if missing and not self._excused(tp):
            self._violate("throttled", f"{tp} began without its throttle: {missing}")

    def end(self, tp: TopicPartition) -> None:
        """A move is over: it needs no throttle any more."""
        self._bare.pop(tp, None)

    def _not_throttled(self, tp: TopicPartition) -> str:
        """What lacks for a move to be throttled as promised; empty if nothing does."""
        state = self._cluster.partitions[tp].state
        if self._throttle is None or not state.adding:
            return ""
        configs, brokers = self._cluster.configs, self._cluster.brokers
        for broker in state.adding:
            # A broker that hangs or is down copies nothing, and cannot be given a rate.
            if broker in state.isr or not brokers[broker].working:
                continue
            if not configs.is_throttled(tp.topic, FOLLOWER_REPLICAS, tp.partition, broker):
                return f"{tp.partition}:{broker} is not in {FOLLOWER_REPLICAS}"
            if reason := self._rate(broker, FOLLOWER_RATE):
                return reason
        leader = state.leader
        # A replica that has just been added and leads already is listed as a follower.
        if leader is not None and leader not in state.adding and brokers[leader].working:
            if not configs.is_throttled(tp.topic, LEADER_REPLICAS, tp.partition, leader):
                return f"{tp.partition}:{leader} is not in {LEADER_REPLICAS}"
            return self._rate(leader, LEADER_RATE)
        return ""

    def _rate(self, broker: int, key: str) -> str:
        """Why the rate of a broker is not as promised; one that somebody else set stays, and the report names it."""
        rate = self._cluster.configs.rate(broker, key)
        promised = self._ledger.largest_throttle(float(self._throttle or 0), self._scheduler.now, self._grace + 10.0)
        ceiling = self._world.settings.throttle_ceiling
        if rate <= max(promised, ceiling or 0.0):
            return ""
        if str(int(rate) if rate < float("inf") else 0) in self._ledger.rates_of_others.get(broker, ()):
            return ""
        return f"{key} of broker {broker} is {rate}, promised is {promised:.0f}"

    def _excused(self, tp: TopicPartition) -> bool:
        """Whether a throttle may lack for the moment: others deleted it, or a broker was not there to be given it.

        A process that is stopped between its last look at the throttle and its request does not see that others deleted
        it meanwhile, as it does not see their reassignments; the next check sets it again.
        """
        ledger, now = self._ledger, self._scheduler.now
        changed = [ledger.list_changed.get(tp.topic, -1e9), ledger.leader_changed.get(tp, -1e9)]
        for broker in self._cluster.partitions[tp].state.replicas:
            changed += [ledger.rate_changed.get(broker, -1e9), ledger.returned.get(broker, -1e9)]
        return any(at > now - self._grace or ledger.unseen(at, now) for at in changed)

    def tick(self) -> None:
        """Count for how long moves have been without their throttle while the executor could have set it.

        A second check is allowed for, since the first may meet a request that times out.
        """
        now = self._scheduler.now
        if now - self._ticked < TICK_SECONDS:
            return
        elapsed, self._ticked = now - self._ticked, now
        if self._throttle is None:
            return
        can_act = self._world.executor_can_act()
        # Without saved throttles the executor does not know its own entries. A clean-up restores all throttles at once,
        # or none as long as it cannot tell that nothing goes on, and names them: that is judged at the end.
        if can_act and not self._ledger.throttles_torn and not self._world.clean_up_waits:
            self._judge_lists(elapsed)
        for tp, move in self._ledger.own.items():
            # A request that met a topic that was created again a moment ago: the executor then sees a topic that is not
            # the planned one, and a reassignment of it that may be anybody's. It says so, and leaves both alone.
            if self._ledger.unseen(self._ledger.recreated.get(tp.topic, -1e9), move.at):
                continue
            if not self._not_throttled(tp):
                self._bare.pop(tp, None)
            elif can_act:
                self._bare[tp] = self._bare.get(tp, 0.0) + elapsed
                if self._bare[tp] > self._grace + self._world.schedule.interval:
                    self._violate("throttled", f"{tp} runs without its throttle: {self._not_throttled(tp)}")

    def _judge_lists(self, elapsed: float) -> None:
        """Count for how long entries of moves that have ended are in lists, where the executor could remove them.

        Kafka throttles every follower that is listed, also one that catches up after a restart.
        """
        ledger, found = self._ledger, {}
        # What the clean-up of a run left, and named, is not for its rollback to remove: the next snapshot does that.
        left = {where for run in self._world.supervisor.runs[:-1] for where in run.said.left}
        for topic, values in self._cluster.configs.topics.items():
            if f"topic {topic}" in left:
                continue
            for key in REPLICA_LISTS:
                for entry in values.get(key, "").split(","):
                    number = entry.partition(":")[0]
                    if not number.isdigit() or entry in ledger.entries_of_others.get((topic, key), ()):
                        continue
                    tp = TopicPartition(topic, int(number))
                    if tp not in ledger.own and tp not in ledger.foreign:
                        found[topic, key, entry] = self._left_over.get((topic, key, entry), 0.0) + elapsed
        self._left_over = found
        for (topic, key, entry), seconds in found.items():
            if seconds > self._grace + self._world.schedule.interval + TIMEOUT_SECONDS:
                self._violate("listed", f"{entry} is in {key} of {topic} {seconds:.0f} s after its move has ended")
