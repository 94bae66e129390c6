"""The docs name every field, DAG, option and event that there is; their pictures and links lead somewhere."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from airflow.sdk import DAG, BaseOperator

from kafka_rebalance_airflow.clusters import read_clusters
from kafka_rebalance_airflow.notifications import EVENTS, VARIABLE
from kafka_rebalance_airflow.provider import get_provider_info

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
PICTURES = ROOT / "docs" / "images"
AIRFLOW = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
OF_RUNS = ("kafka_rebalance", "kafka_rebalance_adjust", "kafka_rebalance_cancel", "kafka_rebalance_rollback")
SCHEDULED = "kafka_rebalance_scheduled_"  # and the name of a cluster
OF_OTHERS = {  # Airflow, Python and Spark say these
    "Error code is: 1. Last spark-submit output:",
    "No such file or directory: 'spark-submit'",
    "JAVA_HOME is not set",
    "All masters are unresponsive",
    "ModuleNotFoundError: No module named 'rebalance_lib'",
}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def rows(text, first):
    """The tables whose header begins with this cell, as rows of cells."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        inside = bool(cells) and (inside or cells[0] == first)
        if inside and cells[0] != first and not cells[0].startswith("---"):
            found.append(cells)
    return found


def blocks(language):
    """The examples on the page of the DAGs in this language."""
    return re.findall(rf"```{language}\n(.*?)```", AIRFLOW, flags=re.DOTALL)


def messages():
    """Every text in the code, without the values that are put into it."""
    for file in (file for top in ("rebalance_lib", "plugins") for file in (ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "...".join(part.value for part in node.values if isinstance(part, ast.Constant))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [target for target in LINK.findall(text) if "://" not in target]


def anchors(page):
    """What a heading is called in a link: its words in small letters with dashes between them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_dag_is_explained(dagbag):
    named = {cells[0].strip("`") for cells in rows(AIRFLOW, "DAG")}
    there = {f"{SCHEDULED}NAME" if dag_id.startswith(SCHEDULED) else dag_id for dag_id in dagbag.dags}
    assert named == there
    assert not [dag_id for dag_id in there if f"## {dag_id}\n" not in AIRFLOW]


def test_every_field_of_every_form_is_in_a_table_with_its_title(dagbag):
    documented = {(cells[0].strip("`"), cells[1]) for cells in rows(AIRFLOW, "field")}
    there = {(name, dag.params.get_param(name).schema["title"]) for dag in dagbag.dags.values() for name in dag.params}
    assert documented == there


def test_fields_have_the_order_and_the_defaults_of_the_form(dagbag):
    params = dagbag.dags["kafka_rebalance"].params
    told = [(cells[0].strip("`"), cells[3].strip("`")) for cells in rows(AIRFLOW, "field")]
    words = {"None": "empty", "[]": "empty", "True": "yes", "False": "no"}
    there = [(name, words.get(str(params[name]), str(params[name]))) for name in params]
    assert told[: len(there)] == there


def test_it_says_how_often_each_step_is_tried_again(dagbag):
    told = {cells[0].strip("`"): cells[2] for cells in rows(AIRFLOW, "step") if len(cells) == 3}
    words = ["no", "once", "twice", "three times", "four times", "five times"]
    assert told == {task.task_id: words[task.retries] for task in dagbag.dags["kafka_rebalance"].tasks}


@pytest.mark.parametrize("dag_id", OF_RUNS)
def test_every_step_is_explained(dagbag, dag_id):
    assert not [task.task_id for task in dagbag.dags[dag_id].tasks if f"`{task.task_id}`" not in AIRFLOW]


def test_every_step_that_can_fail_is_in_the_runbook(dagbag):
    for dag_id in OF_RUNS:
        tasks = {task.task_id for task in dagbag.dags[dag_id].tasks} - {"remind_reviewers"}
        assert not [task for task in tasks if f"`{task}`" not in RUNBOOK]


def test_every_option_of_the_installation_is_explained():
    assert {cells[0].strip("`") for cells in rows(AIRFLOW, "option")} == set(
        get_provider_info()["config"]["kafka_rebalance"]["options"]
    )


def test_every_event_and_variable_is_explained():
    assert [cells[0].strip("`") for cells in rows(AIRFLOW, "event")] == list(EVENTS)
    assert f"`{VARIABLE}`" in AIRFLOW


def test_the_example_of_the_file_of_clusters_is_read(tmp_path, monkeypatch):
    monkeypatch.delenv("AIRFLOW__KAFKA_REBALANCE__CLUSTERS")
    file = tmp_path / "kafka_clusters.yaml"
    file.write_text(next(block for block in blocks("yaml") if "production:" in block))
    known = {one.name: one for one in read_clusters(file).clusters}
    assert known["production"].fields["window"] == "20:00-07:00 Europe/Berlin"
    assert (known["staging"].schedule, known["archive"].schedule) == ("snapshot", None)


def test_the_examples_of_dag_files_make_dags():
    made = {}
    for block in blocks("python"):
        names: dict[str, object] = {}
        exec(block, names)  # noqa: S102 - our own page
        made |= {task.dag.dag_id: task.dag for task in names.values() if isinstance(task, BaseOperator)}
        made |= {dag.dag_id: dag for dag in names.values() if isinstance(dag, DAG)}
    assert made["rebalance_orders"].params["topics"] == ["orders-*"]
    assert [task.task_id for task in made["nightly_plan"].topological_sort()] == ["snapshot", "plan"]


def test_the_example_of_notifiers_is_for_events_that_there_are():
    entries = json.loads(blocks("json")[0])
    assert {event for entry in entries for event in entry.get("on", EVENTS)} == set(EVENTS)
    assert {key for entry in entries for key in entry} == {"notifier", "with", "on"}


def test_the_runbook_quotes_what_the_code_says():
    said = "\n".join(messages())
    for quote in re.findall(r'"([^"]+)"', re.sub(r"```.*?```|\s+", " ", RUNBOOK, flags=re.DOTALL)):
        for part in quote.split("..."):
            words = part.strip(" :;,.()").split()
            runs = [" ".join(words[start : start + 3]) for start in range(len(words) - 2)]
            assert len(words) < 4 or part.strip() in OF_OTHERS or any(run in said for run in runs), quote


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_what_is_there(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_every_picture_is_shown_somewhere_with_words_for_it():
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if words
    }
    assert shown == set(PICTURES.iterdir())


def test_pictures_are_small():
    assert not [file.name for file in PICTURES.iterdir() if file.stat().st_size > 250_000]
