"""What people read: the text of a review, the page of a run, and tables on a terminal."""

from rebalance_lib.report.documents import render_report, render_review
from rebalance_lib.report.fleet import fleet_rows, render_fleet
from rebalance_lib.report.moves import moves_table
from rebalance_lib.report.publish import (
    publish_choice,
    publish_plan,
    with_groups,
    write_choice,
    write_digests,
    write_figures,
)
from rebalance_lib.report.summary import changed_most, of_candidate, summarize
from rebalance_lib.report.terminal import broker_table, load_table

__all__ = [
    "broker_table",
    "changed_most",
    "fleet_rows",
    "load_table",
    "moves_table",
    "of_candidate",
    "publish_choice",
    "publish_plan",
    "render_fleet",
    "render_report",
    "render_review",
    "summarize",
    "with_groups",
    "write_choice",
    "write_digests",
    "write_figures",
]
