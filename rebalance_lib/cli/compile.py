"""Compile the loops ahead of their first use: ``kafka-rebalance compile``."""

from __future__ import annotations

from rebalance_lib.cli.options import command, output_option
from rebalance_lib.cli.output import Output

EXAMPLE = r"""
kafka-rebalance compile
"""


@command("compile", example=EXAMPLE)
@output_option
def compile_loops(*, output: Output) -> None:
    """Compile the planner's loops ahead of the first plan, and archive Spark's classes.

    Run it once after each installation, on every machine that plans: Airflow's workers and Spark's. It takes one to two
    minutes. Without it, the first plan takes a minute more, and every start of Spark some seconds. All of it is kept
    beside the installed sources if they can be written, so run it as the user who installs: workers of other users need
    only read it. KAFKA_REBALANCE_CACHE names another place.
    """
    from rebalance_lib.compile import ensure_compiled  # noqa: PLC0415 - not for the help
    from rebalance_lib.jobs.archive import archive_classes  # noqa: PLC0415

    here = ensure_compiled(output.remark)
    if not here:
        output.say("All loops are compiled already.")
    archive = archive_classes(output.remark)
    output.say(f"Spark's classes are archived in {archive}." if archive else "Spark's classes are not archived.")
    output.result({"compiled": here, "archive": str(archive) if archive else None})
