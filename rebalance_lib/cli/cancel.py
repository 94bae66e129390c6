"""``kafka-rebalance cancel``."""

from __future__ import annotations

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import PlanFile, command, output_option, plan_option, preserve_option, timeout_option
from rebalance_lib.cli.output import Exit, Output
from rebalance_lib.cli.throttle_words import tell_throttles, throttles_document
from rebalance_lib.execution import Throttles, release_throttles
from rebalance_lib.execution import cancel as stop
from rebalance_lib.execution.restoring import Restored

EXAMPLE = r"""
kafka-rebalance cancel --bootstrap-server kafka:9092 --reassignment-json-file plan.json
"""


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
    """
    plan = plan_file.read()
    throttles = Throttles(Restored())
    with connection.open() as cluster:
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
