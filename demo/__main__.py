"""``make demo``, ``make up`` and ``make down``."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import quote

import click
import httpx
from rich.console import Console
from rich.markdown import Markdown

from demo import data
from demo.airflow import USER, LocalAirflow, LocalAirflowError
from demo.api import DAG, FINISHED, AirflowApi
from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import RebalanceError
from rebalance_lib.execution import Run
from rebalance_lib.execution.finalize import measured_brokers
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.report import broker_table
from sandbox import Sandbox, SandboxError

LOCAL = Path(".local")
RUNS = LOCAL / "runs"
UP = LOCAL / "up"
THROTTLE = 5_000_000  # bytes/s; low, so that there is something to see
STILL_SECONDS = 15.0
ANSWER_AFTER = 8.0  # seconds; an answer before the parked task has left its worker can cost it a try

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

States = dict[str, tuple[str, float]]  # of each task as last told, and when

console = Console()
started = time.monotonic()


class DemoError(RuntimeError):
    """The demo did not end as it should."""


def say(text: str) -> None:
    """A line of progress with the seconds since the start."""
    console.print(f"[dim]{time.monotonic() - started:4.0f} s[/dim]  {text}", highlight=False, soft_wrap=True)


@click.group()
def main() -> None:
    """The whole workflow on this machine."""


@main.command()
def demo() -> None:
    """Rebalance a real cluster from end to end, then stop everything."""
    LOCAL.mkdir(exist_ok=True)
    with ExitStack() as stack:
        home = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="demo-", dir=LOCAL, ignore_cleanup_errors=True))
        )
        sandbox = Sandbox(home / "sandbox", brokers=3, racks=3, progress=say)
        stack.callback(sandbox.stop)
        airflow = prepare(sandbox.start(), home / "airflow", stack)
        api = AirflowApi(airflow.url, USER, airflow.password)
        run_id = trigger(api)
        seen: States = {}
        approve(api, run_id, seen)
        watch(api, run_id, seen)
        show(api, run_id, sandbox)
        say("stopping Airflow and Kafka")


@main.command()
def up() -> None:
    """Start the same cluster and Airflow, trigger a rebalance and leave it to you to approve it in the browser."""
    if (airflow := LocalAirflow.attach(UP / "airflow")) is not None:
        tell_where(airflow)
        return
    stop_what_is_up()
    with ExitStack() as stack:
        sandbox = Sandbox(UP / "sandbox", brokers=3, racks=3, progress=say)
        stack.callback(sandbox.stop)
        airflow = prepare(sandbox.start(detached=True), UP / "airflow", stack)
        api = AirflowApi(airflow.url, USER, airflow.password)
        run_id = trigger(api)
        wait_for_review(api, run_id, {})
        console.print(f"\nKafka    {sandbox.bootstrap_servers}", soft_wrap=True, highlight=False)
        tell_where(airflow, f"/dags/{DAG}/runs/{quote(run_id)}/tasks/review_plan/required_actions")
        stack.pop_all()


@main.command()
def down() -> None:
    """Stop what `up` left running."""
    stop_what_is_up()
    say("nothing of it is running now")


def stop_what_is_up() -> None:
    """Stop Airflow and Kafka, whichever of them is there, and remove their files."""
    if (airflow := LocalAirflow.attach(UP / "airflow")) is not None:
        say("stopping Airflow")
        airflow.stop()
    if (UP / "sandbox" / "sandbox.json").is_file():
        say("stopping Kafka")
        Sandbox.attach(UP / "sandbox").stop()
    shutil.rmtree(UP, ignore_errors=True)


def prepare(sandbox: Sandbox, home: Path, stack: ExitStack) -> LocalAirflow:
    """Start Airflow; meanwhile fill the cluster and add three empty brokers to it."""
    say(f"Kafka runs: brokers {sandbox.broker_ids} on 3 racks at {sandbox.bootstrap_servers}")
    airflow = LocalAirflow(home, bootstrap_servers=sandbox.bootstrap_servers, artifacts=RUNS)
    executor = stack.enter_context(ThreadPoolExecutor(1))
    stack.callback(airflow.stop)
    stack.callback(finish_undisturbed)
    say("starting Airflow (api-server, scheduler, dag processor, triggerer)")
    starting = executor.submit(airflow.start)
    admin = sandbox.admin()
    data.create_topics(admin)
    admin.close()
    data.write_records(sandbox.bootstrap_servers, say)
    say(f"added empty brokers {sandbox.add_brokers(3)}")
    while not wait([starting], timeout=STILL_SECONDS).done:
        say("Airflow is still starting")
    starting.result()
    say(f"Airflow is healthy at {airflow.url}")
    return airflow


def finish_undisturbed() -> None:
    """A second Ctrl-C must not keep the first one from stopping everything."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def end(number: int, _: FrameType | None) -> NoReturn:
    """The first signal ends everything in order; what follows at once must not disturb even the first step of that."""
    finish_undisturbed()
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def trigger(api: AirflowApi) -> str:
    """Start a run of the DAG."""
    api.wait_for_dag()
    run_id = api.trigger({"throttle": THROTTLE, "check_interval": 2})
    say(f"triggered {DAG}, run {run_id}")
    return run_id


def wait_for_review(api: AirflowApi, run_id: str, seen: States) -> dict[str, Any]:
    """Wait until the plan waits for its review; returns the review."""
    while True:
        tell_changes(api, run_id, seen)
        if review := api.pending_review(run_id):
            return review
        if api.run_state(run_id) in FINISHED:
            raise failure(api, run_id)
        time.sleep(1)


def approve(api: AirflowApi, run_id: str, seen: States) -> None:
    """Read the review as a person would, and answer through the REST API."""
    review = wait_for_review(api, run_id, seen)
    console.print(Markdown(review["body"]))
    time.sleep(ANSWER_AFTER)
    approve_recommended = review["options"][0]
    api.answer_review(run_id, approve_recommended)
    say(f"answered through Airflow's REST API: {approve_recommended}")


def watch(api: AirflowApi, run_id: str, seen: States) -> None:
    """Follow the run to its end."""
    last = ""
    while (state := api.run_state(run_id)) not in FINISHED:
        tell_changes(api, run_id, seen)
        progress = api.xcom(run_id, "verify_plan", "progress")
        if progress and progress["text"] != last:
            last = progress["text"]
            say(f"verify_plan: {last}")
        time.sleep(1)
    tell_changes(api, run_id, seen)
    if state != "success":
        raise failure(api, run_id)


def failure(api: AirflowApi, run_id: str) -> DemoError:
    """What went wrong in a run, with the end of the logs that tell."""
    failed = [task for task, state in api.task_states(run_id).items() if state == "failed"]
    logs = "".join(f"\n--- {task}\n{api.task_log(run_id, task)[-3000:]}" for task in failed)
    return DemoError(f"the run ended as {api.run_state(run_id)}; failed tasks: {failed}{logs}")


def tell_changes(api: AirflowApi, run_id: str, seen: States) -> None:
    """Say which tasks changed their state since the last look, or what goes on if nothing did for a while."""
    now = time.monotonic()
    for task, state in api.task_states(run_id).items():
        if state not in ("running", "deferred", "awaiting_input", "success", "failed", "skipped"):
            continue
        before, since = seen.get(task, (None, now))
        if state != before:
            say(f"{task}: {state.replace('_', ' ')}")
        elif state == "running" and now - since >= STILL_SECONDS:
            say(f"{task}: still running")
        else:
            continue
        seen[task] = (state, now)


def show(api: AirflowApi, run_id: str, sandbox: Sandbox) -> None:
    """Ask the cluster itself whether every partition sits where the plan says, and show the brokers."""
    run = Run(api.xcom(run_id, "snapshot_topology")["run"])
    with Cluster({"bootstrap_servers": sandbox.bootstrap_servers.split(",")}) as cluster:
        status = run.status(cluster)
    done = status.having(Status.DONE)
    if len(done) != len(status.by_partition):
        raise DemoError(f"only {len(done)} of {len(status.by_partition)} partitions are where the plan says")
    console.print(broker_table(measured_brokers(run.snapshot(), run.snapshot("after")), "Brokers before and after"))
    say(f"[green]all {len(done)} planned partitions sit where the plan says, asked of the cluster itself[/green]")
    report = run.uri.removeprefix("file://") + "/report.html"
    console.print(f"Report: {report}", soft_wrap=True, highlight=False)


def tell_where(airflow: LocalAirflow, page: str = "") -> None:
    """Print what a person needs to go on in the browser."""
    console.print(
        f"Airflow  {airflow.url}{page}\nuser     {USER}\npassword {airflow.password}\n\n"
        "Open it, read the plan under Required Actions, approve or reject it. `make down` stops everything.",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def run_and_report() -> NoReturn:
    """SIGTERM and Ctrl-C clean up like any other end; errors are messages, not tracebacks."""
    for number in ENDING:
        signal.signal(number, end)
    try:
        sys.exit(main(prog_name="python -m demo", standalone_mode=False))
    except (KeyboardInterrupt, click.Abort):
        console.print("stopped")
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (DemoError, LocalAirflowError, SandboxError, RebalanceError, httpx.HTTPError, TimeoutError) as error:
        console.print(f"demo: {error}", style="red", markup=False, highlight=False)
        sys.exit(1)


if __name__ == "__main__":
    run_and_report()
