"""Every scenario is planned anew, and its figures are those in its file: a change of behaviour is a diff of it."""

from __future__ import annotations

import pytest

from bench.scenario_file import OURS, amount, ids, read_scenario
from bench.scenarios import can_be_put_to_peers, files, our_figures


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_the_planner_does_what_the_file_says(file):
    scenario = read_scenario(file)
    wrong = f"{file.name} is not true any more: python -m bench.scenarios --write {file.stem}, and look at the diff"
    assert our_figures(scenario) == scenario.figures.get(OURS), wrong
    assert scenario.text() == file.read_text(encoding="utf-8")


def test_there_are_scenarios_for_most_that_can_happen_to_a_cluster():
    modes = {read_scenario(file).request.mode.value for file in files()}
    assert len(files()) >= 12
    assert {"balance", "expand", "drain", "leaders", "demote", "repair", "drain-log-dirs"} <= modes


def write(tmp_path, cluster, request="mode=balance"):
    file = tmp_path / "one.txt"
    lines = "".join(f"    {line}\n" for line in cluster)
    file.write_text(f"A title\n\nProse.\n\ncluster\n{lines}request\n    {request}\n")
    return read_scenario(file)


def test_brokers_take_the_values_of_a_list_in_turn(tmp_path):
    one = write(
        tmp_path, ["broker 1-3,7 rack=a,b disk=4TB,?", "topic t partitions=2 lists=1,2/7,3 size=1GB,2GB write=5"]
    )
    assert [broker.get("rack") for broker in one.hosts.brokers] == ["a", "b", "a", "b"]
    assert [broker.get("capacity") for broker in one.hosts.brokers] == [{"disk": 4 * 10**12}, None] * 2
    assert [entry["replicas"] for entry in one.hosts.partitions] == [[1, 2], [7, 3]]
    assert [(entry["size"], entry["write_rate"]) for entry in one.hosts.partitions] == [(10**9, 5), (2 * 10**9, 5)]


def test_what_a_cluster_s_json_cannot_say_is_in_the_model(tmp_path):
    lines = ["broker 1 log-dirs=/a:10GB,/b:10GB", "broker 2 dead", "topic t partitions=3 lists=1,2 size=1GB"]
    model = write(tmp_path, lines).hosts.model()
    assert model.alive.tolist() == [True, False]
    assert model.log_dirs.paths == ["/a", "/b"]


def test_peers_are_asked_only_what_they_can_be_asked(tmp_path):
    brokers, topic = "broker 1-3 rack=a,b,c", "topic t partitions=3 replicas=2"
    assert can_be_put_to_peers(write(tmp_path, [brokers, topic]))
    assert not can_be_put_to_peers(write(tmp_path, [brokers, topic], "mode=balance byte_budget=1GB"))
    assert not can_be_put_to_peers(write(tmp_path, [f"{brokers} cordoned", topic]))
    assert not can_be_put_to_peers(write(tmp_path, [brokers, topic], "mode=leaders"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Title\n\nrequest\n    mode=balance\n", "has no block 'cluster'"),
        ("Title\n\ncluster\n    brokers 1-3\nrequest\n    mode=balance\n", "'brokers 1-3' is none of broker, topic"),
        ("Title\n\ncluster\n    broker 1-3\nrequest\n    mode=balance\n\n", "one.txt:7: '' is not the name"),
    ],
)
def test_what_is_no_scenario_is_refused_with_its_line(tmp_path, text, complaint):
    (tmp_path / "one.txt").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_scenario(tmp_path / "one.txt")


def test_amounts_and_ids():
    assert amount("1.5GB~0.8") == (1.5e9, 0.8)
    assert amount("20") == (20.0, 0.0)
    assert ids("1-3,7") == [1, 2, 3, 7]
    with pytest.raises(ValueError, match="'5 pounds' is not an amount"):
        amount("5 pounds")
