"""How requests of a process reach the simulated cluster, and how they fail: what `rebalance_lib.cluster.requests` does.

Each attempt takes some latency and counts as a call of the process. It is applied at the beginning or at the end of
that time, so that answers can be out of date when they arrive. Where it goes decides how it can fail:

- to any broker, which answers with what it knows: one that is up, and may hang;
- through any broker to the active controller: there may be none;
- to a given broker, which may be down or hang; or to many at the same time, with one deadline for all.

A request that failed for a passing reason is sent again, with growing pauses. A broker that did not answer gets no
request for a while where it can be done without. A broker that hangs, and goes on before the client gives up, answers
then what has reached it. A change that was sent to it may still be applied long after the client has given up.

Example: the answer to a request with five attempts is lost. The client waits 15 s, pauses 0.2 s and sends it again: it
is applied twice, and `SimulatedCluster.requests` has two entries, of which the first was applied and not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Self, TypeVar

from rebalance_lib.clock import Clock
from rebalance_lib.cluster.requests import ATTEMPTS, DEADLINE_SECONDS, SILENT_SECONDS, SilentError
from rebalance_lib.errors import ClusterError
from simulator.brokers import SimulatedBroker
from simulator.clock import SimulatedClock
from simulator.cluster import Request, SimulatedCluster
from simulator.processes import Process

TIMEOUT_SECONDS = 15.0  # request_timeout_ms
HUNG_POLL_SECONDS = 0.5  # how late a process sees that a broker goes on

Answer = TypeVar("Answer")


class NoAnswer(Exception):  # noqa: N818 - it never leaves the client
    """An attempt fails for a reason that may pass, after so many seconds."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class SimulatedRequests:
    """A connection of one process to the cluster.

    Attributes:
        clock: The clock of the process.
    """

    def __init__(self, cluster: SimulatedCluster, process: Process, rng: Random, *, clock: Clock | None = None) -> None:
        self.clock = SimulatedClock(process, rng) if clock is None else clock
        self._cluster = cluster
        self._process = process
        self._rng = rng
        self._silent_until: dict[int, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _ask_any(self, name: str, what: str, answer: Callable[[int], Answer]) -> Answer:
        """Ask any broker."""
        return self._insist(what, lambda: self._attempt(name, lambda: answer(self._any_broker())))

    def _ask_controller(self, name: str, what: str, answer: Callable[[], Answer]) -> Answer:
        """Ask the active controller."""

        def forward() -> Answer:
            self._reach_controller()
            return answer()

        return self._insist(what, lambda: self._attempt(name, forward))

    def _change(
        self,
        name: str,
        changes: Mapping[Any, object],
        what: str,
        apply: Callable[[], dict[Any, str]],
        *,
        attempts: int = ATTEMPTS,
    ) -> dict[Any, str]:
        """Have the controller change something; returns what it refused, with the reason."""

        def attempt() -> dict[Any, str]:
            request = self._log(name, changes)

            def forward() -> dict[Any, str]:
                self._reach_controller()
                request.applied = True
                request.refused = apply()
                return request.refused

            answer = self._attempt(name, forward)
            request.answered = True
            return answer

        return self._insist(what, attempt, attempts)

    def _ask_broker(
        self, name: str, broker: int, what: str, answer: Callable[[SimulatedBroker], Answer], *, attempts: int
    ) -> Answer:
        """Ask what only this broker knows; with few attempts, one that has just not answered gets no request.

        Raises:
            SilentError: It does not answer.
        """
        if attempts < ATTEMPTS and self._is_silent(broker):
            raise SilentError(f"{what}: it has just not answered")

        def reach() -> Answer:
            if not self._is_reached(broker):
                raise NoAnswer(f"broker {broker} refuses the connection")
            if not self._resumes(broker, TIMEOUT_SECONDS):
                raise NoAnswer("RequestTimedOutError")
            delay = self._delay(name, broker)
            if delay > TIMEOUT_SECONDS:
                raise NoAnswer("RequestTimedOutError", TIMEOUT_SECONDS)
            self._process.sleep(delay)
            return answer(self._cluster.brokers[broker])

        try:
            found = self._insist(what, lambda: self._attempt(name, reach), attempts)
        except ClusterError as error:
            if not isinstance(error.__cause__, NoAnswer):
                raise
            self._silent_until[broker] = self._process.now + SILENT_SECONDS
            raise SilentError(str(error)) from error
        self._silent_until.pop(broker, None)
        return found

    def _ask_all(
        self,
        name: str,
        brokers: Iterable[int],
        answer: Callable[[SimulatedBroker], Answer],
        *,
        changing: bool = False,
        skip_silent: bool = True,
    ) -> tuple[dict[int, Answer], dict[int, str]]:
        """Ask brokers at the same time, with one deadline; returns the answers, and why others are missing."""
        wanted = sorted(set(brokers))
        missing = {broker: "it has just not answered" for broker in wanted if skip_silent and self._is_silent(broker)}
        sent = [broker for broker in wanted if broker not in missing]
        answers: dict[int, Answer] = {}
        if not sent:
            return answers, missing
        process, network = self._process, self._cluster.network
        process.begin_call()
        self._check_credentials()
        if not any(one.up for one in self._cluster.brokers.values()):
            process.sleep(DEADLINE_SECONDS)
            raise ClusterError("no broker of the cluster can be reached")
        lost = network.lost(name, process.name, process.now)
        lost_at = None if lost is None or lost.reset else self._rng.choice(sent)  # a reset connection is made anew
        seconds = self._rng.uniform(*network.latency)
        first, later = (0.0, seconds) if self._rng.random() < 0.5 else (seconds, 0.0)
        began = process.now
        process.sleep(first)
        for broker in sorted(sent, key=self._hangs):  # those that hang last: the others answer at once
            self._resumes(broker, began + DEADLINE_SECONDS - process.now)
            delay = self._delay(name, broker)
            arrived = self._is_reached(broker) and not (broker == lost_at and lost is not None and not lost.applied)
            if arrived and delay <= DEADLINE_SECONDS:
                answers[broker] = answer(self._cluster.brokers[broker])
                later = max(later, delay)
            elif arrived and changing and self._rng.random() < 0.5:
                self._cluster.brokers[broker].queued.append(answer)
            if broker == lost_at:
                answers.pop(broker, None)
            if broker not in answers:
                missing[broker] = f"no answer within {DEADLINE_SECONDS:g} s"
                later = DEADLINE_SECONDS
        process.sleep(began + first + later - process.now)
        process.end_call()
        for broker in sent:
            self._silent_until.pop(broker, None)
            if broker in missing:
                self._silent_until[broker] = process.now + SILENT_SECONDS
        return answers, missing

    def _log(self, name: str, changes: Mapping[Any, object]) -> Request:
        """Keep a request that is to change something."""
        request = Request(self._process.now, self._process.name, name, changes)
        self._cluster.requests.append(request)
        return request

    def _insist(self, what: str, attempt: Callable[[], Answer], attempts: int = ATTEMPTS) -> Answer:
        """Make attempts until one succeeds."""
        for number in range(1, attempts + 1):
            try:
                return attempt()
            except NoAnswer as error:
                if number == attempts:
                    raise ClusterError(f"{what}: {error}") from error
            self.clock.sleep(0.1 * 2**number)
        raise AssertionError("unreachable")

    def _attempt(self, name: str, action: Callable[[], Answer]) -> Answer:
        """One attempt of a request; raises `NoAnswer` if it fails for a reason that may pass."""
        process, rng = self._process, self._rng
        process.begin_call()
        self._check_credentials()
        network = self._cluster.network
        seconds = rng.uniform(*network.latency)
        lost = network.lost(name, process.name, process.now)
        try:
            if lost is not None:
                if lost.applied:
                    action()
                raise NoAnswer(
                    *(("the connection was reset", seconds) if lost.reset else ("timed out", TIMEOUT_SECONDS))
                )
            if rng.random() < 0.5:
                answer = action()
                process.sleep(seconds)
            else:
                process.sleep(seconds)
                answer = action()
        except NoAnswer as error:
            process.sleep(error.seconds)
            process.end_call()
            raise
        process.end_call()
        return answer

    def _check_credentials(self) -> None:
        if self._process.now < self._cluster.network.credentials_expired_until:
            self._process.sleep(self._cluster.network.latency[1])
            raise ClusterError("the cluster is unreachable: SaslAuthenticationFailedError: credentials have expired")

    def _any_broker(self) -> int:
        """A broker that is up, preferably one that answered last time; waits for one that hangs."""
        up = [broker for broker, one in self._cluster.brokers.items() if one.up]
        if not up:
            raise NoAnswer("no broker of the cluster can be reached", 1.0)
        if self._silent_until:
            up = [broker for broker in up if not self._is_silent(broker)] or up
        broker = self._rng.choice(up)
        if not self._resumes(broker, TIMEOUT_SECONDS):
            self._silent_until[broker] = self._process.now + SILENT_SECONDS
            raise NoAnswer("RequestTimedOutError")
        return broker

    def _hangs(self, broker: int) -> bool:
        one = self._cluster.brokers.get(broker)
        return one is not None and one.up and one.hung

    def _resumes(self, broker: int, seconds: float) -> bool:
        """Wait while a broker hangs: one that goes on in time answers what has reached it; returns whether it does."""
        process = self._process
        deadline = process.now + seconds
        while self._hangs(broker) and process.now < deadline:
            process.sleep(min(HUNG_POLL_SECONDS, deadline - process.now))
        return self._is_reached(broker) and not self._hangs(broker)

    def _reach_controller(self) -> None:
        self._any_broker()
        if not self._cluster.controller_active:
            raise NoAnswer("NotControllerError")

    def _is_reached(self, broker: int) -> bool:
        one = self._cluster.brokers.get(broker)
        return one is not None and one.up

    def _delay(self, name: str, broker: int) -> float:
        """How long this broker takes to answer, beyond the latency."""
        one = self._cluster.brokers.get(broker)
        if one is not None and one.hung:
            return float("inf")
        describes = name in ("log_dirs", "describe_log_dirs", "replica_log_dirs")
        return self._cluster.network.log_dirs_delay.get(broker, 0.0) if describes else 0.0

    def _is_silent(self, broker: int) -> bool:
        return self._process.now < self._silent_until.get(broker, 0.0)

    def _view(self, broker: int) -> float:
        """The time up to which a broker knows the cluster."""
        return self._cluster.metadata.view(broker, self._cluster.now)
