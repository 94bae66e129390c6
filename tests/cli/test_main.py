"""The command as a whole: its help, its exit codes, its settings, and as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import datetime

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli import main
from rebalance_lib.cli.connection import Connection
from rebalance_lib.cli.main import COMMANDS
from rebalance_lib.cli.options import PlanFile
from rebalance_lib.cluster import requests
from rebalance_lib.history import files_between, group_reads, planned_loads, window_until
from tests.kafka_groups import commit


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_with_an_example_and_its_exit_codes(name):
    answer = CliRunner().invoke(main, [name, "--help"])
    assert answer.exit_code == 0
    assert f"Example:\n    kafka-rebalance {name}" in answer.output or f"kafka-rebalance {name} --boot" in answer.output
    assert "4  a replica set is not what the plan says" in answer.output
    assert "--output [text|json]" in answer.output


def test_an_unknown_command_is_a_usage_error():
    assert CliRunner().invoke(main, ["frobnicate"]).exit_code == 2


def test_a_missing_option_is_a_usage_error():
    answer = CliRunner().invoke(main, ["verify"])
    assert (answer.exit_code, "Missing option" in answer.stderr) == (2, True)


def test_a_cluster_that_is_not_there_is_an_error_for_people_and_programs(monkeypatch):
    monkeypatch.setitem(requests.DEFAULTS, "bootstrap_timeout_ms", 500)
    answer = CliRunner().invoke(main, ["list", "--bootstrap-server", "127.0.0.1:1", "--output", "json"])
    assert answer.exit_code == 1
    assert "cannot reach a Kafka cluster at ['127.0.0.1:1']" in json.loads(answer.stdout)["error"]
    assert answer.stderr.startswith("kafka-rebalance: cannot reach")


def test_a_process_of_its_own_reads_command_config_and_prints_one_object(kafka, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("# as Kafka's tools read it\nsecurity.protocol=PLAINTEXT\nrequest.timeout.ms: 20000\n")
    words = ["list", "--bootstrap-server", kafka.bootstrap_servers, "--command-config", str(config), "--output", "json"]
    program = "from rebalance_lib.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, check=False, timeout=240)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"reassignments": []}, b"")


def test_secrets_of_command_config_are_not_told(tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.password=hunter2\n")
    words = ["list", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(config)]
    answer = CliRunner().invoke(main, words)
    assert (answer.exit_code, "sasl.mechanism is GSSAPI" in answer.stderr) == (1, True)
    assert "hunter2" not in answer.output


def test_the_state_of_a_plan_is_beside_it(tmp_path):
    assert PlanFile(tmp_path / "plan.json").state_path == tmp_path / "plan.json.state"
    assert "password" not in repr(Connection("kafka:9092", None))


def test_snapshot_tells_programs_what_each_broker_holds(ours, topic, tmp_path):
    topic("main-snapshot", [[1, 2]], size=10_000)
    answer = ours("snapshot", "--output", "json", "--out", tmp_path)
    assert [broker["broker"] for broker in answer.json["brokers"]] == [1, 2, 3, 4]
    assert (tmp_path / "snapshot" / "replicas.parquet").is_file()
    assert "Cluster" in ours("snapshot").out


def test_snapshots_are_appended_to_a_history(ours, kafka, topic, tmp_path):
    topic("main-history", [[1, 2]], size=10_000)
    answer = ours("snapshot", "--output", "json", "--history", tmp_path / "history")
    (file,) = (tmp_path / "history").glob("cluster=*/day=*/*.parquet")
    assert f"appended to {file}" in answer.err
    assert file.parent.parent.name == f"cluster={kafka.cluster_id}"
    assert pq.read_table(file, filters=[("leader", "=", True)])["committed"].null_count == 0, "groups were listed"
    written = ours("snapshot", "--history", (tmp_path / "elsewhere").as_uri())
    assert written.code == 0
    assert len(list((tmp_path / "elsewhere").glob("cluster=*/day=*/*.parquet"))) == 1


def test_from_snapshot_to_snapshot_the_history_tells_what_a_group_reads(ours, kafka, topic, tmp_path):
    name = topic("main-reads", [[1, 2]], size=10_000)
    found = []
    for offset in (1, 3):
        commit(kafka, "main-reader", name, {0: offset})
        found.append(ours("snapshot", "--output", "json", "--history", tmp_path).json)
        time.sleep(1)  # the history counts in seconds
    history, taken_at = Artifacts.at(tmp_path), found[1]["taken_at"]
    reads = [row for row in group_reads(history, kafka.cluster_id, taken_at).to_pylist() if row["topic"] == name]
    loads = {
        (row["topic"], row["partition"]): row for row in planned_loads(history, kafka.cluster_id, taken_at).to_pylist()
    }
    (read,) = reads
    replicas = history.read_table(files_between(history, kafka.cluster_id, *window_until(taken_at, 1))[-1].name)
    (row,) = [row for row in replicas.to_pylist() if row["topic"] == name and row["leader"]]
    seconds = (datetime.fromisoformat(taken_at) - datetime.fromisoformat(found[0]["taken_at"])).total_seconds()
    per_record = row["size_bytes"] / (row["end_offset"] - row["start_offset"])
    assert (read["group"], read["read_rate"]) == ("main-reader", pytest.approx(2 * per_record / seconds))
    assert loads[name, 0]["read_rate"] == pytest.approx(read["read_rate"])
