"""The DAGs as a scheduler sees them: tasks, order, rules, and what it costs to read them."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import pytest

from kafka_rebalance_airflow.fields import MODES
from rebalance_lib.planner import Mode
from tests.dags.conftest import CLUSTERS, DAGS, read_dags

FIRST = ["check_form", "claim_cluster"]
LAST = ["review_plan", "arm", "apply_throttle", "execute_plan", "verify_plan", "remove_throttle", "finalize"]
CHAINS = {
    "kafka_rebalance": [*FIRST, "snapshot_topology", "compute_placement", *LAST],
    "kafka_rebalance_scheduled_first": [*FIRST, "snapshot_topology", "compute_placement", *LAST],
    "kafka_rebalance_scheduled_second": [*FIRST, "snapshot_topology", "compute_placement", *LAST],
    "kafka_rebalance_rollback": [*FIRST, "prepare_rollback", *LAST],
    "kafka_rebalance_adjust": ["adjust_run"],
    "kafka_rebalance_cancel": ["ask_to_cancel", "wait_for_run", "clean_up"],
    "kafka_fleet_plan": ["check_form", "snapshot_first", "compute_placement", "report"],
    "kafka_snapshot": ["snapshot_first", "tidy"],
    "kafka_history": ["snapshot_first", "forecast_capacity"],
}
BESIDE = {
    **{dag_id: {"remind_reviewers"} for dag_id, chain in CHAINS.items() if "review_plan" in chain},
    "kafka_fleet_plan": {"snapshot_second"},
    "kafka_snapshot": {"snapshot_second"},
    "kafka_history": {"snapshot_second", "compact_history"},
}
REVIEWED = {
    "check_form": 2,
    "claim_cluster": 2,
    "review_plan": 5,
    "remind_reviewers": 0,
    "arm": 2,
    "apply_throttle": 2,
    "execute_plan": 2,
    "verify_plan": 3,
    "remove_throttle": 5,
    "finalize": 2,
}
REBALANCED = {**REVIEWED, "snapshot_topology": 2, "compute_placement": 1}
SNAPSHOTS = {"snapshot_first": 1, "snapshot_second": 1}
RETRIES = {
    "kafka_rebalance": REBALANCED,
    "kafka_rebalance_scheduled_first": REBALANCED,
    "kafka_rebalance_scheduled_second": REBALANCED,
    "kafka_rebalance_rollback": {**REVIEWED, "prepare_rollback": 2},
    "kafka_rebalance_adjust": {"adjust_run": 0},
    "kafka_rebalance_cancel": {"ask_to_cancel": 0, "wait_for_run": 2, "clean_up": 5},
    "kafka_fleet_plan": {
        "check_form": 2,
        "snapshot_first": 1,
        "snapshot_second": 1,
        "compute_placement": 1,
        "report": 0,
    },
    "kafka_snapshot": {"snapshot_first": 1, "snapshot_second": 1, "tidy": 1},
    "kafka_history": {"snapshot_first": 1, "snapshot_second": 1, "forecast_capacity": 1, "compact_history": 1},
}
REBALANCING = [dag_id for dag_id, chain in CHAINS.items() if "arm" in chain]


def test_all_are_read_without_error_or_warning(dagbag):
    assert dagbag.import_errors == {}
    assert dagbag.captured_warnings == {}
    assert sorted(dagbag.dags) == sorted(CHAINS)


@pytest.mark.parametrize("dag_id", CHAINS)
def test_it_has_exactly_these_tasks_in_this_order(dagbag, dag_id):
    dag, chain = dagbag.dags[dag_id], CHAINS[dag_id]
    assert {task.task_id for task in dag.tasks} == {*chain, *BESIDE.get(dag_id, ())}
    for earlier, later in pairwise(chain):
        assert later in dag.get_task(earlier).downstream_task_ids
    assert dag.doc_md
    assert "kafka" in dag.tags


@pytest.mark.parametrize("dag_id", REBALANCING)
def test_the_clean_up_runs_whatever_happened_once_the_run_is_armed(dagbag, dag_id):
    dag = dagbag.dags[dag_id]
    assert [t.task_id for t in dag.tasks if t.is_setup] == ["arm"]
    assert [t.task_id for t in dag.topological_sort() if t.is_teardown] == ["remove_throttle", "finalize"]
    assert dag.get_task("finalize").on_failure_fail_dagrun
    assert dag.get_task("remove_throttle").upstream_task_ids == {"arm", "verify_plan"}
    assert dag.get_task("finalize").upstream_task_ids == {"remove_throttle"}, "it ends runs that were never armed too"
    assert dag.dagrun_timeout is None


@pytest.mark.parametrize("dag_id", CHAINS)
def test_how_often_each_task_is_tried_again(dagbag, dag_id):
    assert {task.task_id: task.retries for task in dagbag.dags[dag_id].tasks} == RETRIES[dag_id]


@pytest.mark.parametrize("dag_id", REBALANCING)
def test_rules(dagbag, dag_id):
    dag = dagbag.dags[dag_id]
    rules = {task.task_id: task.trigger_rule.value for task in dag.tasks}
    teardowns = dict.fromkeys(["remove_throttle", "finalize"], "all_done_setup_success")
    assert rules == {**dict.fromkeys(rules, "all_success"), **teardowns}
    assert dag.get_task("remind_reviewers").downstream_task_ids == set()
    assert (dag.max_active_runs == 1) == ("scheduled" in dag_id)  # others wait for the cluster lock


def test_one_cluster_that_fails_does_not_keep_others_from_their_plan(dagbag):
    fleet, snapshot = dagbag.dags["kafka_fleet_plan"], dagbag.dags["kafka_snapshot"]
    assert fleet.get_task("compute_placement").trigger_rule.value == "all_done_min_one_success"
    assert fleet.get_task("report").trigger_rule.value == "all_done"
    assert snapshot.get_task("tidy").is_teardown
    assert not snapshot.get_task("tidy").on_failure_fail_dagrun


def test_the_history_is_maintained_once_a_day_and_each_failure_fails_the_run(dagbag):
    dag = dagbag.dags["kafka_history"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("30 1 * * *", False, 1)
    assert dag.get_task("forecast_capacity").trigger_rule.value == "all_done_min_one_success"
    assert {task.task_id for task in dag.leaves} == {"forecast_capacity", "compact_history"}
    assert dag.max_active_tasks == 1, "the forecast reads files that compaction removes"


def test_a_cluster_of_the_file_has_its_schedule_and_its_defaults(dagbag):
    first, second = (dagbag.dags[f"kafka_rebalance_scheduled_{name}"] for name in ("first", "second"))
    assert first.schedule == "0 20 * * sat"
    assert (first.params["window"], first.params["threshold_bytes"]) == ("20:00-07:00 Europe/Berlin", 0.5)
    assert (second.params["review"], second.params["max_bytes"]) == ("automatic", 1_000_000)
    published = [asset.name for asset in dagbag.dags["kafka_snapshot"].get_task("snapshot_second").outlets]
    assert published == ["kafka_snapshot_second"]
    assert [asset.name for asset in second.schedule] == published


def test_what_is_triggered_by_hand_runs_at_once_and_what_has_a_schedule_waits_to_be_unpaused(dagbag):
    paused = {dag_id for dag_id, dag in dagbag.dags.items() if dag.is_paused_upon_creation}
    assert paused == {dag_id for dag_id, dag in dagbag.dags.items() if dag.schedule}
    assert {dag.is_paused_upon_creation for dag_id, dag in dagbag.dags.items() if dag_id not in paused} == {False}


@pytest.fixture
def dags_of(tmp_path, monkeypatch):
    """The DAGs with this text as the file of clusters, and the errors of their files."""
    file = tmp_path / "clusters.yaml"
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__CLUSTERS", str(file))

    def read(text):
        file.write_text(text)
        return read_dags()

    return read


@pytest.mark.parametrize("typo", ["thresold_bytes: 0.5", "threshold_bytes: [0.5"])
def test_a_typo_in_one_entry_is_an_import_error_and_costs_the_schedule_of_that_cluster_alone(dags_of, typo):
    bag = dags_of(CLUSTERS.replace("threshold_bytes: 0.5", typo))
    ((file, error),) = bag.import_errors.items()
    assert file.endswith("kafka_clusters.py")
    assert "clusters.yaml: cluster first: " in error
    assert sorted(bag.dags) == sorted(CHAINS)
    first, second = (bag.dags[f"kafka_rebalance_scheduled_{name}"] for name in ("first", "second"))
    assert (first.schedule, first.get_task("check_form").problem in error) == (None, True)
    assert first.params["kafka_conn_id"] == "kafka_default"
    assert second.get_task("check_form").problem == ""
    assert [asset.name for asset in second.schedule] == ["kafka_snapshot_second"]
    assert bag.dags["kafka_snapshot"].has_task("snapshot_first"), "it restores throttles that dead runs left"


def test_steps_of_a_run_that_is_under_way_are_there_though_the_file_of_clusters_cannot_be_read(dags_of):
    bag = dags_of("clusters: [")
    there = {"kafka_rebalance", "kafka_rebalance_adjust", "kafka_rebalance_cancel", "kafka_rebalance_rollback"}
    assert set(bag.dags) == there
    assert "this is no YAML" in bag.dags["kafka_rebalance"].get_task("check_form").problem


@pytest.mark.parametrize("dag_id", REBALANCING)
def test_the_clean_up_needs_no_form_and_no_file_of_clusters(dagbag, dag_id):
    for task_id in ("remove_throttle", "finalize"):
        task = dagbag.dags[dag_id].get_task(task_id)
        assert (task.kafka_conn_id, "params" in task.run_uri) == ("", False)


def test_the_form_has_every_mode_in_the_planner_s_words():
    assert {str(mode): f"{mode}: {mode.explained}" for mode in Mode} == MODES


def test_what_is_no_setting_of_a_run_is_handed_to_the_step_that_refuses_it(dagbag):
    params = {"dag_id": "kafka_rebalance", "run_id": "one", "action": "adjust", "throtle": 5, "window": None}
    template = dagbag.dags["kafka_rebalance_adjust"].get_task("adjust_run").changes
    changes = dagbag.dags["kafka_rebalance_adjust"].get_template_env().from_string(template).render(params=params)
    assert json.loads(changes) == {"throtle": 5, "window": None}


@pytest.mark.parametrize("dag_id", REBALANCING)
def test_every_field_has_a_title_and_a_help_text(dagbag, dag_id):
    for name in dagbag.dags[dag_id].params:
        param = dagbag.dags[dag_id].params.get_param(name)
        assert param.schema.get("title"), name
        assert param.description, name


@pytest.mark.programs
def test_reading_the_files_imports_neither_spark_nor_kafka():
    script = (
        "import runpy, sys; [runpy.run_path(file) for file in sys.argv[1:]];"
        "print([m for m in ('kafka', 'pyspark', 'pandas', 'pyarrow', 'numba') if m in sys.modules])"
    )
    files = sorted(map(str, DAGS.glob("*.py")))
    answer = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


@pytest.mark.programs
def test_reading_a_file_takes_little_of_the_processor():
    """Each is read by a process of its own that has imported Airflow, as the dag-processor does."""
    script = (
        "import os, runpy, sys, time\n"
        "import airflow.providers.apache.spark.operators.spark_submit, airflow.providers.standard.operators.hitl\n"
        "for file in sys.argv[1:]:\n"
        "    if not os.fork():\n"
        "        began = time.process_time()\n"
        "        runpy.run_path(file)\n"
        "        print('took', time.process_time() - began, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    files = sorted(map(str, DAGS.glob("*.py")))
    answer = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True, check=True)
    seconds = [float(line.split()[1]) for line in answer.stdout.splitlines() if line.startswith("took ")]
    assert len(seconds) == len(files)
    assert max(seconds) < 1, dict(zip(files, seconds, strict=True))
