"""Ask a cluster until it answers, within bounds.

kafka-python may ask a broker that has just gone, or that hangs. Every request here can be made twice to the same
effect, so one that failed for a passing reason is made again, a few times, with growing pauses, by a client that
connects anew.

A broker that hangs costs a request's whole time-out each time. What only that broker knows is asked for with few
attempts where it can be done without; and once it did not answer, it is not asked again for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from kafka.errors import KafkaError, UnknownBrokerIdError

from rebalance_lib.clock import SYSTEM, Clock
from rebalance_lib.cluster.client_config import check_settings
from rebalance_lib.cluster.connection import UnreachableError, connect
from rebalance_lib.errors import ClusterError

ATTEMPTS = 5  # of a request, some 3 seconds in all
SILENT_SECONDS = 30.0  # how long a broker that did not answer is not asked again, where it can be done without
DEFAULTS = {"client_id": "kafka-rebalance", "bootstrap_timeout_ms": 10_000, "request_timeout_ms": 15_000}


class SilentError(ClusterError):
    """A broker does not answer: it hangs, or is cut off."""


def is_passing(error: KafkaError) -> bool:
    """Whether a request that failed like this is worth making again."""
    return bool(error.retriable) or isinstance(error, UnknownBrokerIdError)


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

    def _ask_itself(self, broker: int, what: str, request: str, *arguments: Any, attempts: int, **options: Any) -> Any:
        """Ask what only this broker knows; one that was silent is left alone for a while by who can do without it.

        Raises:
            SilentError: It does not answer.
        """
        if attempts < ATTEMPTS and self.clock.monotonic() < self._silent_until.get(broker, 0.0):
            raise SilentError(f"{what}: it has just not answered")
        try:
            answer = self._ask(what, request, *arguments, attempts=attempts, **options)
        except ClusterError as error:
            if isinstance(error.__cause__, KafkaError) and not is_passing(error.__cause__):
                raise  # it answered, but not what was asked for
            self._silent_until[broker] = self.clock.monotonic() + SILENT_SECONDS
            raise SilentError(str(error)) from error
        self._silent_until.pop(broker, None)
        return answer

    def ask_broker(self, what: str, broker: int, request: Any) -> Any:
        """Send a message of Kafka's protocol to this very broker; returns its answer, with whatever errors are in it.

        Args:
            what: What it means if there is no answer, for the error.
            broker: The broker to ask.
            request: A message of kafka-python's, or one made like them.
        """
        return self._insist(what, lambda: self._network.ask(broker, request))
