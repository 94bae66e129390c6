"""Better places of replicas, by an integer program over the whole of a small cluster.

Three programs with the same rules, those of `certificate.program` and the free space of log dirs, old and new copies
counted: the first has the partitions that are in fewer racks than they could be; the second the objective of the goals
that follow from where replicas are; the third the bytes copied, with no goal worse than it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.certificate.problem import Loads, Problem
from rebalance_lib.planner.certificate.program import Program
from rebalance_lib.planner.goals import GOALS, View
from rebalance_lib.planner.goals.balance import Balance
from rebalance_lib.planner.goals.objective import GAIN, objective, weights_of
from rebalance_lib.planner.model import NO_LIMIT
from rebalance_lib.planner.resources import Resource, per_replica
from rebalance_lib.planner.shares import band
from rebalance_lib.planner.workspace import Layout, Workspace, copied, hosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.certificate.problem import Flags, Floats

NODES = 10
RACK_CHECKS = 200  # partitions that lack racks are few: of 120 random clusters, no program took 0.05 s
CHECKS = 40  # 20 left network_in over 0.1 % on 2 of 25 random clusters, 60 took three times as long
BYTES_CHECKS = 200  # 30 copied a tenth more over 12 random clusters, on one nearly twice as much, in 0.93 of the time
GAP = 2e-4  # of the objective
BYTES_GAP = 0.01  # of the bytes
OUTSIDE = 2e-4  # of the objective: what a share outside of its band costs, over all brokers
BYTES = 2e-4  # of the objective: what copying all bytes once costs; less than GAIN, else the next step would go on
ROUNDING = 1e-9


def more_racks(work: Workspace) -> Layout | None:
    """The cluster's layout with fewer partitions that lack racks, or None.

    `repair_racks` goes from the largest partition to the smallest: where disk space is scarce, one large replica may
    take what two small ones needed.
    """
    return _Search(work, work.layout).fewest_short()


def better_places(work: Workspace, layout: Layout) -> Layout | None:
    """A layout with a lower objective, or None; the workspace is where the cluster is, the layout a plan for it."""
    search = _Search(work, layout)
    return search.least_objective() if search.can_gain else None


def fewer_bytes(work: Workspace, layout: Layout) -> Layout | None:
    """A layout as good that copies less, or None."""
    search = _Search(work, layout)
    return search.least_bytes() if search.copied else None


class _Search:
    def __init__(self, work: Workspace, layout: Layout) -> None:
        model, scope = work.model, work.scope
        self._work, self._layout = work, layout
        self._before = work.layout
        view = View(model, scope, work.request, layout)
        self._weights, self._needed = weights_of(view), GAIN * objective(view)
        goals = [GOALS[name] for name in self._weights]
        self._goals = [one for one in goals if isinstance(one, Balance) and one.resource in work.resources]
        self._measure = [one.measure(view) or 1.0 for one in self._goals]
        self._limit = [one.limit(view) for one in self._goals]
        self._loads = [self._bands(view, one.resource) for one in self._goals]
        rack = np.where(model.alive, model.rack, -1).astype(np.int32)
        self._has, self._had = hosts(model, layout), hosts(model, self._before)
        # A broker that takes nothing, one that is cordoned or an old one in ``expand``, may still keep what it has.
        self._allowed = self._has | self._had | (scope.takes & takes_any(work))
        self._problem = Problem(
            layout.offsets,
            layout.broker,
            model.size,
            scope.movable,
            rack if model.has_racks else np.zeros_like(rack),
            scope.gives,
            scope.takes | np.any(self._had & ~self._has, axis=0),
            scope.leaves,
            tuple(self._loads),
        )
        self.copied = copied(model, self._before, layout)[0]

    @property
    def can_gain(self) -> bool:
        """Whether a goal is not met."""
        over = np.maximum(0.0, np.array(self._measure) - np.array(self._limit))
        return bool(over @ [self._weights[goal.name] for goal in self._goals] >= self._needed) if self._goals else False

    def _bands(self, view: View, resource: Resource) -> Loads:
        share, tolerance = view.share(resource), self._work.request.tolerance_of(resource)
        low, high = share * (1 - tolerance), share * (1 + tolerance)
        if resource is Resource.REPLICAS:
            low, high = band(share, tolerance)
        return Loads(str(resource), per_replica(view.model, resource), share, low, high)

    def _program(self) -> tuple[Program, Floats]:
        """The rules, and the bytes that each column copies."""
        program = Program(self._problem, hosts=self._allowed)
        columns = program.columns
        replica = program.partition >= 0
        bytes_of = np.zeros(columns)
        arrives = replica & ~self._had[program.partition, program.broker]
        bytes_of[arrives] = self._work.model.size[program.partition[arrives]]
        free = free_by_broker(self._work)
        for b in np.flatnonzero(np.isfinite(free)).tolist():
            index = np.flatnonzero((program.broker == b) & (bytes_of > 0))
            if len(index):
                unit = max(1.0, float(bytes_of[index].max()))
                program.add_row(-np.inf, float(free[b]) / unit, index, bytes_of[index] / unit)
        self._keep_below_ceilings(program)
        return program, bytes_of

    def _keep_below_ceilings(self, program: Program) -> None:
        """No broker gets above its capacity of a network; one that is above it now gets nothing more."""
        state = self._work.state
        for number, ceiling in enumerate(state.ceiling):
            most = np.maximum(ceiling, state.load[number]) - self._work.immovable(number)
            for b in np.flatnonzero(np.isfinite(most)).tolist():
                index = np.flatnonzero((program.partition >= 0) & (program.broker == b))
                weight = state.weight[number][program.partition[index]]
                if len(index) and weight.any():
                    program.add_row(-np.inf, float(most[b]) / weight.max(), index, weight / weight.max())

    def fewest_short(self) -> Layout | None:
        """The program of racks: first few partitions that lack any, then few racks lacking, then few bytes."""
        problem = self._problem
        wanted = np.minimum(problem.replication_factor, np.count_nonzero(problem.in_rack))
        lacks = wanted - problem.fewest_racks
        lacking = np.flatnonzero(problem.movable & (lacks > 0))
        if not len(lacking):
            return None
        program, bytes_of = self._program()
        rack = np.where(program.partition >= 0, problem.rack[program.broker], -1)
        partition = program.partition.copy()
        short = program.add_columns(np.zeros(len(lacking)), np.ones(len(lacking)), whole=True)
        lack = program.add_columns(np.zeros(len(lacking)), lacks[lacking].astype(np.float64), whole=False)
        for p, is_short, missing in zip(lacking.tolist(), short.tolist(), lack.tolist(), strict=True):
            used = program.add_columns(np.zeros(problem.racks), np.ones(problem.racks), whole=True)
            for number, is_used in enumerate(used.tolist()):
                inside = np.flatnonzero((partition == p) & (rack == number))
                program.add_row(0, np.inf, np.append(inside, is_used), np.append(np.ones(len(inside)), -1.0))
            program.add_row(float(wanted[p]), np.inf, np.append(used, missing), np.ones(len(used) + 1))
            program.add_row(0, np.inf, np.array([is_short, missing]), np.array([float(lacks[p]), -1.0]))
        program.add_row(0, len(lacking) - 1, short, np.ones(len(short)))
        cost = np.append(bytes_of, np.zeros(program.columns - len(bytes_of)))
        cost *= BYTES / max(1.0, float(self._work.model.bytes.sum()))
        cost[short], cost[lack] = 1.0, 1.0 / (1 + lacks.sum())
        return self._solved(program, cost, GAP, RACK_CHECKS)

    def least_objective(self) -> Layout | None:
        """The program of the objective."""
        program, bytes_of = self._program()
        levels, slack = [], []
        brokers = self._work.model.brokers
        for goal, loads, limit in zip(self._goals, self._loads, self._limit, strict=True):
            weight = self._weights[goal.name]
            slack.append((program.measure_band(loads, loads.low, loads.high), weight))
            levels.append((program.add_level(loads, limit), weight))
        cost = np.append(bytes_of, np.zeros(program.columns - len(bytes_of)))
        cost *= BYTES / max(1.0, float(self._work.model.bytes.sum()))
        for level, weight in levels:
            cost[level] = weight
        for columns, weight in slack:
            cost[columns] = OUTSIDE * weight / brokers
        index, value = (np.array(side) for side in zip(*levels, strict=True))
        now = np.maximum(self._measure, self._limit) @ value
        program.add_row(-np.inf, now - self._needed, index, value)
        return self._solved(program, cost, GAP, CHECKS)

    def least_bytes(self) -> Layout | None:
        """The program of bytes."""
        program, bytes_of = self._program()
        for loads, measure, limit in zip(self._loads, self._measure, self._limit, strict=True):
            held = np.where(loads.share > 0, self._problem.held(loads), 0.0)
            level = max(measure, limit) * loads.share
            program.keep_in_band(loads, np.minimum(loads.low, held), np.maximum(level, held))
        # What is larger than all that is copied cannot arrive; counted as twice that, it leaves numbers of one scale.
        cost = np.append(bytes_of, np.zeros(program.columns - len(bytes_of)))
        cost = np.minimum(cost / self.copied, 2.0)
        index = np.flatnonzero(cost)
        program.add_row(-np.inf, 1 - BYTES_GAP, index, cost[index])
        layout = self._solved(program, cost, BYTES_GAP, BYTES_CHECKS)
        if layout is None:
            return None
        return layout if copied(self._work.model, self._before, layout)[0] < self.copied else None

    def _solved(
        self, program: Program, cost: Floats, gap: float, checks: int | None, nodes: int = NODES
    ) -> Layout | None:
        found = program.solve(cost, nodes=nodes, gap=gap, checks=checks)
        if found.chosen is None:
            return None
        after = self._has.copy()
        after[self._work.scope.movable] = False
        after[program.replicas(found.chosen)] = True
        if np.array_equal(after, self._has):
            return None
        return lay_out(self._work, self._layout, after, self._work.state.free)


def takes_any(work: Workspace) -> Flags:
    """By broker: whether a log dir is not fuller than allowed; else it gets nothing, not even what has no bytes yet."""
    dirs = work.model.log_dirs
    owner = np.repeat(np.arange(work.model.brokers), np.diff(dirs.offsets))
    found: Flags = np.diff(dirs.offsets) == 0
    found[owner[work.state.free >= 0]] = True
    return found


def free_by_broker(work: Workspace) -> Floats:
    """By broker: the bytes that may arrive, old and new copies counted; infinite where nothing limits them."""
    dirs = work.model.log_dirs
    owner = np.repeat(np.arange(work.model.brokers), np.diff(dirs.offsets))
    free = np.maximum(0, work.state.free).astype(np.float64)
    summed = np.bincount(owner, free, minlength=work.model.brokers)
    return np.where((np.diff(dirs.offsets) == 0) | (summed >= NO_LIMIT / 2), np.inf, summed)


def lay_out(work: Workspace, layout: Layout, after: Flags, free: NDArray[np.int64]) -> Layout | None:
    """A layout with these brokers for each partition; None if a log dir has no space for one of them.

    Replicas that stay keep their order; those that arrive follow, each on the log dir with the most `free` bytes.
    """
    model, before, free = work.model, work.layout, free.copy()
    broker, held, log_dir = layout.broker.copy(), before.bytes.copy(), before.log_dir.copy()
    order = np.argsort(-model.size, kind="stable")
    for p in order.tolist():
        slots = np.arange(model.offsets[p], model.offsets[p + 1])
        old = dict(zip(before.broker[slots].tolist(), slots.tolist(), strict=True))
        listed = [b for b in layout.broker[slots].tolist() if after[p, b]]
        listed += [b for b in np.flatnonzero(after[p]).tolist() if b not in listed]
        sources = [old.get(b) for b in listed]
        for slot, b, source in zip(slots.tolist(), listed, sources, strict=True):
            broker[slot] = b
            if source is not None:
                held[slot], log_dir[slot] = before.bytes[source], before.log_dir[source]
                continue
            held[slot] = model.size[p]
            begin, end = model.log_dirs.offsets[b], model.log_dirs.offsets[b + 1]
            if begin == end:
                log_dir[slot] = -1
                continue
            at = int(begin + np.argmax(free[begin:end]))
            if free[at] < model.size[p]:
                return None
            free[at] -= model.size[p]
            log_dir[slot] = at
    return Layout(layout.offsets, broker, held, log_dir)
