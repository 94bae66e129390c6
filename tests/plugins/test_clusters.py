"""The file of clusters: what it says, and what is told of a wrong one."""

from __future__ import annotations

import pytest

from kafka_rebalance_airflow.clusters import ClusterEntry, check_clusters, read_clusters


@pytest.fixture
def clusters(tmp_path):
    def read(text):
        (tmp_path / "clusters.yaml").write_text(text)
        return read_clusters(tmp_path / "clusters.yaml")

    return read


def test_without_a_file_there_is_the_default_connection(tmp_path):
    found = read_clusters(tmp_path / "none.yaml")
    assert found.clusters == (ClusterEntry("default", "kafka_default"),)
    assert found.snapshots == "*/5 * * * *"


def test_the_file_that_is_configured_comes_first_and_must_be_there(tmp_path, monkeypatch, clusters):
    monkeypatch.setenv("AIRFLOW__KAFKA_REBALANCE__CLUSTERS", str(tmp_path / "other.yaml"))
    with pytest.raises(ValueError, match=r"other\.yaml: cannot be read: No such file"):
        clusters("clusters: {a: {kafka_conn_id: k}}")


def test_quiet_hours_are_the_rest_of_the_window(clusters):
    text = "{clusters: {a: {kafka_conn_id: k, schedule: snapshot, quiet_hours: '07:00-20:00 Europe/Berlin'}}}"
    (one,) = clusters(text).clusters
    assert (one.schedule, one.fields["window"]) == ("snapshot", "20:00-07:00 Europe/Berlin")
    assert one.fields["kafka_conn_id"] == "k"


def test_what_is_said_of_brokers_goes_to_the_snapshots_of_their_connection(clusters):
    found = clusters(
        "clusters:\n  a: {kafka_conn_id: k, capacities: {brokers: {7: {disk: 5}}}, broker_sets: {payments: [1]}}\n"
        "  b: {kafka_conn_id: l}\n  c: {kafka_conn_id: k}"
    )
    assert found.brokers_by_connection() == {
        "k": {"capacities": {"brokers": {"7": {"disk": 5}}}, "broker_sets": {"payments": [1]}}
    }
    assert "capacities" not in found.clusters[0].fields


def test_approval_policies_are_by_the_id_of_the_cluster(clusters):
    found = clusters("{approval: {default: {}, clusters: {4L6g: {approvals: 2}}}, clusters: {a: {kafka_conn_id: k}}}")
    assert [found.approval.of_cluster(one).approvals for one in ("4L6g", "k", "a")] == [2, 1, 1]
    assert not clusters("clusters: {a: {kafka_conn_id: k}}").approval.configured


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clusters: [", "this is no YAML"),
        ("{approval: , clusters: {}}", "approval is None: give an object with default and clusters in it"),
        ("{approval: {default: {approvals: 3}}, clusters: {}}", "approval: default: approvals is 3: give 1 or 2"),
        (
            "{approval: {clusters: {x: {approvals: 1}, x: {approvals: 2}}}, clusters: {}}",
            "approval: clusters: x is there twice",
        ),
        ("[]", "the file is \\[\\]: give an object with clusters in it"),
        ("cluster: {}", "there is no 'cluster': use snapshots, spark, approval and clusters"),
        ("clusters:", "clusters is None: give an object"),
        ("clusters: {'a b': {kafka_conn_id: k}}", "cluster 'a b': a name has letters"),
        ("clusters: {a: {schedule: '@daily'}}", "cluster a: give kafka_conn_id"),
        ("clusters: {a: {kafka_conn_id: k, schedule: 5}}", "cluster a: schedule cannot be 5"),
        ("clusters: {a: {kafka_conn_id: k, mode: shuffle}}", "cluster a: mode cannot be 'shuffle'"),
        ("clusters: {a: {kafka_conn_id: k, treshold: 1}}", "cluster a: there is no field 'treshold'"),
        ("clusters: {a: {kafka_conn_id: k, quiet_hours: night}}", "cluster a: quiet_hours cannot be 'night'"),
        (
            "clusters: {a: {kafka_conn_id: k, quiet_hours: 25:00-26:00}}",
            "cluster a: quiet_hours cannot be '25:00",
        ),
        (
            "clusters: {a: {kafka_conn_id: k, window: 22:00-06:00 Europe}}",
            "cluster a: window cannot be '22:00",
        ),
        (
            "clusters: {a: {kafka_conn_id: k, throttle_ceiling: 10}}",
            "cluster a: throttle_ceiling cannot be 10",
        ),
        ("clusters: {a: {kafka_conn_id: k, load: median}}", "cluster a: load cannot be 'median'"),
        (
            "clusters: {a: {kafka_conn_id: k, history_hours: 0, horizon_days: 7}}",
            "cluster a: horizon_days needs a history that tells how partitions grow",
        ),
        ("clusters: {a: {kafka_conn_id: k, review: automatic}}", "cluster a: automatic review needs a limit"),
        (
            "clusters: {a: {kafka_conn_id: k, schedule: at night}}",
            "cluster a: schedule cannot be 'at night'",
        ),
        ("{snapshots: snapshot, clusters: {a: {kafka_conn_id: k}}}", "snapshots cannot be 'snapshot': it is no cron"),
        ("clusters: {a: {kafka_conn_id: k, kafka_conn_id: l}}", "cluster a: kafka_conn_id is there twice, in line 1"),
        ("clusters:\n  a: {kafka_conn_id: k}\n  a: {kafka_conn_id: l}", "clusters: a is there twice: keep one"),
        (
            "clusters: {a: {kafka_conn_id: k, capacities: {default: {cpu: 0}}}}",
            "cluster a: capacities.default.cpu is 0: give a number above 0",
        ),
        ("clusters: {a: {kafka_conn_id: k, broker_sets: [1]}}", "cluster a: broker_sets is \\[1\\]: give an object"),
        (
            "clusters: {a: {kafka_conn_id: k, capacities: {racks: {x: {cpu: 1}, x: {cpu: 2}}}}}",
            "cluster a: capacities: racks: x is there twice",
        ),
        (
            "clusters: {a: {kafka_conn_id: k, broker_sets: {x: [1]}}, b: {kafka_conn_id: k, broker_sets: {x: [2]}}}",
            "cluster b: a has the same kafka_conn_id",
        ),
        ("{spark: {cores: 1}, clusters: {a: {kafka_conn_id: k}}}", "spark: there is no 'cores'"),
        ("{spark: {conf: {spark.a: 1, spark.a: 2}}, clusters: {}}", "spark: conf: spark.a is there twice"),
        (
            "clusters: {a: {kafka_conn_id: k, spark: {conf: {}}}, b: {kafka_conn_id: k, spark: {num_executors: 2}}}",
            "cluster b: a has the same kafka_conn_id and has spark",
        ),
        (
            "clusters: {a: {kafka_conn_id: k, quiet_hours: '07:00-20:00', window: '20:00-07:00'}}",
            "give quiet_hours or window, not both",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_file_the_cluster_and_the_field(tmp_path, text, told):
    (tmp_path / "clusters.yaml").write_text(text)
    with pytest.raises(ValueError, match=f"clusters.yaml: .*{told}"):
        check_clusters(tmp_path / "clusters.yaml")


TWO = """
clusters:
  a:
    kafka_conn_id: k
    schedule: "0 20 * * sat"
    {}
  b:
    kafka_conn_id: l
    schedule: "0 21 * * sat"
spark:
  num_executors: 2
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("thresold_bytes: 0.1", "cluster a: there is no field 'thresold_bytes'"),
        ("excluded_topics: [audit", "cluster a: this is no YAML"),
        ('quiet_hours: "07:00', "cluster a: this is no YAML"),
        (" brokers: [1]", "cluster a: this is no YAML"),
        ("spark: {num_executors: many}", "cluster a: spark: num_executors cannot be 'many'"),
    ],
)
def test_an_entry_that_is_wrong_costs_its_own_schedule_alone(clusters, line, told):
    found = clusters(TWO.format(line))
    wrong, right = found.clusters
    assert (wrong.name, wrong.kafka_conn_id, wrong.schedule) == ("a", "k", None)
    assert told in wrong.problem
    assert (right.schedule, right.problem, found.problem, found.spark) == (
        "0 21 * * sat",
        "",
        "",
        {"num_executors": 2},
    )
    assert found.problems() == [wrong.problem]


def test_an_error_of_yaml_is_told_with_its_line(clusters):
    (problem,) = clusters(TWO.format("excluded_topics: [audit")).problems()
    assert "line 6" in problem


def test_a_snapshot_for_a_plan_is_refused_by_what_is_wrong_about_brokers_rather_than_taken_without_it(clusters):
    found = clusters("clusters: {a: {kafka_conn_id: k, broker_sets: [1]}}")
    assert found.brokers_by_connection() == {"k": {"broker_sets": [1]}}


def test_what_is_wrong_beside_the_entries_leaves_clusters_their_snapshots(clusters):
    found = clusters("{snapshots: often, clusters: {a: {kafka_conn_id: k, schedule: '@daily'}}}")
    assert "snapshots cannot be 'often'" in found.problem
    assert (found.snapshots, found.clusters[0].schedule) == ("*/5 * * * *", "@daily")


def test_whatever_the_form_has_can_be_said_of_a_cluster(clusters):
    text = """
clusters:
  production:
    kafka_conn_id: kafka_production
    leader_racks: [a, b]
    min_topic_leaders: ["metrics-*=1"]
    goals: [disk=0.02, failover]
    polish: 10
    load: p95
    horizon_days: 7
    shards: 2
    mode: drain
    brokers: [3]
    balance: true
"""
    (one,) = clusters(text).clusters
    assert one.fields["leader_racks"] == ["a", "b"]
    assert one.fields["balance"] is True
