"""Airflow's REST API, as much of it as one rebalance needs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx

DAG = "kafka_rebalance"
ATTEMPTS = 10
FINISHED = ("success", "failed")


class AirflowApi:
    """A signed-in client; requests that SQLite was too busy for are tried again."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30)
        token = self._call("POST", "/auth/token", json={"username": user, "password": password})["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def wait_for_dag(self, seconds: float = 120) -> None:
        """Wait until the dag processor has found the DAG."""
        deadline = time.monotonic() + seconds
        while self._client.get(f"/api/v2/dags/{DAG}").status_code != 200:
            if time.monotonic() > deadline:
                errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
                raise TimeoutError(f"Airflow did not find the DAG {DAG} in {seconds:.0f} s; import errors: {errors}")
            time.sleep(0.5)

    def trigger(self, conf: dict[str, Any]) -> str:
        """Start a run; returns its id."""
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        run = {"dag_run_id": run_id, "logical_date": None, "conf": conf}
        self._call("POST", f"/api/v2/dags/{DAG}/dagRuns", json=run)
        return run_id

    def run_state(self, run_id: str) -> str:
        """The state of a run."""
        return str(self._call("GET", self._run(run_id))["state"])

    def task_states(self, run_id: str) -> dict[str, str | None]:
        """The state of each task of a run."""
        tasks = self._call("GET", f"{self._run(run_id)}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}

    def xcom(self, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """A value that a task left, or None."""
        path = f"{self._run(run_id)}/taskInstances/{task_id}/xcomEntries/{key}"
        answer = self._call("GET", path, params={"deserialize": True}, missing_ok=True)
        return answer and answer["value"]

    def pending_review(self, run_id: str) -> dict[str, Any] | None:
        """The review that waits for an answer, or None."""
        details = self._call("GET", f"{self._run(run_id)}/hitlDetails", params={"response_received": False})
        return next(iter(details["hitl_details"]), None)

    def answer_review(self, run_id: str, option: str) -> None:
        """Approve or reject."""
        path = f"{self._run(run_id)}/taskInstances/review_plan/-1/hitlDetails"
        self._call("PATCH", path, json={"chosen_options": [option], "params_input": {}})

    def task_log(self, run_id: str, task_id: str) -> str:
        """What a task logged in its last try."""
        task = f"{self._run(run_id)}/taskInstances/{task_id}"
        path = f"{task}/logs/{self._call('GET', task)['try_number']}"
        content = self._call("GET", path, params={"map_index": -1})["content"]
        return "\n".join(str(line.get("event", line)) if isinstance(line, dict) else str(line) for line in content)

    def _run(self, run_id: str) -> str:
        return f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id, safe='')}"

    def _call(self, method: str, path: str, *, missing_ok: bool = False, **arguments: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = self._client.request(method, path, **arguments)
            except httpx.TransportError:
                if attempt == ATTEMPTS:
                    raise
            else:
                if answer.status_code == 404 and missing_ok:
                    return None
                if answer.status_code == 409 and attempt > 1:
                    return {}  # the try before did it, and its answer got lost
                if answer.status_code < 500 or attempt == ATTEMPTS:
                    answer.raise_for_status()
                    return answer.json()
            time.sleep(1)
        raise AssertionError("unreachable")
