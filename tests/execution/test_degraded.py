"""A degraded cluster: brokers that are down or hang, and a user who may not do everything.

The tests stop and start brokers of one cluster of their own. Each says which brokers are to be down; what the one
before it left down stays so if it fits. Numbers are those of docs/execution.md.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from rebalance_lib.cli import main
from rebalance_lib.cluster import Cluster, Replica
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution import (
    Executor,
    Kind,
    RunState,
    clean_up,
    finalize_run,
    make_request,
    preflight,
    set_throttles,
)
from rebalance_lib.execution.cancellation import cancel_own
from rebalance_lib.execution.plan_status import Status
from rebalance_lib.execution.records.journal import read_journal
from rebalance_lib.execution.stalls import Cause
from rebalance_lib.execution.throttles.config import RATES
from rebalance_lib.execution.throttles.restore import restore_throttles
from rebalance_lib.execution.throttles.saved import stale_throttles
from rebalance_lib.plan import Plan, PlanEntry
from rebalance_lib.topology import TopicPartition
from sandbox import Sandbox
from tests.conftest import SMALL_FETCHES
from tests.everywhere import (
    cancel_and_unthrottle,
    set_topic,
    wait_for_alive,
    wait_for_in_sync,
    wait_for_leaders,
    wait_for_lists,
    wait_for_rates,
)
from tests.execution.running import FAST, SLOW, begun, run_to_end, settings
from tests.kafka_data import write_topic
from tests.waiting import SECONDS, wait_for

CONFIG = {
    **SMALL_FETCHES,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
READER, PASSWORD = "reader", "planted-Pa55word"
FOREVER = {**SMALL_FETCHES, "broker.session.timeout.ms": "600000"}  # brokers count as alive, whatever they do
finalize = sys.modules[finalize_run.__module__]
THROTTLED = dict.fromkeys(RATES, str(SLOW))


class Degraded:
    """Four brokers that can be stopped, and a connection that outlives them.

    They stop in an orderly way: the controller knows at once, and nobody has to wait until their session ends.
    """

    def __init__(self, kafka: Sandbox, cluster: Cluster) -> None:
        self.kafka = kafka
        self.cluster = cluster

    def down(self, *brokers):
        """Let these brokers be down, and no others; all that are up know."""
        for broker in self.kafka.broker_ids:
            node = self.kafka.nodes[broker]
            if broker in brokers and node.state() != "dead":
                node.send(signal.SIGTERM)
                assert node.wait_gone(SECONDS), self.kafka.log(broker)
            elif broker not in brokers and node.state() == "dead":
                self.kafka.restart(broker)
        wait_for_alive(self.cluster, set(self.kafka.broker_ids) - set(brokers))

    def topic(self, name, assignment, size=0, **configs):
        """Make a topic; of its brokers, one in each partition must be up."""
        with self.kafka.admin() as admin:
            write_topic(admin, self.kafka.bootstrap_servers, name, assignment, size)
        if configs:
            set_topic(self.cluster, name, {key.replace("_", "."): value for key, value in configs.items()})
        return name


@pytest.fixture(scope="module")
def started_brokers():
    with (
        Sandbox(brokers=4, racks=0, users={READER: PASSWORD}, config=CONFIG) as kafka,
        Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(",")}) as cluster,
    ):
        yield Degraded(kafka, cluster)


@pytest.fixture
def degraded(started_brokers):
    yield started_brokers
    cluster = started_brokers.cluster
    try:
        wait_for(cluster.reassignments, {})
    finally:
        cancel_and_unthrottle(cluster)


def test_a_user_who_may_not_reassign_is_refused_with_what_is_missing(degraded, make_job):
    degraded.down()
    name = degraded.topic("degraded-acl", [[1]])
    job = make_job(degraded.cluster, name, [[2]])
    preflight(degraded.cluster, job)
    patterns = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"), ResourcePattern(ResourceType.TOPIC, name)
    granted = [
        ACL(f"User:{READER}", "*", operation, ACLPermissionType.ALLOW, pattern)
        for pattern in patterns
        for operation in (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS)
    ]
    with degraded.kafka.admin() as admin:
        admin.create_acls(granted)
    missing = f"may not ALTER on the cluster, ALTER_CONFIGS on the cluster, ALTER_CONFIGS on topic {name}: grant it"
    with Cluster(
        {
            "bootstrap_servers": degraded.kafka.secure_servers("SASL_PLAINTEXT").split(","),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": READER,
            "sasl_plain_password": PASSWORD,
        }
    ) as reading:

        def refused():
            with pytest.raises(ClusterError) as refusal:
                preflight(reading, job)
            return str(refusal.value)

        wait_for(refused, lambda reason: missing in reason)  # brokers learn of rights a moment later


@pytest.mark.usefixtures("stalls_at_once")
def test_a_receiver_that_hangs_but_is_not_fenced_is_named_and_the_rest_goes_on(new_kafka, make_job):
    kafka = new_kafka(brokers=2, racks=0, config=FOREVER)
    with kafka.admin() as admin:
        write_topic(admin, kafka.bootstrap_servers, "foo", [[1], [1]], 1_000_000)
    chosen = settings(throttle=SLOW, log_dir_throttle=SLOW, stall_checks=2)
    with Cluster({"bootstrap_servers": kafka.bootstrap_servers.split(","), "request_timeout_ms": 3_000}) as cluster:
        held = cluster.replica_log_dirs([1])[Replica("foo", 1, 1)].current
        other = next(log_dir.path for log_dir in cluster.log_dirs(1) if log_dir.path != held)
        plan = Plan.from_entries([PlanEntry("foo", 0, (2,)), PlanEntry("foo", 1, (1,), (other,))])
        job = replace(make_job(cluster, "foo", [[2], [1]]), plan=plan)
        set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
        executor = Executor(cluster, job, chosen)
        wait_for(lambda: executor.check().progress.bytes_copied > 0)
        report = executor.check()
        assert report.log_dirs_left == 1
        kafka.pause(2)
        make_request(job.artifacts, Kind.LOG_DIR_THROTTLE, FAST, by="a test")
        wait_for(lambda: executor.check().log_dirs_left, 0)
        wait_for(lambda: [stall.cause for stall in executor.check().stalls], [Cause.NOT_ANSWERING])
        hanging = executor.check()
        assert (hanging.state, [stall.broker for stall in hanging.stalls]) == (RunState.MOVING, [2])
        assert hanging.progress.bytes_copied >= report.progress.bytes_copied, "what it had when it last answered counts"
        with Cluster({"bootstrap_servers": [kafka.nodes[broker].address for broker in (2, 1)]}) as anew:
            assert len(anew.alive_brokers()) == 2


def test_08_an_unhealthy_replica_that_does_not_move_is_named_first(degraded, make_job):
    degraded.down(4)
    name = degraded.topic("degraded-08", [[1, 4]])
    with pytest.raises(ClusterError, match=r"under-replicated \(degraded-08-0\), replicas on brokers \[4\]"):
        preflight(degraded.cluster, make_job(degraded.cluster, name, [[3, 4]]))
    preflight(degraded.cluster, make_job(degraded.cluster, name, [[1, 3]]))  # away from the one that is down


def test_under_min_isr_only_partitions_at_risk_begin(degraded, make_job):
    degraded.down(4)
    name = degraded.topic("degraded-min-isr", [[1, 4], [1, 3]], min_insync_replicas="2")
    job = make_job(degraded.cluster, name, [[1, 2], [1, 2]], repair=True)
    wait_for_in_sync(degraded.cluster, name, {0: {1}, 1: {1, 3}})
    report = Executor(degraded.cluster, job, settings()).check()
    assert f"1 partitions are short of in-sync replicas: {name}-0" in report.holds[0]
    assert begun(job) == {f"{name}-0": 1}
    assert run_to_end(degraded.cluster, job, settings()).state is RunState.COMPLETED
    assert begun(job) == {f"{name}-0": 1, f"{name}-1": 1}


def test_leaders_that_do_not_change_are_logged_and_recorded(degraded, make_job, monkeypatch):
    degraded.down(4)
    name, cluster = degraded.topic("degraded-leaders", [[4, 2], [2, 4]]), degraded.cluster
    tp = TopicPartition(name, 0)
    assert cluster.elect_preferred_leaders([tp, TopicPartition(name, 1)]) == {tp: "PreferredLeaderNotAvailableError"}
    job, logged = make_job(cluster, name, [[4, 2]]), []
    read = finalize.read_status

    def all_in_sync(*arguments, **options):  # as it was when the last move ended, a moment before the broker died
        status = read(*arguments, **options)
        status.by_partition[tp] = Status.DONE
        return status

    monkeypatch.setattr(finalize, "read_status", all_in_sync)
    finalize.finalize(cluster, job, settings(), approved_by="a test", approved_at="now", log=logged.append)
    assert logged == [f"1 preferred leaders were not elected ({tp}): PreferredLeaderNotAvailableError"]
    [noted] = [one for one in read_journal(job.artifacts) if one["event"] == "leaders not elected"]
    assert noted["reasons"] == {str(tp): "PreferredLeaderNotAvailableError"}
    assert not any(one["event"] == "leaders elected" for one in read_journal(job.artifacts))


def test_07_throttles_are_set_on_live_brokers_only_and_skips_are_reported(degraded, make_job):
    degraded.down(4)
    name, cluster = degraded.topic("degraded-07", [[1, 4]], size=1_000_000), degraded.cluster
    job, chosen = make_job(cluster, name, [[2, 3]], repair=True), settings(throttle=SLOW, pause_under_min_isr=False)
    brokers = set_throttles(cluster, job, preflight(cluster, job, chosen).status, chosen)
    assert brokers == [1, 2, 3]
    wait_for_rates(cluster, dict.fromkeys(brokers, THROTTLED))
    assert Executor(cluster, job, chosen).check().state is RunState.MOVING
    degraded.kafka.kill(3)  # it has no time to tell the controller
    degraded.down(3, 4)
    restored = clean_up(cluster, job, chosen)
    assert (restored.brokers, list(restored.left)) == ([1, 2], ["broker 3"])
    assert "not alive" in restored.left["broker 3"]
    wait_for_lists(cluster, name, {})
    degraded.down(4)
    wait_for_rates(cluster, {3: THROTTLED})
    assert restore_throttles(cluster, job.artifacts).brokers == [3]
    wait_for_rates(cluster, {3: {}})
    assert stale_throttles(job.artifacts) == []


def test_14_a_cancel_onto_dead_originals_is_refused_and_the_move_goes_on(degraded, make_job, tmp_path):
    degraded.down(4)
    name, other, cluster = degraded.topic("degraded-14", [[1]]), "degraded-14-other", degraded.cluster
    degraded.topic(other, [[1, 2]])
    job, tp = make_job(cluster, name, [[2, 4]]), TopicPartition(name, 0)
    cluster.reassign(job.plan.as_dict())
    wait_for_in_sync(cluster, name, {0: {1, 2}})
    degraded.down(1, 4)
    wait_for_leaders(cluster, name, {0: 2})
    cancelled, kept = cancel_own(cluster, job)
    refusal = f"{name}-0 must not be cancelled: of its original replicas [1] none is alive and in sync"
    assert (cancelled, refusal in kept[tp]) == ([], True)

    def run(command, topic, target, *options):
        path = tmp_path / f"{topic}.json"
        entry = {"topic": topic, "partition": 0, "replicas": target}
        path.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
        words = [command, "--bootstrap-server", degraded.kafka.bootstrap_servers, "--reassignment-json-file", path]
        return CliRunner().invoke(main, [*map(str, words), *options])

    refused = run("cancel", name, [2, 4])
    assert (refused.exit_code, refusal in refused.stderr) == (1, True)
    degraded.down(1)
    forward = run("verify", name, [2, 4], "--wait")
    assert forward.exit_code == 0, forward.output
    # A dead broker that would send needs no throttle, and does not keep its replicas from moving away.
    away = run("execute", other, [2, 3], "--throttle", "1000000", "--wait")
    assert away.exit_code == 0, away.output
