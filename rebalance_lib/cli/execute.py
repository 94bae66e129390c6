"""``kafka-rebalance execute``."""

from __future__ import annotations

import click

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.options import PlanFile, command, output_option, plan_option, timeout_option, wait_option
from rebalance_lib.cli.output import Exit, Output, brokers_text, plan_document, plan_line
from rebalance_lib.cli.verify import finish
from rebalance_lib.cli.waiting import wait_until_ended
from rebalance_lib.execution.commands.execute import Limits, Prepared, prepare
from rebalance_lib.execution.commands.execute import execute as run
from rebalance_lib.execution.log_dir_moves import planned_log_dirs
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.file_lock import PROBE_SECONDS

NO_LIMIT = -1  # Kafka's way to say that none is given


EXAMPLE = r"""
kafka-rebalance execute --bootstrap-server kafka:9092 \
    --reassignment-json-file plan.json --throttle 50000000
kafka-rebalance execute --bootstrap-server kafka:9092 \
    --reassignment-json-file plan.json --throttle 90000000 --additional   # faster, while it runs
"""


@command("execute", example=EXAMPLE)
@cluster_options
@plan_option
@click.option(
    "--throttle",
    type=int,
    default=NO_LIMIT,
    help="Bytes per second between brokers, on each of them; -1 for no throttle.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=int,
    default=NO_LIMIT,
    help="Bytes per second between the log dirs of a broker; -1 for no throttle.",
)
@click.option("--additional", is_flag=True, help="Execute although others are under way; also changes a throttle.")
@click.option(
    "--disallow-replication-factor-change", is_flag=True, help="Refuse a plan that changes a replication factor."
)
@timeout_option
@wait_option
@output_option
def execute(
    *,
    connection: Connection,
    output: Output,
    plan_file: PlanFile,
    throttle: int,
    replica_alter_log_dirs_throttle: int,
    additional: bool,
    disallow_replication_factor_change: bool,
    timeout: int,
    wait: bool,
) -> None:
    """Start a reassignment, after all of it was checked.

    The current assignment is printed and kept beside the plan, in PLAN.state/rollback.json: execute that file to roll
    back. The throttles that are set now are kept there too, and verify restores them.
    """
    limits = Limits(
        between_brokers=None if throttle < 0 else throttle,
        between_log_dirs=None if replica_alter_log_dirs_throttle < 0 else replica_alter_log_dirs_throttle,
    )
    plan = plan_file.read()
    with connection.open() as cluster:
        prepared = prepare(
            cluster,
            plan,
            additional=additional,
            allow_replication_factor_change=not disallow_replication_factor_change,
        )
        with plan_file.state.locked(make=True, seconds=PROBE_SECONDS):
            rollback = run(cluster, prepared, plan_file.state, limits, timeout_seconds=timeout / 1000)
        output.say(
            f"Current partition replica assignment\n\n{plan_line(rollback)}\n\n"
            f"Save this to use as the --reassignment-json-file option during rollback; "
            f"it is in {plan_file.state_path / 'rollback.json'}"
        )
        _print_started(output, prepared, plan_file, limits)
        result = {
            "status": "started",
            "submitted": [str(tp) for tp in prepared.to_submit],
            "cancelled": [str(tp) for tp in prepared.to_cancel],
            "log_dirs": {str(replica): log_dir for replica, log_dir in planned_log_dirs(plan).items()},
            "throttle": limits.between_brokers,
            "replica_alter_log_dirs_throttle": limits.between_log_dirs,
            "rollback": plan_document(rollback),
            "state": str(plan_file.state_path),
        }
        code = Exit.DONE
        if wait:
            code, outcome = finish(
                cluster, output, plan_file, wait_until_ended(cluster, plan, plan_file.state), preserve=False
            )
            result |= outcome
    output.result(result)
    click.get_current_context().exit(code)


def _print_started(output: Output, prepared: Prepared, plan_file: PlanFile, limits: Limits) -> None:
    throttled = stale_throttles(plan_file.state)
    if limits.between_brokers is not None and throttled:
        output.say(f"The inter-broker throttle limit was set to {limits.between_brokers} B/s")
    if limits.between_log_dirs is not None:
        output.say(f"The replica-alter-dir throttle limit was set to {limits.between_log_dirs} B/s")
    if limits != Limits() and throttled:
        output.remark(
            "Warning: You must run verify periodically, until the reassignment completes, to ensure the throttle is "
            f"removed. The throttles before are kept in {plan_file.state_path / 'throttles.json'}."
        )
    submitted, moving = prepared.to_submit, planned_log_dirs(prepared.plan)
    if submitted:
        plural = "" if len(submitted) == 1 else "s"
        output.say(f"Successfully started partition reassignment{plural} for {','.join(map(str, submitted))}")
    for tp in prepared.to_cancel:
        output.say(f"{tp} goes to {brokers_text(prepared.plan.as_dict()[tp])}: its reassignment was cancelled first")
    for replica, log_dir in moving.items():
        output.say(
            f"Successfully started moving log directory to {log_dir} for replica {replica.topic}-{replica.partition} "
            f"with broker {replica.broker}"
        )
    if not (submitted or prepared.to_cancel or moving):
        output.say("Nothing to start: every partition has its replicas, or is on its way to them")
