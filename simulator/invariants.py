"""What must hold after every event, whatever strikes.

Each invariant is judged by the truth of the cluster and by its log of requests, never by what the executor believes or
records. Where the executor can not know better, something is allowed, and the comment at the check says what and why.

    caps                  never more under way than the caps say
    throttled             no move of the run without the throttle that the run promised
    foreign_reassignment  a reassignment of somebody else is never replaced or cancelled
    foreign_throttle      an entry that somebody else put into a list of throttled replicas is never removed
    listed                no entry of the run stays in a list when its move has ended
    min_isr               no request of the run takes a partition below its min ISR
    readable              no request of the run takes a partition's leader away
    disk_reserve          no move of the run fills a log dir beyond the reserve
    one_request           one request per move, unless the answer to an earlier one was lost
    approved              only targets of the plan, or the next stage on the way there, are requested, and only for the
                          topic that the plan was made for; nor are leaders of another one elected
    requests_of_people    nothing begins after a cancel, during a pause, outside the window, of an excluded topic, or
                          when the maximum run time is over
    unexpected_error      a process ends with a `RebalanceError`, or without an error

`throttled` and `listed` are in `simulator.throttle_invariants`, those that are judged when all is over in
`simulator.ending`. Cost: an event without a request costs two comparisons; most events are such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rebalance_lib.plan.stages import stages
from rebalance_lib.reassignment import PartitionState, Transition
from rebalance_lib.topology import TopicPartition
from simulator.configs import MIN_ISR, REPLICA_LISTS
from simulator.ledger import LAG_SECONDS, TIMEOUT_SECONDS, Ledger, OwnMove, shrinks_below_min_isr
from simulator.loads import crosses_reserve, over_caps
from simulator.throttle_invariants import ThrottleInvariants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simulator.cluster import Request
    from simulator.world import World


class Violation(NamedTuple):
    """An invariant that did not hold."""

    name: str
    at: float
    words: str

    def __str__(self) -> str:
        return f"{self.at:10.3f} s  VIOLATED     {self.name}: {self.words}"


class Invariants:
    """Watches one simulation."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.cluster
        self._ledger: Ledger = world.ledger
        self._scheduler = world.scheduler
        self._read = 0
        self._open: list[Request] = []
        self._transitions: list[tuple[float, Transition]] = []
        self._last: dict[TopicPartition, Request] = {}  # the last request for a partition
        self._cluster.on_transition.append(lambda time, transition: self._transitions.append((time, transition)))
        self.grace = world.schedule.interval + TIMEOUT_SECONDS
        self._throttles = ThrottleInvariants(world, self.grace, self.violate)
        self.violations: list[Violation] = []

    def violate(self, name: str, words: str) -> None:
        """Note a violation; one of each name is enough."""
        if all(one.name != name for one in self.violations):
            violation = Violation(name, self._scheduler.now, words)
            self.violations.append(violation)
            self._world.note("invariant", f"VIOLATED {name}: {words}")

    def on_event(self) -> None:
        """Judge what has just happened."""
        requests = self._cluster.requests
        applied: list[Request] = []
        if len(requests) != self._read:
            self._open += requests[self._read :]
            self._read = len(requests)
        if self._open:
            applied = [request for request in self._open if request.applied]
            if applied:
                self._open = [request for request in self._open if not request.applied]
        if self._transitions or applied:
            transitions, self._transitions = self._transitions, []
            changed = {transition.partition: transition for _, transition in transitions}
            for request in applied:
                self._judge(request, changed)
            self._follow(transitions)
        self._throttles.tick()

    # What was requested.

    def _judge(self, request: Request, changed: Mapping[TopicPartition, Transition]) -> None:
        """Judge a request that has just been applied; ``changed`` is what it did, since it was alone in this event."""
        if request.name == "reassign":
            self._judge_reassign(request, changed)
        elif request.name in ("alter_topic_configs", "alter_topic_config"):
            self._foreign_entries(request)
        elif request.name in ("alter_broker_config", "alter_broker_configs"):
            late = self._scheduler.now - LAG_SECONDS
            self._ledger.rates_unseen |= {
                int(str(broker))
                for broker in request.changes
                if self._ledger.rate_changed.get(int(str(broker)), -1e9) > late
            }
        elif request.name == "elect_preferred_leaders":
            for tp in request.changes:
                self._same_topic(request, tp, "asked for the preferred leader")
            for tp, transition in changed.items():
                if transition.before is not None and transition.after is not None:
                    self._availability(request, tp, transition.before, transition.after)

    def _judge_reassign(self, request: Request, changed: Mapping[TopicPartition, Transition]) -> None:
        begun = []
        for tp, target in request.changes.items():
            if tp in request.refused or tp not in self._cluster.partitions:
                continue
            assert isinstance(tp, TopicPartition)  # noqa: S101
            wanted: tuple[int, ...] | None = None if target is None else tuple(target)
            transition = changed.get(tp)
            after = self._state(tp)
            before = transition.before if transition is not None and transition.before is not None else after
            self._judge_partition(request, tp, wanted, before, after)
            move = self._ledger.own.get(tp)
            if wanted is not None and after.adding and after is not before and move is not None and move.chosen:
                begun.append(tp)
        if begun:
            self._judge_begun(begun)

    def _state(self, tp: TopicPartition) -> PartitionState:
        return self._cluster.partitions[tp].state

    def _judge_partition(
        self,
        request: Request,
        tp: TopicPartition,
        target: tuple[int, ...] | None,
        before: PartitionState,
        after: PartitionState,
    ) -> None:
        self._approved(request, tp, target)
        self._foreign(request, tp, target)
        self._availability(request, tp, before, after)
        if target is not None:
            self._staged(request, tp, before, after)
            self._people(request, tp)
            self._once(request, tp, target, before)
            self._last[tp] = request
            if after.reassigning and after is not before:
                size = int(self._cluster.partitions[tp].end_at(self._scheduler.now))
                # What replaced a reassignment that others began a moment ago is no move that anybody chose, nor is one
                # of a topic that was created again a moment ago.
                touched = max(self._ledger.foreign_touched.get(tp, -1e9), self._ledger.recreated.get(tp.topic, -1e9))
                chosen = not self._ledger.unseen(touched, request.time)
                self._ledger.own[tp] = OwnMove(self._scheduler.now, request.process, target, size, chosen)
                self._ledger.foreign.pop(tp, None)

    def _approved(self, request: Request, tp: TopicPartition, target: tuple[int, ...] | None) -> None:
        plan = self._world.plan_of(request.process)
        if tp not in plan.targets:
            self.violate("approved", f"{request.process} requested {target} for {tp}, which is not in its plan")
            return
        origin, wanted = plan.origins[tp], plan.targets[tp]
        on_the_way = stages(origin, wanted) if self._world.settings.pace.one_replica_at_a_time else (wanted,)
        if target is not None and target not in on_the_way:
            self.violate("approved", f"{request.process} requested {list(target)} for {tp}, approved is {list(wanted)}")
        self._same_topic(request, tp, f"requested {target}")

    def _same_topic(self, request: Request, tp: TopicPartition, what: str) -> None:
        # Requests name a topic, not its id: one that is created again while the request is on its way, or while
        # metadata lags, cannot be told from the one before.
        # Snapshots have no topic ids: which topic the plan was made for is known since the run began.
        recreated = self._ledger.recreated.get(tp.topic, -1e9)
        if recreated > self._cluster.requests[0].time and not self._ledger.unseen(recreated, request.time):
            self.violate("approved", f"{request.process} {what} for {tp}: the topic is another one since")

    def _staged(self, request: Request, tp: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """One new replica at a time, if that was asked for, from where stages begin; from elsewhere, all at once."""
        plan = self._world.plan_of(request.process)
        if not self._world.settings.pace.one_replica_at_a_time or len(after.adding) < 2 or tp not in plan.targets:
            return
        # One that was created again a moment ago is back at the first stage, and brokers still show the one before.
        if self._ledger.unseen(self._ledger.recreated.get(tp.topic, -1e9), request.time):
            return
        # Nor can a process know better that has just taken over, or is the run's rollback, while brokers still show the
        # partition where it was before the last request of the other one.
        last, ended = self._last.get(tp), self._ledger.move_ended.get(tp, -1e9)
        if last is not None and last.process != request.process and self._ledger.unseen(ended, request.time):
            return
        way = (plan.origins[tp], *stages(plan.origins[tp], plan.targets[tp]))
        if after is not before and not before.reassigning and any(set(one) == set(before.replicas) for one in way):
            self.violate("approved", f"{request.process} gives {tp} new replicas {list(after.adding)} at once")

    def _foreign(self, request: Request, tp: TopicPartition, target: tuple[int, ...] | None) -> None:
        # Kafka has no compare-and-set for reassignments: one that others began after the executor listed them, which it
        # does before it chooses moves, is replaced.
        since = self._ledger.foreign.get(tp)
        if since is not None and not self._ledger.unseen(since, request.time):
            what = "cancelled" if target is None else f"replaced by {list(target)}"
            self.violate("foreign_reassignment", f"{request.process}: that of somebody else of {tp} was {what}")

    def _availability(
        self, request: Request, tp: TopicPartition, before: PartitionState, after: PartitionState
    ) -> None:
        # The executor sees the ISR of up to four seconds ago: a broker that was lost since is not its fault.
        if self._scheduler.now - self._ledger.isr_shrunk.get(tp, -1e9) <= LAG_SECONDS:
            return
        if before.leader is not None and after.leader is None:
            self.violate("readable", f"{request.process}: {tp} lost its leader by {request.name} ({before} to {after})")
        if shrinks_below_min_isr(before, after, self._min_isr(tp.topic)):
            self.violate(
                "min_isr",
                f"{request.process}: {request.name} took {tp} from ISR {list(before.isr)} to {list(after.isr)}, "
                f"min ISR is {self._min_isr(tp.topic)}",
            )

    def _min_isr(self, topic: str) -> int:
        return int(self._cluster.configs.topics.get(topic, {}).get(MIN_ISR, "1"))

    def _once(self, request: Request, tp: TopicPartition, target: tuple[int, ...], before: PartitionState) -> None:
        """A request is superfluous if the partition is there, or on its way there."""
        if target != (before.target if before.reassigning else before.replicas):
            return
        last = self._last.get(tp)
        # Its answer was lost. Whoever sent it has to read what became of it before it is sent again, and the controller
        # lists what is under way at once; what was done so quickly that it is not listed, metadata shows later on.
        if last is not None and not last.answered and not (last.process == request.process and before.reassigning):
            return
        # Two executors that read the same cluster at the same time choose the same moves.
        if last is not None and last.process != request.process and request.time - last.time <= LAG_SECONDS:
            return
        # A move that somebody else began, to the very same target.
        if request.time - self._ledger.foreign_touched.get(tp, -1e9) <= LAG_SECONDS:
            return
        self.violate(
            "one_request", f"{request.process} requested {list(target)} for {tp} again, which was there or on its way"
        )

    def _people(self, request: Request, tp: TopicPartition) -> None:
        """Requests of people are read at checks, so that one that was just written may not have been read yet."""
        ledger, late = self._ledger, request.time - self.grace
        if request.time < ledger.trouble_until or ledger.requests_torn:
            return  # what cannot be read counts as unchanged
        # What was asked of the run is over with it: its rollback undoes topics that were excluded on the way, too.
        first = self._world.plan_of(request.process).first
        if first and ledger.cancelled_at is not None and ledger.cancelled_at < late:
            self.violate("requests_of_people", f"{request.process} began {tp} after the run was cancelled")
        if first and ledger.excluded.get(tp.topic, 1e9) < late:
            self.violate("requests_of_people", f"{request.process} began {tp}, whose topic was excluded")
        for since, until in ledger.paused:
            if since < late and request.time < until:
                self.violate("requests_of_people", f"{request.process} began {tp} while the run was paused")
        for since, until in ledger.closed:
            if since < late and request.time < until:
                self.violate("requests_of_people", f"{request.process} began {tp} outside the window")
        self._run_time(request, tp, late)

    def _run_time(self, request: Request, tp: TopicPartition, late: float) -> None:
        """Nothing begins when the maximum run time is over; it counts from before the run's first request."""
        limits = self._ledger.max_run_time
        if not limits or limits[-1].at >= late or self._ledger.clocks_changed:
            return
        over = self._cluster.requests[0].time + limits[-1].value
        if over < late and self._world.plan_of(request.process).first:
            self.violate("requests_of_people", f"{request.process} began {tp} after the maximum run time")

    def _foreign_entries(self, request: Request) -> None:
        for topic, changes in request.changes.items():
            for key in REPLICA_LISTS:
                expected = self._ledger.entries.get((str(topic), key))
                if not expected or key not in changes:
                    continue
                listed = set(filter(None, self._cluster.configs.topics.get(str(topic), {}).get(key, "").split(",")))
                lost = sorted(expected - listed)
                # An entry that both the run and somebody else added is one entry: Kafka keeps no count. One that was
                # added while the request was on its way can be lost with the list, which is deleted when it is empty.
                recent = self._scheduler.now - self._ledger.list_changed.get(str(topic), -1e9) <= LAG_SECONDS
                if (
                    lost
                    and not recent
                    and not self._ledger.shared_entries.issuperset((str(topic), one) for one in lost)
                ):
                    self.violate("foreign_throttle", f"{request.process} removed {lost} from {key} of {topic}")

    # What is under way.

    def _judge_begun(self, begun: list[TopicPartition]) -> None:
        if over := over_caps(self._world, begun, self.grace):
            self.violate("caps", over)
        for tp in begun:
            self._throttles.judge_begun(tp)
            if crossed := crosses_reserve(self._world, tp):
                self.violate("disk_reserve", crossed)

    def _follow(self, transitions: Iterable[tuple[float, Transition]]) -> None:
        """Keep the ledger: moves that ended, leaders that changed, ISRs that shrank."""
        ledger = self._ledger
        for time, transition in transitions:
            tp, old, state = transition.partition, transition.before, transition.after
            if old is not None and state is not None:
                if state.leader != old.leader:
                    ledger.leader_changed[tp] = time
                if len(state.isr) < len(old.isr):
                    ledger.isr_shrunk[tp] = time
            if state is None or not state.reassigning:
                if old is not None and old.reassigning:
                    ledger.move_ended[tp] = time
                self._throttles.end(tp)
                # The next one may have begun in the same event, and is noted already.
                if tp not in self._cluster.partitions or not self._state(tp).reassigning:
                    ledger.own.pop(tp, None)
                    ledger.foreign.pop(tp, None)
