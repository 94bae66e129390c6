"""The files of a choice of plans, published together.

Files:
    ``plan.json``                      the recommended plan, or the one that was chosen, as Kafka's tool reads it
    ``candidates/NAME/plan.json``      each plan of the choice
    ``moves.parquet``                  the recommended plan's copies, one by one
    ``brokers_before_after.parquet``   what each broker holds before and after it
    ``groups.parquet``                 what each plan does to each consumer group, if groups are known
    ``summary.json``                   all figures
    ``review.md``                      what the person who approves reads
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_lib.artifacts import GROUPS, RATES
from rebalance_lib.plan import Plan, format_plan
from rebalance_lib.report.documents import render_review
from rebalance_lib.report.moves import brokers_table, moves_table
from rebalance_lib.report.summary import of_candidate, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rebalance_lib.artifacts import Artifacts
    from rebalance_lib.plan.pace import Pace
    from rebalance_lib.planner import Choice
    from rebalance_lib.topology import Groups, Snapshot


def write_choice(
    directory: Artifacts, choice: Choice, pace: Pace | None = None, check: Callable[[], object] = lambda: None
) -> None:
    """Write all files into a directory, one that nobody reads yet; `Artifacts.publish` lets it appear.

    Args: `check` raises if the plans must not appear; it may have gone on while the files were made.
    """
    begun = time.perf_counter()
    for candidate in choice.candidates:
        text = format_plan(candidate.plan)
        (directory / "candidates" / candidate.name).write_text("plan.json", text)
        if candidate is choice.recommended:
            directory.write_text("plan.json", text)
    directory.write_table("moves.parquet", moves_table(choice.recommended.outcome))
    if choice.impacts is not None:
        directory.write_table(GROUPS, choice.impacts)
    if choice.rates is not None:
        directory.write_table(RATES, choice.rates)
    summary = write_figures(directory, choice, pace, check, begun)
    directory.write_text("review.md", render_review(summary))


def write_figures(
    directory: Artifacts,
    choice: Choice,
    pace: Pace | None = None,
    check: Callable[[], object] = lambda: None,
    begun: float | None = None,
) -> dict[str, Any]:
    """Write what does not grow with the partitions: what each broker holds, and the summary."""
    begun = time.perf_counter() if begun is None else begun
    directory.write_table("brokers_before_after.parquet", brokers_table(choice.recommended.outcome))
    summary = summarize(choice, pace)
    check()
    summary["timings"] = {**choice.timings, "write": time.perf_counter() - begun}
    directory.write_json("summary.json", summary)
    return summary


def write_digests(directory: Artifacts, digests: Mapping[str, str]) -> str:
    """Note the digests of plans whose entries were put together elsewhere, by candidate; the recommended one's."""
    summary = directory.read_json("summary.json")
    for name, digest in digests.items():
        summary["candidates"][name]["digest"] = digest
    summary = of_candidate(summary, summary["recommended"])
    directory.write_json("summary.json", summary)
    directory.write_text("review.md", render_review(summary))
    return digests[summary["recommended"]]


def publish_choice(
    directory: Artifacts, choice: Choice, pace: Pace | None = None, check: Callable[[], object] = lambda: None
) -> None:
    """Write all files beside their place, then let them appear there at once; a failure leaves nothing behind."""
    staged = directory.staging()
    try:
        write_choice(staged, choice, pace, check)
        directory.publish(staged)
    except BaseException:
        staged.remove()
        raise


def publish_plan(
    directory: Artifacts, plan: Plan, snapshot: Snapshot, pace: Pace | None = None, groups: Groups | None = None
) -> None:
    """Publish a plan that was not planned here, as a choice of one."""
    from rebalance_lib.planner import Choice, ClusterModel  # noqa: PLC0415 - brings numba, which most commands never need

    publish_choice(directory, with_groups(Choice.given(ClusterModel.of(snapshot), plan), groups), pace)


def with_groups(choice: Choice, groups: Groups | None) -> Choice:
    """A choice with what its candidates do to these groups."""
    if groups is None:
        return choice
    from rebalance_lib.report.groups import group_impacts  # noqa: PLC0415 - brings numba

    plans = {candidate.name: candidate.plan for candidate in choice.candidates}
    return replace(choice, impacts=group_impacts(groups, choice.model.snapshot, plans))
