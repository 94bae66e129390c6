"""The wheel: what it carries, and what an Airflow makes of it, of the plugins folder alone, and of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
PLUGIN = "kafka_rebalance_airflow.plugin.KafkaRebalancePlugin"

# What an Airflow sees: its providers and plugins with all that it complains of, and a DAG file of a few lines.
LOOK = """
import importlib, json, logging, sys

complaints = []

class Complaints(logging.Handler):
    def emit(self, record):
        complaints.append(record.getMessage())

from airflow import plugins_manager, providers_manager

for name in (plugins_manager.__name__, "airflow._shared.plugins_manager.plugins_manager", providers_manager.__name__):
    logging.getLogger(name).addHandler(Complaints(logging.WARNING))

from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
from airflow.dag_processing.dagbag import DagBag

manager = providers_manager.ProvidersManager()
forms = {form.connection_type: form.hook_class_name for form in HookMetaService.hook_meta_data()}
plugins, errors = plugins_manager._get_plugins()
bag = DagBag(sys.argv[1])
import kafka_rebalance_airflow, rebalance_lib
print(json.dumps({
    "provider": "kafka-rebalance" in manager.providers,
    "forms": {name: hook for name, hook in forms.items() if "kafka" in name},
    "plugins": [f"{type(plugin).__module__}.{type(plugin).__name__}" for plugin in plugins],
    "complaints": [*complaints, *errors.values(), *bag.import_errors.values()],
    "tasks": sorted(bag.dags["one_step"].task_ids) if "one_step" in bag.dags else [],
    "from": [kafka_rebalance_airflow.__file__, rebalance_lib.__file__],
}))
"""
TASKS = sorted(
    [
        *("check_form", "claim_cluster", "snapshot_topology", "compute_placement", "review_plan", "remind_reviewers"),
        *("arm", "apply_throttle", "execute_plan", "verify_plan", "remove_throttle", "finalize"),
    ]
)
DAG = """
# the words airflow and dag make Airflow read this file
from kafka_rebalance_airflow.factories import rebalance_dag

dag = rebalance_dag("one_step")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this checkout with what is installed here."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [
        "build",
        "--wheel",
        "--offline",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        directory,
    ]
    subprocess.run([UV, *build, ROOT], check=True, capture_output=True, timeout=300)
    (built,) = directory.glob("*.whl")
    return built


def environment(directory):
    """A Python with everything that is installed here but this project."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True, timeout=300)
    here = Path(sysconfig.get_path("purelib"))
    there = directory / here.relative_to(sys.prefix)
    for entry in here.iterdir():
        if not entry.name.startswith(("kafka_rebalance", "_kafka_rebalance")):
            (there / entry.name).symlink_to(entry)
    return directory / "bin" / "python"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python without this project."""
    return environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel):
    """A Python with the wheel."""
    python = environment(tmp_path_factory.mktemp("installed"))
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel], check=True, timeout=300
    )
    return python


@pytest.fixture
def look(tmp_path):
    """What an Airflow of this Python sees, with this plugins folder and these directories on its path."""

    def ask(python, *, plugins_folder=None, path=()):
        (tmp_path / "dags").mkdir()
        (tmp_path / "dags" / "one_step.py").write_text(DAG, encoding="utf-8")
        (tmp_path / "no-plugins").mkdir()
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins_folder or tmp_path / "no-plugins"),
        }
        answer = subprocess.run(
            [python, "-c", LOOK, tmp_path / "dags"],
            cwd=tmp_path,
            env=variables,
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout.splitlines()[-1])

    return ask


def test_the_wheel_carries_all_that_a_run_needs(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(file.relative_to(top))
        for top, package in ((ROOT, "rebalance_lib"), (ROOT / "plugins", "kafka_rebalance_airflow"))
        for file in (top / package).rglob("*")
        if file.suffix in (".js", ".json", ".py", ".j2", ".typed")
    }
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {
        "rebalance_lib/py.typed",
        "rebalance_lib/cluster/messages/ConsumerGroupDescribeRequest.json",
        "rebalance_lib/jobs/compute_placement.py",
        "rebalance_lib/report/templates/review.md.j2",
        "rebalance_lib/report/templates/report.html.j2",
        "kafka_rebalance_airflow/py.typed",
        "kafka_rebalance_airflow/hooks/kafka_admin.py",
        "kafka_rebalance_airflow/plugin.py",
        "kafka_rebalance_airflow/provider.py",
    } <= names


def test_the_wheel_and_a_short_dag_file_are_enough(look, installed):
    seen = look(installed)
    assert seen["complaints"] == []
    assert seen["provider"]
    assert seen["forms"] == {"kafka": "kafka_rebalance_airflow.hooks.kafka_admin.KafkaAdminHook"}
    assert seen["plugins"] == [PLUGIN]
    assert seen["tasks"] == TASKS
    assert all(Path(file).is_relative_to(installed.parents[1]) for file in seen["from"])


def test_the_plugins_folder_is_enough_where_the_library_is_on_the_path(look, bare):
    seen = look(bare, plugins_folder=ROOT / "plugins", path=[ROOT])
    assert seen["complaints"] == []
    assert (seen["plugins"], seen["tasks"]) == ([PLUGIN], TASKS)
    assert not seen["provider"]  # only an installed package can have one
    assert all(Path(file).is_relative_to(ROOT) for file in seen["from"])


def test_beside_the_wheel_the_plugins_folder_adds_nothing_and_airflows_own_kafka_provider_keeps_its_connection_type(
    look, installed, tmp_path
):
    site = tmp_path / "site"
    information = site / "apache_airflow_providers_apache_kafka-9.9.9.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: apache-airflow-providers-apache-kafka\nVersion: 9.9.9\n", encoding="utf-8"
    )
    (information / "entry_points.txt").write_text(
        "[apache_airflow_provider]\nprovider_info = its_provider:get_provider_info\n", encoding="utf-8"
    )
    hook = "airflow.providers.apache.kafka.hooks.base.KafkaBaseHook"
    (site / "its_provider.py").write_text(
        f"""
def get_provider_info():
    return {{
        "package-name": "apache-airflow-providers-apache-kafka",
        "name": "Apache Kafka",
        "description": "",
        "connection-types": [{{
            "connection-type": "kafka",
            "hook-class-name": "{hook}",
            "hook-name": "Apache Kafka",
            "ui-field-behaviour": {{"hidden-fields": ["schema"], "relabeling": {{"extra": "Config Dict"}}}},
        }}],
    }}
""",
        encoding="utf-8",
    )
    seen = look(installed, plugins_folder=ROOT / "plugins", path=[site])
    assert seen["complaints"] == []
    assert (seen["plugins"], seen["tasks"]) == ([PLUGIN], TASKS), "nothing is registered twice"
    assert seen["forms"] == {"kafka": hook, "kafkaadmin": "kafka_rebalance_airflow.hooks.kafka_admin.KafkaAdminHook"}
