"""Links on the pages of tasks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

from kafka_rebalance_airflow.links import PlanPageLink, SparkUiLink, master_ui, plan_page_url

DAGS = Path(__file__).resolve().parents[2] / "dags"


def test_the_plan_s_page_is_a_tab_of_the_dag_run(monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/below/")
    tab = "https://airflow.example/below/dags/a.b/runs/manual__1%3A2%2B3%2F/plugin/kafka-rebalance-run"
    assert plan_page_url("a.b", "manual__1:2+3/") == tab
    task = SimpleNamespace(dag_id="a.b", run_id="manual__1:2+3/")
    assert PlanPageLink().get_link(None, ti_key=task) == tab


@pytest.mark.parametrize(
    ("conn_type", "host", "page"),
    [
        ("spark", "spark://master:7077", "http://master:8080"),
        ("spark", "spark://one:7077,two:7077", "http://one:8080"),
        ("spark", "master", "http://master:8080"),  # its port is a field of its own
        ("spark", "local[*]", ""),
        ("spark", "yarn", ""),
        ("spark", "k8s://https://cluster", ""),
        ("yarn", "anything", ""),
        ("spark", "", ""),
    ],
)
def test_a_standalone_master_has_a_page(conn_type, host, page):
    assert master_ui(conn_type, host) == page


def test_the_page_of_spark_is_the_one_that_was_set_or_the_master_of_the_connection(monkeypatch):
    operator = SimpleNamespace(_conn_id="spark_test")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", '{"conn_type": "spark", "host": "spark://master", "port": 7077}')
    assert SparkUiLink().get_link(operator, ti_key=None) == "http://master:8080"
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__SPARK_UI", "https://history.example/")
    assert SparkUiLink().get_link(operator, ti_key=None) == "https://history.example"


def test_every_task_links_to_the_plan_after_the_dag_went_through_the_database():
    bag = DagBag(DAGS)
    dag = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags["kafka_rebalance"]))
    links = {task.task_id: task.extra_links for task in dag.tasks}
    assert links.pop("compute_placement") == ["Plan", "Spark UI"]
    without = {task for task, names in links.items() if not names}
    assert without == {"check_form", "claim_cluster", "remind_reviewers"}  # there is no plan yet, or none to look at
    assert {tuple(names) for task, names in links.items() if task not in without} == {("Plan",)}
