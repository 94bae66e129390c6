"""``kafka-rebalance verify``."""

from __future__ import annotations

from typing import Any

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import PlanFile, command, output_option, plan_option, preserve_option, wait_option
from rebalance_lib.cli.output import Exit, Output, brokers_text, styled
from rebalance_lib.cli.throttle_output import print_throttles, throttles_document
from rebalance_lib.cli.waiting import wait_until_ended
from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.commands.verify import Verdict, Verification, release_throttles
from rebalance_lib.execution.commands.verify import verify as compare

MOST_ROWS = 50
RUN_ENDS_SECONDS = 60.0  # a run whose plan is reached restores its throttles itself, and ends
CODES = {Verdict.REACHED: Exit.DONE, Verdict.NOT_FINISHED: Exit.NOT_FINISHED, Verdict.WRONG: Exit.WRONG}


EXAMPLE = r"""
kafka-rebalance verify --bootstrap-server kafka:9092 --reassignment-json-file plan.json --wait
"""


@command("verify", example=EXAMPLE)
@cluster_options
@plan_option
@preserve_option
@wait_option
@output_option
def verify(
    *, connection: Connection, output: Output, plan_file: PlanFile, preserve_throttles: bool, wait: bool
) -> None:
    """Compare a plan with the cluster, and restore the throttles once it is reached.

    A plan is reached when every partition has its replicas in order, all of them in sync, and in their log dirs. The
    throttles that were set before the plan was executed are restored then, unless other reassignments are under way.
    """
    plan = plan_file.read()
    with connection.open() as cluster:
        if wait:
            verification = wait_until_ended(cluster, plan, plan_file.state)
        else:
            verification = compare(cluster, plan, plan_file.state)
        code, outcome = finish(cluster, output, plan_file, verification, preserve=preserve_throttles)
    output.result(outcome)
    click.get_current_context().exit(code)


def finish(
    cluster: Cluster, output: Output, plan_file: PlanFile, verification: Verification, *, preserve: bool
) -> tuple[Exit, dict[str, Any]]:
    """Show the status of the plan, restore throttles if it has ended, and return the code to exit with."""
    _show(output, verification)
    code = CODES[verification.verdict]
    outcome = _document(verification)
    if verification.settled and not preserve:
        with plan_file.state.locked(seconds=RUN_ENDS_SECONDS):
            throttles = release_throttles(cluster, verification.plan, plan_file.state)
        print_throttles(output, throttles)
        outcome["throttles"] = throttles_document(throttles)
        if code is Exit.DONE and (throttles.kept or throttles.restored.left):
            code = Exit.NOT_FINISHED
    elif verification.verdict is Verdict.WRONG and not preserve:
        output.remark("Throttles are left as they are: execute the plan again, or cancel it, which restores them.")
    return code, outcome


def _show(output: Output, verification: Verification) -> None:
    status = verification.status
    targets = verification.plan.as_dict()
    rows = [tp for tp, state in status.by_partition.items() if state != "done" or len(targets) <= MOST_ROWS]
    columns = ("partition", "status", "replicas", "target", "message")
    output.table(
        f"Status of partition reassignment: {verification.verdict}",
        columns,
        [
            (
                str(tp),
                styled(status.by_partition[tp]),
                brokers_text(status.live[tp].replicas) if tp in status.live else "-",
                brokers_text(targets[tp]),
                verification.says(tp),
            )
            for tp in rows[:MOST_ROWS]
        ],
    )
    if len(targets) > len(rows[:MOST_ROWS]):
        output.say(f"{len(targets)} partitions in all; --output json has each of them")
    if verification.log_dirs:
        output.table(
            "Status of log dir moves",
            ("replica", "status", "log dir", "copied to", "target"),
            [
                (str(move.replica), styled(move.status), move.current or "-", move.future or "-", move.target)
                for move in verification.log_dirs[:MOST_ROWS]
            ],
        )


def _document(verification: Verification) -> dict[str, Any]:
    status = verification.status
    targets = verification.plan.as_dict()
    return {
        "verdict": verification.verdict,
        "partitions": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "status": state,
                "replicas": list(status.live[tp].replicas) if tp in status.live else [],
                "in_sync": sorted(status.live[tp].in_sync) if tp in status.live else [],
                "target": list(targets[tp]),
                "message": verification.says(tp),
            }
            for tp, state in status.by_partition.items()
        ],
        "log_dirs": [
            {
                "topic": move.replica.topic,
                "partition": move.replica.partition,
                "broker": move.replica.broker,
                "status": move.status,
                "current": move.current,
                "future": move.future,
                "target": move.target,
            }
            for move in verification.log_dirs
        ],
    }
