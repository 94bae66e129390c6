"""The saved throttles: two copies on the disk, one of which is enough, and damage that stops nobody else."""

from __future__ import annotations

import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.cluster import ConfigValue
from rebalance_lib.errors import DriftError
from rebalance_lib.execution.throttles.config import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS, RATES
from rebalance_lib.execution.throttles.saved import (
    BACKUP,
    DAMAGED,
    SAVED,
    DamagedThrottlesError,
    SavedThrottles,
    read_saved,
    set_aside_damaged,
    stale_throttles,
)
from rebalance_lib.topology import TopicPartition

DAMAGE = [
    "",
    "{",
    "{}",
    "null",
    "[]",
    '"text"',
    '{"cluster_id": "c"}',
    '{"cluster_id": 7, "topics": {}, "brokers": {}}',
    '{"cluster_id": "c", "topics": {}, "brokers": {"one": {}}}',
    '{"cluster_id": "c", "topics": {}, "brokers": {"1": {"leader.replication.throttled.rate": {}}}}',
    '{"cluster_id": "c", "topics": {"foo": {"l": {"before": null}}}, "brokers": {}}',
    '{"cluster_id": "c", "topics": {"foo": {"l": {"before": null, "added": ["x:1"]}}}, "brokers": {}}',
    b"\xff\xfe\x00",
]


@pytest.fixture
def run(tmp_path):
    return Artifacts.at(tmp_path)


def save(run):
    """Save the throttle of ``foo-0``, which broker 1 sends."""
    saved = SavedThrottles(run, "c")
    saved.note_list("foo", LEADER_REPLICAS, "7:1", wanted=["0:1", "0:2"])
    saved.note_rates(1, {LEADER_RATE: ConfigValue("777", "DYNAMIC_BROKER_CONFIG")}, RATES, 50)
    saved.write()
    return saved


def damage(run, name, content):
    run.write_bytes(name, content if isinstance(content, bytes) else content.encode())


def test_what_is_saved_is_what_was_set_before_and_what_the_run_set(run):
    save(run)
    again = SavedThrottles(run, "c")
    assert again.topics == {"foo": {LEADER_REPLICAS: {"before": "7:1", "added": ["0:1", "0:2"]}}}
    assert again.brokers[1] == {
        LEADER_RATE: {"value": "777", "source": "DYNAMIC_BROKER_CONFIG", "set": ["50"]},
        FOLLOWER_RATE: {"value": None, "source": None, "set": ["50"]},
    }
    assert again.partitions == {TopicPartition("foo", 0)}
    assert stale_throttles(run) == ["topic foo", "broker 1"]


def test_a_second_note_adds_and_forgets_nothing(run):
    saved = save(run)
    saved.note_list("foo", LEADER_REPLICAS, "7:1,0:1,0:2", wanted=["1:2"])
    saved.note_rates(1, {LEADER_RATE: ConfigValue("50", "DYNAMIC_BROKER_CONFIG")}, RATES, 60)
    assert saved.topics["foo"][LEADER_REPLICAS] == {"before": "7:1", "added": ["0:1", "0:2", "1:2"]}
    assert (saved.brokers[1][LEADER_RATE]["value"], saved.brokers[1][LEADER_RATE]["set"]) == ("777", ["50", "60"])


def test_entries_that_somebody_else_had_in_the_list_are_never_ours(run):
    saved = SavedThrottles(run, "c")
    saved.note_list("foo", LEADER_REPLICAS, "0:1,7:1", wanted=["0:1", "0:2"])
    assert saved.entries() == {"foo": {LEADER_REPLICAS: {"0:2"}}}


def test_entries_of_a_move_that_ended_leave_and_the_value_before_stays(run):
    saved = save(run)
    saved.forget_entries({"foo": {LEADER_REPLICAS: ["0:1", "0:2"]}})
    assert SavedThrottles(run, "c").topics == {"foo": {LEADER_REPLICAS: {"before": "7:1", "added": []}}}


def test_what_is_restored_leaves_both_copies(run):
    saved = save(run)
    saved.forget_brokers([1])
    saved.forget_topics(["foo"])
    for name in (SAVED, BACKUP):
        assert run.read_json(name) == {"cluster_id": "c", "topics": {}, "brokers": {}}
    assert SavedThrottles(run, "c").empty


@pytest.mark.parametrize("content", DAMAGE)
def test_one_damaged_copy_is_replaced_by_the_other(run, content):
    save(run)
    whole = run.read_json(SAVED)
    damage(run, SAVED, content)
    assert read_saved(run) == whole
    save(run)
    damage(run, BACKUP, content)
    assert read_saved(run) == whole


@pytest.mark.parametrize("content", DAMAGE)
def test_two_damaged_copies_are_named_with_what_to_do(run, content):
    for name in (SAVED, BACKUP):
        damage(run, name, content)
    with pytest.raises(DamagedThrottlesError, match=r"are damaged \(throttles.json: .*see `kafka-rebalance throttles`"):
        read_saved(run)


def test_damaged_copies_are_kept_under_another_name_and_stop_nobody(run):
    damage(run, SAVED, "{")
    set_aside_damaged(run)
    assert run.files() == [DAMAGED]
    assert read_saved(run) is None
    assert stale_throttles(run) == []


def test_both_copies_are_written_through_to_the_disk(run, monkeypatch):
    durable = []
    write = Artifacts.write_bytes

    def noted(self, name, data, *, durable_=durable, **options):
        durable_.append((name, options.get("durable")))
        write(self, name, data, **options)

    monkeypatch.setattr(Artifacts, "write_bytes", noted)
    save(run)
    assert durable == [(BACKUP, True), (SAVED, True)]


def test_a_run_killed_between_the_two_copies_has_a_whole_one(run, monkeypatch):
    save(run)
    write = Artifacts.write_bytes

    def killed(self, name, data, **options):
        if name == SAVED:
            raise KeyboardInterrupt
        write(self, name, data, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Artifacts, "write_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            SavedThrottles(run, "c").forget_brokers([1])
    assert stale_throttles(run) == ["topic foo", "broker 1"], "the cluster may still have what the old copy says"


def test_saved_throttles_of_another_cluster_are_refused(run):
    save(run)
    with pytest.raises(DriftError, match="holds the throttles of cluster c, this is d"):
        SavedThrottles(run, "d")
