"""What can happen to a partition: requests of operators and leaders, and brokers that come and go."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lib.reassignment.state import PartitionState, Replicas, with_appended


@dataclass(frozen=True, slots=True)
class Reassign:
    """AlterPartitionReassignments with a target: move the partition to these replicas, in this order."""

    replicas: Replicas
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class Cancel:
    """AlterPartitionReassignments without a target: back to the original replicas."""


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """The leader asks for another ISR, because a follower caught up or fell behind."""

    isr: Replicas


@dataclass(frozen=True, slots=True)
class FenceBroker:
    """A broker died or shut down: the controller no longer hears from it."""

    broker: int


@dataclass(frozen=True, slots=True)
class UnfenceBroker:
    """A broker is back, or new."""

    broker: int


@dataclass(frozen=True, slots=True)
class UncleanShutdown:
    """A broker registers again without the proof of a clean shutdown: its log may miss what was committed."""

    broker: int


@dataclass(frozen=True, slots=True)
class ElectPreferredLeader:
    """ElectLeaders of the preferred kind: the first replica is to lead."""


Input = Reassign | Cancel | AlterPartition | FenceBroker | UnfenceBroker | UncleanShutdown | ElectPreferredLeader


def caught_up(state: PartitionState, *brokers: int) -> AlterPartition:
    """What the leader asks for when these followers (if none is named, all adding ones) have caught up."""
    return AlterPartition(with_appended(state.isr, brokers or state.adding))


def fell_behind(state: PartitionState, *brokers: int) -> AlterPartition:
    """What the leader asks for when these followers have fallen behind."""
    return AlterPartition(tuple(replica for replica in state.isr if replica not in brokers))
