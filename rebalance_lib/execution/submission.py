"""Begin moves: choose what may begin, throttle it, and request it once.

A partition that rests on its way to its target waits if

    a broker that is to receive it is down
    it has no leader, or a replica that stays is not in sync, unless the plan is there to repair it
    its size is not known, so that nobody knows whether it fits
    there is no space for it in the log dir that it would go to
    the throttle of its leader or of a receiver could not be set
    its topic does not let its replicas be listed as throttled, or the controller has just refused it

and the reason is kept in ``blocked``. Of the others, caps and order decide (`rebalance_lib.plan.waves`). The queue is
made anew at every check; between checks, what ends makes way for the next.

A request is sent once. If its answer is lost, later polls show what became of it. Right before it is sent, and right
after, it is made sure that nobody has called the run off meanwhile. Where what it was chosen by was not read just now,
since a broker let it wait, it is read again: what is not as it was chosen waits for the next check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rebalance_lib.cluster import Cluster, RefusedError
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.log_dir_moves import LogDirStatus
from rebalance_lib.execution.messages import Log
from rebalance_lib.execution.next_moves import (
    Step,
    copying_within,
    log_dir_steps,
    partition_step,
    partition_steps,
    reassigning,
    that_fit_alone,
    with_disk_space,
)
from rebalance_lib.execution.plan_status import Status, listing
from rebalance_lib.execution.plan_tracker import PlanTracker
from rebalance_lib.execution.progress import Meter
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.throttles.maintain import Rates, ThrottledMove, ThrottleMaintainer
from rebalance_lib.plan.waves import Move, Waves, in_order
from rebalance_lib.topology import TopicPartition

REFUSED_AGAIN_SECONDS = 10.0  # until a partition that was refused, or whose topic's throttle was, is tried again


@dataclass(frozen=True, slots=True)
class Situation:
    """What a check found that decides what may begin.

    Args:
        settings: those in force, with what was requested since the run began.
        rates: the throttle.
        alive: the brokers that are alive.
        at_risk: partitions short of in-sync replicas, which go first.
        only_at_risk: whether nothing else may begin.
        skipped: partitions that do not begin at all: set aside, or excluded.
    """

    settings: Settings
    rates: Rates
    alive: frozenset[int]
    at_risk: frozenset[TopicPartition]
    only_at_risk: bool
    skipped: Collection[TopicPartition]


class Submission:
    """Begins the moves of one plan.

    ``called_off`` says whether somebody has ended the run, read anew each time. ``blocked`` has the partitions that
    wait and why, ``refused`` those that the controller refused, or the throttle of their topic, and why.
    """

    def __init__(
        self,
        cluster: Cluster,
        job: Job,
        tracker: PlanTracker,
        meter: Meter,
        throttles: ThrottleMaintainer,
        *,
        journal: Journal,
        log: Log,
        called_off: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._job = job
        self._tracker = tracker
        self._meter = meter
        self._throttles = throttles
        self._journal = journal
        self._log = log
        self._called_off = called_off
        self._situation: Situation | None = None
        self._waves: Waves | None = None
        self._counted: dict[TopicPartition, Move] = {}
        self._requested: dict[TopicPartition, ThrottledMove] = {}
        self._refused_until: dict[TopicPartition, float] = {}
        self.blocked: dict[TopicPartition, str] = {}
        self.refused: dict[TopicPartition, str] = {}

    def hold(self) -> None:
        """Nothing begins until the next check that starts moves."""
        self._waves = None
        self.blocked = {}

    def start(self, situation: Situation) -> int:
        """At a check: queue all that waits, and begin what may; returns how many steps began."""
        self._situation, self.blocked = situation, {}
        status, pace, size = self._tracker.status, situation.settings.pace, self._meter.size
        waiting = partition_steps(self._job, status, size, situation.at_risk, in_stages=pace.one_replica_at_a_time)
        waiting += log_dir_steps(status, self._tracker.log_dirs, size)
        ready = [step for step in waiting if self._may_begin(step)]
        moving = reassigning(status, size)
        self._counted = {move.partition: move for move in moving}
        chosen = self._choose(situation, ready, moving, copying_within(self._tracker.log_dirs, size))
        if chosen and not self._tracker.fresh:
            return self._submit_fresh(situation, chosen)
        return self._submit(chosen)

    def advance(self, ended: Iterable[TopicPartition]) -> int:
        """Between checks: these moves have ended, so that others may begin; returns how many steps did."""
        waves, situation, status = self._waves, self._situation, self._tracker.status
        if waves is None or situation is None:
            return 0
        in_stages = situation.settings.pace.one_replica_at_a_time
        for tp in ended:
            if tp in self._counted:
                waves.end(self._counted.pop(tp))
            if in_stages and status.by_partition[tp] is Status.PENDING:
                step = partition_step(self._job, tp, status.live[tp], self._meter.size(tp), in_stages=True)
                if self._may_begin(step):
                    waves.add(step)
        return self._submit_fresh(situation, _first(waves))

    def _submit_fresh(self, situation: Situation, steps: Sequence[Step]) -> int:
        """Read the partitions of these steps again, and request those that are still to be begun."""
        if not steps:
            return 0
        self._tracker.refresh(step.partition for step in steps)
        # One that has another sender by now was not counted against its caps: the next check chooses anew.
        again = [one for step in steps if (one := self._again(step)) is not None and one.sender == step.sender]
        fresh = [step for step in again if self._may_begin(step)]
        moving = reassigning(self._tracker.status, self._meter.size)
        alive, reserve = situation.alive, situation.settings.disk_reserve
        chosen, crowded = with_disk_space(self._cluster, fresh, moving, alive, reserve)
        self.blocked |= crowded
        return self._submit(chosen)

    def _is_as_chosen(self, step: Step) -> bool:
        again = self._again(step)
        if again is None or (again.replicas, again.receivers) != (step.replicas, step.receivers):
            return False
        return again.sender == step.sender and self._may_begin(step)  # another sender has caps of its own

    def _again(self, step: Step) -> Step | None:
        """The step as it is by what was read just now; None if it is not to be begun any more."""
        tp, status = step.partition, self._tracker.status
        if step.replicas is None:
            moves = (move for move in self._tracker.log_dirs if (move.replica, move.target) == step.log_dirs[0])
            return step if any(move.status is LogDirStatus.NOT_MOVING for move in moves) else None
        if status.by_partition.get(tp) is not Status.PENDING or tp not in status.live:
            return None
        in_stages = self._situation is not None and self._situation.settings.pace.one_replica_at_a_time
        return partition_step(self._job, tp, status.live[tp], step.size, in_stages=in_stages, at_risk=step.at_risk)

    def _may_begin(self, step: Step) -> bool:
        """Whether a step waits for nothing but caps and disks; else the reason is kept."""
        situation, tp = self._situation, step.partition
        if situation is None or tp in situation.skipped or (situation.only_at_risk and not step.at_risk):
            return False
        reason = self._reason_to_wait(step, situation)
        if reason is not None:
            self.blocked[tp] = reason
        return reason is None

    def _reason_to_wait(self, step: Step, situation: Situation) -> str | None:
        tp = step.partition
        if dead := sorted(set(step.receivers) - situation.alive):
            return f"brokers {dead}, which are to receive it, are down"
        if self._cluster.clock.monotonic() < self._refused_until.get(tp, 0.0):
            return self.refused[tp]
        if step.receivers and not self._meter.knows(tp):
            return "its size is not known, the brokers that have it do not answer"
        return None if step.replicas is None or self._job.repair else self._unhealthy(tp)

    def _unhealthy(self, tp: TopicPartition) -> str | None:
        live = self._tracker.status.live[tp]
        if live.leader is None:
            return f"it has no leader, its replicas are on brokers {sorted(live.replicas)}"
        late = sorted((set(live.replicas) - live.in_sync) & set(self._job.targets[tp]))
        return f"its replicas on brokers {late}, which stay, are not in sync" if late else None

    def _choose(
        self, situation: Situation, ready: Sequence[Step], moving: Sequence[Move], within: Sequence[Move]
    ) -> list[Step]:
        """The steps that caps and disks let begin."""
        pace, reserve, alive = situation.settings.pace, situation.settings.disk_reserve, situation.alive
        self._waves = Waves(pace, in_order(ready, pace.order), [*moving, *within])
        chosen, crowded = with_disk_space(self._cluster, _first(self._waves), moving, alive, reserve)
        if not crowded:
            return chosen
        # Those without space must not keep others from beginning, which may make space for them.
        fitting = that_fit_alone(self._cluster, ready, moving, alive, reserve)
        self._waves = Waves(pace, in_order(fitting, pace.order), [*moving, *within])
        chosen, again = with_disk_space(self._cluster, _first(self._waves), moving, alive, reserve)
        self.blocked |= {**crowded, **again}
        for step in chosen:
            self.blocked.pop(step.partition, None)
        return chosen

    def throttled_moves(self) -> list[ThrottledMove]:
        """What is under way between brokers, as its throttle sees it."""
        status, found = self._tracker.status, []
        for tp in self._tracker.moving:
            reassignment = status.reassignments.get(tp)
            if reassignment is not None:
                leader = status.live[tp].leader if tp in status.live else None
                senders = tuple(broker for broker in reassignment.replicas if broker not in reassignment.adding)
                found.append(ThrottledMove(tp, leader, senders, reassignment.adding))
            elif tp in self._requested and status.live[tp].replicas != self._job.targets[tp]:
                found.append(self._requested[tp])  # its answer was lost, or brokers lag
        return found

    def _submit(self, steps: Sequence[Step]) -> int:
        """Throttle the steps, and request them, unless the run was called off meanwhile."""
        situation = self._situation
        if not steps or situation is None:
            return 0
        moves = {step.partition: self._throttled(step) for step in steps if step.replicas is not None}
        within = sorted({step.receivers[0] for step in steps if step.replicas is None})
        failed = self._throttles.prepare(list(moves.values()), within, situation.rates, situation.alive)
        refused = {tp: failed[tp.topic] for tp, move in moves.items() if move.receivers and tp.topic in failed}
        if refused:
            self._note_refused(refused)
        chosen = []
        for step in steps:
            if step.replicas is not None and step.partition in refused:
                continue
            reason = failed.get(step.partition if step.replicas is not None else step.receivers[0])
            if reason is None:
                chosen.append(step)
            else:
                self.blocked[step.partition] = reason
        chosen = self._still_as_chosen(chosen)
        if not chosen or self._called_off():
            return 0
        begun = self._request(chosen)
        self._requested |= {step.partition: moves[step.partition] for step in begun if step.partition in moves}
        self._counted |= {step.partition: step for step in begun if step.replicas is not None}
        if begun and self._called_off():
            self._undo(begun)
            return 0
        return len(begun)

    def _still_as_chosen(self, steps: Sequence[Step]) -> list[Step]:
        """The steps that are as they were chosen; if some request took its time, much may have happened meanwhile."""
        if not steps or self._tracker.fresh:
            return list(steps)
        self._tracker.refresh(step.partition for step in steps)
        return [step for step in steps if self._is_as_chosen(step)]

    def _throttled(self, step: Step) -> ThrottledMove:
        live = self._tracker.status.live[step.partition]
        return ThrottledMove(step.partition, live.leader, live.replicas, step.receivers)

    def _request(self, steps: Sequence[Step]) -> list[Step]:
        """Request steps, once: brokers for log dirs, then the controller for replicas; returns those that may begin."""
        steps = self._with_log_dirs(steps)
        within = [step for step in steps if step.replicas is None]  # these have begun
        steps = [*within, *self._still_as_chosen([step for step in steps if step.replicas is not None])]
        targets = {step.partition: step.replicas for step in steps if step.replicas is not None}
        refused: dict[TopicPartition, str] = {}
        try:
            if targets:
                self._cluster.reassign(targets, attempts=1)
        except RefusedError as error:
            refused = error.refused
            self._note_refused({tp: f"the controller refused it: {reason}" for tp, reason in refused.items()})
        except ClusterError as error:
            self._journal.note("request failed", error=str(error), partitions=len(targets))
            self._log(f"a request to begin {len(targets)} moves was not answered, reading what became of it: {error}")
            self._tracker.begin([step for step in steps if step.replicas is not None], accepted=False)
            self._tracker.begin([step for step in steps if step.replicas is None], accepted=True)
            return list(steps)
        begun = [step for step in steps if step.partition not in refused or step.replicas is None]
        for step in begun:
            self.refused.pop(step.partition, None)
        self._tracker.begin(begun, accepted=True)
        return begun

    def _with_log_dirs(self, steps: Sequence[Step]) -> list[Step]:
        """Ask brokers for the log dirs of these steps; returns the steps whose log dirs were accepted."""
        named = {replica: path for step in steps for replica, path in step.log_dirs}
        if not named:
            return list(steps)
        try:
            self._cluster.alter_replica_log_dirs(named)
        except ClusterError:
            accepted = []
            for step in steps:  # one by one, so that one bad log dir keeps no other step from beginning
                try:
                    if step.log_dirs:
                        self._cluster.alter_replica_log_dirs(dict(step.log_dirs))
                    accepted.append(step)
                except ClusterError as error:
                    self.blocked[step.partition] = str(error)
            return accepted
        return list(steps)

    def _note_refused(self, refused: dict[TopicPartition, str]) -> None:
        new = [tp for tp in sorted(refused) if tp not in self.refused]
        until = self._cluster.clock.monotonic() + REFUSED_AGAIN_SECONDS
        for tp, reason in refused.items():
            self.refused[tp] = self.blocked[tp] = reason
            self._refused_until[tp] = until
        if new:
            self._journal.note("refused", reasons={str(tp): refused[tp] for tp in new})
            self._log(f"{listing(new)} cannot begin: {refused[new[0]]}")

    def _undo(self, steps: Sequence[Step]) -> None:
        """Cancel what was requested in the very moment in which the run was called off."""
        requested = [step.partition for step in steps if step.replicas is not None]
        self._cluster.reassign(dict.fromkeys(requested))
        for tp in requested:
            self._tracker.cancel(tp, "the run was called off while it was requested")


def _first(waves: Waves) -> list[Step]:
    """What may begin now."""
    return [step for step in waves.begin() if isinstance(step, Step)]
