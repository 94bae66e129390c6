"""Opening an admin client, so that what keeps it from connecting is said at once and no secret gets into a log.

kafka-python tries again whatever happened, until its time is over, and then says only that it is. It writes its
settings and every byte that it sends to its log at DEBUG, passwords and tokens included. And a client that did not come
up leaves its thread behind. All of it is put right here.
"""

from __future__ import annotations

import functools
import logging
import random
import re
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from rebalance_lib.errors import ClusterError, RebalanceError

TELL_SECRETS = ("kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser")  # loggers, at DEBUG
BOOTSTRAP_MS, SERVER_MS = 10_000, 3_000  # to reach the cluster, and for each of several servers at least
CONTROLLER_DRAWS = 8  # until another broker than the ones that did not answer is named
RETRY_PAUSES = (0.2, 0.4, 0.8, 1.6)  # seconds between the attempts of a request that failed in passing
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
REFUSED_BY_TLS = re.compile(r"\[SSL: \w*(CERTIFICATE|UNKNOWN_CA)\w*\]")  # by either side; kafka-python keeps the words


class UnreachableError(ClusterError):
    """No server could be reached, or none let us in; ``final`` if no other try would change that."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


def connect(settings: Mapping[str, Any], unreached: set[Any]) -> tuple[KafkaAdminClient, _Client]:
    """An admin client that has reached its cluster, and the network client below it.

    kafka-python draws a server, and gives one that hangs all the time there is. So servers are tried one by one, each
    for its part of the time but some seconds at least; those that could not be reached when last tried come last.

    Args:
        settings: What kafka-python's clients take.
        unreached: Ids of brokers, and servers, that could not be reached or did not answer when last tried: kept up to
            date by the client, which asks them only where no other broker could answer. The next client can be given
            the same set.

    Raises:
        UnreachableError: It could not; the message says why and what to look at.
    """
    for name in TELL_SECRETS:
        logging.getLogger(name).addFilter(_above_debug)
    given = settings.get("bootstrap_servers") or KafkaAdminClient.DEFAULT_CONFIG["bootstrap_servers"]
    servers = given.split(",") if isinstance(given, str) else list(given)
    together = settings.get("bootstrap_timeout_ms", BOOTSTRAP_MS)
    each = max(min(together, SERVER_MS), together // max(1, len(servers)))
    failures: list[BaseException] = []
    for server in sorted(servers, key=lambda one: one in unreached):
        try:
            found = _connect_to({**settings, "bootstrap_servers": [server], "bootstrap_timeout_ms": each}, unreached)
        except (KafkaError, RebalanceError, OSError) as error:
            unreached.add(server)
            failures.append(error)
            if _is_final(error):
                break
        else:
            unreached.discard(server)
            return found
    cause = max(failures, key=_is_final)
    message = f"cannot reach a Kafka cluster at {given}: {_said(cause)}{_advice(cause, settings)}"
    raise UnreachableError(message, final=_is_final(cause)) from cause


def _connect_to(settings: Mapping[str, Any], unreached: set[Any]) -> tuple[KafkaAdminClient, _Client]:
    """A client that has reached this server; raises why it could not."""
    clients: list[_Client] = []

    def client(**configs: Any) -> _Client:
        clients.append(_Client(unreached, **configs))
        return clients[-1]

    try:
        return _Admin(unreached, **settings, kafka_client=client), clients[0]
    except (KafkaError, RebalanceError, OSError) as error:
        why = error
    for opened in clients:
        if isinstance(opened.failure, KafkaError | RebalanceError | OSError):
            why = opened.failure
        opened.close()
    raise why  # out here: raised while it is handled, it would become a cause of its own cause


class _Admin(KafkaAdminClient):  # type: ignore[misc]
    """kafka-python's, which does not take a broker for the controller that did not answer.

    With KRaft, brokers name any one of them as the one to ask, another each time: it hands on what it is asked.
    """

    def __init__(self, unreached: set[Any], **configs: Any) -> None:
        self._unreached = unreached
        super().__init__(**configs)

    async def _refresh_controller_id(self, *arguments: Any, **options: Any) -> Any:
        for _ in range(CONTROLLER_DRAWS):
            named = await super()._refresh_controller_id(*arguments, **options)
            if named not in self._unreached:
                break
        return named


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's, which keeps why a connection failed, and does not try again where that is of no use."""

    def __init__(self, unreached: set[Any], *arguments: Any, **configs: Any) -> None:
        super().__init__(*arguments, **configs)
        self.failures: dict[Any, BaseException] = {}
        self.unreached = unreached

    def least_loaded_node(self) -> Any:
        """The broker to ask what any of them knows.

        kafka-python draws one again and again, also one that has just refused: of two brokers, a dead one is drawn
        five times in a row once in 32 times.
        """
        reached = [id_ for node in self.cluster.brokers() if (id_ := node.node_id) not in self.unreached]
        ready = [id_ for id_ in reached if self.connection_delay(id_) <= 0]
        random.shuffle(ready)
        return min(ready, key=self._load) if ready else super().least_loaded_node()

    def _load(self, node_id: Any) -> tuple[bool, bool, int]:
        connection = self._conns.get(node_id)
        if connection is None:
            return False, True, 0
        return bool(connection.paused), not connection.connected, len(connection.in_flight_requests)

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        failure = self.failures.get(node_id)
        if failure is not None and _is_final(failure):
            raise failure
        connection = super().get_connection(node_id, *arguments, **options)
        connection.init_future.add_errback(functools.partial(self._failed, node_id))
        connection.init_future.add_callback(lambda _: self.unreached.discard(node_id))
        return connection

    def _failed(self, node_id: Any, failure: BaseException) -> None:
        self.failures[node_id] = failure
        self.unreached.add(node_id)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        """Send a request; a broker that does not answer in time counts as one that could not be reached."""
        asked = self.least_loaded_node() if node_id is None else node_id
        future = super().send(request, asked, request_timeout_ms)
        future.add_errback(functools.partial(self._unanswered, asked))
        return future

    def _unanswered(self, node_id: Any, failure: BaseException) -> None:
        if isinstance(failure, RequestTimedOutError | KafkaTimeoutError):
            self.unreached.add(node_id)

    async def send_all(
        self, requests: Mapping[int, Any], seconds: float, passing: Callable[[BaseException], bool]
    ) -> dict[int, Any]:
        """Send each broker its request, all at the same time; returns the response of each, or the error instead."""
        deadline = time.monotonic() + seconds
        sent = {
            broker: self.call_soon(self._send_and_retry, broker, request, deadline, passing)
            for broker, request in requests.items()
        }
        return {broker: await response for broker, response in sent.items()}

    async def _send_and_retry(
        self, broker: int, request: Any, deadline: float, passing: Callable[[BaseException], bool]
    ) -> Any:
        """The response; or the last error, if it is final, if the attempts are used up or the deadline is near."""
        for pause in (*RETRY_PAUSES, None):
            left_ms = (deadline - time.monotonic()) * 1000
            try:
                return await self.wait_for(self.send(request, broker, left_ms), left_ms)
            except (KafkaError, RebalanceError, RuntimeError, OSError) as error:
                failure = error
            if pause is None or not passing(failure) or time.monotonic() + pause >= deadline:
                break
            if isinstance(failure, UnknownBrokerIdError):
                self.cluster.request_update()
            await self._net.sleep(pause)
        self._unanswered(broker, failure)
        return failure

    async def _build_transport(self, *arguments: Any, **options: Any) -> Any:
        """A transport that hands on what came before the other side hung up.

        A broker says why it refuses a client, and hangs up. Where both come at once, kafka-python drops the first.
        """
        transport = await super()._build_transport(*arguments, **options)
        receive = transport._sock_recv  # noqa: SLF001 - no other place knows both

        def receive_all() -> tuple[bytes, BaseException | None]:
            received, error = receive()
            return received, None if received else error  # the next call meets the error again

        transport._sock_recv = receive_all  # noqa: SLF001
        return transport


class _Client(KafkaNetClient):  # type: ignore[misc]
    def __init__(self, unreached: set[Any], **configs: Any) -> None:
        self.selector = NetworkSelector(**configs)
        super().__init__(net=self.selector, manager=_Manager(unreached, self.selector, **configs))

    def ask(self, broker: int, request: Any) -> Any:
        """Send a request to this broker, and wait for its answer."""
        return self._manager.run(self._manager.send, request, broker)

    def ask_all(
        self, requests: Mapping[int, Any], seconds: float, passing: Callable[[BaseException], bool]
    ) -> dict[int, Any]:
        """Send each broker its request, all at the same time, and wait for all responses, but no longer than that.

        Args:
            requests: By broker: one message each, since the client writes the version that its broker has into it.
            seconds: The deadline for all together, retries included.
            passing: Whether a request that failed like this is worth sending again.

        Returns:
            For each broker its response, or the error that came instead.
        """
        return dict(self._manager.run(self._manager.send_all, requests, seconds, passing))

    @property
    def failure(self) -> BaseException | None:
        """Why a connection failed, if one did: of several reasons, one that no other try would change."""
        failures = list(self._manager.failures.values())
        return max(failures, key=_is_final, default=None)

    def close(self, node_id: Any = None) -> None:
        super().close(node_id)
        if node_id is None:
            self.selector.stop()


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


def _is_final(failure: BaseException) -> bool:
    refusals = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, IllegalSaslStateError, RebalanceError)
    return isinstance(failure, refusals) or _is_about_certificates(failure)


def _is_about_certificates(failure: BaseException) -> bool:
    """Refused by one of the two sides, or not even to be read from their files."""
    unread = isinstance(failure, ssl.SSLError) and not isinstance(failure, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    return unread or REFUSED_BY_TLS.search(str(failure)) is not None


def _said(failure: BaseException) -> str:
    text, name = str(failure), type(failure).__name__
    if isinstance(failure, KafkaError):  # whose text begins with number and name, and may go on with the name
        text = str(failure.args[0]).removeprefix(f"{name}: ") if failure.args else ""
    return text if isinstance(failure, RebalanceError) else f"{name}: {text}"


def _advice(failure: BaseException, settings: Mapping[str, Any]) -> str:
    """What to look at, in the words of Kafka's settings."""
    mechanism, protocol = settings.get("sasl_mechanism"), settings.get("security_protocol", "PLAINTEXT")
    if isinstance(failure, SaslAuthenticationFailedError):
        return f"; check the user and the password or token, and that the cluster knows the user for {mechanism}"
    if isinstance(failure, UnsupportedSaslMechanismError | IllegalSaslStateError):
        return f"; sasl.mechanism is {mechanism}: this listener has another, or none"
    if UNTRUSTED in str(failure):
        return "; the brokers' certificate must be signed by the CA in ssl.ca.location and name the host connected to"
    if _is_about_certificates(failure):
        return "; check ssl.certificate.location, ssl.key.location and ssl.key.password, and whom the brokers trust"
    if isinstance(failure, RebalanceError):
        return ""
    return f"; check the servers, that this machine reaches them, and that security.protocol ({protocol}) is theirs"
