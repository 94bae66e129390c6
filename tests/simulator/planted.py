"""Faults planted in the executor, to show that the simulator finds them: each is switched on by a test alone.

A plant replaces one function of the executor, of its throttles, records or clean-up, by one that has a single fault, as
somebody might write it. Nothing in `rebalance_lib` knows of it. ``python -m tests.simulator.planted`` looks for all of
them, or for those that are named, in the schedules of seeds 1, 2, ..., and prints how many it took.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from rebalance_lib.cluster import RefusedError
from rebalance_lib.cluster.requests import ATTEMPTS
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.clean_up import CleanUpWatch
from rebalance_lib.execution.executor import Executor
from rebalance_lib.execution.metadata_lag import MetadataLag
from rebalance_lib.execution.plan_status import Ends, PlanStatus, Status
from rebalance_lib.execution.progress import Meter
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.requests import Controls, Kind, read_requests
from rebalance_lib.execution.run_requests import RunRequests
from rebalance_lib.execution.settings import Settings
from rebalance_lib.execution.submission import Submission
from rebalance_lib.execution.throttles import maintain, restore
from rebalance_lib.execution.throttles.config import LOG_DIR_RATE
from rebalance_lib.execution.throttles.maintain import ThrottleMaintainer
from rebalance_lib.execution.throttles.restore import Restored
from rebalance_lib.execution.throttles.saved import BACKUP, SAVED, SavedThrottles
from simulator.client import SimulatedClient
from simulator.running import run_schedule
from simulator.schedule import generate
from simulator.storage import SimulatedStorage

MOST_SCHEDULES = 10_000
# The package exports functions with the names of some of its modules.
cancellation: Any = import_module("rebalance_lib.execution.cancellation")
clean_up: Any = import_module("rebalance_lib.execution.clean_up")
executor: Any = import_module("rebalance_lib.execution.executor")
finalize: Any = import_module("rebalance_lib.execution.finalize")
metadata_lag: Any = import_module("rebalance_lib.execution.metadata_lag")
next_moves: Any = import_module("rebalance_lib.execution.next_moves")
preflight: Any = import_module("rebalance_lib.execution.preflight")
runner: Any = import_module("rebalance_lib.execution.runner")
submission: Any = import_module("rebalance_lib.execution.submission")

Patch = pytest.MonkeyPatch


class Plant(NamedTuple):
    """A fault: its name, what is wrong, and what switches it on."""

    name: str
    wrong: str
    switch_on: Callable[[Patch], None]


PLANTS: dict[str, Plant] = {}


def plant(wrong: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Add a fault, under the name of the function that switches it on."""

    def add(switch_on: Callable[[Patch], None]) -> Callable[[Patch], None]:
        name = switch_on.__name__.replace("_", " ")
        PLANTS[name] = Plant(name, wrong, switch_on)
        return switch_on

    return add


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Switch a fault on for a while."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name].switch_on(patch)
        yield


# Requests of moves


@plant("a request whose answer was lost is sent again at once, without reading what became of it")
def lost_answer_is_sent_again(patch: Patch) -> None:
    reassign = SimulatedClient.reassign

    def blindly(self: Any, targets: Any, *, attempts: int = ATTEMPTS) -> None:
        try:
            reassign(self, targets, attempts=attempts)
        except RefusedError:
            raise
        except ClusterError:
            reassign(self, targets, attempts=attempts)

    patch.setattr(SimulatedClient, "reassign", blindly)


@plant("what brokers show counts at once, though their metadata lags behind the controller")
def metadata_lag_is_not_waited_for(patch: Patch) -> None:
    patch.setattr(metadata_lag, "LAG_SECONDS", 0.0)


@plant("a move that has just ended is requested again when a broker that lags shows it as not begun")
def ended_move_is_requested_again(patch: Patch) -> None:
    patch.setattr(MetadataLag, "_just_over", lambda *_: None)


@plant("replicas are requested in the order of their ids, not in the order of the plan")
def wrong_target_is_requested(patch: Patch) -> None:
    partition_step = next_moves.partition_step

    def ordered(*args: Any, **options: Any) -> Any:
        step = partition_step(*args, **options)
        return replace(step, replicas=tuple(sorted(step.replicas)))

    patch.setattr(next_moves, "partition_step", ordered)
    patch.setattr(submission, "partition_step", ordered)


@plant("all new replicas of a partition are requested at once, though one at a time was asked for")
def stages_are_skipped(patch: Patch) -> None:
    patch.setattr(next_moves, "next_stage", lambda _replicas, _origin, target: target)


@plant("a topic that was deleted and created again is taken for the one of the plan")
def recreated_topic_is_moved(patch: Patch) -> None:
    status = Ends.status

    def by_name(self: Ends, tp: Any, live: Any, reassignment: Any) -> Status:
        return status(self._replace(topic_ids={}), tp, live, reassignment)

    patch.setattr(Ends, "status", by_name)


@plant("preferred leaders are elected of a topic that was created again")
def leaders_of_recreated_topic_are_elected(patch: Patch) -> None:
    planned_ends = finalize.planned_ends
    patch.setattr(finalize, "planned_ends", lambda job: planned_ends(job)._replace(topic_ids={}))


@plant("that somebody else reassigns a partition of the plan is not noticed")
def foreign_reassignment_is_replaced(patch: Patch) -> None:
    status = Ends.status

    def waiting(self: Ends, tp: Any, live: Any, reassignment: Any) -> Status:
        found = status(self, tp, live, reassignment)
        return Status.PENDING if found is Status.DRIFTED and reassignment is not None else found

    def others(self: PlanStatus) -> list[Any]:
        return sorted(tp for tp in self.reassignments if tp not in self.by_partition)

    patch.setattr(Ends, "status", waiting)
    patch.setattr(PlanStatus, "foreign", property(others))


# Caps and disks


@plant("moves that an earlier process began are not counted against the caps")
def caps_do_not_count_after_a_restart(patch: Patch) -> None:
    choose = Submission._choose

    def own(self: Submission, situation: Any, ready: Any, moving: Any, within: Any) -> Any:
        return choose(self, situation, ready, [move for move in moving if move.partition in self._requested], within)

    patch.setattr(Submission, "_choose", own)


@plant("the part of each log dir that is to stay free is filled")
def disk_reserve_is_ignored(patch: Patch) -> None:
    for name in ("with_disk_space", "that_fit_alone"):
        patch.setattr(submission, name, _without_reserve(getattr(submission, name)))


def _without_reserve(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda cluster, steps, moving, alive, _: function(cluster, steps, moving, alive, 0.0)


@plant("what is under way, and not copied yet, does not count as taken on the disks")
def copies_under_way_take_no_disk_space(patch: Patch) -> None:
    for name in ("with_disk_space", "that_fit_alone"):
        patch.setattr(submission, name, _without_copies(getattr(submission, name)))


def _without_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda cluster, steps, _, alive, reserve: function(cluster, steps, [], alive, reserve)


@plant("a partition whose leader does not tell its size counts as empty")
def unknown_size_counts_as_zero(patch: Patch) -> None:
    patch.setattr(Meter, "size", lambda self, tp: self._sizes.get(tp, 0))


# Throttles


@plant("moves that begin between two checks are not put into the lists of throttled replicas")
def one_batch_is_not_listed(patch: Patch) -> None:
    advance = Submission.advance

    class Unthrottled:
        def prepare(self, *_: object) -> dict[Any, str]:
            return {}

    def bare(self: Submission, ended: Any) -> int:
        throttles, self._throttles = self._throttles, Unthrottled()  # type: ignore[assignment]
        try:
            return advance(self, ended)
        finally:
            self._throttles = throttles

    patch.setattr(Submission, "advance", bare)


@plant("lists of throttled replicas that somebody else deleted are not set again")
def deleted_lists_are_not_set_again(patch: Patch) -> None:
    patch.setattr(ThrottleMaintainer, "_list_again", lambda *_: None)


@plant("rates that somebody else deleted are not set again")
def deleted_rates_are_not_set_again(patch: Patch) -> None:
    def confirm(self: ThrottleMaintainer, *_: object) -> None:
        self.foreign, self.silent = {}, frozenset()

    patch.setattr(ThrottleMaintainer, "_maintain_rates", confirm)


@plant("a broker that was down when its move began gets no rate when it is back")
def returned_broker_gets_no_rate(patch: Patch) -> None:
    def maintained(self: ThrottleMaintainer, moves: Any, within: Any, rates: Any, alive: Any) -> None:
        copying = [move for move in moves if move.receivers and rates.between_brokers is not None]
        self._maintain_lists(copying)
        self._maintain_rates(rates, alive)

    patch.setattr(ThrottleMaintainer, "maintain", maintained)


@plant("entries of moves that have ended stay in the lists until the run ends")
def entries_of_ended_moves_stay(patch: Patch) -> None:
    patch.setattr(SavedThrottles, "entries", lambda _: {})


@plant("a rate that somebody else set is replaced by the run's")
def rate_of_somebody_else_is_replaced(patch: Patch) -> None:
    patch.setattr(ThrottleMaintainer, "_is_foreign", lambda *_: False)


@plant("the cluster is changed first, and what was there before is saved afterwards")
def throttles_are_saved_too_late(patch: Patch) -> None:
    set_throttles = ThrottleMaintainer._set

    def late(self: ThrottleMaintainer, *args: Any) -> dict[int, str]:
        saved = self._saved
        saved.write = lambda: None  # type: ignore[method-assign]
        try:
            return set_throttles(self, *args)
        finally:
            del saved.write
            saved.write()

    patch.setattr(ThrottleMaintainer, "_set", late)


@plant("an executor that is started again saves anew what it finds, its own rates included")
def saved_throttles_are_overwritten_on_restart(patch: Patch) -> None:
    def anew(artifacts: Any, cluster_id: str, _: object) -> SavedThrottles:
        saved = SavedThrottles(artifacts, cluster_id)
        saved._content |= {"topics": {}, "brokers": {}}
        return saved

    patch.setattr(maintain, "open_saved", anew)


@plant("saved throttles are not written through to the disk")
def saved_throttles_are_not_durable(patch: Patch) -> None:
    write = SimulatedStorage.write_bytes

    def cached(self: Any, name: str, data: bytes, *, durable: bool = False) -> None:
        write(self, name, data, durable=durable and name not in (SAVED, BACKUP))

    patch.setattr(SimulatedStorage, "write_bytes", cached)


@plant("the second copy of saved throttles is never read")
def backup_of_saved_throttles_is_not_read(patch: Patch) -> None:
    exists = SimulatedStorage.exists
    patch.setattr(SimulatedStorage, "exists", lambda self, name: name != BACKUP and exists(self, name))


@plant("saved throttles that are damaged end the run")
def damaged_saved_throttles_end_the_run(patch: Patch) -> None:
    def strictly(artifacts: Any, cluster_id: str, _: object) -> SavedThrottles:
        return SavedThrottles(artifacts, cluster_id)

    patch.setattr(maintain, "open_saved", strictly)
    patch.setattr(clean_up, "open_saved", strictly)


# Restore and clean-up


@plant("a run that was cancelled forgets its saved throttles, and restores none")
def restore_is_skipped_after_a_cancel(patch: Patch) -> None:
    restore_throttles = clean_up.restore_throttles

    def skipped(cluster: Any, artifacts: Any) -> Restored:
        if Controls.of(Settings(), read_requests(artifacts)).cancelled is None:
            return restore_throttles(cluster, artifacts)
        artifacts.remove_files([name for name in (SAVED, BACKUP) if artifacts.exists(name)])
        return Restored()

    patch.setattr(clean_up, "restore_throttles", skipped)


@plant("the rate of copies between log dirs is not restored")
def log_dir_rate_is_not_restored(patch: Patch) -> None:
    goal = restore._goal

    def without(rates: Any, current: Any, *, used: bool) -> Any:
        back = goal(rates, current, used=used)
        back.goal.pop(LOG_DIR_RATE, None)
        return back

    patch.setattr(restore, "_goal", without)


@plant("lists of throttled replicas are deleted in the end, with the entries of others in them")
def entries_of_others_are_removed(patch: Patch) -> None:
    def delete(cluster: Any, added: Any) -> dict[str, str]:
        there = {tp.topic for tp in cluster.partitions(added)} if added else set()
        cluster.alter_topic_configs({topic: dict.fromkeys(lists) for topic, lists in added.items() if topic in there})
        return {}

    patch.setattr(restore, "_restore_topics", delete)


@plant("the clean-up cancels every reassignment of the plan's partitions, whoever began it")
def foreign_reassignment_is_cancelled(patch: Patch) -> None:
    read_status = cancellation.read_status

    def all_ours(cluster: Any, **options: Any) -> Any:
        status = read_status(cluster, **options)
        ours = {tp: Status.MOVING for tp in status.by_partition if tp in status.reassignments}
        return replace(status, by_partition={**status.by_partition, **ours})

    patch.setattr(cancellation, "read_status", all_ours)


@plant("the clean-up restores throttles, and leaves moves under way")
def moves_are_not_cancelled(patch: Patch) -> None:
    patch.setattr(clean_up, "_cancel", lambda *_: None)
    patch.setattr(clean_up, "_moving", lambda *_: None)


@plant("a cancel does not mind min.insync.replicas")
def cancel_goes_below_min_isr(patch: Patch) -> None:
    reason = cancellation.reason_not_to_cancel

    def one_is_enough(tp: Any, live: Any, reassignment: Any, alive: Any, _: int) -> str | None:
        return reason(tp, live, reassignment, alive, 1)

    patch.setattr(cancellation, "reason_not_to_cancel", one_is_enough)
    patch.setattr(executor, "reason_not_to_cancel", one_is_enough)


@plant("an executor holds no lock and does not see that the run was cleaned up elsewhere")
def moves_begin_after_the_clean_up(patch: Patch) -> None:
    patch.setattr(SimulatedStorage, "locked", _unlocked)
    patch.setattr(CleanUpWatch, "started", lambda *_, **__: False)


@plant("nobody holds the lock of a run, so that two processes write its saved throttles")
def two_processes_write_saved_throttles(patch: Patch) -> None:
    patch.setattr(SimulatedStorage, "locked", _unlocked)


@contextmanager
def _unlocked(*_: object, **__: object) -> Iterator[None]:
    yield


@plant("throttles of a broker that is no longer registered stay saved, and are tried for ever")
def gone_broker_is_waited_for(patch: Patch) -> None:
    patch.setattr(SimulatedClient, "registered_brokers", lambda self: frozenset(self._cluster.brokers))


# Requests of people


def _deaf(patch: Patch, *kinds: Kind) -> None:
    of = Controls.of.__func__  # type: ignore[attr-defined]

    def without(cls: type[Controls], settings: Any, requests: Any) -> Controls:
        return of(cls, settings, [one for one in requests if one.kind not in kinds])  # type: ignore[no-any-return]

    patch.setattr(Controls, "of", classmethod(without))


@plant("a request to cancel is not read")
def cancel_is_ignored(patch: Patch) -> None:
    _deaf(patch, Kind.CANCEL)


@plant("a request to pause is not read")
def pause_is_ignored(patch: Patch) -> None:
    _deaf(patch, Kind.PAUSE)


@plant("a request for another throttle is not read")
def lower_throttle_is_ignored(patch: Patch) -> None:
    _deaf(patch, Kind.THROTTLE)


@plant("a request for other caps is not read")
def lower_caps_are_ignored(patch: Patch) -> None:
    _deaf(patch, Kind.MOVES_IN, Kind.MOVES_OUT, Kind.MOVES_IN_CLUSTER, Kind.BYTES_IN_FLIGHT)


@plant("topics that were excluded begin all the same")
def excluded_topics_begin(patch: Patch) -> None:
    patch.setattr(Controls, "excludes", lambda *_: None)


@plant("moves begin outside the window")
def window_is_ignored(patch: Patch) -> None:
    patch.setattr(Settings, "closed_at", lambda *_: None)


@plant("moves begin after the maximum run time")
def maximum_run_time_is_ignored(patch: Patch) -> None:
    patch.setattr(Executor, "_overdue", lambda _: False)


@plant("a request from a machine whose clock is ahead counts only when the executor's clock has come there")
def request_is_judged_by_the_clock(patch: Patch) -> None:
    noted = RunRequests._note

    def note(self: RunRequests, requests: Any) -> None:
        now = self._journal._clock.timestamp()
        self.controls = Controls.of(self._approved, [one for one in requests if one.at <= now])
        noted(self, requests)

    def called_off(self: RunRequests) -> bool:
        note(self, read_requests(self._artifacts))
        return self.controls.cancelled is not None or self._watch.started(strict=True)

    patch.setattr(RunRequests, "_note", note)
    patch.setattr(RunRequests, "called_off", called_off)


# What cannot be moved, and the record


@plant("a partition that the controller refuses is requested for ever")
def refused_partition_is_requested_for_ever(patch: Patch) -> None:
    patch.setattr(executor, "REFUSED_SECONDS", float("inf"))


@plant("a partition that the controller refuses ends the run")
def refused_partition_ends_the_run(patch: Patch) -> None:
    def fail(_: Submission, refused: Any) -> None:
        raise ClusterError(f"the controller refused {', '.join(map(str, refused))}")

    patch.setattr(Submission, "_note_refused", fail)


@plant("a replica that is at its target and never in sync is waited for, without an end")
def late_replica_is_waited_for(patch: Patch) -> None:
    give_up = Executor._give_up_stalled

    def listed(self: Executor) -> None:
        moving, reassignments = self._tracker.moving, self._tracker.status.reassignments
        late = [tp for tp in moving if tp not in reassignments and tp not in self.set_aside]
        for tp in late:
            del moving[tp]
        give_up(self)
        moving.update(dict.fromkeys(late))

    patch.setattr(Executor, "_give_up_stalled", listed)


@plant("a move that does not advance is waited for, without an end")
def stalled_move_is_waited_for(patch: Patch) -> None:
    patch.setattr(Executor, "_give_up_stalled", lambda _: None)


@plant("a partition that somebody else moved, or created again, refuses the plan after it was begun")
def one_bad_partition_refuses_the_plan(patch: Patch) -> None:
    patch.setattr(preflight, "tried", lambda *_: False)


@plant("the report does not name what was set aside")
def set_aside_is_not_reported(patch: Patch) -> None:
    report, ending = executor.Report, runner.Ending
    patch.setattr(executor, "Report", lambda *args: report(*args[:-1]))
    patch.setattr(runner, "Ending", lambda compared, restored, _: ending(compared, restored))


@plant("events are not written to the journal")
def journal_is_not_written(patch: Patch) -> None:
    patch.setattr(Journal, "flush", lambda _: None)


class Found(NamedTuple):
    """The first schedule that shows a fault: its seed, which is how many it took, and the invariant."""

    seed: int
    invariant: str
    words: str


def look_for(name: str, most: int = MOST_SCHEDULES) -> Found | None:
    """Run the schedules of seeds 1, 2, ... with a fault, until an invariant is violated."""
    for seed in range(1, most + 1):
        if found := violated_by(name, seed):
            return found
    return None


def violated_by(name: str, seed: int) -> Found | None:
    """The first invariant that a schedule violates with a fault, and does not without."""
    schedule = generate(seed)
    with planted(name):
        violations = run_schedule(schedule).violations
    if not violations:
        return None
    anyway = {one.name for one in run_schedule(schedule).violations}
    return next((Found(seed, one.name, one.words) for one in violations if one.name not in anyway), None)


def main() -> None:
    """Look for the faults that are named, or for all."""
    for name in sys.argv[1:] or PLANTS:
        began = time.monotonic()
        found = look_for(name)
        took = f"{time.monotonic() - began:.0f} s"
        print(
            f"| {name} | {found.invariant} | {found.seed} | {took} |" if found else f"| {name} | NOT FOUND | {took} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
