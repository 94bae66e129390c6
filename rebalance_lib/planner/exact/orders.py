"""Better orders of replica lists, by `switches` and then by an integer program: who leads each, and who takes over.

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
from rebalance_lib.planner.exact.switches import Choices, lowered
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
CHECKS = 20  # of 0.3 to 2 s for 60; what the switches have left of cpu on 76 random clusters, it finds now and then
GAP = 2e-4  # of the objective
CHANGE = 1e-6  # of the objective: what another order of one list costs
OUTSIDE = 2e-4  # of the objective: what a share outside of its band costs, over all brokers
MOST_REPLICAS = 6  # of a partition whose order is looked at
TOPICS, OTHER_TOPICS = "topic_leaders", "all topics but the one that is led the least evenly"
NOBODY = -1
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Option:
    """An order of one partition's list, by what goals see of it."""

    leader: int
    heir: int  # once the leader's broker has died
    heir_of_rack: int  # once its rack has
    order: tuple[int, ...]  # slots


@dataclass(frozen=True, slots=True)
class _Row:
    """A load in shares: columns, what each adds, and what is there anyway."""

    goal: str
    index: Ints
    value: Floats
    fixed: float


@dataclass(frozen=True, slots=True)
class _Level:
    """The largest load of some rows: no less than the limit counts as better."""

    limit: float
    weight: float


@dataclass(frozen=True, slots=True)
class _Band:
    """Between which limits a load should be, in shares."""

    goal: str
    index: Ints
    value: Floats
    low: float
    high: float


def better_orders(work: Workspace, layout: Layout) -> Layout | None:
    """The layout with a lower objective, or None."""
    search = _Search(work, layout)
    return search.best() if search.can_gain else None


class _Search:
    def __init__(self, work: Workspace, layout: Layout) -> None:
        self._work, self._layout = work, layout
        self._view = View(work.model, work.scope, work.request, layout)
        self._weights, self._needed = weights_of(self._view), GAIN * objective(self._view)
        self._rows: list[_Row] = []
        self._levels: dict[str, _Level] = {}
        self._bands: list[_Band] = []
        names = [name for name in work.request.goal_tolerances if name in {*map(str, LED), TOPICS, "failover"}]
        measured = {name: GOALS[name].measure(self._view) for name in names}
        self._measure = {name: value for name, value in measured.items() if value is not None}

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
        """Switch orders one at a time, then solve the program of the goals from there."""
        counts = [len(options) for options in self._options.values()]
        begin: Ints = np.cumsum(counts, dtype=np.int64) - np.array(counts, np.int64)
        self._columns = {p: first + np.arange(n) for p, first, n in zip(self._options, begin, counts, strict=True)}
        for name in self._measure:
            goal = GOALS[name]
            self._levels[name] = _Level(goal.limit(self._view), self._weights[name])
            if isinstance(goal, Balance):
                self._balance(goal)
            elif name == "failover":
                self._failover()
            else:
                self._topics()
        choices = self._choices(np.repeat(np.arange(len(counts)), counts))
        chosen = lowered(choices, begin, self._needed)
        found = self._solved(choices, chosen)
        chosen = chosen if found is None else found
        return None if np.array_equal(chosen, begin) else self._laid_out(chosen)

    def _choices(self, owner: Ints) -> Choices:
        load = np.zeros((len(owner), len(self._rows)))
        for number, row in enumerate(self._rows):
            load[row.index, number] = row.value
        names, levels = list(self._levels), self._levels.values()
        return Choices(
            owner,
            load,
            np.array([row.fixed for row in self._rows]),
            np.array([names.index(row.goal) for row in self._rows], np.int64),
            np.array([one.limit for one in levels]),
            np.array([one.weight for one in levels]),
        )

    def _solved(self, choices: Choices, chosen: Ints) -> Ints | None:
        """Better choices than these, or None."""
        levels = choices.levels(chosen)
        most = float(choices.weight @ levels) - self._needed
        if most < choices.weight @ choices.limit:
            return None
        program = IntegerProgram()
        program.add_columns(np.zeros(len(choices.owner)), np.ones(len(choices.owner)), whole=True)
        for columns in self._columns.values():
            program.add_row(1, 1, columns, np.ones(len(columns)))
        level = program.add_columns(choices.limit, np.full(len(levels), np.inf), whole=False)
        self._add_rows(program, dict(zip(self._levels, level.tolist(), strict=True)))
        program.add_row(-np.inf, most, level, choices.weight)
        sides = [(self._add_band(program, band), self._weights[band.goal]) for band in self._bands]
        cost = np.zeros(program.columns)
        cost[level] = choices.weight
        for columns, weight in sides:
            cost[columns] = OUTSIDE * weight / self._work.model.brokers
        for columns in self._columns.values():
            cost[columns[1:]] = CHANGE
        found = program.solve(cost, nodes=NODES, gap=GAP, checks=CHECKS)
        if found.chosen is None:
            return None
        return np.array([columns[np.argmax(found.chosen[columns])] for columns in self._columns.values()])

    def _add_rows(self, program: IntegerProgram, level: dict[str, int]) -> None:
        """Loads are below the level of their goal; numbers are below a whole number, which is."""
        whole: dict[tuple[str, float], int] = {}
        for row in self._rows:
            if not len(row.index) or row.fixed or np.ptp(row.value) > ROUNDING * row.value[0]:
                index, value = np.append(row.index, level[row.goal]), np.append(row.value, -1.0)
                program.add_row(-np.inf, -row.fixed, index, value)
                continue
            each = float(row.value[0])
            key = row.goal, round(1 / each, 9)
            if key not in whole:
                whole[key] = int(program.add_columns(np.zeros(1), np.full(1, np.inf), whole=True)[0])
                program.add_row(-np.inf, 0.0, np.array([whole[key], level[row.goal]]), np.array([each, -1.0]))
            index, value = np.append(row.index, whole[key]), np.append(np.ones(len(row.index)), -1.0)
            program.add_row(-np.inf, 0.0, index, value)

    @staticmethod
    def _add_band(program: IntegerProgram, band: _Band) -> Ints:
        """Columns for what is outside of a band."""
        sides = program.add_columns(np.zeros(2), np.full(2, np.inf), whole=False)
        program.add_row(band.low, band.high, np.append(band.index, sides), np.append(band.value, [1.0, -1.0]))
        return sides

    def _laid_out(self, chosen: Ints) -> Layout:
        slots = np.arange(len(self._layout.broker))
        for p, column in zip(self._columns, chosen.tolist(), strict=True):
            order = self._options[p][column - int(self._columns[p][0])].order
            slots[self._layout.offsets[p] : self._layout.offsets[p + 1]] = order
        layout = self._layout
        return replace(layout, broker=layout.broker[slots], bytes=layout.bytes[slots], log_dir=layout.log_dir[slots])

    def _led(self, weight: Floats) -> dict[int, dict[int, float]]:
        """By broker: the columns that make it lead, and what each adds."""
        found: dict[int, dict[int, float]] = defaultdict(dict)
        for p, options in self._options.items():
            for column, one in zip(self._columns[p].tolist(), options, strict=True):
                if weight[p]:
                    found[one.leader][column] = float(weight[p])
        return found

    def _below(self, goal: str, terms: dict[int, float], fixed: float, share: float) -> None:
        """A load over its share is below the level of a goal."""
        value = np.array([*terms.values()]) / share
        self._rows.append(_Row(goal, np.array([*terms], np.int64), value, fixed / share))

    def _balance(self, goal: Balance) -> None:
        """Rows of a resource, and its bands."""
        view, model, resource = self._view, self._work.model, goal.resource
        share, tolerance = view.share(resource), self._work.request.tolerance_of(resource)
        fixed = load_by_broker(self._layout, per_replica(model, resource), model.brokers)
        led = self._led(per_leader(model, resource, np.diff(self._layout.offsets)))
        low, high = share * (1 - tolerance), share * (1 + tolerance)
        if resource is Resource.LEADERS:
            low, high = band(share, tolerance)
        for b in np.flatnonzero(share > 0).tolist():
            self._below(goal.name, led[b], float(fixed[b]), float(share[b]))
            row, edges = self._rows[-1], ((low[b] - fixed[b]) / share[b], (high[b] - fixed[b]) / share[b])
            self._bands.append(_Band(goal.name, row.index, row.value, *edges))

    def _topics(self) -> None:
        """Rows of each topic with as many partitions as there are brokers.

        Of n topics, the 99th percentile lies between the largest and the second one, (n - 1) / 100 of the way from the
        first: the second counts where the largest is not within the limit.
        """
        model, brokers = self._work.model, max(1, int(self._view.sharers(Resource.LEADERS).sum()))
        counts = np.bincount(model.topic, minlength=len(model.topics))
        even = {topic: float(np.ceil(counts[topic] / brokers)) for topic in np.flatnonzero(counts >= brokers).tolist()}
        most = {topic: np.bincount(self._view.leader[model.topic == topic]).max() / even[topic] for topic in even}
        levels: dict[int, tuple[str, ...]] = dict.fromkeys(even, (TOPICS,))
        level, part = self._levels[TOPICS], (len(even) - 1) / 100
        if 0 < part < 0.5 and max(most.values()) > level.limit:
            self._levels[TOPICS] = _Level(level.limit, (1 - part) * level.weight)
            self._levels[OTHER_TOPICS] = _Level(1.0, part * level.weight)
            levels = dict.fromkeys(even, (TOPICS, OTHER_TOPICS))
            levels[max(most, key=lambda topic: most[topic])] = (TOPICS,)
        for topic, names in levels.items():
            led = self._led((model.topic == topic).astype(np.float64))
            for name in names:
                for terms in led.values():
                    self._below(name, terms, 0.0, even[topic])

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
            if own and share > 0:
                self._below("failover", own, 0.0, share)
