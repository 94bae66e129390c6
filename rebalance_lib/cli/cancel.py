"""``kafka-rebalance cancel``."""

from __future__ import annotations

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import PlanFile, command, output_option, plan_option, preserve_option, timeout_option
from rebalance_lib.cli.output import Exit, Output
from rebalance_lib.cli.throttle_words import tell_throttles, throttles_document
from rebalance_lib.errors import RebalanceError
from rebalance_lib.execution.clean_up import note_leaving
from rebalance_lib.execution.commands.cancel import cancel as stop
from rebalance_lib.execution.commands.verify import Throttles, release_throttles
from rebalance_lib.execution.throttles.restore import Restored

EXAMPLE = r"""
kafka-rebalance cancel --bootstrap-server kafka:9092 --reassignment-json-file plan.json
"""
RUN_ENDS_SECONDS = 300.0
WAITING = "A run of this plan is under way: it ends at its next check, waiting for that"


@command("cancel", example=EXAMPLE)
@cluster_options
@plan_option
@preserve_option
@timeout_option
@output_option
def cancel(
    *, connection: Connection, output: Output, plan_file: PlanFile, preserve_throttles: bool, timeout: int
) -> None:
    """Cancel what is under way of a plan's partitions, and take its throttles off.

    Each partition goes back to its original replicas; not to their order, which PLAN.state/rollback.json has. Refused
    as a whole if one of them would be left without a leader, because none of its originals is alive and in sync.

    As with Kafka's tool, it does not matter who began to move them. A `kafka-rebalance run` of the plan that is under
    way is told to end, and ends by itself at its next check; this command waits for it.
    """
    plan = plan_file.read()
    throttles = Throttles(Restored())
    _end_run(plan_file, output)
    with (
        connection.open() as cluster,
        plan_file.state.locked(seconds=RUN_ENDS_SECONDS, on_wait=lambda: output.remark(WAITING)),
    ):
        cancelled = stop(cluster, plan, timeout_seconds=timeout / 1000)
        if cancelled.partitions:
            plural = "" if len(cancelled.partitions) == 1 else "s"
            named = ",".join(map(str, cancelled.partitions))
            output.say(f"Successfully cancelled partition reassignment{plural} for: {named}")
        else:
            output.say("None of the specified partition reassignments are active.")
        if cancelled.replicas:
            output.say(f"Log dir moves cancelled for: {','.join(map(str, cancelled.replicas))}")
        else:
            output.say("None of the specified partition moves are active.")
        if not preserve_throttles:
            throttles = release_throttles(cluster, plan, plan_file.state)
            tell_throttles(output, throttles)
    output.result(
        {
            "cancelled": [str(tp) for tp in cancelled.partitions],
            "log_dirs": [str(replica) for replica in cancelled.replicas],
            "throttles": throttles_document(throttles),
        }
    )
    unfinished = throttles.kept or throttles.restored.left
    click.get_current_context().exit(Exit.NOT_FINISHED if unfinished else Exit.DONE)


def _end_run(plan_file: PlanFile, output: Output) -> None:
    """Let whoever carries the plan out know that it ends here; moves are stopped even if that cannot be noted."""
    if not plan_file.state_path.is_dir():
        return
    try:
        note_leaving(plan_file.state)
    except RebalanceError as error:
        output.remark(f"A run of this plan that is under way may not notice: {error}")
