"""The pages, served by Airflow's own application with its own access checks, over artifacts that the planner made."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import cache

import pyarrow as pa
import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dagrun import DagRun
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient

from kafka_rebalance_airflow.config import run_uri
from kafka_rebalance_airflow.triggers.reassignment import PlanTrigger, keep_progress
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.pace import Pace
from rebalance_lib.planner import Choice, ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.report import fleet_rows, publish_choice, render_fleet, with_groups
from rebalance_lib.report.units import human_bytes
from rebalance_lib.topology import GROUP_MEMBERS, GROUP_OFFSETS, Groups
from tests.planner.clusters import cluster

DAG, RUN = "kafka_rebalance", "manual__2026-11-16T20:15:30.5+00:00"
PLACE = f"{DAG}/manual__2026-11-16T20%3A15%3A30.5%2B00%3A00"
HOSTILE_RACK = "</td><script>alert(1)</script>"
PROGRESS = {
    "status": "moving",
    "text": "1 of 4 partitions done",
    "done": 1,
    "moving": 2,
    "pending": 1,
    "bytes_copied": 42_900_000,
    "bytes_to_copy": 100_000_000,
    "rate": 5_000_000.0,
    "seconds_left": 11.4,
    "throttle": 6_000_000,
    "holds": [],
    "stalls": ["foo-1 to broker 3: <b>no bytes</b> since 90 s"],
    "brokers": {"3": {"copied": 42_900_000, "to_copy": 100_000_000, "rate": None}},
    "foreign_throttles": {"4": 9_000_000},
    "set_aside": {"foo-2": "<i>its topic</i> was deleted and created again"},
    "set_aside_count": 3,
}


@pytest.fixture(scope="module")
def airflow_app():
    initdb()
    return create_app()


@pytest.fixture
def artifacts(tmp_path, monkeypatch):
    """Where runs keep their artifacts, with a database that knows of none."""
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__ARTIFACTS", tmp_path.as_uri())
    yield tmp_path
    with create_session() as session:
        session.query(DagRun).delete()


@pytest.fixture
def client(airflow_app, artifacts):
    return signed_in(airflow_app, "VIEWER")


def signed_in(app, role):
    """A browser whose session is that of a user with this role."""
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="alice", role=role))
    return TestClient(app, cookies={COOKIE_NAME_JWT_TOKEN: token})


@cache
def chosen():
    """Real plans for a skewed cluster."""
    racks = {1: "a", 2: HOSTILE_RACK, 3: "c"}
    small = cluster(racks, {f"foo-{p}": ([1, 2], 30_000_000 + p) for p in range(6)}).snapshot()
    model, request = ClusterModel.of(small), Request(Mode.BALANCE)
    return Choice(model, request, candidates(model, request))


def planned(dag_id=DAG, run_id=RUN, state="running", after=0, groups=None):
    """A run of that cluster that Airflow knows, with its plans."""
    run = Artifacts(run_uri(dag_id, run_id))
    publish_choice(run / "plan", with_groups(chosen(), groups), Pace(throttle=1_000_000))
    known(dag_id, run_id, state, after)
    return run


def known(dag_id, run_id, state, after=0):
    at = datetime(2026, 11, 16, 20, tzinfo=UTC) + timedelta(hours=after)
    with create_session() as session:
        session.query(DagRun).filter(DagRun.dag_id == dag_id, DagRun.run_id == run_id).delete()
        session.add(DagRun(dag_id=dag_id, run_id=run_id, run_type=DagRunType.MANUAL, state=state, run_after=at))


def review(run, name="full", option=None):
    answer = {
        "candidate": name,
        "digest": (run / "plan").read_json("summary.json")["candidates"][name]["digest"],
        "responded_by": "bob",
        "responded_at": "2026-11-16T21:00:00+00:00",
        "chosen_options": [option or name],
    }
    run.write_json("review.json", answer)


def audit(run, at):
    moves = [{"partition": "foo-0", "from": [1, 2], "to": [3, 2], "began": "2026-11-16T21:01:00+00:00", "bytes": 7}]
    run.write_json(
        "audit.json",
        {
            "approved_by": "bob",
            "approved_at": "2026-11-16T21:00:00+00:00",
            "verdict": "6 of 6 partitions are where the plan says.",
            "written_at": at,
            "moves": [{**move, "ended": "2026-11-16T21:02:00+00:00"} for move in moves],
            "throttles": [{"at": "2026-11-16T21:00:30+00:00", "event": "throttle set", "rate": 1000}],
            "requests": [{"at": "2026-11-16T21:00:40+00:00", "event": "request", "kind": "pause", "by": "<carl>"}],
            "set_aside": {"foo-3": "<i>refused</i>"},
            "other": [],
        },
    )


def label(page):
    return re.search(r'id="label">([^<]*)<', page.text).group(1)


def words(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page.text).split())


def test_a_plan_that_waits_for_its_review_is_shown_with_all_its_candidates(client):
    run = planned()
    summary = (run / "plan").read_json("summary.json")
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert page.status_code == 200
    assert label(page) == "waiting for review"
    listed = re.findall(r'<a href="\?candidate=([^"]*)">.*?title="([^"]*)"', page.text, re.DOTALL)
    assert dict(listed) == {name: one["digest"] for name, one in summary["candidates"].items()}
    assert len(listed) > 1
    sizes = [summary["candidates"][name]["figures"]["bytes_moved"] for name, _ in listed]
    assert listed[0][0] == summary["recommended"]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert "Forecast: " in page.text
    assert f"{HOSTILE_RACK}" not in page.text
    assert "&lt;/td&gt;&lt;script&gt;alert(1)" in page.text
    assert page.text.count("<script") == 1


def test_nothing_from_elsewhere_is_loaded_and_no_script_but_the_page_s_own(client):
    planned()
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    policy = page.headers["content-security-policy"]
    nonce = re.search(r"script-src 'nonce-([^']+)'", policy).group(1)
    assert policy.startswith("default-src 'none'")
    assert f'<script nonce="{nonce}"' in page.text
    assert re.findall(r'(?:src|href)="(?!/kafka-rebalance/|\?)', page.text) == []
    assert " style=" not in page.text
    assert nonce not in client.get(f"/kafka-rebalance/runs/{PLACE}").text


def test_each_candidate_can_be_looked_at_in_detail(client):
    run = planned()
    plan = run / "plan"
    summary = plan.read_json("summary.json")
    other = next(name for name in summary["candidates"] if name != summary["recommended"])
    summary["candidates"][other] |= {
        "forecast": None,
        "risks": ["the <i>moon</i> may fall"],
        "brokers": [{**summary["brokers"][0], "broker": 4711}],
        "largest_moves": [{"partition": "foo-77", "from": [1, 2], "to": [3, 2], "bytes": 5}],
    }
    plan.write_json("summary.json", summary)
    page = client.get(f"/kafka-rebalance/runs/{PLACE}?candidate={other}")
    assert "the &lt;i&gt;moon&lt;/i&gt; may fall" in page.text
    assert "<td>4711</td>" in page.text
    assert "foo-77" in page.text
    assert "<td>4711</td>" not in client.get(f"/kafka-rebalance/runs/{PLACE}?candidate=no-such").text


def test_a_plan_that_never_finishes_says_so_in_place_of_its_time(client):
    run = planned()
    plan = run / "plan"
    summary = plan.read_json("summary.json")
    one = summary["candidates"][summary["recommended"]]
    never = {"count": 1, "partitions": ["<b>foo</b>-0"], "least_throttle": 2_000_000, "least_log_dir_throttle": None}
    one["forecast"] |= {"seconds": None, "never": never}
    one["forecast"]["waves"][0] |= {"ends": None, "seconds_left": None}
    one["seconds"] = None
    plan.write_json("summary.json", summary)
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert "<h2>Forecast: the plan never finishes</h2>" in page.text
    assert "partitions are written to as fast as they are copied" in page.text
    assert "a throttle of 2 MB/s (2000000) would do" in page.text
    assert "&lt;b&gt;foo&lt;/b&gt;-0" in page.text


def test_groups_that_the_plan_touches_are_shown_and_their_names_are_not_run(client):
    run = planned(
        groups=Groups(
            pa.Table.from_pylist([{"group": "<b>late</b>", "type": "classic", "state": "Empty"}], schema=GROUP_MEMBERS),
            pa.Table.from_pylist(
                [{"group": "<b>late</b>", "topic": "foo", "partition": p, "committed": 0} for p in range(6)],
                schema=GROUP_OFFSETS,
            ),
        )
    )
    shown = client.get(f"/kafka-rebalance/runs/{PLACE}").text
    touched = (run / "plan").read_json("summary.json")["candidates"]["full"]["groups"]
    assert touched["touched"] == 1
    assert "1 of 1 are touched." in shown
    assert "&lt;b&gt;late&lt;/b&gt;" in shown
    assert "<b>late</b>" not in shown


def test_the_page_says_who_chose_what_and_shows_that(client):
    run = planned()
    other = list((run / "plan").read_json("summary.json")["candidates"])[-1]
    review(run, other)
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert label(page) == "approved"
    assert "answered by bob at 2026-11-16 21:00:00 UTC" in words(page)
    assert f"What follows is about {other}" in words(page)


def test_a_rejected_plan(client):
    review(planned(state="success"), option="Reject")
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert label(page) == "rejected"
    assert "chosen by" not in words(page)
    assert "<script" not in page.text  # nothing to wait for


def test_progress_is_shown_and_can_be_asked_for(client):
    run = planned()
    review(run)
    keep_progress(run.uri, PROGRESS)
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert label(page) == "moving 42 %"
    assert "42 % of 100 MB copied 5 MB/s measured, 6 MB/s allowed per broker 11 s left" in words(page)
    asked = client.get(f"/kafka-rebalance/progress/{PLACE}")
    found = asked.json()
    assert asked.headers["cache-control"] == "no-store"
    assert (found["state"], found["label"], found["over"]) == ("moving", "moving 42 %", False)
    assert found["progress"]["bytes_copied"] == 42_900_000
    assert found["html"] in page.text
    assert "&lt;b&gt;no bytes&lt;/b&gt;" in found["html"]
    assert "Somebody else set the throttle to 9 MB/s on broker 4" in words(page)
    assert "3 partitions set aside, which this run does not move:" in words(page)
    assert "<code>foo-2</code> &lt;i&gt;its topic&lt;/i&gt; was deleted and created again" in found["html"]
    assert "and 2 more" in found["html"]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("moving", "moving 42 %"),
        ("held", "held back at 42 %"),
        ("paused", "paused at 42 %"),
        ("ending", "ending at 42 %"),
        ("completed", "moved, cleaning up"),
        ("incomplete", "incomplete at 42 %"),
        ("cancelled", "stopped at 42 %"),
    ],
)
def test_every_state_of_the_executor_has_its_words(client, state, shown):
    run = planned()
    review(run)
    keep_progress(run.uri, {**PROGRESS, "status": state})
    assert label(client.get(f"/kafka-rebalance/runs/{PLACE}")) == shown


def test_a_trigger_that_lost_its_cluster_says_so_on_the_page(client):
    run = planned()
    review(run)
    keep_progress(run.uri, {"status": "lost", "message": "<down>", "text": "ClusterError: <down>"})
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert label(page) == "stopped at 0 %"
    assert "ClusterError: &lt;down&gt;" in page.text


async def published(trigger, event):
    await trigger._publish(event)


def test_the_trigger_keeps_its_progress_where_the_page_reads_it(client):
    import asyncio

    run = planned()
    trigger = PlanTrigger(kafka_conn_id="k", run_uri=run.uri, approved_digest="d", interval=1, settings={})
    asyncio.run(published(trigger, PROGRESS))
    assert client.get(f"/kafka-rebalance/progress/{PLACE}").json()["label"] == "moving 42 %"


def test_a_progress_that_cannot_be_kept_fails_nobody(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    keep_progress(f"{tmp_path.as_uri()}/file/below", PROGRESS)


def test_of_many_brokers_those_are_shown_that_lack_most(client):
    run = planned()
    brokers = {str(id_): {"copied": 5, "to_copy": 5 + id_, "rate": None} for id_ in range(100)}
    keep_progress(run.uri, {**PROGRESS, "brokers": brokers})
    html = client.get(f"/kafka-rebalance/progress/{PLACE}").json()["html"]
    assert [int(id_) for id_ in re.findall(r"<tr><td>(\d+)</td>", html)] == list(range(80, 100))
    assert "The 20 brokers that lack most, of 100" in html


def test_the_record_of_a_run_that_ended(client):
    run = planned(state="success")
    review(run)
    keep_progress(run.uri, {**PROGRESS, "status": "completed"})
    audit(run, "2099-01-01T00:00:00+00:00")
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    assert label(page) == "done"
    assert "6 of 6 partitions are where the plan says. 1 moves of 7 B, from 2026-11-16 21:01:00 UTC" in words(page)
    assert "throttle set" in page.text
    assert "by &lt;carl&gt;; kind pause" in page.text
    assert "<code>foo-3</code> &lt;i&gt;refused&lt;/i&gt;" in page.text
    known(DAG, RUN, "failed")
    assert label(client.get(f"/kafka-rebalance/runs/{PLACE}")) == "failed"


def test_a_run_that_was_cleared_after_its_end_moves_again(client):
    run = planned()
    audit(run, "2026-11-16T21:00:00+00:00")
    keep_progress(run.uri, PROGRESS)
    assert label(client.get(f"/kafka-rebalance/runs/{PLACE}")) == "moving 42 %"


def test_a_run_that_was_cleared_after_its_end_waits_for_its_review_again(client):
    audit(planned(), "2026-11-16T21:00:00+00:00")
    assert label(client.get(f"/kafka-rebalance/runs/{PLACE}")) == "waiting for review"


def test_an_answer_to_another_plan_chose_none_of_these(client):
    run = planned()
    review(run, "full")
    run.write_json("review.json", {**run.read_json("review.json"), "digest": "sha256:of-another-plan"})
    assert "chosen by" not in words(client.get(f"/kafka-rebalance/runs/{PLACE}"))


def test_a_run_that_airflow_no_longer_knows_is_shown_from_its_artifacts(client, artifacts):
    planned()
    with create_session() as session:
        session.query(DagRun).delete()
    assert label(client.get(f"/kafka-rebalance/runs/{PLACE}")) == "planned"


def test_files_are_those_of_a_list_and_nothing_in_them_is_run(client):
    run = planned()
    run.write_text("report.html", "<script>alert(1)</script>")
    run.write_text("secret.txt", "secret")
    page = client.get(f"/kafka-rebalance/runs/{PLACE}")
    links = re.findall(r'href="(/kafka-rebalance/files/[^"]*)"', page.text)
    assert [link.split("/")[3] for link in links] == ["report.html", "plan.json", "summary.json", "review.md"]
    served = [client.get(link) for link in links]
    assert [answer.status_code for answer in served] == [200] * 4
    assert served[1].text == (run / "plan").read_text("plan.json")
    assert all(answer.headers["content-security-policy"].endswith("sandbox") for answer in served)
    for name in ("secret.txt", "audit.json", "..%2Fplan.json", "plan%2Fplan.json"):
        assert client.get(f"/kafka-rebalance/files/{name}/{PLACE}").status_code == 404


@pytest.mark.parametrize("route", ["runs", "progress", "files/plan.json"])
def test_hostile_ids_find_nothing(client, artifacts, route):
    planned()
    for dag_id in (DAG, "..%2F..", ".%2F", "a%5C..", "~", "%00", "-%0A", "x" * 5000):
        for run_id in ("..%2F..%2Fplan", "%00", "%F0%28", "y" * 5000, "%3Cscript%3Ealert(1)"):
            answer = client.get(f"/kafka-rebalance/{route}/{dag_id}/{run_id}")
            assert answer.status_code == 404, (dag_id, run_id)
            assert "<script>alert" not in answer.text


@pytest.mark.parametrize("dag_id", ["..", "a/b", "", ".", "a\\b", "a\n", "a b"])
def test_what_is_no_dag_id_has_no_directory(dag_id):
    with pytest.raises(InvalidInputError, match="is no DAG id"):
        run_uri(dag_id, "run")


def test_the_report_about_many_clusters_is_read_in_airflow(client):
    summary = (planned() / "plan").read_json("summary.json")
    fleet = Artifacts(run_uri("kafka_fleet_plan", "manual__1"))
    rows = fleet_rows({"<i>first</i>": summary, "second": None})
    fleet.write_json("fleet.json", rows)
    fleet.write_text("fleet.html", render_fleet(rows))
    known("kafka_fleet_plan", "manual__1", "success")
    page = client.get("/kafka-rebalance/runs/kafka_fleet_plan/manual__1")
    assert (page.status_code, label(page)) == (200, "1 of 2 clusters planned")
    assert "second No plan:" in words(page)
    assert "<i>first" not in page.text
    links = re.findall(r'href="(/kafka-rebalance/files/[^"]*)"', page.text)
    assert [link.split("/")[3] for link in links] == ["fleet.html", "fleet.json"]
    assert [client.get(link).status_code for link in links] == [200, 200]
    listed = words(client.get("/kafka-rebalance/runs"))
    moved = summary["candidates"][summary["recommended"]]["figures"]["bytes_moved"]
    assert f"1 of 2 clusters planned &lt;i&gt;first&lt;/i&gt;, second balance {human_bytes(moved)}" in listed
    known("kafka_fleet_plan", "manual__1", "failed")
    assert label(client.get("/kafka-rebalance/runs/kafka_fleet_plan/manual__1")) == "failed"


def test_a_run_without_a_plan_is_told_kindly(client):
    page = client.get("/kafka-rebalance/runs/some_dag/some_run")
    assert page.status_code == 404
    assert "No plan yet" in page.text
    assert client.get("/kafka-rebalance/progress/some_dag/some_run").json() == {"detail": "no plan yet"}


@pytest.mark.parametrize("route", ["runs", f"runs/{PLACE}", f"progress/{PLACE}", f"files/plan.json/{PLACE}"])
def test_strangers_see_nothing(airflow_app, artifacts, route):
    planned()
    assert TestClient(airflow_app).get(f"/kafka-rebalance/{route}").status_code == 401
    forged = TestClient(airflow_app, cookies={COOKIE_NAME_JWT_TOKEN: "forged"})
    assert forged.get(f"/kafka-rebalance/{route}").status_code in (401, 403)


@pytest.mark.parametrize("route", [f"runs/{PLACE}", f"progress/{PLACE}", f"files/plan.json/{PLACE}"])
def test_users_without_the_right_to_read_the_run_see_nothing_of_it(airflow_app, artifacts, route):
    planned()
    nobody = signed_in(airflow_app, None)
    assert nobody.get(f"/kafka-rebalance/{route}").status_code == 403
    assert RUN not in nobody.get("/kafka-rebalance/runs").text
    assert nobody.get("/kafka-rebalance/runs").status_code == 200


def test_runs_are_listed_by_dag_the_newest_first(client, monkeypatch):
    keep_progress(planned(run_id="first", after=0).uri, PROGRESS)
    planned(run_id="second", after=1)
    known(DAG, "third", "failed", after=2)
    planned(dag_id="other_dag", run_id="fourth", state="failed", after=3)
    page = client.get("/kafka-rebalance/runs")
    assert re.findall(r'href="/kafka-rebalance/runs/([^"]*)"', page.text) == [
        "kafka_rebalance/third",
        "kafka_rebalance/second",
        "kafka_rebalance/first",
        "other_dag/fourth",
    ]
    assert re.findall(r'class="badge [a-z]*">([^<]*)<', page.text) == [
        "failed",
        "waiting for review",
        "moving 42 %",
        "failed",
    ]
    assert words(page).count(" balance ") == 3

    def only_the_other(self, *, details, **_):
        return details.id == "other_dag"

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", only_the_other)
    listed = client.get("/kafka-rebalance/runs").text
    assert "other_dag/fourth" in listed
    assert DAG not in listed


def test_airflow_s_ui_is_told_of_the_tab_and_of_the_entry(client):
    plugins = signed_in(client.app, "ADMIN").get("/api/v2/plugins").json()["plugins"]
    (ours,) = [plugin for plugin in plugins if plugin["name"] == "kafka_rebalance"]
    assert {view["destination"]: view["href"] for view in ours["external_views"]} == {
        "dag_run": "kafka-rebalance/runs/{DAG_ID}/{RUN_ID}",
        "nav": "kafka-rebalance/runs",
    }


def test_the_plugin_brings_nothing_heavy_into_every_part_of_airflow():
    script = (
        "import sys; import kafka_rebalance_airflow.plugin;"
        "heavy = ('kafka', 'numba', 'pandas', 'pyarrow', 'pyspark', 'airflow.api_fastapi.core_api.security');"
        "print([name for name in heavy if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"
