"""``kafka-rebalance cancel``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import click

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import PlanFile, command, output_option, plan_option, preserve_option, timeout_option
from rebalance_lib.cli.output import Exit, Output
from rebalance_lib.cli.requests import user_name
from rebalance_lib.cli.throttle_output import print_throttles, throttles_document
from rebalance_lib.execution import Kind, make_request
from rebalance_lib.execution.commands.cancel import Cancelled
from rebalance_lib.execution.commands.cancel import cancel as cancel_plan
from rebalance_lib.execution.commands.verify import Throttles, release_throttles
from rebalance_lib.execution.records.execution import note_end
from rebalance_lib.execution.records.journal import CANCELLED, THROTTLE_RESTORED, read_journal
from rebalance_lib.execution.requests import forget_requests, read_requests
from rebalance_lib.execution.throttles.restore import Restored
from rebalance_lib.file_lock import PROBE_SECONDS, InUseError

EXAMPLE = r"""
kafka-rebalance cancel --bootstrap-server kafka:9092 --reassignment-json-file plan.json
"""
RUN_ENDS_SECONDS = 300.0
OTHERS = "somebody else"  # in the journal, who cancelled a move that the run did not cancel
WAITING = "A run of this plan is under way: it was asked to cancel its moves at its next check, waiting for its end"
NOT_ENDED = (
    "the run of {plan} has not ended within {seconds:.0f} s: it cancels its moves at its next check, and the request "
    "stays. Run this command again to wait for it; or, if that process hangs, kill it first"
)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What a run that this command ended has cancelled and restored itself, by its journal."""

    cancelled: list[str]
    restored: Restored

    @classmethod
    def read(cls, state: Artifacts, since: str) -> EndedRun:
        """Read it; ``since`` is when the run was asked, by the clock of the machine whose lock both share."""
        journal = [event for event in read_journal(state) if str(event["at"]) >= since]
        own = [event for event in journal if event["event"] == CANCELLED and event["by"] != OTHERS]
        restored = [event for event in journal if event["event"] == THROTTLE_RESTORED]
        topics = sorted({topic for event in restored for topic in event["topics"]})
        brokers = sorted({broker for event in restored for broker in event["brokers"]})
        return cls([str(event["partition"]) for event in own], Restored(topics, brokers))


@command("cancel", example=EXAMPLE)
@cluster_options
@plan_option
@preserve_option
@timeout_option
@output_option
def cancel(
    *, connection: Connection, output: Output, plan_file: PlanFile, preserve_throttles: bool, timeout: int
) -> None:
    """Cancel the reassignments of a plan's partitions that are under way, and restore its throttles.

    Each partition goes back to its original replicas; not to their order, which PLAN.state/rollback.json has. Refused
    as a whole if one of them would be left without a leader, or with fewer in-sync replicas than min.insync.replicas.

    As with Kafka's tool, it does not matter who began to move them. A `kafka-rebalance run` of the plan that is under
    way is asked to cancel them itself, which it does at its next check; this command waits for it, and prints what the
    run has cancelled. To begin no more moves but let those under way end, use `kafka-rebalance pause`.
    """
    plan = plan_file.read()
    throttles = Throttles(Restored())
    with connection.open() as cluster, ended_run(plan_file, output) as run:
        cancelled = cancel_plan(cluster, plan, timeout_seconds=timeout / 1000)
        _print_cancelled(output, plan_file, cancelled, run)
        if run is not None:
            print_throttles(output, Throttles(run.restored))
        if not preserve_throttles:
            throttles = release_throttles(cluster, plan, plan_file.state)
            print_throttles(output, throttles)
    output.result(
        {
            "cancelled": [str(tp) for tp in cancelled.partitions],
            "cancelled_by_run": [] if run is None else run.cancelled,
            "log_dirs": [str(replica) for replica in cancelled.replicas],
            "throttles": throttles_document(throttles),
        }
    )
    unfinished = throttles.kept or throttles.restored.left
    click.get_current_context().exit(Exit.NOT_FINISHED if unfinished else Exit.DONE)


@contextmanager
def ended_run(plan_file: PlanFile, output: Output) -> Iterator[EndedRun | None]:
    """Hold the lock of the plan's runs; whoever has it for more than a moment is asked to cancel, and waited for.

    Whatever was asked of that run is over then, and removed: the next run begins with its own options.

    Raises:
        InUseError: The run has not ended in time.
    """
    state, run = plan_file.state, None
    with ExitStack() as stack:
        try:
            stack.enter_context(state.locked(seconds=PROBE_SECONDS))
        except InUseError:
            request = make_request(state, Kind.CANCEL, by=user_name())
            output.remark(WAITING)
            try:
                stack.enter_context(state.locked(seconds=RUN_ENDS_SECONDS))
            except InUseError as error:
                raise InUseError(NOT_ENDED.format(plan=plan_file.path, seconds=RUN_ENDS_SECONDS)) from error
            run = EndedRun.read(state, request.at)
        if plan_file.state_path.is_dir():
            forget_requests(state, read_requests(state))
            note_end(state)
        yield run


def _print_cancelled(output: Output, plan_file: PlanFile, cancelled: Cancelled, run: EndedRun | None) -> None:
    if run is not None and run.cancelled:
        count = len(run.cancelled)
        plural = "" if count == 1 else "s"
        output.say(f"The run of {plan_file.path} cancelled {count} reassignment{plural}: {','.join(run.cancelled)}")
    elif run is not None:
        output.say(f"The run of {plan_file.path} ended, and had no reassignment to cancel")
    if cancelled.partitions:
        plural = "" if len(cancelled.partitions) == 1 else "s"
        named = ",".join(map(str, cancelled.partitions))
        output.say(f"Successfully cancelled partition reassignment{plural} for: {named}")
    elif run is None:
        output.say("None of the specified partition reassignments are active.")
    if cancelled.replicas:
        output.say(f"Log dir moves cancelled for: {','.join(map(str, cancelled.replicas))}")
    elif run is None:
        output.say("None of the specified partition moves are active.")
