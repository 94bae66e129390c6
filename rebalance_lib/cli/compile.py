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
    """Compile the planner's loops ahead of the first plan.

    Run it once after each installation, on every machine that plans: Airflow's workers and Spark's. It takes about a
    minute. Without it, the first plan takes that minute more. Loops are kept beside the installed sources if they can
    be written, so run it as the user who installs: workers of other users need only read them. KAFKA_REBALANCE_CACHE
    names another place.
    """
    from rebalance_lib.compile import ensure_compiled  # noqa: PLC0415 - not for the help

    here = ensure_compiled(output.remark)
    if not here:
        output.say("All loops are compiled already.")
    output.result({"compiled": here})
