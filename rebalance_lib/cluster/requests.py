"""Send requests to a cluster and retry them, within bounds.

kafka-python may send a request to a broker that has just gone, or that hangs. Every request here can be sent twice to
the same effect, so one that failed for a passing reason is retried, a few times, with growing pauses, by a client that
connects anew.

A broker that hangs costs a request's whole time-out each time. So what only the brokers themselves know is requested of
all of them at the same time, with one deadline for all; and one that did not answer gets no such request for a while.

Example: of 10 brokers two hang. Their log dirs are described by 8 brokers within milliseconds, and the call returns
after `DEADLINE_SECONDS` without the two. For the next `SILENT_SECONDS`, calls return at once, with 8 brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from kafka.errors import KafkaError, KafkaTimeoutError, RequestTimedOutError, UnknownBrokerIdError

from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.cluster.client_config import check_settings
from rebalance_lib.cluster.connection import UnreachableError, connect
from rebalance_lib.errors import ClusterError, RebalanceError

NOT_ANSWERED = "not answered"
BATCH = 1000  # partitions in one request: small enough for any broker's request limits
ATTEMPTS = 5  # of a request, some 3 seconds in all
DEADLINE_SECONDS = 10.0  # of requests to several brokers at the same time: a healthy broker takes well below a second
SILENT_SECONDS = 30.0  # how long a broker that did not answer gets no request, where it can be done without
DEFAULTS = {"client_id": "kafka-rebalance", "bootstrap_timeout_ms": 10_000, "request_timeout_ms": 15_000}


class SilentError(ClusterError):
    """A broker does not answer: it hangs, or is cut off."""


def is_passing(error: KafkaError) -> bool:
    """Whether a request that failed like this is worth making again."""
    return bool(error.retriable) or isinstance(error, UnknownBrokerIdError)


class Responses(NamedTuple):
    """Of several brokers: what each sent, and why the others did not; `SilentError` where there was no answer."""

    received: dict[int, Any]
    missing: dict[int, ClusterError]

    def received_or_silent(self) -> dict[int, Any]:
        """What was received; raises if a broker did answer, but that it refuses."""
        for error in self.missing.values():
            if not isinstance(error, SilentError):
                raise error
        return self.received


class Requests:
    """An open connection to one cluster, which insists.

    Args:
        settings: What kafka-python's clients take: ``bootstrap_servers`` at least, and security settings.
        clock: What it waits with, and whoever works with this cluster.
    """

    def __init__(self, settings: Mapping[str, Any], *, clock: Clock = SYSTEM) -> None:
        self.clock = clock
        check_settings(settings)
        self._settings = {**DEFAULTS, **settings}
        self._unreached: set[Any] = set()
        self._silent_until: dict[int, float] = {}
        self._admin, self._network = connect(self._settings, self._unreached)
        self._connected = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()

    def _ask(
        self,
        what: str,
        request: str,
        *arguments: Any,
        passing: Callable[[KafkaError], bool] = is_passing,
        attempts: int = ATTEMPTS,
        **options: Any,
    ) -> Any:
        """Make a request of the admin client, as `_insist` does."""
        return self._insist(what, lambda: getattr(self._admin, request)(*arguments, **options), passing, attempts)

    def _insist(
        self,
        what: str,
        ask: Callable[[], Any],
        passing: Callable[[KafkaError], bool] = is_passing,
        attempts: int = ATTEMPTS,
    ) -> Any:
        """Ask, again if it failed for a passing reason; else raise a `ClusterError`.

        A client that took a broker for the controller goes on asking it after it died: a new one asks anew. That it
        cannot connect is one of the reasons that pass.
        """
        for attempt in range(1, attempts + 1):
            try:
                self._connect()
                return ask()
            except UnreachableError as error:
                if attempt == attempts or error.final:
                    raise
            except (KafkaError, RuntimeError, OSError) as error:  # the client itself raises the latter two in passing
                self._disconnect()
                if attempt == attempts or (isinstance(error, KafkaError) and not passing(error)):
                    raise ClusterError(f"{what}: {type(error).__name__}: {error}") from error
            self.clock.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")

    def _connect(self) -> None:
        if not self._connected:
            self._admin, self._network = connect(self._settings, self._unreached)
            self._connected = True

    def _disconnect(self) -> None:
        self._connected = False
        self._admin.close()

    def _request_broker(self, broker: int, what: str, request: Any, *, attempts: int) -> Any:
        """Request what only this broker knows; with few attempts, one that has just not answered gets no request.

        Raises:
            SilentError: It does not answer.
        """
        if attempts < ATTEMPTS and self._is_silent(broker):
            raise SilentError(f"{what}: it has just not answered")
        try:
            answer = self._insist(what, lambda: self._network.ask(broker, request), attempts=attempts)
        except ClusterError as error:
            if isinstance(error.__cause__, KafkaError) and not is_passing(error.__cause__):
                raise  # it answered, but not what was asked for
            self._silent_until[broker] = self.clock.monotonic() + SILENT_SECONDS
            raise SilentError(str(error)) from error
        self._silent_until.pop(broker, None)
        return answer

    def _request_brokers(self, what: str, requests: Mapping[int, Any], *, skip_silent: bool = True) -> Responses:
        """Send each broker its request, all at the same time, with one deadline for all.

        Args:
            what: What it means if there is no answer, for the errors, with the broker's id at ``{broker}``.
            requests: A message of Kafka's protocol for each broker.
            skip_silent: Send none to brokers that have just not answered.

        Raises:
            ClusterError: No broker of the cluster could be reached at all.
        """
        skipped = {broker for broker in requests if skip_silent and self._is_silent(broker)}
        sent = {broker: request for broker, request in requests.items() if broker not in skipped}
        seconds = min(DEADLINE_SECONDS, self._settings["request_timeout_ms"] / 1000)
        outcomes: dict[int, Any] = {}
        if sent:
            general = what.format(broker=", ".join(map(str, sorted(sent))))
            outcomes = self._insist(general, lambda: self._network.ask_all(sent, seconds, _is_passing_failure))
        responses = Responses({}, {})
        for broker in skipped:
            responses.missing[broker] = SilentError(f"{what.format(broker=broker)}: it has just not answered")
        for broker, outcome in outcomes.items():
            self._silent_until.pop(broker, None)
            if not isinstance(outcome, BaseException):
                responses.received[broker] = outcome
                continue
            reason = f"{type(outcome).__name__}: {outcome}"
            if isinstance(outcome, KafkaTimeoutError | RequestTimedOutError):
                reason = f"no answer within {seconds:g} s"
            message = f"{what.format(broker=broker)}: {reason}"
            if _is_passing_failure(outcome):
                self._silent_until[broker] = self.clock.monotonic() + SILENT_SECONDS
                responses.missing[broker] = SilentError(message)
            else:
                responses.missing[broker] = ClusterError(message)
        return responses

    def _is_silent(self, broker: int) -> bool:
        return self.clock.monotonic() < self._silent_until.get(broker, 0.0)

    def ask_broker(self, what: str, broker: int, request: Any) -> Any:
        """Send a message of Kafka's protocol to this very broker; returns its answer, with whatever errors are in it.

        Args:
            what: What it means if there is no answer, for the error.
            broker: The broker to ask.
            request: A message of kafka-python's, or one made like them.
        """
        return self._insist(what, lambda: self._network.ask(broker, request))


def _is_passing_failure(error: BaseException) -> bool:
    """The same of whatever the client raises: what is not Kafka's passes, but for what this project refuses itself."""
    return is_passing(error) if isinstance(error, KafkaError) else not isinstance(error, RebalanceError)


Item = TypeVar("Item")


def batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """These items, so many at a time, for a request each."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
