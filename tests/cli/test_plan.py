"""plan: from a snapshot or a cluster's JSON to files that appear whole or not at all."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cli import main, planning
from rebalance_lib.errors import RebalanceError
from rebalance_lib.execution import Run
from rebalance_lib.history import LoadOptions, Statistic, planned_loads
from rebalance_lib.plan import Plan, current_assignment, parse_plan, verify_plan
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.check import check_candidates
from rebalance_lib.topology import BROKERS, Snapshot, TopicPartition, parse_cluster
from tests.history.samples import Row, moment, write

GB = 10**9
FILES = [
    "brokers_before_after.parquet",
    "candidates",
    "moves.parquet",
    "plan.json",
    "review.md",
    "summary.json",
]


def cluster(**changes):
    """Brokers 1 and 2 hold sixty partitions of 1 to 60 GB; 3 and 4 hold nothing."""
    document = {
        "brokers": [{"id": id_, "rack": "ab"[id_ % 2]} for id_ in (1, 2, 3, 4)],
        "partitions": [
            {"topic": f"t{n % 3}", "partition": n // 3, "replicas": [[1, 2], [2, 1]][n % 2], "size": (n + 1) * GB}
            for n in range(60)
        ],
    }
    return document | changes


@pytest.fixture
def file(tmp_path):
    """Write a cluster's JSON."""

    def write(**changes):
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps(cluster(**changes)))
        return path

    return write


@pytest.fixture
def plan(tmp_path):
    """Run ``plan``; the answer with what it published."""

    def run(*arguments, out="out"):
        words = ["plan", "--out", tmp_path / out, *arguments]
        answer = CliRunner().invoke(main, list(map(str, words)), prog_name="kafka-rebalance")
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        return answer

    return run


def summary(tmp_path):
    return json.loads((tmp_path / "out" / "summary.json").read_text())


def test_a_cluster_becomes_a_plan_that_is_right_and_even(plan, file, tmp_path):
    answer = plan("--snapshot", file(), "--mode", "balance")
    assert answer.exit_code == 0, answer.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "out"]
    found, told = parse_plan((tmp_path / "out" / "plan.json").read_text()), summary(tmp_path)
    snapshot = parse_cluster(file().read_bytes()).snapshot
    assert verify_plan(found, brokers=snapshot.alive_brokers(), before=current_assignment(snapshot)) == []
    assert (told["digest"], told["recommended"], told["mode"]) == (found.digest, "full", "balance")
    assert told["candidates"]["full"]["figures"]["bytes_after"]["most"] < 1.02
    assert set(told["timings"]) == {"read", "model", "plan", "candidates", "check", "write"}
    for name, candidate in told["candidates"].items():
        text = (tmp_path / "out" / "candidates" / name / "plan.json").read_text()
        assert parse_plan(text).digest == candidate["digest"]
    moves = pq.read_table(tmp_path / "out" / "moves.parquet")
    assert (moves.num_rows, sum(moves["bytes"].to_pylist())) == (told["replicas_moved"], told["bytes_moved"])


@pytest.fixture
def past(file, tmp_path):
    """A run of cluster c, taken at second 300, and a history in which t0-0 is written to as much as all others."""
    snapshot = parse_cluster(file().read_bytes()).snapshot
    run = Run(Artifacts.at(tmp_path / "run").uri)
    run.write_snapshot(replace(snapshot, cluster_id="c", taken_at=moment(300).isoformat()))
    history = Artifacts.at(tmp_path / "history")
    busy = [Row(f"t{n % 3}", n // 3, [1, 2][n % 2], True, (n + 1) * GB, 0, 0) for n in range(60)]
    for at in (100, 200, 300, 400):
        records = [59 * at if n == 0 else at for n in range(60)]
        late = 1000 if at > 300 else 1
        write(history, "c", {at: [row._replace(end=late * n) for row, n in zip(busy, records, strict=True)]})
    return history


def test_write_rates_come_from_the_hours_before_the_snapshot(plan, tmp_path, past):
    ask = ["--snapshot", tmp_path / "run", "--mode", "balance"]
    assert "Write rates are not known" in plan(*ask).stdout
    answer = plan(*ask, "--history", tmp_path / "history")
    assert answer.exit_code == 0, answer.stderr
    assert "Write rates are not known" not in answer.stdout
    assert summary(tmp_path)["rates_known"]
    rates = pq.read_table(tmp_path / "out" / "rates.parquet")
    assert rates.equals(planned_loads(past, "c", moment(300).isoformat()))
    model = ClusterModel.of(Run(Artifacts.at(tmp_path / "run").uri).snapshot(), rates)
    assert summary(tmp_path)["digest"] == candidates(model, Request(Mode.BALANCE))[0].plan.digest
    assert plan(*ask, "--history", past.uri, "--window", "0.001").exit_code == 0
    assert not summary(tmp_path)["rates_known"], "there is one snapshot in 3.6 seconds"
    assert plan(*ask, "--history", past.uri, "--window", "0").exit_code == 2


def test_loads_are_of_the_statistic_and_the_horizon_that_were_asked_for(plan, tmp_path, past):
    ask = ["--snapshot", tmp_path / "run", "--mode", "balance", "--history", past.uri]
    said = plan(*ask, "--load", "last", "--horizon", "7").stdout
    assert "Loads: the last interval of 24 hours of history, sizes as they will be in 7 days." in said
    assert "Of 60 partitions, the read rates of 60 are not known." in said
    options = LoadOptions(statistic=Statistic.LAST, horizon_days=7)
    loads = pq.read_table(tmp_path / "out" / "rates.parquet")
    assert loads.equals(planned_loads(past, "c", moment(300).isoformat(), options))
    assert summary(tmp_path)["loads"] == {
        "statistic": "last",
        "hours": 24.0,
        "horizon_days": 7.0,
        "groups_reset": [],
        "write_rate_unknown": 0,
        "read_rate_unknown": 60,
        "size_unknown": 0,
    }
    assert "the last interval of 24 hours" in (tmp_path / "out" / "review.md").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--load", "median"], 2, "is not one of 'mean', 'p95', 'last'"),
        (["--horizon", "-1"], 2, "-1.0 is not in the range x>=0"),
        (["--horizon", "nan"], 1, "the horizon is nan days: give 0 up to 3,650"),
        (["--horizon", "7"], 2, "--load and --horizon are about a history of snapshots: give --history, too"),
        (["--load", "p95"], 2, "give --history, too"),
    ],
)
def test_loads_that_make_no_sense_are_refused(plan, file, words, code, message):
    answer = plan("--snapshot", file(), "--mode", "balance", *words)
    assert (answer.exit_code, message in answer.stderr) == (code, True), answer.stderr


def test_a_history_without_the_cluster_is_refused(plan, file, tmp_path, past):
    answer = plan("--snapshot", file(), "--mode", "balance", "--history", past.uri)
    assert (answer.exit_code, "does not say which cluster it is" in answer.stderr) == (1, True)
    ask = ["--snapshot", tmp_path / "run", "--mode", "balance", "--history", tmp_path / "elsewhere"]
    answer = plan(*ask)
    assert (answer.exit_code, "cluster c is not in the history at" in answer.stderr) == (1, True)


def test_spark_is_given_the_history(plan, tmp_path, past, monkeypatch):
    spark_submit(tmp_path, monkeypatch, "print('compute_placement:', *words[-8:]); sys.exit(1)")
    ask = ["--snapshot", tmp_path / "run", "--mode", "balance", "--engine", "spark", "--history", past.uri]
    said = plan(*ask, "--window", "6", "--load", "p95", "--horizon", "7").stderr
    assert said == f"kafka-rebalance: --history {past.uri} --window 6.0 --load p95 --horizon 7.0\n"


def test_people_read_candidates_the_bound_brokers_files_and_the_next_command(plan, file, tmp_path):
    said = plan("--snapshot", file(), "--mode", "balance").stdout
    for words in (
        "full (recommended)",
        "quarter",
        "times the least that any plan",
        "Brokers",
        "Write rates are not known",
    ):
        assert words in said
    assert said.splitlines()[-1].endswith(
        f"--reassignment-json-file {tmp_path / 'out'}/plan.json --throttle BYTES_PER_SECOND"
    )
    assert "without a throttle; the review has its waves, with --throttle for one that counts with it." in said
    said = plan("--snapshot", file(), "--mode", "balance", "--throttle", 1000).stdout
    assert said.splitlines()[-1].endswith("--throttle 1000")
    assert "at a throttle of 1 kB/s on each broker; the review" in said
    review = (tmp_path / "out" / "review.md").read_text()
    assert "Mode **balance**" in review
    assert "| **full** |" in review


def test_programs_read_the_summary_as_one_object(plan, file, tmp_path):
    answer = plan("--snapshot", file(), "--mode", "balance", "--output", "json")
    assert json.loads(answer.stdout) == {"out": str(tmp_path / "out"), **summary(tmp_path)}


def lacking(table):
    return table.drop_columns(["size_bytes"])


def of_another_type(table):
    return table.set_column(0, "topic", table["partition"]).set_column(3, "broker", pa.array(["one"] * len(table)))


def with_a_null(table):
    return table.set_column(3, "broker", pa.nulls(len(table), pa.int32()))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lacking, "replicas.parquet has no column size_bytes"),
        (of_another_type, "replicas.parquet: column broker is string, and cannot be read as int32"),
        (with_a_null, "replicas.parquet: column broker has 120 rows without a value"),
    ],
)
def test_a_snapshot_that_is_damaged_is_named_with_its_column(plan, file, tmp_path, damage, words):
    run = Run(Artifacts.at(tmp_path / "run").uri)
    run.write_snapshot(parse_cluster(file().read_bytes()).snapshot)
    taken = run.artifacts / "snapshot"
    taken.write_table("replicas.parquet", damage(taken.read_table("replicas.parquet")))
    answer = plan("--snapshot", tmp_path / "run", "--mode", "balance")
    assert answer.exit_code == 1
    assert f"{taken.uri}/{words}" in answer.stderr
    assert "take a new one with kafka-rebalance snapshot" in answer.stderr


def test_a_snapshot_a_run_and_a_file_give_the_same_plan(plan, file, tmp_path):
    digests = set()
    Run(Artifacts.at(tmp_path / "run").uri).write_snapshot(parse_cluster(file().read_bytes()).snapshot)
    for place in (file(), tmp_path / "run", (tmp_path / "run").as_uri(), tmp_path / "run" / "snapshot"):
        assert plan("--snapshot", place, "--mode", "balance").exit_code == 0
        digests.add(summary(tmp_path)["digest"])
    assert len(digests) == 1


def test_a_file_says_whom_to_drain_and_fill_unless_options_do(plan, file, tmp_path):
    def asked(*arguments):
        answer = plan("--snapshot", file(targets=[1, 3, 4], remove=[2], add=[4]), *arguments)
        assert answer.exit_code == 0, answer.stderr
        request = summary(tmp_path)["request"]
        return request.get("brokers"), request.get("allowed_brokers")

    assert asked("--mode", "drain") == ([2], [1, 3, 4])
    assert asked("--mode", "expand") == ([4], [1, 3, 4])
    assert asked("--mode", "balance") == (None, [1, 3, 4])
    assert asked("--mode", "drain", "--brokers", "1", "--allowed-brokers", "3,4") == ([1], [3, 4])


def test_lists_take_commas_and_repetition_and_budgets_take_units(plan, file, tmp_path):
    options = ["--topics", "t0,t1", "--topics", "t2", "--excluded-brokers", "3", "--excluded-brokers", "4"]
    assert plan("--snapshot", file(), "--mode", "leaders", *options, "--byte-budget", "1.5GB").exit_code == 0
    request = summary(tmp_path)["request"]
    assert (request["topics"], request["excluded_brokers"]) == (["t0", "t1", "t2"], [3, 4])
    assert (request["byte_budget"], request["mode"]) == (1_500_000_000, "leaders")
    assert Request.from_dict(request).as_dict() == request


@pytest.mark.parametrize(
    ("text", "count"), [("7", 7), ("7B", 7), ("2kB", 2000), ("1 MiB", 1 << 20), ("2T", 2 * 10**12)]
)
def test_bytes_in_units(plan, file, tmp_path, text, count):
    assert plan("--snapshot", file(), "--mode", "leaders", "--byte-budget", text).exit_code == 0
    assert summary(tmp_path)["request"]["byte_budget"] == count


@pytest.fixture
def disks(tmp_path):
    """A snapshot with two log dirs a broker, all replicas in the first one."""
    taken = parse_cluster(json.dumps(cluster()).encode()).snapshot
    log_dirs = [{"path": path, "total_bytes": 4000 * GB, "usable_bytes": 2000 * GB} for path in ("/a", "/b")]
    rows = [row | {"log_dirs": log_dirs} for row in taken.brokers.to_pylist()]
    place = taken.replicas.schema.get_field_index("log_dir")
    column = pa.array(["/a"] * taken.replicas.num_rows)
    brokers = pa.Table.from_pylist(rows, schema=BROKERS)
    replicas = taken.replicas.set_column(place, taken.replicas.schema.field(place), column)
    Run(tmp_path.as_uri()).write_snapshot(Snapshot("c", "2026-01-01T00:00:00+00:00", brokers, replicas))
    return tmp_path


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("balance", []),
        ("expand", []),
        ("drain", ["--brokers", "2"]),
        ("drain", ["--brokers", "2", "--balance"]),
        ("replace", ["--brokers", "2", "--replacements", "4"]),
        ("repair", ["--replication-factor", "3"]),
        ("leaders", []),
        ("disks", []),
        ("topics", ["--topics", "t1"]),
        ("replication-factor", ["--topics", "t0", "--replication-factor", "3"]),
        ("partitions", ["--topics", "t0", "--partitions", "30"]),
        ("light", ["--fill-level", "0.5"]),
        ("kafka", ["--topics", "t0"]),
        ("demote", ["--brokers", "2"]),
        ("drain-log-dirs", ["--log-dirs", "1:/a,2:/a", "--max-fill", "1"]),
    ],
)
def test_every_mode_passes_the_check_and_tells_each_copy(plan, disks, mode, options):
    answer = plan("--snapshot", disks, "--mode", mode, *options)
    assert answer.exit_code == 0, answer.stderr
    told = summary(disks)
    figures = told["candidates"][told["recommended"]]["figures"]
    moves = pq.read_table(disks / "out" / "moves.parquet").to_pylist()
    assert sum(row["bytes"] for row in moves) == figures["bytes_moved"] + figures["log_dir_bytes"]
    assert len(moves) == figures["replicas_moved"] + figures["log_dir_moves"]
    assert [(row["topic"], row["partition"]) for row in moves] == sorted((r["topic"], r["partition"]) for r in moves)


def test_rows_in_another_order_give_the_same_plan(plan, disks):
    assert plan("--snapshot", disks, "--mode", "repair", "--replication-factor", "3").exit_code == 0
    expected = summary(disks)
    for name in ("brokers", "replicas"):
        table = pq.read_table(disks / "snapshot" / f"{name}.parquet")
        pq.write_table(table.take(list(range(table.num_rows))[::-1]), disks / "snapshot" / f"{name}.parquet")
    assert plan("--snapshot", disks, "--mode", "repair", "--replication-factor", "3").exit_code == 0
    assert summary(disks)["digest"] == expected["digest"]
    assert summary(disks)["candidates"] == expected["candidates"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("brokers", "brokers.parquet: broker 1 is listed twice"), ("replicas", "t0-0 has two replicas at position 0")],
)
def test_a_snapshot_that_no_cluster_can_have_is_refused_with_its_file(plan, disks, name, message):
    table = pq.read_table(disks / "snapshot" / f"{name}.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), disks / "snapshot" / f"{name}.parquet")
    answer = plan("--snapshot", disks, "--mode", "balance")
    assert answer.exit_code == 1
    assert f"{disks.as_uri()}/snapshot/{name}.parquet: " in answer.stderr
    assert message in answer.stderr


def test_files_say_what_brokers_can_take_and_which_form_a_set(plan, file, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("rebalance_lib.cli.planning.plan_here", lambda inputs, *_: seen.append(inputs.cluster.snapshot))
    monkeypatch.setattr("rebalance_lib.cli.plan_result.show_result", lambda *_: None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("{}")
    (tmp_path / "capacities.yaml").write_text("default: {network_in: 1_000}\nbrokers:\n  2: {disk: 5}\n")
    (tmp_path / "sets.json").write_text('{"payments": [1, 2]}')
    options = ["--capacities", tmp_path / "capacities.yaml", "--broker-sets", tmp_path / "sets.json"]
    assert plan("--snapshot", file(), "--mode", "balance", *options).exit_code == 0
    brokers = seen[0].brokers
    assert [one["network_in"] for one in brokers["capacity"].to_pylist()] == [1000.0] * 4
    assert [one["disk"] for one in brokers["capacity"].to_pylist()] == [None, 5, None, None]
    assert brokers["broker_set"].to_pylist() == ["payments", "payments", None, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("default: {cpu: -1}", "capacities.default.cpu is -1: give a number above 0"),
        ("brokers: {9: {cpu: 1}}", "capacities.brokers has 9: the cluster has no such broker"),
        ("default: {cpu: 1}\ndefault: {cpu: 2}", "default is there twice, in line 2 again: keep one"),
        ("default: [", "this is no YAML or JSON: while parsing"),
        ("default: {cpu: 2026-99-99}", "this cannot be read: month must be in 1..12"),
    ],
)
def test_a_wrong_file_about_brokers_is_named_with_the_entry(plan, file, tmp_path, text, message):
    path = tmp_path / "capacities.yaml"
    path.write_text(text)
    answer = plan("--snapshot", file(), "--mode", "balance", "--capacities", path)
    assert answer.exit_code == 1
    assert f"{path}: {message}" in answer.stderr
    missing = tmp_path / "none.yaml"
    answer = plan("--snapshot", file(), "--mode", "balance", "--broker-sets", missing)
    assert f"{missing} cannot be read: No such file" in answer.stderr


def test_an_exclusion_that_matches_nothing_is_a_remark(plan, file, tmp_path):
    options = ["--excluded-topics", "pay*,t0,_<b>"]
    answer = plan("--snapshot", file(), "--mode", "balance", *options)
    assert answer.exit_code == 0, answer.stderr
    remarks = [f"No topic matches '{one}', which is to be left alone." for one in ("pay*", "_<b>")]
    assert summary(tmp_path)["remarks"] == remarks
    assert remarks[0] in answer.stdout
    review = (tmp_path / "out" / "review.md").read_text()
    assert r"- No topic matches 'pay\*', which is to be left alone." in review
    assert r"- No topic matches '\_\<b\>', which" in review


def test_moves_between_log_dirs_name_both(plan, disks):
    assert plan("--snapshot", disks, "--mode", "disks").exit_code == 0
    moves = pq.read_table(disks / "out" / "moves.parquet").to_pylist()
    assert {(row["from_log_dir"], row["to_log_dir"]) for row in moves} == {("/a", "/b")}
    assert all(row["from_broker"] == row["to_broker"] for row in moves)


def test_log_dirs_to_drain_are_named_by_broker_and_path(plan, disks):
    ask = ["--snapshot", disks, "--mode", "drain-log-dirs", "--log-dirs"]
    assert plan(*ask, "1:/a", "--log-dirs", "2:/a", "--max-fill", "1").exit_code == 0
    moves = pq.read_table(disks / "out" / "moves.parquet").to_pylist()
    assert {(row["to_broker"], row["from_log_dir"], row["to_log_dir"]) for row in moves} == {
        (1, "/a", "/b"),
        (2, "/a", "/b"),
    }
    assert "log dirs `1:/a`, `2:/a`" in (disks / "out" / "review.md").read_text()
    assert "log dirs 1:/a cannot be drained: no other log dir of broker 1 has disk space" in plan(*ask, "1:/a").stderr
    assert plan(*ask, "/a").stderr == "kafka-rebalance: log dir '/a' is not BROKER:PATH, such as 1:/disk2\n"


def test_nothing_to_do_is_no_error(plan, file, tmp_path):
    entries = [{"topic": "t", "partition": n, "replicas": [n + 1, (n + 1) % 4 + 1], "size": GB} for n in range(4)]
    said = plan("--snapshot", file(partitions=entries), "--mode", "balance").stdout
    assert "nothing to do" in said
    assert said.splitlines()[-1] == "Next: nothing, the plan is empty"
    assert len(parse_plan((tmp_path / "out" / "plan.json").read_text())) == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--mode", "balance", "--snapshot", "no-such-place"], 1, "there is no snapshot at no-such-place: give"),
        (["--mode", "drain"], 1, "mode drain needs brokers: name those to drain"),
        (["--mode", "light"], 1, "mode light needs a fill level"),
        (["--mode", "drain", "--brokers", "9"], 1, "unknown brokers [9]"),
        (["--mode", "balance", "--topics", ""], 2, "it is empty; leave the option out, or name some"),
        (["--mode", "balance", "--topics", ","], 2, "it is empty; leave the option out, or name some"),
        (["--mode", "balance", "--brokers", "1"], 1, "mode balance has no use for brokers"),
        (["--mode", "topics", "--topics", "nope"], 1, "no topic is called 'nope'"),
        (["--mode", "drain", "--brokers", "1", "--byte-budget", "1"], 1, "the byte budget is 1; raise it"),
        (["--mode", "balance", "--tolerance", "2"], 1, "tolerance is 2"),
        (["--mode", "sideways"], 2, "'sideways' is not one of"),
        (["--mode", "drain", "--brokers", "x"], 2, "'x' is not a list of broker ids"),
        (["--mode", "balance", "--byte-budget", "9" * 400], 2, "is more than any cluster holds; give 4096PiB at most"),
        (["--mode", "balance", "--byte-budget", "9000PB"], 2, "'9000PB' is more than any cluster holds"),
        (["--mode", "balance", "--byte-budget", "much"], 2, "'much' is not a number of bytes such as"),
        ([], 2, "Missing option '--mode'"),
    ],
)
def test_what_cannot_be_planned_is_one_clear_line_and_leaves_nothing(plan, file, options, code, message):
    path = file()
    answer = plan("--snapshot", path, *options)
    assert (answer.exit_code, message in answer.stderr) == (code, True), answer.stderr
    assert list(path.parent.iterdir()) == [path]


def test_a_fault_in_a_file_is_told_with_its_name_to_people_and_programs(plan, file):
    path = file(brokers=[{"id": 1}])
    answer = plan("--snapshot", path, "--mode", "balance", "--output", "json")
    message = f"{path}: partition entry 0 (t0-0): replicas is [1, 2]: brokers has no 2"
    assert answer.exit_code == 1
    assert message in json.loads(answer.stdout)["error"]
    assert message in answer.stderr


@pytest.mark.parametrize("partitions", [10_000, 0], ids=["one after the other", "side by side"])
def test_an_earlier_plan_stays_until_the_next_is_whole(plan, file, tmp_path, monkeypatch, partitions):
    monkeypatch.setattr("rebalance_lib.threads.WORTH", partitions)
    assert plan("--snapshot", file(), "--mode", "balance").exit_code == 0
    before = summary(tmp_path)["digest"]
    assert plan("--snapshot", file(), "--mode", "drain", "--brokers", "9").exit_code == 1
    monkeypatch.setattr(planning, "check_candidates", lambda *_: (_ for _ in ()).throw(RebalanceError("wrong")))
    assert plan("--snapshot", file(), "--mode", "leaders").exit_code == 1
    assert summary(tmp_path)["digest"] == before
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["out"]
    monkeypatch.undo()
    assert plan("--snapshot", file(), "--mode", "leaders").exit_code == 0
    assert summary(tmp_path)["mode"] == "leaders"


@pytest.mark.parametrize("name", ["diary.txt", "plan.json.state"])
def test_a_directory_with_anything_else_in_it_is_not_replaced(plan, file, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).touch()
    answer = plan("--snapshot", file(), "--mode", "balance")
    assert (answer.exit_code, f"has '{name}' in it" in answer.stderr) == (1, True)
    assert (tmp_path / "out" / name).exists()


def test_a_file_in_the_place_of_the_directory_is_kept(plan, file):
    path = file()
    answer = plan("--snapshot", path, "--mode", "balance", out=path.name)
    assert (answer.exit_code, "is a file: give a directory" in answer.stderr) == (1, True)
    assert path.is_file()


def test_a_place_that_cannot_be_written_is_one_clear_line(plan, file):
    path = file()
    answer = plan("--snapshot", path, "--mode", "balance", out=f"{path.name}/out")
    assert (answer.exit_code, "cannot be written" in answer.stderr) == (1, True), answer.stderr


def test_a_plan_that_breaks_a_rule_is_not_written():
    model = ClusterModel.of(parse_cluster(json.dumps(cluster()).encode()).snapshot)
    same_rack = Plan.from_assignment({TopicPartition("t0", 0): [1, 3]})
    given = Choice.given(model, same_rack).candidates
    with pytest.raises(RebalanceError, match=r"breaks 1 rules, so nothing is written; the first is t0-0: rack-spread"):
        check_candidates(model, Request(Mode.BALANCE), given)
    with pytest.raises(RebalanceError, match="broker-not-drained"):
        check_candidates(model, Request(Mode.DRAIN, brokers=(1,)), given)
    known = Choice.given(model, Plan.from_assignment({TopicPartition("t0", 0): [1, 4]})).candidates
    with pytest.raises(RebalanceError, match="the cluster has this partition; only new ones may be placed"):
        check_candidates(model, Request(Mode.PARTITIONS, topics=("t0",), partitions=30), known)


def test_the_last_broker_of_a_rack_can_be_drained(plan, file):
    brokers = [{"id": id_, "rack": rack} for id_, rack in ((1, "a"), (2, "b"), (3, "a"), (4, "a"))]
    answer = plan("--snapshot", file(brokers=brokers), "--mode", "drain", "--brokers", "2")
    assert answer.exit_code == 0, answer.stderr


def test_racks_that_are_given_up_or_missing_are_told(plan, file, tmp_path):
    answer = plan("--snapshot", file(), "--mode", "drain", "--brokers", "1,3")
    assert "Risk: 60 partitions end in fewer racks than now" in answer.output
    review = (tmp_path / "out" / "review.md").read_text()
    assert "- **Risk**: 60 partitions end in fewer racks than now" in review
    assert "snapshot of" not in review, "a cluster's JSON has no date"
    brokers = [{"id": 1, "rack": "a"}, {"id": 2}, {"id": 3, "rack": "b"}, {"id": 4, "rack": "b"}]
    answer = plan("--snapshot", file(brokers=brokers), "--mode", "balance")
    assert "Risk: Racks do not count, because brokers 2 have none" in answer.output
    assert "Racks do not count, because brokers 2 have none" in (tmp_path / "out" / "review.md").read_text()


@pytest.mark.parametrize("limit", [("--topics", "t0"), ("--excluded-topics", "t[12]")])
def test_a_drained_broker_that_keeps_excluded_topics_is_told(plan, file, tmp_path, limit):
    answer = plan("--snapshot", file(), "--mode", "drain", "--brokers", "1", *limit)
    assert answer.exit_code == 0, answer.stderr
    assert {entry.topic for entry in parse_plan((tmp_path / "out" / "plan.json").read_text())} == {"t0"}
    said = "Broker 1 keeps 40 replicas of excluded topics: it will not be empty."
    assert said in answer.output
    assert f"- **Risk**: {said}" in (tmp_path / "out" / "review.md").read_text()
    assert summary(tmp_path)["replicas_kept"] == {"1": 40}


def test_striping_over_one_rack_is_refused_with_what_to_do(plan, file):
    answer = plan("--snapshot", file(), "--mode", "kafka", "--allowed-brokers", "1,3")
    assert (answer.exit_code, "allow more brokers in other racks" in answer.stderr) == (1, True), answer.stderr


def test_partitions_that_striping_leaves_for_their_racks_are_told(plan, file, tmp_path):
    brokers = [{"id": id_, "rack": "a" if id_ < 6 else "b"} for id_ in range(1, 8)]
    partitions = [{"topic": "t0", "partition": p, "replicas": [1, 2, 6, 7], "size": GB} for p in range(14)]
    answer = plan("--snapshot", file(brokers=brokers, partitions=partitions), "--mode", "kafka")
    assert answer.exit_code == 0, answer.stderr
    told = summary(tmp_path)
    kept = told["candidates"]["full"]["figures"]["partitions_kept"]
    assert 0 < kept <= 14 - told["partitions_changed"] < 14
    assert f"Racks: {kept} partitions stay as they are" in answer.output


def spark_submit(tmp_path, monkeypatch, body):
    """A program in place of spark-submit; what it is called with goes to its own file."""
    program = tmp_path / "spark-submit"
    program.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\nwords = sys.argv[1:]\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(planning.shutil, "which", lambda *_, **__: str(program))


SPARK = """
run = pathlib.Path(words[words.index("--run") + 1].removeprefix("file://"))
assert sorted(p.name for p in (run / "snapshot").iterdir()) == ["brokers.parquet", "replicas.parquet"]
(run / "plan").mkdir()
told = json.loads((pathlib.Path(__file__).parent / "told.json").read_text())
told["request"] = json.loads(words[words.index("--request") + 1])
(run / "plan" / "plan.json").write_text('{"version":1,"partitions":[]}')
(run / "plan" / "summary.json").write_text(json.dumps(told | {"master": words[words.index("--master") + 1]}))
"""


def test_spark_is_given_the_snapshot_and_the_request_and_its_plan_is_published(plan, file, tmp_path, monkeypatch):
    assert plan("--snapshot", file(), "--mode", "balance").exit_code == 0
    (tmp_path / "told.json").write_text((tmp_path / "out" / "summary.json").read_text())
    spark_submit(tmp_path, monkeypatch, SPARK)
    options = ["--mode", "drain", "--brokers", "2", "--engine", "spark", "--master", "local[1]"]
    answer = plan("--snapshot", file(), *options)
    assert answer.exit_code == 0, answer.stderr
    assert summary(tmp_path)["request"] == {"mode": "drain", "brokers": [2]}
    assert summary(tmp_path)["master"] == "local[1]"
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            # As spark-submit does: the program's stderr on stdout, Spark's log on stderr.
            "print('compute_placement: no broker'); print('WARN ShutdownHookManager', file=sys.stderr); sys.exit(1)",
            "no broker",
        ),
        ("print('ValueError: odd'); print('INFO bye', file=sys.stderr); sys.exit(1)", "ValueError: odd"),
        ("sys.exit(3)", "exit code 3"),
        ("", "the Spark job ended well, but left no plan"),
    ],
)
def test_what_spark_complains_of_is_one_clear_line(plan, file, monkeypatch, body, message):
    path = file()
    spark_submit(path.parent, monkeypatch, body)
    answer = plan("--snapshot", path, "--mode", "balance", "--engine", "spark")
    assert (answer.exit_code, answer.stderr) == (1, f"kafka-rebalance: {message}\n")
    assert sorted(one.name for one in path.parent.iterdir()) == ["cluster.json", "spark-submit"]


def test_a_wrong_name_costs_no_spark(plan, file, monkeypatch):
    path = file()
    spark_submit(path.parent, monkeypatch, "sys.exit('it was run')")
    answer = plan("--snapshot", path, "--mode", "drain", "--brokers", "9", "--engine", "spark")
    assert (answer.exit_code, "unknown brokers [9]" in answer.stderr) == (1, True)


@pytest.mark.long
def test_what_only_the_job_can_refuse_is_told_as_without_spark(plan, file):
    ask = ["--snapshot", file(), "--mode", "drain", "--brokers", "2", "--byte-budget", "1"]
    here = plan(*ask)
    there = plan(*ask, "--engine", "spark", "--master", "local[1]")
    assert (here.exit_code, there.exit_code) == (1, 1)
    why = here.stderr.removeprefix("kafka-rebalance: ")
    assert "must move, but the byte budget is 1; raise it" in why
    assert there.stderr == f"kafka-rebalance: nothing is published: {why}"


def test_without_spark_there_is_still_the_local_engine(plan, file, monkeypatch):
    monkeypatch.setattr(planning.shutil, "which", lambda *_, **__: None)
    answer = plan("--snapshot", file(), "--mode", "balance", "--engine", "spark")
    assert (answer.exit_code, "plan with --engine local" in answer.stderr) == (1, True)
