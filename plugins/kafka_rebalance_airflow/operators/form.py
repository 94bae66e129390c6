"""The first step: is the form all right?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.fields import check_names
from kafka_rebalance_airflow.form import read_form
from kafka_rebalance_airflow.hooks.kafka_admin import KafkaAdminHook

if TYPE_CHECKING:
    from airflow.sdk import Context


class CheckFormOperator(BaseOperator):
    """Refuse a form that makes no sense, before anything is read or changed; returns it taken apart, for others.

    :param problem: why every form is refused, such as what is wrong in the file of clusters.
    """

    ui_color = "#e3eefa"

    def __init__(self, *, problem: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.problem = problem

    def execute(self, context: Context) -> dict[str, Any]:
        """Check the run's params, and that the connection, if it asks for one, is there.

        What is triggered through the API may have fields that the form has not, which Airflow lets through.
        """
        if self.problem:
            raise AirflowFailException(f"nothing new begins until this is right: {self.problem}")
        try:
            check_names(context["params"], context["dag"].params)
            form = read_form(context["params"])
            if form.kafka_conn_id:
                KafkaAdminHook(form.kafka_conn_id).settings()
        except ValueError as error:
            raise AirflowFailException(f"the form is not acceptable: {error}") from error
        return form.as_dict()
