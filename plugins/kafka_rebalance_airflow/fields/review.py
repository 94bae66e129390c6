"""Who decides on a plan, and within which limits nobody has to."""

from __future__ import annotations

from airflow.sdk import Param

from kafka_rebalance_airflow.fields.kinds import REVIEW, choice, lines, number


def review_params() -> dict[str, Param]:
    """Who decides."""
    return {
        "review": choice(
            "Review",
            "Who approves the plan.",
            {
                "required": "a person, always",
                "automatic": "nobody, if the plan has no risk, is within the limits, and the approval policy allows it",
            },
            REVIEW,
        ),
        "max_bytes": number(
            "Automatic up to (bytes)",
            "A plan that copies more waits for a person. Needed for automatic.",
            section=REVIEW,
        ),
        "max_replicas": number(
            "Automatic up to (replicas)", "A plan that copies more replicas waits for a person.", section=REVIEW
        ),
        "max_leaders": number(
            "Automatic up to (leaders)", "A plan that changes more leaders waits for a person.", section=REVIEW
        ),
        "max_seconds": number(
            "Automatic up to (s)", "A plan that takes longer by its forecast waits for a person.", section=REVIEW
        ),
        "approvers": lines(
            "Approvers",
            "Ids of the users who may approve, one per line; with Airflow's simple auth manager, their names. Some of "
            "the approval policy's. Empty: all of these.",
            REVIEW,
        ),
        "timeout_hours": number(
            "Reject after (hours)",
            "A plan that nobody has answered by then is rejected; 0: it waits for ever.",
            default=72,
            maximum=1e6,
            section=REVIEW,
        ),
        "reminder_hours": number(
            "Remind every (hours)",
            "How often a notification is sent while a plan waits; 0: never.",
            default=0,
            maximum=1e6,
            section=REVIEW,
        ),
        "on_busy": choice(
            "If the cluster is busy",
            "What to do if another run, or another tool, is at work on the cluster.",
            {"wait": "wait until it has ended", "fail": "fail, with its name"},
            REVIEW,
        ),
    }
