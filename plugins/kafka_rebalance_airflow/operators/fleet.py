"""One report about the plans of many clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.links import PlanPageLink

if TYPE_CHECKING:
    from airflow.sdk import Context


class FleetReportOperator(BaseOperator):
    """A page about the plans of many clusters, and the same as JSON; clusters without a plan are listed too.

    Fails, once all is written, if a cluster has no plan.

    :param clusters: the names of the clusters; each has its run below this one.

    Returns where the page is, and a row for each cluster.
    """

    template_fields: Sequence[str] = ("clusters",)
    ui_color = "#dff3e8"
    operator_extra_links = (PlanPageLink(),)

    def __init__(self, *, clusters: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.clusters = clusters

    def execute(self, context: Context) -> dict[str, Any]:
        """Gather the summaries and write the report."""
        from rebalance_lib.artifacts import PLAN, Artifacts
        from rebalance_lib.report import fleet_rows, render_fleet

        root = Artifacts(run_uri(context["dag"].dag_id, context["run_id"]))
        plans = {name: root / name / PLAN for name in self.clusters}
        found = {
            name: plan.read_json("summary.json") if plan.exists("summary.json") else None
            for name, plan in plans.items()
        }
        rows = fleet_rows(found)
        root.write_json("fleet.json", rows)
        root.write_text("fleet.html", render_fleet(rows))
        page = f"{root.uri}/fleet.html"
        self.log.info("%s clusters, report in %s", len(rows), page)
        if missing := [name for name, summary in found.items() if summary is None]:
            raise AirflowFailException(f"no plan for {', '.join(missing)}: check the tasks before; report in {page}")
        return {"report": page, "clusters": rows}
