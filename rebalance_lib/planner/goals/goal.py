"""What every goal is: a name, a measure, and a verdict on a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner.resources import (
    FOLLOWED,
    LED,
    Resource,
    known_resources,
    per_leader,
    per_replica,
    shared_out,
    weights,
)
from rebalance_lib.planner.workspace import Layout, load_by_broker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """A cluster with its replicas in one layout: as it is, or as a plan leaves it."""

    model: ClusterModel
    scope: Scope
    request: Request
    layout: Layout

    @cached_property
    def leader(self) -> NDArray[np.int32]:
        """By partition: who is first in its list."""
        return self.layout.broker[self.layout.offsets[:-1]]

    @cached_property
    def stays(self) -> NDArray[np.bool_]:
        """By broker: whether it is among those that share the load."""
        return self.model.alive & ~self.scope.leaves

    def sharers(self, resource: Resource) -> NDArray[np.bool_]:
        """By broker: whether it is among those that share a resource: leaders may be kept in some racks."""
        if resource in LED and self.scope.may_lead_else is not None:
            return self.stays & self.scope.may_lead
        return self.stays

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Those whose loads are known."""
        return known_resources(self.model)

    def load(self, resource: Resource) -> Floats:
        """By broker."""
        return self._loads[resource]

    @cached_property
    def _loads(self) -> dict[Resource, Floats]:
        return {one: self._load(one) for one in (Resource.DISK, *self.resources)}

    def _load(self, resource: Resource) -> Floats:
        model, layout = self.model, self.layout
        if resource is Resource.DISK:
            load = np.bincount(layout.broker, layout.bytes, minlength=model.brokers).astype(np.float64, copy=False)
            return load + self._of_rest(resource)
        load = self._of_rest(resource)
        if resource in FOLLOWED:
            load += load_by_broker(layout, per_replica(model, resource), model.brokers)
        if resource in LED:
            led = per_leader(model, resource, np.diff(layout.offsets))
            load += np.bincount(self.leader, led, minlength=model.brokers)
        return load

    def _of_rest(self, resource: Resource) -> Floats:
        rest = self.model.rest
        return np.zeros(self.model.brokers) if rest is None else rest.sums.load(self.model, resource)

    @property
    def partitions(self) -> int:
        """How many partitions there are, those that are not in the model too."""
        others = 0 if self.model.rest is None else round(self.model.rest.sums.partitions)
        return len(self.layout.offsets) - 1 + others

    def measure(self, goal: Goal) -> float | None:
        """How far the cluster is from a goal, worked out once, unless two threads ask at the same time."""
        measured = self._measures
        if goal.name not in measured:
            measured[goal.name] = goal.measure(self)
        return measured[goal.name]

    @cached_property
    def _measures(self) -> dict[str, float | None]:
        return {}

    def share(self, resource: Resource) -> Floats:
        """By broker: its share of what there is; one whose part is not known, while others' are, has what it has."""
        load, sharers = self.load(resource), self.sharers(resource)
        return shared_out(float(load[sharers].sum()), np.where(sharers, weights(self.model, resource), 0.0), load)

    def parts(self, resource: Resource) -> Floats:
        """By broker: its part of a resource, all of them together 1; what is not known counts as the average."""
        part = np.where(self.sharers(resource), np.nan_to_num(weights(self.model, resource), nan=1.0), 0.0)
        parts: Floats = part / max(part.sum(), 1e-300)
        return parts


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a goal says of a plan; measures are 1 where it could not be better."""

    goal: str
    hard: bool
    before: float
    after: float
    limit: float  # met up to here
    met: bool
    why: str | None = None  # it is not met
    best: float | None = None  # that any plan could reach, where that is known

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Goal(ABC):
    """Something that a plan aims at."""

    name: str
    explained: str
    hard: bool = False
    of_cluster: bool = False  # where there are sets of brokers, it is about all of them together

    @abstractmethod
    def measure(self, view: View) -> float | None:
        """How far a cluster is from the goal: 1 is ideal; None where it says nothing."""

    def limit(self, view: View) -> float:
        """Up to which measure the goal is met."""
        return 1 + view.request.goal_tolerances.get(self.name, 0.0)

    def why(self, _view: View) -> str:
        """What is in the way, where the goal is not met."""
        return f"replicas cannot be moved or reordered further for it without harm to goals before it: {self.explained}"

    def verdict(self, before: View, after: View, best: float | None = None) -> Verdict | None:
        """What the goal says of a plan; None where it has nothing to say of this cluster.

        Where no plan can come to 1, what is allowed is allowed on top of the best that one can come to.
        """
        had, has = before.measure(self), after.measure(self)
        if had is None or has is None:
            return None
        limit = max(1.0, best or 1.0) * self.limit(after)
        met = has <= limit + 1e-9
        return Verdict(self.name, self.hard, had, has, limit, met, None if met else self.why(after), best)
