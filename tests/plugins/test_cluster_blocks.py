"""Files of clusters that are no YAML are cut into entries that are."""

from __future__ import annotations

import pytest

from kafka_rebalance_airflow.cluster_blocks import BadBlockError, compose, construct

TEXT = """
snapshots: "0 * * * *"
clusters:
  # the first one
  production:
    kafka_conn_id: "kafka_production"  # of the sandbox
    schedule: "0 20 * * sat

    mode: balance
  'staging':
    kafka_conn_id: kafka_staging
    capacities:
      production:
        cpu: 4
  archive: {kafka_conn_id: kafka_archive}
spark:
  num_executors: 2
"""


def test_an_entry_with_a_missing_quote_is_wrong_alone():
    file, entries, problem = compose(TEXT)
    (first, production), (second, staging), (third, archive) = entries
    assert (first, second, third, problem) == ("production", "staging", "archive", "")
    assert isinstance(production, BadBlockError)
    assert production.kafka_conn_id == "kafka_production"
    assert construct(staging) == {"kafka_conn_id": "kafka_staging", "capacities": {"production": {"cpu": 4}}}
    assert construct(archive) == {"kafka_conn_id": "kafka_archive"}
    assert construct(file) == {"snapshots": "0 * * * *", "clusters": None, "spark": {"num_executors": 2}}


def test_what_is_wrong_beside_the_entries_is_told_apart_from_them():
    file, entries, problem = compose(TEXT.replace("* sat", '* sat"').replace("num_executors: 2", "num_executors: [2"))
    assert file is None
    assert "this is no YAML" in problem
    assert [construct(entry)["kafka_conn_id"] for _, entry in entries] == [
        "kafka_production",
        "kafka_staging",
        "kafka_archive",
    ]


@pytest.mark.parametrize("text", ["clusters: [", "clusters: {a: {kafka_conn_id: k}", "a: b: c"])
def test_a_file_without_entries_that_can_be_told_apart_is_refused(text):
    with pytest.raises(ValueError, match="this is no YAML"):
        compose(text)
