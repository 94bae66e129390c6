"""What a forecast takes for granted about brokers, in seconds and bytes: Kafka's defaults, and what 4.3 makes of them.

``reached`` and ``settling`` are measured; ``python -m bench.simulate`` holds forecasts against a real cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_lib.plan.pace import Pace

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Conditions:
    """How brokers behave.

    Args:
        unthrottled: bytes per second that a broker can send, receive, or copy between its log dirs, where there is no
            throttle. Nobody knows: this is about what a network of 1 Gbit/s has.
        reached: the part of a throttle that copies reach. A follower that is over its quota looks again a second later,
            and forgets after eleven seconds that it was under it, so that it stays below the throttle on average.
        partition_fetch: bytes of a partition that one answer to a fetch has at most, ``replica.fetch.max.bytes``.
        fetch: bytes that one answer to a fetch has at most altogether, ``replica.fetch.response.max.bytes``. A quota is
            looked at before a fetch, not during it, so the first answer comes at once however low the throttle.
        settling: seconds from the moment when the last replica has caught up until the next move begins: the new ISR,
            the end of the reassignment, and until it is noticed.
        delete_delay: seconds that removed files stay on the disk, ``file.delete.delay.ms``.
    """

    unthrottled: int = 100 * MEGABYTE
    reached: float = 0.9
    partition_fetch: int = 1 << 20
    fetch: int = 10 << 20
    settling: float = 0.5
    delete_delay: float = 60.0

    def between_brokers(self, pace: Pace) -> float:
        """Bytes per second that a broker sends at most, and receives at most."""
        return self.unthrottled if pace.throttle is None else pace.throttle * self.reached

    def between_log_dirs(self, pace: Pace) -> float:
        """Bytes per second that a broker copies at most from one of its log dirs to another."""
        return self.unthrottled if pace.log_dir_throttle is None else pace.log_dir_throttle * self.reached

    @classmethod
    def ideal(cls) -> Conditions:
        """Brokers that reach their throttle from the first byte on and lose no time: for examples by hand."""
        return cls(reached=1.0, partition_fetch=0, settling=0.0)
