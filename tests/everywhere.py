"""What every single broker shows: each learns of a change in its own time, and a client may ask any of them.

A test that changes something waits here until all brokers have learned of it, so that whoever reads next sees it; and
one that checks what came out waits until all of them show the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError, NoError, UnknownTopicOrPartitionError
from kafka.protocol.admin import DescribeClusterRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from rebalance_lib.cluster import Cluster
from rebalance_lib.errors import ClusterError
from rebalance_lib.execution.throttles.config import RATES, REPLICA_LISTS
from tests.waiting import SECONDS, wait_for

PASSING = (ClusterError, KafkaError, OSError)
Ask = Callable[[int, Any], Any]


def asking(asked: Any) -> Ask:
    """How to ask one broker, by its id: of a `Cluster`, or of kafka-python's admin client."""
    if isinstance(asked, Cluster):
        return lambda broker, request: asked.ask_broker(f"broker {broker} did not answer", broker, request)
    manager = asked._manager
    return lambda broker, request: manager.run(manager.send, request, broker)


def alive(asked: Any) -> list[int]:
    """The brokers that are not fenced."""
    described = asked.describe() if isinstance(asked, Cluster) else asked.describe_cluster()
    return sorted(entry["broker_id"] for entry in described["brokers"] if not entry.get("is_fenced"))


def everywhere(asked: Any, of_one: Callable[[Ask, int], Any]) -> dict[int, Any]:
    """What each broker that is alive answers, by its id."""
    ask = asking(asked)
    return {broker: of_one(ask, broker) for broker in alive(asked)}


def same(expected: Any) -> Callable[[Mapping[int, Any]], bool]:
    """Whether brokers answer this, all of them."""
    return lambda found: bool(found) and all(answer == expected for answer in found.values())


def _wait(asked: Any, of_one: Callable[[Ask, int], Any], expected: Any, seconds: float = SECONDS) -> None:
    wait_for(
        lambda: everywhere(asked, of_one),
        same(expected),
        seconds=seconds,
        passing=PASSING,
        tell=lambda: f"expected of every broker: {expected!r}",
    )


def _settings(topic: str, keys: Sequence[str]) -> Callable[[Ask, int], dict[str, str] | None]:
    def of_one(ask: Ask, broker: int) -> dict[str, str] | None:
        [found] = ask(broker, DescribeConfigsRequest(resources=[(ConfigResourceType.TOPIC, topic, list(keys))])).results
        if found.error_code != NoError.errno:
            return None
        return {entry.name: entry.value for entry in found.configs if entry.value not in (None, "")}

    return of_one


def _described(topic: str) -> Callable[[Ask, int], Any]:
    def of_one(ask: Ask, broker: int) -> Any:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        [found] = ask(broker, request).topics
        return found

    return of_one


def _partitions(topic: str) -> Callable[[Ask, int], dict[int, Any]]:
    def of_one(ask: Ask, broker: int) -> dict[int, Any]:
        return {entry.partition_index: entry for entry in _described(topic)(ask, broker).partitions}

    return of_one


def lists_everywhere(cluster: Cluster, topic: str) -> dict[int, dict[str, str] | None]:
    """The lists of throttled replicas of a topic, as each broker shows them."""
    return everywhere(cluster, _settings(topic, REPLICA_LISTS))


def wait_for_lists(cluster: Cluster, topic: str, expected: Mapping[str, str]) -> None:
    """Wait until every broker shows these lists of throttled replicas of a topic, and no others."""
    _wait(cluster, _settings(topic, REPLICA_LISTS), dict(expected))


def rates(cluster: Cluster, brokers: Collection[int], keys: Sequence[str] = RATES) -> dict[int, dict[str, str]]:
    """The rates that each of these brokers shows of itself, inherited ones too."""
    return {
        broker: {key: value.value for key, value in cluster.broker_config(broker, keys).items()} for broker in brokers
    }


def wait_for_rates(
    cluster: Cluster,
    expected: Mapping[int, Mapping[str, str]],
    keys: Sequence[str] = RATES,
    *,
    seconds: float = SECONDS,
) -> None:
    """Wait until these brokers have these rates."""
    wait_for(lambda: rates(cluster, expected.keys(), keys), expected, seconds=seconds, passing=PASSING)


def _replicas(topic: str) -> Callable[[Ask, int], dict[int, list[int]]]:
    def of_one(ask: Ask, broker: int) -> dict[int, list[int]]:
        return {number: list(entry.replica_nodes) for number, entry in _partitions(topic)(ask, broker).items()}

    return of_one


def replicas_everywhere(cluster: Cluster, topic: str) -> dict[int, dict[int, list[int]]]:
    """The replicas of the partitions of a topic, as each broker shows them."""
    return everywhere(cluster, _replicas(topic))


def wait_for_replicas(cluster: Cluster, topic: str, expected: Mapping[int, Sequence[int]]) -> None:
    """Wait until every broker shows these replicas of the partitions of a topic."""
    _wait(cluster, _replicas(topic), {number: list(replicas) for number, replicas in expected.items()})


def wait_for_in_sync(cluster: Cluster, topic: str, expected: Mapping[int, Collection[int]]) -> None:
    """Wait until every broker shows these in-sync replicas of the partitions of a topic."""

    def of_one(ask: Ask, broker: int) -> dict[int, set[int]]:
        return {number: set(entry.isr_nodes) for number, entry in _partitions(topic)(ask, broker).items()}

    _wait(cluster, of_one, {number: set(in_sync) for number, in_sync in expected.items()})


def wait_for_leaders(cluster: Cluster, topic: str, expected: Mapping[int, int]) -> None:
    """Wait until every broker shows these leaders of the partitions of a topic."""

    def of_one(ask: Ask, broker: int) -> dict[int, int]:
        return {number: entry.leader_id for number, entry in _partitions(topic)(ask, broker).items()}

    _wait(cluster, of_one, dict(expected))


def wait_until_made(admin: Any, topic: str, topic_id: Any, assignment: Mapping[int, Sequence[int]]) -> None:
    """Wait until every broker knows this very topic, and a leader of each partition."""

    def of_one(ask: Ask, broker: int) -> Any:
        found = _described(topic)(ask, broker)
        led = {entry.partition_index: list(entry.replica_nodes) for entry in found.partitions if entry.leader_id >= 0}
        return found.error_code, str(found.topic_id), led

    _wait(admin, of_one, (NoError.errno, str(topic_id), {number: list(held) for number, held in assignment.items()}))


def wait_until_gone(asked: Any, topic: str) -> None:
    """Wait until no broker knows the topic."""
    _wait(asked, lambda ask, broker: _described(topic)(ask, broker).error_code, UnknownTopicOrPartitionError.errno)


def wait_for_alive(cluster: Cluster, expected: Collection[int]) -> None:
    """Wait until every broker that is alive says that these are, and no others."""
    request = DescribeClusterRequest(include_fenced_brokers=True)

    def of_one(ask: Ask, broker: int) -> set[int]:
        return {entry.broker_id for entry in ask(broker, request).brokers if not entry.is_fenced}

    _wait(cluster, of_one, set(expected))


def set_topic(cluster: Cluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set these settings of a topic, None deletes; returns when every broker shows them."""
    cluster.alter_topic_config(topic, changes)

    def of_one(ask: Ask, broker: int) -> dict[str, str | None]:
        shown = _settings(topic, list(changes))(ask, broker) or {}
        return {key: shown.get(key) for key, value in changes.items() if value is not None or key in REPLICA_LISTS}

    _wait(cluster, of_one, {key: value for key, value in changes.items() if value is not None or key in REPLICA_LISTS})


def set_broker(cluster: Cluster, broker: int, changes: Mapping[str, str | None]) -> None:
    """Set these dynamic settings of a broker, None deletes; returns when it shows them."""
    cluster.alter_broker_config(broker, changes)

    def shown() -> dict[str, str | None]:
        found = cluster.broker_config(broker, list(changes))
        return {key: found[key].value if key in found and found[key].dynamic else None for key in changes}

    wait_for(shown, dict(changes), passing=PASSING)


def set_default(cluster: Cluster, values: Mapping[str, str]) -> None:
    """Set dynamic settings that all brokers inherit; brokers learn of it in their own time."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()]
    entry = resource(resource_type=ConfigResourceType.BROKER.value, resource_name="", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[entry], validate_only=False)
    [answer] = cluster.ask_broker("the defaults were not set", alive(cluster)[0], request).responses
    assert answer.error_code == NoError.errno, answer


def cancel_and_unthrottle(cluster: Cluster) -> None:
    """Cancel all reassignments and delete all throttle rates, so that a test that failed does not make others fail."""
    cluster.reassign(dict.fromkeys(cluster.reassignments()))
    for broker in alive(cluster):
        if cluster.broker_config(broker, RATES):
            cluster.alter_broker_config(broker, dict.fromkeys(RATES))
