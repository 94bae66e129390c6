"""Sensors go on after an error of a poll: Airflow or Kafka may not answer once in an hour or a week of waiting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from kafka_rebalance_airflow.sensors.cancellation import RunAtRestSensor
from kafka_rebalance_airflow.sensors.cluster_lock import ClusterLockSensor
from kafka_rebalance_airflow.sensors.review import RemindReviewersSensor

SENSORS = {
    "wait_for_run": lambda: RunAtRestSensor(task_id="wait_for_run", of_dag_id="d", of_run_id="r"),
    "remind_reviewers": lambda: RemindReviewersSensor(task_id="remind_reviewers", run_uri="file:///r", hours=1),
    "claim_cluster": lambda: ClusterLockSensor(task_id="claim_cluster", kafka_conn_id="k"),
}


class Ti:
    """A task that has been rescheduled, or not yet."""

    def __init__(self, first=None):
        self.first = first

    def get_first_reschedule_date(self, context):
        return self.first


@pytest.fixture
def poll(monkeypatch):
    """Let a sensor poll once, with this error."""

    def poll(name, error, *, waits):
        sensor = SENSORS[name]()

        def fail(_):
            raise error

        monkeypatch.setattr(sensor, "poke", fail)
        sensor.execute({"ti": Ti(datetime.now(UTC) if waits else None)})

    return poll


@pytest.mark.parametrize("name", SENSORS)
def test_a_sensor_that_waits_goes_on_after_an_error(poll, name):
    with pytest.raises(AirflowRescheduleException):
        poll(name, RuntimeError("the API server did not answer"), waits=True)


def test_a_cluster_that_cannot_be_reached_at_first_is_an_error_at_once(poll):
    with pytest.raises(RuntimeError, match="cannot reach"):
        poll("claim_cluster", RuntimeError("cannot reach a Kafka cluster"), waits=False)


def test_a_run_that_is_cancelled_while_it_waits_ends(poll):
    with pytest.raises(AirflowFailException):
        poll("claim_cluster", AirflowFailException("cancel requested"), waits=True)
