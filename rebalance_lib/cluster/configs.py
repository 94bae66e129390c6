"""The settings of topics, and of brokers, which each broker reads and changes itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, ConfigSourceType
from kafka.errors import NoError, for_code
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from rebalance_lib.cluster.requests import ATTEMPTS, NOT_ANSWERED, Requests, batches
from rebalance_lib.cluster.values import Change, ConfigValue, Entries, RefusedConfigsError
from rebalance_lib.errors import ClusterError

TOPICS_AT_ONCE = 50  # in a request that changes their settings: a list of throttled replicas may be long
ALWAYS_SET = "cleanup.policy"  # on every topic: where it is missing, the answer is an error
NOT_READ = "the settings of broker {broker} could not be read"
NOT_CHANGED = "the settings of broker {broker} could not be changed"


class ConfigRequests(Requests):
    """Requests about settings."""

    def broker_config(self, broker: int, keys: Sequence[str], *, attempts: int = ATTEMPTS) -> dict[str, ConfigValue]:
        """These settings of a broker, where they have a value; tried so often, as for its log dirs."""
        request, what = _describe_request(broker, keys), NOT_READ.format(broker=broker)
        return _broker_values(broker, keys, self._request_broker(broker, what, request, attempts=attempts))

    def broker_configs(self, brokers: Iterable[int], keys: Sequence[str]) -> dict[int, dict[str, ConfigValue]]:
        """These settings of each broker, where they have a value; brokers that do not answer in time are left out.

        One that did not answer is left out without a request for `SILENT_SECONDS`.

        Args:
            brokers: The brokers that are asked, at the same time.
            keys: The names of the settings.

        Raises:
            ClusterError: A broker refuses, or no broker of the cluster can be reached.
        """
        requests = {broker: _describe_request(broker, keys) for broker in sorted(set(brokers))}
        received = self._request_brokers(NOT_READ, requests).received_or_silent()
        return {broker: _broker_values(broker, keys, received[broker]) for broker in sorted(received)}

    def topic_config(self, topic: str, keys: Sequence[str]) -> dict[str, ConfigValue]:
        """These settings of a topic, where they have a value."""
        found = self._describe_topics([topic], keys)
        if topic not in found:
            what = f"the settings of topic {topic} could not be read"
            raise ClusterError(f"{what}: is it there, and is this user allowed to describe its settings?")
        return found[topic]

    def topic_configs(self, topics: Iterable[str], keys: Sequence[str]) -> dict[str, dict[str, ConfigValue]]:
        """These settings of each topic, where they have a value; topics that are gone are left out."""
        found: dict[str, dict[str, ConfigValue]] = {}
        for batch in batches(sorted(set(topics))):
            found |= self._describe_topics(batch, keys)
        return found

    def alter_broker_config(self, broker: int, changes: Mapping[str, Change]) -> None:
        """Set these dynamic settings of one broker; None deletes."""
        self._alter_configs(ConfigResourceType.BROKER, {str(broker): changes})

    def alter_broker_configs(self, changes: Mapping[int, Mapping[str, Change]]) -> dict[int, str]:
        """Set dynamic settings of brokers, at the same time; None deletes.

        A broker is sent its changes even if it has just not answered: whether to try again is up to the caller. One
        that hangs may still apply them when it goes on.

        Returns:
            The brokers where it was not done, or where there was no answer in time, with the reason.

        Raises:
            ClusterError: No broker of the cluster can be reached.
        """
        requests = {broker: _alter_request(broker, wanted) for broker, wanted in sorted(changes.items()) if wanted}
        responses = self._request_brokers(NOT_CHANGED, requests, skip_silent=False)
        failed = {broker: str(error) for broker, error in responses.missing.items()}
        for broker, response in responses.received.items():
            for result in response.responses:
                if result.error_code != NoError.errno:
                    error = for_code(result.error_code)(result.error_message)
                    failed[broker] = f"{NOT_CHANGED.format(broker=broker)}: {error}"
        return dict(sorted(failed.items()))

    def alter_topic_config(self, topic: str, changes: Mapping[str, Change]) -> None:
        """Set these settings of one topic; None deletes."""
        self._alter_configs(ConfigResourceType.TOPIC, {topic: changes})

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, Change]]) -> None:
        """Set settings of many topics; None deletes. All are submitted, whatever becomes of some.

        Raises:
            RefusedConfigsError: Some topics did not take them.
            ClusterError: There was no response.
        """
        self._alter_configs(ConfigResourceType.TOPIC, changes)

    def _describe_topics(self, topics: Sequence[str], keys: Sequence[str]) -> dict[str, dict[str, ConfigValue]]:
        """The settings of those of these topics whose settings could be read."""
        what = f"the settings of topic {topics[0]} could not be read"
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, [*keys, ALWAYS_SET]) for name in topics]
        answer = self._ask(what, "describe_configs", resources, config_filter="all")["topic"]
        # Kafka-python drops the error of a resource: then not even the setting that all of them have is there.
        return {
            name: {
                key: ConfigValue(answer[name][key]["value"], answer[name][key]["config_source"])
                for key in keys
                if key in answer[name] and answer[name][key]["value"] not in (None, "")
            }
            for name in topics
            if ALWAYS_SET in answer.get(name, {})
        }

    def _alter_configs(self, kind: ConfigResourceType, changes: Mapping[str, Mapping[str, Change]]) -> None:
        refused: dict[str, str] = {}
        for batch in batches(((name, wanted) for name, wanted in changes.items() if wanted), TOPICS_AT_ONCE):
            resources = [
                ConfigResource(kind, name, {key: _operation(change) for key, change in wanted.items()})
                for name, wanted in batch
            ]
            what = f"the settings of {kind.name.lower()} {batch[0][0]} could not be changed"
            # Kafka does not list throttle rates among a broker's known settings until one is set.
            answer = self._ask(what, "alter_configs", resources, raise_on_unknown=False)[kind.name.lower()]
            refused |= {name: answer.get(name, NOT_ANSWERED) for name, _ in batch if answer.get(name) != "OK"}
        if refused:
            listed = "; ".join(f"{kind.name.lower()} {name}: {why}" for name, why in sorted(refused.items())[:10])
            raise RefusedConfigsError(f"settings were not taken by {listed}", refused)


def _operation(change: Change) -> tuple[AlterConfigOp, str | None]:
    if change is None:
        return (AlterConfigOp.DELETE, None)
    if isinstance(change, Entries):
        return (AlterConfigOp.SUBTRACT if change.out else AlterConfigOp.APPEND, ",".join(change.values))
    return (AlterConfigOp.SET, change)


def _describe_request(broker: int, keys: Sequence[str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(resources=[(ConfigResourceType.BROKER, str(broker), list(keys))])


def _alter_request(broker: int, changes: Mapping[str, Change]) -> IncrementalAlterConfigsRequest:
    entries = [(key, *_operation(change)) for key, change in changes.items()]
    return IncrementalAlterConfigsRequest(resources=[(ConfigResourceType.BROKER, str(broker), entries)])


def _broker_values(broker: int, keys: Sequence[str], response: Any) -> dict[str, ConfigValue]:
    [result] = response.results
    if result.error_code != NoError.errno:
        error = for_code(result.error_code)(result.error_message)
        raise ClusterError(f"{NOT_READ.format(broker=broker)}: {error}; is this user allowed to describe settings?")
    found = {entry.name: entry for entry in result.configs if entry.value not in (None, "")}
    return {
        key: ConfigValue(found[key].value, ConfigSourceType(found[key].config_source).name)
        for key in keys
        if key in found
    }
