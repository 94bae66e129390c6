"""Which runs there are: Airflow's database knows them, and the user may read some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from sqlalchemy import select

from kafka_rebalance_airflow.config import artifacts_uri, run_uri
from kafka_rebalance_airflow.pages.content import chosen_name
from kafka_rebalance_airflow.pages.run_status import Documents, run_status
from rebalance_lib.artifacts import Artifacts

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session

RUNS_SHOWN = 20


def run_state(session: Session, dag_id: str, run_id: str) -> str | None:
    """The state of a DAG run; None if Airflow does not know it."""
    state = session.scalar(select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    return None if state is None else str(state)


def listed_runs(user: BaseUser, session: Session) -> dict[str, list[dict[str, Any]]]:
    """By DAG, its newest runs first: of the DAGs that keep artifacts here, and whose runs the user may read."""
    listed = {}
    for dag_id in Artifacts(artifacts_uri()).directories():
        if may_read_runs(user, dag_id) and (found := _newest(session, dag_id)):
            listed[dag_id] = found
    return listed


def may_read_runs(user: BaseUser, dag_id: str) -> bool:
    """Whether Airflow lets the user read the runs of a DAG: the question that the routes of a run ask too."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.RUN, details=details, user=user
    )


def _newest(session: Session, dag_id: str) -> list[dict[str, Any]]:
    query = select(DagRun.run_id, DagRun.state, DagRun.run_after).where(DagRun.dag_id == dag_id)
    rows = session.execute(query.order_by(DagRun.run_after.desc()).limit(RUNS_SHOWN))
    return [_row(dag_id, run_id, str(state), run_after) for run_id, state, run_after in rows]


def _row(dag_id: str, run_id: str, state: str, run_after: Any) -> dict[str, Any]:
    found = Documents.read(Artifacts(run_uri(dag_id, run_id)))
    about = _about_many(found.fleet) if found.fleet is not None else _about_one(found)
    at = run_after.isoformat(timespec="seconds")
    return {"run_id": run_id, "at": at, "status": run_status(found, state), **about}


def _about_one(found: Documents) -> dict[str, Any]:
    summary = found.summary
    if summary is None:
        return {"cluster": None, "mode": None, "bytes": None}
    chosen = summary["candidates"][chosen_name(summary, found.review) or summary["recommended"]]
    return {
        "cluster": summary["cluster_id"],
        "mode": summary["mode"],
        "bytes": chosen["figures"]["bytes_moved"],
    }


def _about_many(fleet: list[dict[str, Any]]) -> dict[str, Any]:
    planned = [one for one in fleet if one["planned"]]
    return {
        "cluster": ", ".join(sorted(one["name"] for one in fleet)),
        "mode": next((one["mode"] for one in planned), None),
        "bytes": sum(one["bytes_moved"] for one in planned),
    }
