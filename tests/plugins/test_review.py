"""Reminders of a plan that waits."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from kafka_rebalance_airflow.sensors import review
from kafka_rebalance_airflow.sensors.review import RemindReviewersSensor


@pytest.fixture
def poke(tmp_path, monkeypatch):
    """Look at a review of this state at this moment, by a sensor of its own, as each look is; returns what was told."""

    def look(state, now, hours=1.0):
        told = []
        monkeypatch.setattr(review, "notify_from", lambda context, event, text: told.append(event))
        monkeypatch.setattr(review.time, "time", lambda: now)
        states = {"manual__1": {"review_plan": state}}
        context = {
            "dag": SimpleNamespace(dag_id="kafka_rebalance"),
            "run_id": "manual__1",
            "ti": SimpleNamespace(get_task_states=lambda **_: states),
        }
        sensor = RemindReviewersSensor(task_id="remind", run_uri=tmp_path.as_uri(), hours=hours)
        return sensor.poke(context), told

    return look


def test_a_plan_that_waits_is_told_of_every_so_often(poke):
    found = [poke("awaiting_input", now) for now in (1000.0, 2000.0, 4600.0, 4700.0, 8200.0)]
    assert found == [(False, []), (False, []), (False, ["reminder"]), (False, []), (False, ["reminder"])]


def test_it_ends_when_the_plan_waits_no_more(poke):
    assert poke("running", 1000.0) == (False, [])
    assert poke("success", 1000.0) == (True, [])
    assert poke("failed", 1000.0) == (True, [])


def test_no_reminder_is_wanted(poke):
    with pytest.raises(AirflowSkipException):
        poke("awaiting_input", 1000.0, hours=0)
