"""Which notifications are sent: Airflow's notifiers, configured in one place.

The Variable ``kafka_rebalance_notifiers`` holds a list. Each entry names a notifier's class, what it is made with, and
the events it is for; without ``on`` it is for all:

    [{"notifier": "airflow.providers.slack.notifications.slack.SlackNotifier",
      "with": {"channel": "#kafka", "text": "{{ kafka_rebalance.text }} {{ kafka_rebalance.link }}"},
      "on": ["review", "stalled", "held", "failed"]}]

In the templates of a notifier, ``kafka_rebalance`` has ``event``, ``text``, ``link``, ``dag_id`` and ``run_id``.
Nothing fails because a notification could not be sent: it is logged.
"""

from __future__ import annotations

import json
import logging
import pkgutil
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseNotifier

VARIABLE = "kafka_rebalance_notifiers"
REVIEW, REMINDER, STARTED, STALLED, HELD, FINISHED, FAILED = EVENTS = (
    "review",
    "reminder",
    "started",
    "stalled",
    "held",
    "finished",
    "failed",
)
log = logging.getLogger(__name__)


def notify(event: str, text: str, *, dag_id: str, run_id: str) -> None:
    """Send the notifications of this event."""
    from kafka_rebalance_airflow.links import plan_page_url

    values = {"event": event, "text": text, "link": plan_page_url(dag_id, run_id), "dag_id": dag_id, "run_id": run_id}
    for entry in _entries():
        try:
            if event in entry.get("on", EVENTS):
                _notifier(entry)({"kafka_rebalance": values})  # and nothing else: its texts are not to read connections
        except Exception as error:  # its text may hold an address or a token, and so do the entry and the traceback
            name, reason = str(entry.get("notifier")), type(error).__name__
            log.error("%s did not send %r (%s): check the Variable %s", name, event, reason, VARIABLE)


def notify_from(context: Mapping[str, Any], event: str, text: str) -> None:
    """The same from a task."""
    notify(event, text, dag_id=context["dag"].dag_id, run_id=context["run_id"])


def notify_of_failure(context: Mapping[str, Any]) -> None:
    """For ``on_failure_callback`` of a DAG."""
    reason = context.get("reason") or "a task failed"
    notify_from(context, FAILED, f"the run {context['run_id']} of {context['dag'].dag_id} failed: {reason}")


def _entries() -> list[dict[str, Any]]:
    from airflow.sdk import Variable

    try:
        entries = json.loads(Variable.get(VARIABLE, default="[]"))
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise TypeError("it is no list of objects")
    except Exception:
        log.exception("no notification is sent: check the Variable %s", VARIABLE)
        return []
    return entries


def _notifier(entry: Mapping[str, Any]) -> BaseNotifier:
    kind = pkgutil.resolve_name(entry["notifier"])
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise TypeError(f"{entry['notifier']} is no notifier of Airflow")
    made: BaseNotifier = kind(**entry.get("with", {}))
    return made
