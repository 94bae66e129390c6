"""The files of a plan, published together."""

from __future__ import annotations

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.report.documents import render_review
from rebalance_lib.report.summary import summarize
from rebalance_lib.topology import Snapshot


def publish_plan(directory: Artifacts, plan: Plan, snapshot: Snapshot) -> None:
    """Write the plan, its summary and its review beside their place, then let them appear there at once."""
    summary = summarize(plan, snapshot)
    staged = directory.staging()
    staged.write_text("plan.json", format_plan(plan))
    staged.write_json("summary.json", summary)
    staged.write_text("review.md", render_review(summary))
    directory.publish(staged)
