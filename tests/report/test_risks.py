"""What a person should know before approving a plan."""

from __future__ import annotations

import json

from rebalance_lib.planner import ClusterModel, Mode, Request
from rebalance_lib.planner.candidates import candidates
from rebalance_lib.planner.choice import Choice
from rebalance_lib.report import summarize
from rebalance_lib.topology import parse_cluster


def risks(request, capacities, lists):
    brokers = [{"id": id_, "capacity": {"network_out": most}} for id_, most in capacities.items()]
    written = {"size": 1000, "write_rate": 10.0, "read_rate": 10.0}
    partitions = [{"topic": "t", "partition": n, "replicas": replicas, **written} for n, replicas in enumerate(lists)]
    file = parse_cluster(json.dumps({"brokers": brokers, "partitions": partitions}).encode())
    model = ClusterModel.of(file.snapshot, file.loads)
    return summarize(Choice(model, request, candidates(model, request), {}))["candidates"]["full"]["risks"]


def test_a_replacement_that_cannot_send_what_it_takes_over_is_a_risk_with_figures():
    request = Request(Mode.REPLACE, brokers=(1,), replacements=(3,))
    (risk,) = risks(request, {1: 100.0, 2: 100.0, 3: 50.0}, [[1, 2]] * 3)
    assert "capacity is not met: broker 3 has 60 of 50 bytes per second that its network_out allows" in risk
    assert risks(request, {1: 100.0, 2: 100.0, 3: 60.0}, [[1, 2]] * 3) == []


def test_it_is_a_risk_even_if_another_broker_was_further_above():
    request = Request(Mode.REPLACE, brokers=(1,), replacements=(3,))
    (risk,) = risks(request, {1: 10.0, 2: 100.0, 3: 50.0}, [[1, 2]] * 3)
    assert "broker 3 has 60 of 50" in risk


def test_a_striping_that_has_a_broker_send_more_than_it_can_is_a_risk_with_figures():
    request = Request(Mode.KAFKA, topics=("t",))
    (risk,) = risks(request, {1: 500.0, 2: 500.0, 3: 5.0}, [[1, 2]] * 6)
    assert "broker 3 has 40 of 5 bytes per second that its network_out allows" in risk
