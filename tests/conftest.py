"""What all tests share: the sandbox's fixtures, and an Airflow home of their own, set before Airflow is imported."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.throttle import RATES
from sandbox import Sandbox
from tests.kafka_data import write_topic

pytest_plugins = ["sandbox.pytest_plugin"]

# A right answer from a busy machine is still right: nothing here is a timed test.
settings.register_profile("kafka-rebalance", deadline=None)
settings.load_profile("kafka-rebalance")

ROOT = Path(__file__).resolve().parents[1]
AIRFLOW_HOME = tempfile.mkdtemp(prefix="kafka-rebalance-airflow-")
atexit.register(shutil.rmtree, AIRFLOW_HOME, ignore_errors=True)
for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
    del os.environ[name]
os.environ.update(
    AIRFLOW_HOME=AIRFLOW_HOME,
    AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
    AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{AIRFLOW_HOME}/airflow.db",
    AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}',
    PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    PYSPARK_PYTHON=sys.executable,
    SPARK_LOCAL_IP="127.0.0.1",
    SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small jobs: start fast
)

Topic = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a directory in one process: they share what is costly to make."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))


@pytest.fixture
def cluster(kafka: Sandbox) -> Iterator[Cluster]:
    """The shared cluster; the test must leave no reassignment and no throttle rate on it."""
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as opened:
        yield opened
        assert opened.reassignments() == {}
        assert {broker: opened.broker_config(broker, RATES) for broker in kafka.broker_ids} == {
            broker: {} for broker in kafka.broker_ids
        }


@pytest.fixture
def topic(kafka: Sandbox) -> Iterator[Topic]:
    """Make topics: ``topic("orders", [[1, 2], [2, 3]], size=1_000)`` has two partitions of that many bytes or more."""
    made: set[str] = set()
    admin = kafka.admin()

    def make(name: str, assignment: list[list[int]], size: int = 0) -> str:
        made.add(name)
        write_topic(admin, kafka.bootstrap_servers, name, assignment, size)
        return name

    yield make
    admin.delete_topics(sorted(made & set(admin.list_topics())))
    admin.close()
