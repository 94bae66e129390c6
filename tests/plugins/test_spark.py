"""What spark-submit is told of executors, from every place where it can be said, without a Spark."""

from __future__ import annotations

import json
import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from kafka_rebalance_airflow.clusters import check_clusters
from kafka_rebalance_airflow.factories import fleet_dag, history_dag, rebalance_dag, scheduled_dags
from kafka_rebalance_airflow.operators.history import ForecastCapacityOperator
from kafka_rebalance_airflow.operators.plan import ComputePlacementOperator
from kafka_rebalance_airflow.operators.spark_job import SparkJobOperator
from kafka_rebalance_airflow.spark import spark_properties
from kafka_rebalance_airflow.spark_connect import ConnectJob
from rebalance_lib.jobs import compute_placement
from rebalance_lib.jobs.archive import QUICK
from rebalance_lib.jobs.sizing import EXECUTOR_MEMORY_OVERHEAD, memory_overhead, partitions_of_a_shard
from rebalance_lib.planner.shards import PARTITIONS_OF_A_SHARD

FILE = """
spark: {executor_memory_overhead: 4g, num_executors: 2, conf: {spark.speculation: true}}
clusters:
  small: {kafka_conn_id: kafka_small, schedule: "@daily"}
  large:
    kafka_conn_id: kafka_large
    spark: {spark_conn_id: spark_large, executor_memory_overhead: 8g, executor_cores: 2, driver_memory: null}
"""


@pytest.fixture(autouse=True)
def connections(monkeypatch):
    """Two Spark clusters; that of the large one says itself what its executors shall be."""
    extra = {"deploy-mode": "client", "queue": "planning", "spark": {"executor_memory": "2g", "driver_memory": "3g"}}
    for name, of_it in {"default": {}, "large": extra}.items():
        connection = {"conn_type": "spark", "host": f"spark://{name}:7077", "extra": of_it}
        monkeypatch.setenv(f"AIRFLOW_CONN_SPARK_{name.upper()}", json.dumps(connection))


@pytest.fixture
def file(tmp_path):
    (tmp_path / "clusters.yaml").write_text(FILE)
    return tmp_path / "clusters.yaml"


def told(step, kafka_conn_id=""):
    """Master, options and properties of the command line that the provider's hook makes."""
    step.kafka_conn_id = kafka_conn_id
    words = step._get_hook()._build_spark_submit_command("job.py")
    pairs = list(pairwise(words))
    options = {name: value for name, value in pairs if name.startswith("--") and name != "--conf"}
    return options, dict(value.split("=", 1) for name, value in pairs if name == "--conf")


def planning(dag):
    return dag.get_task("compute_placement")


def test_without_a_word_executors_have_four_gigabytes_most_of_it_for_python(tmp_path):
    options, conf = told(planning(rebalance_dag(clusters=tmp_path / "none.yaml")))
    assert options["--master"] == "spark://default:7077"
    conf.pop("spark.driver.extraJavaOptions", None)  # an archive of Spark's classes, if the installation has one
    assert conf == {
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.executor.memoryOverhead": "3g",
    }


def test_the_file_says_it_for_all_clusters_and_for_one(file):
    step = planning(rebalance_dag(clusters=file))
    options, conf = told(step, "kafka_small")
    assert options["--master"] == "spark://default:7077"
    assert (conf["spark.executor.memoryOverhead"], conf["spark.executor.instances"]) == ("4g", "2")
    assert conf["spark.cores.max"] == "2", "what a standalone master understands"
    assert conf["spark.speculation"] == "true"
    options, conf = told(planning(rebalance_dag(clusters=file)), "kafka_large")
    assert (options["--master"], options["--queue"]) == ("spark://large:7077", "planning")
    assert (conf["spark.executor.memoryOverhead"], conf["spark.cores.max"]) == ("8g", "4")
    assert conf["spark.executor.memory"] == "2g", "of the connection, since the file does not say"
    assert "spark.driver.memory" not in conf, "null: neither the connection's nor anybody's"


def test_the_factory_goes_before_the_file_and_the_file_before_the_connection(file):
    block = {"spark_conn_id": "spark_large", "executor_memory_overhead": "6g", "conf": {"spark.ui.enabled": True}}
    (scheduled,) = scheduled_dags(file, spark=block)
    for dag in (rebalance_dag("another", clusters=file, spark=block), scheduled):
        options, conf = told(planning(dag), "kafka_small")
        assert options["--master"] == "spark://large:7077"
        assert (conf["spark.executor.memoryOverhead"], conf["spark.executor.instances"]) == ("6g", "2")
        assert (conf["spark.executor.memory"], conf["spark.driver.memory"]) == ("2g", "3g")
        assert conf["spark.ui.enabled"] == "true"


def test_the_driver_starts_quickly_if_it_runs_on_this_machine():
    def java(**options):
        step = ComputePlacementOperator(
            task_id="plan", run_uris="file:///run", request={}, conn_id="spark_large", **options
        )
        return told(step)[1].get("spark.driver.extraJavaOptions", "")

    assert QUICK in java()
    assert java(deploy_mode="cluster") == ""
    assert java(spark={"conf": {"spark.driver.extraJavaOptions": "-Xss4m"}}) == "-Xss4m"


def test_the_job_of_a_fleet_is_given_what_is_said_of_all(file):
    _, conf = told(planning(fleet_dag(file, spark={"num_executors": 16})))
    assert (conf["spark.executor.memoryOverhead"], conf["spark.cores.max"]) == ("4g", "16")


def test_the_jobs_of_the_history_are_given_what_is_said_of_all(file):
    dag = history_dag(file, spark={"num_executors": 16})
    for job in ("compact_history", "forecast_capacity"):
        step = dag.get_task(job)
        assert Path(step.application) == Path(compute_placement.__file__).with_name(f"{job}.py")
        _, conf = told(step)
        assert (conf["spark.executor.memoryOverhead"], conf["spark.cores.max"]) == ("4g", "16")


def test_a_cluster_without_a_snapshot_fails_the_forecast_once_that_of_the_others_is_written(monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    given = []
    monkeypatch.setattr(SparkJobOperator, "submit", lambda _self, arguments, _context: given.append(arguments))
    step = ForecastCapacityOperator(
        task_id="forecast_capacity",
        clusters=2,
        run_uris='["file:///runs/one"]',
        cluster_ids='["PwnVvJcCTeWGnoYIFvmhSQ"]',
    )
    with pytest.raises(AirflowFailException, match="1 of 2 clusters have no snapshot and no forecast"):
        step.execute({"dag": history_dag(), "run_id": "scheduled__1"})
    assert given[0][4:] == ["--run", "file:///runs/one", "--cluster", "PwnVvJcCTeWGnoYIFvmhSQ"]


def test_what_the_operator_itself_is_given_goes_first():
    step = ComputePlacementOperator(
        task_id="plan", run_uris="", request={}, conn_id="spark_large", executor_cores=4, conf={"spark.x": "1"}
    )
    options, conf = told(step)
    assert (options["--master"], options["--executor-cores"]) == ("spark://large:7077", "4")
    assert conf["spark.x"] == "1"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ([], r"spark is \[\]: give an object"),
        ({"executor_mem": "1g"}, "there is no 'executor_mem': use spark_conn_id, executor_cores"),
        ({"executor_cores": 0}, "executor_cores cannot be 0"),
        ({"num_executors": "4"}, "num_executors cannot be '4'"),
        ({"executor_memory": 4}, "executor_memory cannot be 4: give an amount with its unit, such as 3g"),
        ({"executor_memory_overhead": "3 GB"}, "executor_memory_overhead cannot be '3 GB'"),
        ({"spark_conn_id": ""}, "spark_conn_id cannot be ''"),
        ({"conf": ["a"]}, "conf is"),
        ({"conf": {"executor.memory": "1g"}}, "'executor.memory': a property of Spark begins with 'spark.'"),
        ({"conf": {"spark.x": {}}}, "spark.x cannot be {}"),
        ({"executor_cores": 1, "conf": {"spark.executor.cores": 2}}, "both: keep one"),
    ],
)
def test_what_is_wrong_is_refused_when_the_file_is_read_and_by_the_factory(block, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        spark_properties(block)
    with pytest.raises(ValueError, match=message):
        rebalance_dag(clusters=tmp_path / "none.yaml", spark=block)
    (tmp_path / "clusters.yaml").write_text(json.dumps({"clusters": {"a": {"kafka_conn_id": "k", "spark": block}}}))
    with pytest.raises(ValueError, match=f"clusters.yaml: cluster a: .*{message}"):
        check_clusters(tmp_path / "clusters.yaml")


def test_what_is_wrong_in_a_connection_is_said_with_its_name(monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    wrong = {"conn_type": "spark", "host": "local[2]", "extra": {"spark": {"spark_conn_id": "another"}}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(wrong))
    with pytest.raises(AirflowFailException, match="connection spark_default: spark: spark_conn_id has no meaning"):
        told(ComputePlacementOperator(task_id="plan", run_uris="", request={}))


@pytest.mark.parametrize("on_path", [True, False])
def test_spark_submit_is_the_one_on_the_path_or_else_the_one_beside_the_interpreter(tmp_path, monkeypatch, on_path):
    found = {}

    def execute(*_):
        found.update({name: shutil.which(name) for name in ("spark-submit", "python3")})

    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("spark-submit", "python3")[not on_path :]:
        (tmp_path / name).touch(mode=0o755)
    ComputePlacementOperator(task_id="plan", run_uris=tmp_path.as_uri(), request={}).execute({})
    expected = tmp_path if on_path else Path(sys.executable).parent
    assert found == {name: str(expected / name) for name in found}
    assert os.environ["PATH"] == str(tmp_path)


def test_the_overhead_follows_partitions_and_cores_and_back():
    for cores in (1, 2, 4):
        for partitions in (10_000, 1_000_000, 2_500_000):
            assert partitions_of_a_shard(memory_overhead(partitions, cores), cores) >= partitions
    assert partitions_of_a_shard(384) == 0


def test_a_shard_of_the_default_size_fits_into_an_executor_of_the_default_size():
    assert EXECUTOR_MEMORY_OVERHEAD == "3g"
    assert 2_500 <= memory_overhead(PARTITIONS_OF_A_SHARD) <= 3 * 1024, "2.5 GB for Python, and Spark's 384 MiB"
    assert PARTITIONS_OF_A_SHARD <= partitions_of_a_shard(3 * 1024) < 1_200_000


def test_a_connect_server_is_used_where_the_connection_is_one_and_its_token_is_not_told(
    tmp_path, monkeypatch, caplog, capfd
):
    server = {"conn_type": "spark_connect", "host": "server", "port": 15002, "password": "planted-token"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_SERVER", json.dumps(server))
    program, seen = tmp_path / "job.py", tmp_path / "seen"
    program.write_text(
        f"import os, pathlib, sys\npathlib.Path({str(seen)!r}).write_text(os.environ['SPARK_REMOTE'] + sys.argv[1])\n"
        "print('planned')\nsys.exit('--request' not in sys.argv or 'fail' in sys.argv[-3])"
    )

    def plan(mode):
        step = ComputePlacementOperator(
            task_id="plan", run_uris=tmp_path.as_uri(), request={"mode": mode}, spark={"spark_conn_id": "spark_server"}
        )
        step.application = str(program)
        step.execute({})

    with caplog.at_level("DEBUG"):
        plan("balance")
    said = caplog.text + "".join(capfd.readouterr())
    assert seen.read_text() == "sc://server:15002/;token=planted-token--run"
    assert "planned" in said
    assert "planted-token" not in said
    with pytest.raises(RuntimeError, match="the job ended with 1: planned"):
        plan("fail")


STAGES = """
import contextlib, runpy, sys, time
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.jobs import dataflow, session

def plan_runs(spark, runs, say, is_new):
    Artifacts(runs[0].task.staging).write_text("plan.json", "half a plan")
    print("staged", flush=True)
    time.sleep(60)

dataflow.plan_runs, session.session = plan_runs, lambda *_: contextlib.nullcontext()
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_a_job_on_a_connect_server_that_is_ended_removes_what_it_staged(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_SERVER", json.dumps({"conn_type": "spark_connect", "host": "server"}))
    (tmp_path / "job.py").write_text(STAGES)
    run = tmp_path / "run"
    run.mkdir()
    seen = []

    class Log:
        def info(self, line):
            seen.append((line, len(list(run.iterdir()))))
            job.end()

    arguments = [compute_placement.__file__, "--run", run.as_uri(), "--mode", "balance"]
    job = ConnectJob("spark_server", str(tmp_path / "job.py"), arguments, Log())
    with pytest.raises(RuntimeError, match="the job ended with 143: staged"):
        job.run()
    assert seen == [("staged", 1)]
    assert list(run.iterdir()) == []
