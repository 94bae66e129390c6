"""What the controller knows of one partition, its brokers and its topic.

Goal: one value that says all a reassignment depends on, so that a step is a function from value to value.

Kafka's documents name five sets; here they are properties of an ``Assignment``:

=====  ====================================  ======================
name   meaning                               here
=====  ====================================  ======================
ORS    original replica set                  ``original``
TRS    target (reassigned) replica set       ``target``
AR     adding replicas, TRS - ORS            ``adding``
RR     removing replicas, ORS - TRS          ``removing``
RS     replica set now, ORS + TRS            ``replicas``
=====  ====================================  ======================

Only RS, AR and RR are stored, as Kafka stores only these; ORS and TRS follow. The order of RS matters: its
first is the preferred leader. While {1,2,3} moves to {2,3,4}:

>>> moving = Assignment(replicas=(2, 3, 4, 1), adding=(4,), removing=(1,))
>>> moving.original, moving.target
((2, 3, 1), (2, 3, 4))

The original order is not stored anywhere, so no controller can give it back: a cancel here ends with 2,3,1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Replicas = tuple[int, ...]


def without(replicas: Replicas, gone: Replicas | frozenset[int]) -> Replicas:
    """The replicas that are not in ``gone``, in their order."""
    return tuple(replica for replica in replicas if replica not in gone)


def with_appended(replicas: Replicas, more: Replicas) -> Replicas:
    """The replicas, then those of ``more`` that were missing, each once."""
    return tuple(dict.fromkeys(replicas + more))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replica set of a partition and what a reassignment is adding to it and removing from it."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @property
    def original(self) -> Replicas:
        """ORS: where a cancel leads."""
        return without(self.replicas, self.adding)

    @property
    def target(self) -> Replicas:
        """TRS: where completion leads."""
        return without(self.replicas, self.removing)

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def stuck(self) -> bool:
        """Whether a replica is both added and removed, which no catching up can complete."""
        return not frozenset(self.adding).isdisjoint(self.removing)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's registration: its assignment, its in-sync replicas and its leader.

    ``elr`` are the eligible leader replicas (KIP-966): fallen out of the ISR below ``min.insync.replicas``,
    yet with all that was committed. ``last_known_elr`` holds the last leader of a partition that lost its
    leader.
    """

    replicas: Replicas
    isr: Replicas
    leader: int | None
    adding: Replicas = ()
    removing: Replicas = ()
    leader_epoch: int = 0
    elr: Replicas = ()
    last_known_elr: Replicas = ()

    @classmethod
    def healthy(cls, *replicas: int) -> PartitionState:
        """A partition at rest: every replica in sync, led by its preferred leader."""
        return cls(replicas=replicas, isr=replicas, leader=replicas[0])

    @property
    def assignment(self) -> Assignment:
        """The replica set with what is being added and removed."""
        return Assignment(self.replicas, self.adding, self.removing)

    @property
    def original(self) -> Replicas:
        """ORS of the reassignment in progress, else the replicas."""
        return self.assignment.original

    @property
    def target(self) -> Replicas:
        """TRS of the reassignment in progress, else the replicas."""
        return self.assignment.target

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return self.assignment.reassigning

    def assigned(self, assignment: Assignment) -> PartitionState:
        """This state with another assignment, all else as it was."""
        return replace(self, replicas=assignment.replicas, adding=assignment.adding, removing=assignment.removing)


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers a controller has registered, and those of them that are alive (not fenced)."""

    registered: frozenset[int]
    alive: frozenset[int]

    @classmethod
    def all_alive(cls, *brokers: int) -> Brokers:
        """Registered brokers of which none is fenced."""
        return cls(frozenset(brokers), frozenset(brokers))

    def fence(self, broker: int) -> Brokers:
        """The broker is registered still, and no longer alive."""
        return replace(self, alive=self.alive - {broker})

    def unfence(self, broker: int) -> Brokers:
        """The broker is registered and alive."""
        return Brokers(self.registered | {broker}, self.alive | {broker})


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic's configuration and the cluster's features change in a step.

    The defaults are those of a cluster formatted with Kafka 4.1 or later, where
    ``eligible.leader.replicas.version`` is 1. Kafka caps ``min.insync.replicas`` by the replica count of
    partition 0; the model by that of the partition at hand, which is the same in a topic whose partitions
    have one replication factor.
    """

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    eligible_leader_replicas: bool = True
