"""What all tests share: the sandbox's fixtures, and an Airflow home of their own, set before Airflow is imported."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from rebalance_lib.cluster import Cluster
from rebalance_lib.execution.throttles.config import RATES
from sandbox import Sandbox
from tests import budget
from tests.everywhere import cancel_and_unthrottle
from tests.kafka_data import delete_topics, write_topic
from tests.timing import Timing
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.object_store import ObjectStore

pytest_plugins = ["sandbox.pytest_plugin", "tests.spark"]

# A right answer from a busy machine is still right: nothing here is a timed test.
settings.register_profile("short", deadline=None, max_examples=40)
settings.register_profile("long", deadline=None, max_examples=1000)

logging.getLogger("kafka").setLevel(logging.WARNING)  # each connection is news to it: a failing test's own words drown

ROOT = Path(__file__).resolve().parents[1]
AIRFLOW_HOME = tempfile.mkdtemp(prefix="kafka-rebalance-airflow-")
atexit.register(shutil.rmtree, AIRFLOW_HOME, ignore_errors=True)
for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
    del os.environ[name]
os.environ.update(
    AIRFLOW_HOME=AIRFLOW_HOME,
    AIRFLOW__API_AUTH__JWT_SECRET="a secret of the tests alone" * 3,  # a short one is warned of
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
# A throttle lets a whole fetch through about every ten seconds, however low it is. With Kafka's own size, which is a
# megabyte of each partition, no move of some megabytes would be under way for longer than half a minute.
SMALL_FETCHES = {"replica.fetch.max.bytes": "100000"}
LEFT_SECONDS = 30  # until a broker has heard that the throttle is off, and the controller that a move was cancelled


# What takes longest begins first, so that all processes end together.
SLOW = ("e2e", "dags", "jobs", "test_chaos.py", "execution", "assignors", "cluster", "cli", "sandbox", "plugins")
# Directories whose tests stay in one process, since they share what is costly to start: an Airflow, a Spark session.
TOGETHER = {"e2e": "airflow", "dags": "spark", "jobs": "spark"}
# Fixtures that start other programs: what needs one of them is no unit test.
PROGRAMS = {
    "kafka",
    "new_kafka",
    "chaos",
    "started_brokers",
    "secured",
    "airflow",
    "spark",
    "prometheus",
    "object_store",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long to look, and in which order."""
    parser.addoption(
        "--long",
        action="store_true",
        help="also what only a long run shows: tests marked `long`, and more random cases",
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="files, and the tests of each, in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Tell where the time goes; the budget must be known before tests are imported."""
    config.pluginmanager.register(Timing(config))
    budget.LONG = config.getoption("--long")
    settings.load_profile("long" if budget.LONG else "short")


def scope(file: PurePath) -> str:
    """The tests that one process runs together: by default those of a file."""
    return TOGETHER.get(file.parent.name, str(file))


def rank(file: PurePath) -> int:
    """The place of a file among the slow ones."""
    return next((place for place, name in enumerate(SLOW) if name in (file.name, file.parent.name)), len(SLOW))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests, leave what is long to the long run, and mark what starts other programs."""
    if (seed := config.getoption("--shuffle")) is not None:
        random = Random(seed)
        places = defaultdict(random.random)
        random.shuffle(items)
        items.sort(key=lambda item: places[scope(item.path)])
    else:
        items.sort(key=lambda item: rank(item.path))
    if not budget.LONG:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        if PROGRAMS.intersection(item.fixturenames):
            item.add_marker("programs")


class ByScope(LoadScopeScheduling):
    """Gives a process all tests of a scope."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(PurePosixPath(nodeid.partition("::")[0]))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """What hands tests to processes, with ``--dist loadscope``."""
    return ByScope(config, log)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Sandbox]:
    """Four brokers on three racks, shared by all tests: leave no throttle, topic or dead broker behind."""
    with Sandbox(brokers=4, racks=3, config=SMALL_FETCHES) as sandbox:
        yield sandbox


@pytest.fixture
def cluster(kafka: Sandbox) -> Iterator[Cluster]:
    """The shared cluster; the test must leave no reassignment and no throttle rate on it."""
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as opened:
        yield opened

        def left() -> tuple[object, object]:
            rates = {broker: found for broker in kafka.broker_ids if (found := opened.broker_config(broker, RATES))}
            return opened.reassignments(), rates

        try:
            wait_for(left, ({}, {}), seconds=LEFT_SECONDS)
        finally:
            cancel_and_unthrottle(opened)


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """An S3-compatible server, which this process and those that it starts find by their environment."""
    from tests.object_store import running

    with running() as store:
        yield store


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
    delete_topics(admin, made)
    admin.close()
