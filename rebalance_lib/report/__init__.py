"""What people read: the text of a review, the page of a run, and tables on a terminal."""

from rebalance_lib.report.documents import render_report, render_review
from rebalance_lib.report.publish import publish_plan
from rebalance_lib.report.summary import summarize
from rebalance_lib.report.terminal import broker_table, load_table

__all__ = ["broker_table", "load_table", "publish_plan", "render_report", "render_review", "summarize"]
