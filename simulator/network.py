"""What happens to requests on their way: latency, lost requests and answers, refusals, expired credentials.

A fault is switched on here, and strikes whichever request comes next and suits. Requests are named by the method of the
client that makes them: ``reassign``, ``alter_topic_configs``, ``describe_log_dirs`` and so on.

Example: the answer to the next AlterPartitionReassignments is lost after the controller has applied it; the client
waits for its request time-out, and does not know.

>>> network = Network()
>>> network.lose("reassign", applied=True)
>>> network.lost("partitions", "executor", 0.0) is None
True
>>> network.lost("reassign", "executor", 0.0).applied
True
>>> network.lost("reassign", "executor", 1.0) is None
True
"""

from __future__ import annotations

from math import inf

from rebalance_lib.topology import TopicPartition


class Loss:
    """Messages that get lost: see `Network.lose`."""

    __slots__ = ("applied", "count", "process", "request", "reset", "until")

    def __init__(
        self, request: str | None, *, applied: bool, reset: bool, count: int, until: float, process: str | None
    ) -> None:
        self.request = request
        self.applied = applied
        self.reset = reset
        self.count = count
        self.until = until
        self.process = process


class Network:
    """Faults of requests, for all clients of a cluster.

    Attributes:
        latency: Least and greatest seconds that an answer takes.
        credentials_expired_until: Until then, every request fails for want of valid credentials.
        log_dirs_delay: How many seconds a broker takes to answer DescribeLogDirs; infinite for never.
    """

    def __init__(self) -> None:
        self.latency = (0.005, 0.05)
        self.credentials_expired_until = 0.0
        self.log_dirs_delay: dict[int, float] = {}
        self._losses: list[Loss] = []
        self._refused: dict[TopicPartition, tuple[str, float]] = {}

    def lose(
        self,
        request: str | None = None,
        *,
        applied: bool,
        reset: bool = False,
        count: int = 1,
        until: float = inf,
        process: str | None = None,
    ) -> None:
        """Lose the next messages.

        Args:
            request: Only of this method of the client; None for any.
            applied: Lose the answer, after the request was applied; else the request itself.
            reset: The connection is reset, which the client sees at once; else it waits for its time-out.
            count: How many to lose.
            until: After this time none is lost any more.
            process: Only messages of the process of this name.
        """
        self._losses.append(Loss(request, applied=applied, reset=reset, count=count, until=until, process=process))

    def lost(self, request: str, process: str, now: float) -> Loss | None:
        """How this request gets lost, if it does."""
        if not self._losses:
            return None
        self._losses = [loss for loss in self._losses if loss.count > 0 and now < loss.until]
        for loss in self._losses:
            if loss.request in (None, request) and loss.process in (None, process):
                loss.count -= 1
                return loss
        return None

    def refuse(self, partition: TopicPartition, reason: str, until: float = inf) -> None:
        """Have the controller refuse new replicas of this partition, with the name of one of Kafka's errors."""
        self._refused[partition] = (reason, until)

    def accept(self, partition: TopicPartition) -> None:
        """Have the controller accept new replicas of this partition again."""
        self._refused.pop(partition, None)

    def refusal(self, partition: TopicPartition, now: float) -> str | None:
        """Why the controller refuses this partition now, if it does."""
        reason, until = self._refused.get(partition, ("", 0.0))
        return reason if now < until else None
