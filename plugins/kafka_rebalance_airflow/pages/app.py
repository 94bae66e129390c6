"""The routes. Each checks, with Airflow's own dependencies, that the user may read the DAG run it is about.

A DAG id and a run id become a directory through `kafka_rebalance_airflow.config.run_uri` alone, files are taken from a
fixed list, and everything that is shown is escaped. Pages load nothing from elsewhere and run no script but their own.
"""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.pages import content
from kafka_rebalance_airflow.pages.listing import listed_runs, run_state
from kafka_rebalance_airflow.pages.rendering import fragment, page
from kafka_rebalance_airflow.pages.run_status import AUDIT, FLEET, Documents, run_status
from rebalance_lib.artifacts import PLAN, REVIEW, Artifacts
from rebalance_lib.errors import InvalidInputError

FILES = {  # by the name in the address: where it is in the artifacts
    "report.html": "report.html",
    "fleet.html": "fleet.html",
    "fleet.json": FLEET,
    "plan.json": f"{PLAN}/plan.json",
    "summary.json": f"{PLAN}/summary.json",
    "review.md": f"{PLAN}/review.md",
    "review.json": REVIEW,
    "throttles.json": "throttles.json",
    "audit.json": AUDIT,
}
KINDS = {"html": "text/html", "json": "application/json", "md": "text/plain"}
READ_ONLY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"

app = FastAPI(title="Kafka rebalance", docs_url=None, redoc_url=None, openapi_url=None)
may_read_run = Depends(requires_access_dag(method="GET", access_entity=DagAccessEntity.RUN))


@app.get("/runs")
def runs(request: Request, user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """The newest runs of each DAG that the user may read."""
    return page(request, "runs.html.j2", {"dags": listed_runs(user, session)})


@app.get("/runs/{dag_id}/{run_id:path}", dependencies=[may_read_run])
def run(request: Request, dag_id: str, run_id: str, session: SessionDep, candidate: str | None = None) -> HTMLResponse:
    """The page of a run."""
    artifacts = _artifacts(dag_id, run_id)
    found = Documents.read(artifacts) if artifacts else None
    named: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id}
    if artifacts is None or found is None or (found.summary is None and found.fleet is None):
        return page(request, "missing.html.j2", named, status_code=404)
    named |= {
        "status": run_status(found, run_state(session, dag_id, run_id)),
        "files": [name for name, path in FILES.items() if artifacts.exists(path)],
        "uri": artifacts.uri,
    }
    if found.summary is None:
        return page(request, "fleet_run.html.j2", {**named, "rows": found.fleet})
    listed = content.candidates(found.summary, found.review)
    values = {
        "plan": found.summary,
        "review": found.review,
        "progress": found.progress,
        "candidates": listed,
        "detail": content.detail(content.shown(listed, candidate)),
        "record": content.record(found.audit) if found.audit else None,
    }
    return page(request, "run.html.j2", {**named, **values})


@app.get("/progress/{dag_id}/{run_id:path}", dependencies=[may_read_run])
def progress(dag_id: str, run_id: str, session: SessionDep) -> JSONResponse:
    """The status of the run now, as data and as the part of the page that shows it."""
    artifacts = _artifacts(dag_id, run_id)
    found = Documents.read(artifacts) if artifacts else None
    if found is None or found.summary is None:
        return JSONResponse({"detail": "no plan yet"}, status_code=404)
    status = run_status(found, run_state(session, dag_id, run_id))
    answer: dict[str, Any] = {"state": status.state, "label": status.label, "over": status.over}
    html = fragment("progress.html.j2", progress=found.progress) if found.progress else ""
    return JSONResponse({**answer, "progress": found.progress, "html": html}, headers={"Cache-Control": "no-store"})


@app.get("/files/{name}/{dag_id}/{run_id:path}", dependencies=[may_read_run])
def file(name: str, dag_id: str, run_id: str) -> Response:
    """A file of the run, one of a few; whatever it holds, nothing in it is run."""
    artifacts = _artifacts(dag_id, run_id)
    if artifacts is None or name not in FILES or not artifacts.exists(FILES[name]):
        return JSONResponse({"detail": f"{name} is not among the files of this run"}, status_code=404)
    headers = {"Content-Security-Policy": READ_ONLY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(artifacts.read_text(FILES[name]), media_type=KINDS[name.rpartition(".")[2]], headers=headers)


def _artifacts(dag_id: str, run_id: str) -> Artifacts | None:
    try:
        return Artifacts(run_uri(dag_id, run_id))
    except InvalidInputError:
        return None
