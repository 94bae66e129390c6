"""Better orders of replica lists, by an integer program: who leads each partition, and who takes over.

Columns: for each partition its possible leaders; where failures count, its leaders with the broker that takes over when
the leader's broker dies, and the one that does when the leader's rack dies: nothing else of an order is seen by any
goal. Rows: the loads of brokers, as they are and after each death, below the level of their goal. What all survivors
have after a death does not depend on orders: a partition is lost if it has no replica elsewhere, whoever leads.

Example: three replicas in racks a, a and b. Led by the first, the second takes over when its broker dies, and the third
when rack a does.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.mip import IntegerProgram
from rebalance_lib.planner.goals import GOALS, View
from rebalance_lib.planner.goals.balance import Balance
from rebalance_lib.planner.goals.objective import GAIN, objective, weights_of
from rebalance_lib.planner.order import electable
from rebalance_lib.planner.resources import LED, Resource, per_leader, per_replica
from rebalance_lib.planner.shares import band
from rebalance_lib.planner.workspace import Layout, Workspace, load_by_broker

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints

NODES = 10
CHECKS = 60  # with 20, failover was over 0.1 % from the optimum on 5 of 30 random clusters, with 60 on none
GAP = 2e-4  # of the objective
CHANGE = 1e-6  # of the objective: what another order of one list costs
OUTSIDE = 2e-4  # of the objective: what a share outside of its band costs, over all brokers
MOST_REPLICAS = 6  # of a partition whose order is looked at
NOBODY = -1


@dataclass(frozen=True, slots=True)
class _Option:
    """An order of one partition's list, by what goals see of it."""

    leader: int
    heir: int  # once the leader's broker has died
    heir_of_rack: int  # once its rack has
    order: tuple[int, ...]  # slots


def better_orders(work: Workspace, layout: Layout) -> Layout | None:
    """The layout with a lower objective, or None."""
    search = _Search(work, layout)
    return search.best() if search.can_gain else None


class _Search:
    def __init__(self, work: Workspace, layout: Layout) -> None:
        self._work, self._layout = work, layout
        self._view = View(work.model, work.scope, work.request, layout)
        self._weights, self._needed = weights_of(self._view), GAIN * objective(self._view)
        self._level: dict[str, int] = {}
        names = [name for name in work.request.goal_tolerances if name in {*map(str, LED), "topic_leaders", "failover"}]
        measured = {name: GOALS[name].measure(self._view) for name in names}
        self._measure = {name: value for name, value in measured.items() if value is not None}
        self._program = IntegerProgram()

    @property
    def can_gain(self) -> bool:
        """Whether a goal is not met."""
        over = {name: max(0.0, value - GOALS[name].limit(self._view)) for name, value in self._measure.items()}
        return sum(self._weights[name] * value for name, value in over.items()) >= self._needed

    @cached_property
    def _changeable(self) -> Flags:
        work, layout = self._work, self._layout
        leader, lengths = self._view.leader, np.diff(layout.offsets)
        dead = np.bincount(work.model.slot_partition, ~self._view.stays[layout.broker], minlength=work.model.partitions)
        kept = work.scope.excluded[work.leader] & (work.leader >= 0)
        found: Flags = work.scope.movable & (lengths > 1) & (lengths <= MOST_REPLICAS) & (dead == 0) & (leader >= 0)
        return found & ~kept

    @cached_property
    def _options(self) -> dict[int, list[_Option]]:
        """By partition: the orders of its list, the present one first."""
        may_lead = electable(self._work, self._layout) > 0
        return {p: self._orders(p, may_lead) for p in range(self._work.model.partitions)}

    def _orders(self, p: int, may_lead: Flags) -> list[_Option]:
        begin, end = int(self._layout.offsets[p]), int(self._layout.offsets[p + 1])
        found = [self._option(tuple(range(begin, end)))]
        if not self._changeable[p]:
            return found
        seen = {self._seen(found[0])}
        slots = list(range(begin, end))
        for first in slots:
            if not may_lead[first]:
                continue
            others = [slot for slot in slots if slot != first]
            ways = self._followers(first, others) if "failover" in self._measure else [others]
            for rest in ways:
                one = self._option((first, *rest))
                if self._seen(one) not in seen:
                    seen.add(self._seen(one))
                    found.append(one)
        return found

    def _seen(self, one: _Option) -> tuple[int, ...]:
        return (one.leader, one.heir, one.heir_of_rack) if "failover" in self._measure else (one.leader,)

    def _followers(self, first: int, others: list[int]) -> list[list[int]]:
        """Those who follow, in all orders that differ in who takes over."""
        rack, broker = self._work.model.rack, self._layout.broker
        found = []
        for second in others:
            rest = [slot for slot in others if slot != second]
            elsewhere = [slot for slot in rest if rack[broker[slot]] != rack[broker[first]]]
            if rack[broker[second]] != rack[broker[first]] or not elsewhere:
                found.append([second, *rest])
            else:
                found += [[second, third, *(slot for slot in rest if slot != third)] for third in elsewhere]
        return found

    def _option(self, order: tuple[int, ...]) -> _Option:
        rack, broker, stays = self._work.model.rack, self._layout.broker, self._view.stays
        leader = int(broker[order[0]])
        followers = [int(broker[slot]) for slot in order[1:] if stays[broker[slot]]]
        elsewhere = [b for b in followers if rack[b] != rack[leader]]
        return _Option(leader, next(iter(followers), NOBODY), next(iter(elsewhere), NOBODY), order)

    def best(self) -> Layout | None:
        """Solve the program of the goals."""
        self._columns = {
            p: self._program.add_columns(np.zeros(len(options)), np.ones(len(options)), whole=True)
            for p, options in self._options.items()
        }
        for columns in self._columns.values():
            self._program.add_row(1, 1, columns, np.ones(len(columns)))
        slack: list[tuple[Ints, float]] = []
        for name in self._measure:
            self._level[name] = self._new_level(GOALS[name].limit(self._view))
            goal = GOALS[name]
            if isinstance(goal, Balance):
                slack.append((self._balance(goal), self._weights[name]))
            elif name == "failover":
                self._failover()
            else:
                self._topics()
        cost = np.zeros(self._program.columns)
        for name, level in self._level.items():
            cost[level] = self._weights[name]
        for columns, weight in slack:
            cost[columns] = OUTSIDE * weight / self._work.model.brokers
        now = sum(self._weights[n] * max(v, GOALS[n].limit(self._view)) for n, v in self._measure.items())
        index = np.array(list(self._level.values()))
        self._program.add_row(-np.inf, now - self._needed, index, cost[index])
        for columns in self._columns.values():
            cost[columns[1:]] = CHANGE
        return self._solved(cost)

    def _solved(self, cost: Floats) -> Layout | None:
        found = self._program.solve(cost, nodes=NODES, gap=GAP, checks=CHECKS)
        if found.chosen is None:
            return None
        slots = np.arange(len(self._layout.broker))
        for p, columns in self._columns.items():
            order = self._options[p][int(np.argmax(found.chosen[columns]))].order
            slots[self._layout.offsets[p] : self._layout.offsets[p + 1]] = order
        layout = self._layout
        return replace(layout, broker=layout.broker[slots], bytes=layout.bytes[slots], log_dir=layout.log_dir[slots])

    def _new_level(self, limit: float) -> int:
        return int(self._program.add_columns(np.array([limit]), np.array([np.inf]), whole=False)[0])

    def _led(self, weight: Floats) -> dict[int, dict[int, float]]:
        """By broker: the columns that make it lead, and what each adds."""
        found: dict[int, dict[int, float]] = defaultdict(dict)
        for p, options in self._options.items():
            for column, one in zip(self._columns[p].tolist(), options, strict=True):
                if weight[p]:
                    found[one.leader][column] = float(weight[p])
        return found

    def _below(self, terms: dict[int, float], fixed: float, share: float, level: int) -> None:
        """A load over its share is below a level."""
        index = np.array([*terms, level], np.int64)
        value = np.array([*(load / share for load in terms.values()), -1.0])
        self._program.add_row(-np.inf, -fixed / share, index, value)

    def _balance(self, goal: Balance) -> Ints:
        """Rows of a resource, and columns for what is outside of its bands."""
        view, model, resource = self._view, self._work.model, goal.resource
        share, tolerance = view.share(resource), self._work.request.tolerance_of(resource)
        fixed = load_by_broker(self._layout, per_replica(model, resource), model.brokers)
        led = self._led(per_leader(model, resource, np.diff(self._layout.offsets)))
        low, high = share * (1 - tolerance), share * (1 + tolerance)
        if resource is Resource.LEADERS:
            low, high = band(share, tolerance)
        added = [np.empty(0, np.int64)]
        for b in np.flatnonzero(share > 0).tolist():
            self._below(led[b], float(fixed[b]), float(share[b]), self._level[goal.name])
            sides = self._program.add_columns(np.zeros(2), np.full(2, np.inf), whole=False)
            index = np.append(np.array([*led[b]], np.int64), sides)
            value = np.append(np.array([*led[b].values()]) / share[b], [1.0, -1.0])
            edges = (low[b] - fixed[b]) / share[b], (high[b] - fixed[b]) / share[b]
            self._program.add_row(*edges, index, value)
            added.append(sides)
        return np.concatenate(added)

    def _topics(self) -> None:
        """Rows of each topic with as many partitions as there are brokers."""
        model, brokers = self._work.model, max(1, int(self._view.sharers(Resource.LEADERS).sum()))
        counts = np.bincount(model.topic, minlength=len(model.topics))
        for topic in np.flatnonzero(counts >= brokers).tolist():
            led = self._led((model.topic == topic).astype(np.float64))
            for terms in led.values():
                self._below(terms, 0.0, float(np.ceil(counts[topic] / brokers)), self._level["topic_leaders"])

    def _failover(self) -> None:
        """Rows of each survivor of each death."""
        model, view = self._work.model, self._view
        stays = np.flatnonzero(view.stays).tolist()
        everyone = np.arange(model.brokers)
        for resource in (Resource.LEADERS, Resource.NETWORK_OUT):
            if resource not in view.resources:
                continue
            weight = per_leader(model, resource, np.diff(self._layout.offsets))
            led, part = self._led(weight), view.parts(resource)
            for b in stays:
                self._death(weight, led, part, everyone == b)
            if model.has_racks and len(np.unique(model.rack[view.stays])) > 1:
                for rack in np.unique(model.rack[view.stays]).tolist():
                    self._death(weight, led, part, model.rack == rack)

    def _death(self, weight: Floats, led: dict[int, dict[int, float]], part: Floats, dead: Flags) -> None:
        survives = self._view.stays & ~dead
        lost, terms = 0.0, {b: dict(led[b]) for b in np.flatnonzero(survives).tolist()}
        one_broker = int(dead.sum()) == 1
        for p, options in self._options.items():
            if not weight[p]:
                continue
            for column, one in zip(self._columns[p].tolist(), options, strict=True):
                if not dead[one.leader]:
                    continue
                heir = one.heir if one_broker and not dead[one.heir] else one.heir_of_rack
                if heir != NOBODY and survives[heir]:
                    terms[heir][column] = float(weight[p])
            present = options[0]
            if dead[present.leader] and (present.heir_of_rack if not one_broker else present.heir) == NOBODY:
                lost += float(weight[p])
        left, parts = float(weight.sum()) - lost, float(part[survives].sum())
        for b, own in terms.items():
            share = float(part[b]) / max(parts, 1e-300) * left
            if share > 0:
                self._below(own, 0.0, share, self._level["failover"])
