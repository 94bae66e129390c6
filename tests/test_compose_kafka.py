"""The brokers of docker-compose.yaml, checked with the program that Kafka's image runs when it starts."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from sandbox.cluster import LIBS
from sandbox.node import java
from tests.compose_file import BROKERS, KAFKA, SERVICES, commands, environment, listeners, mounts, run

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def broker_settings() -> set[str]:
    """The name of every setting of a Kafka node, as Kafka itself prints them for its documentation."""
    return set(re.findall(r'id="brokerconfigs_([^"]+)"', run(*java(LIBS, "kafka.server.KafkaConfig"))))


@pytest.mark.parametrize("name", KAFKA)
def test_kafkas_image_makes_a_valid_configuration_of_known_settings(
    name: str, broker_settings: set[str], tmp_path: Path
):
    """The image's own program turns the environment into server.properties and formats the log dirs."""
    directories = [tmp_path / part for part in ("default", "mounted", "final")]
    for directory in directories:
        directory.mkdir()
    options = [text for option, path in zip("DMF", directories, strict=True) for text in (f"-{option}", str(path))]
    in_image = {key: value.replace("/var/lib/kafka/data", str(tmp_path)) for key, value in environment(name).items()}
    setup = java(LIBS, "kafka.docker.KafkaDockerWrapper", "setup", *options)
    run(*setup, env={"PATH": os.environ["PATH"], **in_image})
    settings = dict(line.split("=", 1) for line in (tmp_path / "final" / "server.properties").read_text().split())
    assert set(settings) <= broker_settings
    for log_dir in settings["log.dirs"].split(","):
        formatted = (Path(log_dir) / "meta.properties").read_text(encoding="utf-8")
        assert f"node.id={settings['node.id']}" in formatted
        assert f"cluster.id={in_image['CLUSTER_ID']}" in formatted


def test_health_checks_ask_kafkas_tool_what_it_knows():
    tool = java(LIBS, "org.apache.kafka.tools.ClusterTool", "cluster-id", "--help")
    usage = subprocess.run(tool, capture_output=True, text=True, check=False).stdout
    for name in KAFKA:
        [[_, command, option, address]] = commands(name)
        assert (command, option in usage) == ("cluster-id", True)
        assert address.split(":")[1] in environment(name)["KAFKA_LISTENERS"]


def test_three_brokers_on_three_racks_can_be_joined_by_one_more_on_each():
    racks = {name: environment(name)["KAFKA_BROKER_RACK"] for name in BROKERS}
    first = [name for name in BROKERS if "profiles" not in SERVICES[name]]
    more = [name for name in BROKERS if SERVICES[name].get("profiles") == ["expand"]]
    assert len(set(first)) == len(more) == len({racks[name] for name in first}) == 3
    assert {racks[name] for name in more} == {racks[name] for name in first}
    assert all(len(environment(name)["KAFKA_LOG_DIRS"].split(",")) == 2 for name in BROKERS)


def test_every_node_is_itself_and_can_be_reached_where_it_says():
    assert len({environment(name)["KAFKA_NODE_ID"] for name in KAFKA}) == len(KAFKA)
    voter = f"{environment('kafka-controller')['KAFKA_NODE_ID']}@kafka-controller:9093"
    assert {environment(name)["KAFKA_CONTROLLER_QUORUM_VOTERS"] for name in KAFKA} == {voter}
    for name in BROKERS:
        inside = {role: at.split(":")[1] for role, at in listeners(environment(name)["KAFKA_LISTENERS"]).items()}
        advertised = listeners(environment(name)["KAFKA_ADVERTISED_LISTENERS"])
        assert advertised["BROKER"] == f"{name}:{inside['BROKER']}"
        assert SERVICES[name]["ports"] == [f"{advertised['HOST']}:{inside['HOST']}"]
        assert [source for source, *_ in mounts(name)] == [name]
