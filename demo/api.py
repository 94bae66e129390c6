"""Airflow's REST API, as much of it as one rebalance needs."""

from __future__ import annotations

import time
from copy import copy
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
        self.dag_id = DAG
        self._client = httpx.Client(base_url=url, timeout=30)
        token = self._call("POST", "/auth/token", json={"username": user, "password": password})["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def wait_for_dag(self, seconds: float = 120) -> None:
        """Wait until the dag processor has found the DAG."""
        deadline = time.monotonic() + seconds
        while self._client.get(f"/api/v2/dags/{self.dag_id}").status_code != 200:
            if time.monotonic() > deadline:
                errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
                raise TimeoutError(
                    f"Airflow did not find the DAG {self.dag_id} in {seconds:.0f} s; import errors: {errors}"
                )
            time.sleep(0.5)

    def of(self, dag_id: str) -> AirflowApi:
        """The same client for another DAG."""
        other = copy(self)
        other.dag_id = dag_id
        return other

    def trigger(self, conf: dict[str, Any]) -> str:
        """Start a run; returns its id."""
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        run = {"dag_run_id": run_id, "logical_date": None, "conf": conf}
        self._call("POST", f"/api/v2/dags/{self.dag_id}/dagRuns", json=run)
        return run_id

    def mark_failed(self, run_id: str) -> None:
        """Mark a run as failed, as a person does in the UI."""
        self._call("PATCH", self._run(run_id), json={"state": "failed"})

    def clear(self, run_id: str, task_ids: list[str]) -> None:
        """Clear tasks of a run with all that follows them, so that they run again."""
        wanted = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": task_ids,
            "include_downstream": True,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._call("POST", f"/api/v2/dags/{self.dag_id}/clearTaskInstances", json=wanted)

    def run_state(self, run_id: str) -> str:
        """The state of a run."""
        return str(self._call("GET", self._run(run_id))["state"])

    def task_states(self, run_id: str) -> dict[str, str | None]:
        """The state of each task of a run."""
        tasks = self._call("GET", f"{self._run(run_id)}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}

    def task_instance_id(self, run_id: str, task_id: str) -> str:
        """The id of a task's current try."""
        return str(self._call("GET", f"{self._run(run_id)}/taskInstances/{task_id}")["id"])

    def try_number(self, run_id: str, task_id: str) -> int:
        """How often a task was tried."""
        return int(self._call("GET", f"{self._run(run_id)}/taskInstances/{task_id}")["try_number"])

    def xcom(self, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """A value that a task left, or None."""
        path = f"{self._run(run_id)}/taskInstances/{task_id}/xcomEntries/{key}"
        answer = self._call("GET", path, params={"deserialize": True}, missing_ok=True)
        return answer and answer["value"]

    def pending_review(self, run_id: str) -> dict[str, Any] | None:
        """The review that waits for an answer, or None; one that its task still asks is not ready for it."""
        details = self._call("GET", f"{self._run(run_id)}/hitlDetails", params={"response_received": False})
        parked = [detail for detail in details["hitl_details"] if detail["task_instance"]["state"] == "awaiting_input"]
        return next(iter(parked), None)

    def answer_review(self, run_id: str, option: str, changed: dict[str, Any] | None = None) -> None:
        """Approve or reject, with other values for fields of the review."""
        path = f"{self._run(run_id)}/taskInstances/review_plan/-1/hitlDetails"
        self._call("PATCH", path, json={"chosen_options": [option], "params_input": changed or {}})

    def run_status(self, run_id: str) -> str:
        """The status of a run, in the words of its page."""
        return str(self._call("GET", f"/kafka-rebalance/progress/{self.dag_id}/{quote(run_id, safe='')}")["label"])

    def task_log(self, run_id: str, task_id: str) -> str:
        """What a task logged in its last try."""
        path = f"{self._run(run_id)}/taskInstances/{task_id}/logs/{self.try_number(run_id, task_id)}"
        content = self._call("GET", path, params={"map_index": -1})["content"]
        return "\n".join(_described(line) if isinstance(line, dict) else str(line) for line in content)

    def _run(self, run_id: str) -> str:
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{quote(run_id, safe='')}"

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


def _described(line: dict[str, Any]) -> str:
    """A line of a log, with the error that it is about."""
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ()]
    return " ".join([str(line.get("event", line)), *errors])
