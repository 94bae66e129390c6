"""Pause, resume or adjust a run that is under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.operators.cancellation import OfRunOperator, triggered_by
from kafka_rebalance_airflow.templates import as_object

if TYPE_CHECKING:
    from airflow.sdk import Context

ADJUST, PAUSE, RESUME = "adjust", "pause", "resume"
NO_WINDOW = "always"  # in the form, an empty window is one that does not change


class AdjustRunOperator(OfRunOperator):
    """Request that a run pauses, resumes, or goes on with other settings; it does so at its next check.

    All values are checked before the first request is made. Requests outlive a restart of the triggerer, and are
    recorded with the name of the user who triggered this run.

    :param action: ``pause``, ``resume`` or ``adjust``.
    :param changes: for ``adjust``: the settings to change, by the names of `rebalance_lib.execution.Kind`, or JSON of
        such an object; empty ones do not change.

    Returns the requests in words.
    """

    template_fields: Sequence[str] = (*OfRunOperator.template_fields, "action", "changes")
    ui_color = "#dff3e8"

    def __init__(self, *, action: str, changes: Mapping[str, Any] | str = "{}", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.changes = changes

    def execute(self, context: Context) -> list[str]:
        """Check the values, then write the requests."""
        from rebalance_lib.execution import Kind, make_request

        changes = _given(as_object(self.changes))
        if self.action == ADJUST:
            wanted = _checked(changes)
        else:
            if changes:
                raise AirflowFailException(
                    f"{self.action} takes no values, but {', '.join(changes)} was given: choose {ADJUST} to change it"
                )
            wanted = {Kind(self.action): None}
        run = self.find_run(context)
        if not self.is_active(context):
            raise AirflowFailException(
                f"the run {self.of_run_id} of {self.of_dag_id} has ended, so that there is nothing to {self.action}"
            )
        by = triggered_by(context)
        requests = [str(make_request(run.artifacts, kind, value, by=by)) for kind, value in wanted.items()]
        for request in requests:
            self.log.info("%s: %s", run.uri, request)
        return requests


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are filled in."""
    given = {name: value for name, value in values.items() if value not in (None, "", [])}
    if given.get("window") == NO_WINDOW:
        given["window"] = ""
    if isinstance(topics := given.get("exclude_topics"), list):
        given["exclude_topics"] = [str(topic).strip() for topic in topics if str(topic).strip()]
    return given


def _checked(changes: Mapping[str, Any]) -> dict[Any, Any]:
    """The same by their kinds.

    Raises:
        AirflowFailException: Some are not acceptable; the message names each field.
    """
    from rebalance_lib.errors import InvalidInputError
    from rebalance_lib.execution import Kind
    from rebalance_lib.execution.requests import SETTINGS, check_request

    if not changes:
        raise AirflowFailException("nothing is to change: give at least one value")
    adjustable = {*SETTINGS, Kind.EXCLUDE_TOPICS}
    wrong, wanted = [], {}
    for name, value in changes.items():
        if name not in adjustable:
            wrong.append(f"{name}: there is no such setting, only {', '.join(sorted(adjustable))}")
            continue
        try:
            check_request(Kind(name), value)
            wanted[Kind(name)] = value
        except InvalidInputError as error:
            wrong.append(f"{name}: {error}")
    if wrong:
        raise AirflowFailException(f"the form is not acceptable: {'; '.join(wrong)}")
    return wanted
