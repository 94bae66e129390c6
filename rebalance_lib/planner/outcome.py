"""What a placement means: the plan it is, what it moves, how even the cluster is before and after, and a bound.

*The bound.* A broker that holds more after a plan than before was sent at least the difference. So no plan that ends
with these loads can copy fewer bytes than the sum of all such differences. `least_bytes` is that sum, and
``bytes_moved / least_bytes`` tells how close the plan is to it: 1 means that nothing moved in vain. A second, weaker
bound holds for every plan that is as balanced, whatever its loads: what lies above the highest fill after the plan, or
lacks below the lowest one, must have moved.

Example: loads of 12, 5 and 1 become 6 each. Brokers 2 and 3 gain 1 and 5, so the least is 6 bytes. A plan that moved 7
has a ratio of 1.17.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_lib.plan import Plan
from rebalance_lib.plan.columns import Lists
from rebalance_lib.planner.by_set import part_of, split
from rebalance_lib.planner.compiled.compare import compare, rack_spread
from rebalance_lib.planner.goals import Verdict, View, verdicts, verdicts_by_set
from rebalance_lib.planner.goals.min_topic_leaders import find_lacks
from rebalance_lib.planner.request import Mode, Request
from rebalance_lib.planner.resources import LED, Resource, weights
from rebalance_lib.planner.workspace import Layout, Placement, sum_by
from rebalance_lib.topology.texts import decode_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.rest import Rest
    from rebalance_lib.planner.scope import Scope

ANY = "any"
_RESOURCES = {
    "bytes": Resource.DISK,
    "replicas": Resource.REPLICAS,
    "leaders": Resource.LEADERS,
    "rate": Resource.NETWORK_IN,
}


@dataclass(frozen=True, slots=True)
class Balance:
    """How even a load is over the brokers that stay, in terms of their shares by weight."""

    most: float  # the fullest broker's load over its share; 1 is even
    least: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A plan in numbers."""

    partitions_changed: int
    partitions_added: int
    partitions_kept: int
    replicas_moved: int
    leaders_moved: int
    order_only: int
    bytes_moved: int
    log_dir_moves: int
    log_dir_bytes: int
    least_bytes: int
    least_bytes_for_balance: int
    bytes_over_least: float
    bytes_before: Balance
    bytes_after: Balance
    replicas_before: Balance
    replicas_after: Balance
    leaders_before: Balance
    leaders_after: Balance

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A placement beside the cluster it was made for."""

    model: ClusterModel
    scope: Scope
    placement: Placement

    @cached_property
    def _compared(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        before, after = self.model, self.placement.layout
        arrives, other_dir, differs = compare(
            before.offsets, before.broker, before.log_dir, after.offsets, after.broker, after.log_dir
        )
        return arrives, other_dir, differs

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """The slots, after, whose broker held no replica of the partition before."""
        return np.flatnonzero(self._compared[0])

    @cached_property
    def other_dir(self) -> NDArray[np.int64]:
        """The slots, after, whose replica stays on its broker in another log dir."""
        return np.flatnonzero(self._compared[1])

    @cached_property
    def changed(self) -> NDArray[np.int64]:
        """The partitions whose replica list or log dirs change, new ones included."""
        return np.flatnonzero(self._compared[2])

    @cached_property
    def partition_after(self) -> NDArray[np.int64]:
        """By slot after: its partition."""
        return np.repeat(np.arange(self.placement.model.partitions), np.diff(self.placement.layout.offsets))

    @cached_property
    def crowded(self) -> int:
        """How far partitions are, after, from a rack for each replica: racks that lack, and replicas in the fullest."""
        layout = self.placement.layout
        racks, fullest = rack_spread(layout.offsets, layout.broker, self.model.rack)
        others = 0 if self._rest is None else self._rest.crowded
        return len(layout.broker) - int(racks.sum()) + int(fullest.sum()) + others

    @cached_property
    def bytes_after(self) -> NDArray[np.int64]:
        """By slot after: what it occupies; a replica that stays, or has come back on the way, is as large as it was."""
        model, layout = self.model, self.placement.layout
        if np.array_equal(model.bytes, model.size[model.slot_partition]):
            return layout.bytes
        known = int(layout.offsets[model.partitions])
        after = Lists(layout.offsets[: model.partitions + 1], layout.broker[:known])
        held = after.position_in(Lists(model.offsets, model.broker))
        sizes = layout.bytes.copy()
        sizes[:known] = np.where(held >= 0, model.bytes[held], sizes[:known])
        return sizes

    @cached_property
    def in_fewer_racks(self) -> int:
        """How many partitions are, after, in fewer racks than now: those whose racks or replicas are given up."""
        others = 0 if self._rest is None else self._rest.changes.count("in_fewer_racks")
        if not self.model.has_racks:
            return others
        rack = np.where(self.model.alive, self.model.rack, -1)
        layout = self.placement.layout
        before, _ = rack_spread(self.model.offsets, self.model.broker, rack)
        after, _ = rack_spread(layout.offsets[: self.model.partitions + 1], layout.broker, rack)
        return int(np.count_nonzero(after < before)) + others

    @property
    def _rest(self) -> Rest | None:
        """What other partitions add up to, after."""
        return self.placement.model.rest

    @property
    def own(self) -> Outcome:
        """The same of the model's partitions alone."""
        model, after = (replace(one, rest=None) for one in (self.model, self.placement.model))
        return replace(self, model=model, placement=replace(self.placement, model=after))

    @cached_property
    def plan(self) -> Plan:
        """The entries of the partitions that change."""
        model, layout = self.placement.model, self.placement.layout
        rows = self.changed
        lengths = np.diff(layout.offsets)[rows]
        slots = np.repeat(layout.offsets[rows] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        offsets = pa.array(np.r_[0, np.cumsum(lengths)], pa.int32())
        columns = {
            "topic": decode_texts(model.topic[rows], pa.array(model.topics, pa.string())),
            "partition": pa.array(model.partition[rows], pa.int32()),
            "replicas": pa.ListArray.from_arrays(offsets, pa.array(model.broker_ids[layout.broker[slots]], pa.int32())),
        }
        if (named := self._named_dirs(slots)) is not None:
            columns["log_dirs"] = pa.ListArray.from_arrays(offsets, named)
        return Plan.from_table(pa.table(columns))

    def _named_dirs(self, slots: NDArray[np.int64]) -> pa.Array[Any] | None:
        """A path for each replica that comes to, or moves within, a broker with several log dirs; else any."""
        dirs = self.model.log_dirs
        several = np.diff(dirs.offsets) > 1
        layout = self.placement.layout
        if not several.any():
            return None
        comes = self._compared[0] | self._compared[1]
        named = comes[slots] & several[layout.broker[slots]] & (layout.log_dir[slots] >= 0)
        if not named.any():
            return None
        paths = pa.array([ANY, *dirs.paths], pa.string())
        return paths.take(pa.array(np.where(named, layout.log_dir[slots] + 1, 0)))

    def verdicts(
        self,
        request: Request | None = None,
        best: Mapping[str, float] | None = None,
        best_of_sets: Sequence[Mapping[str, float]] = (),
        before: View | None = None,
    ) -> list[Verdict]:
        """What each goal says of the plan.

        Args: `best` has what any plan could come to, by goal, and for sets by set; `before` is the cluster as it is, if
        somebody has looked at it already.
        """
        request = request or Request(Mode.BALANCE)
        views = self.views(request, before)
        if self.model.sets is None:
            return verdicts(*views, best or {})
        return verdicts_by_set(*views, (part.views(request) for part in self.of_sets), best_of_sets)

    def views(self, request: Request, before: View | None = None) -> tuple[View, View]:
        """The cluster before and after."""
        layout = replace(self.placement.layout, bytes=self.bytes_after)
        before = before or View(self.model, self.scope, request, Layout.of(self.model))
        return before, View(self.placement.model, self.scope, request, layout)

    @cached_property
    def of_sets(self) -> list[Outcome]:
        """The outcome for each set of brokers, as if it were a cluster of its own; without sets the whole alone."""
        if self.model.sets is None:
            return [self]
        return [
            Outcome(part.model, part.scope, part_of(part, self.placement)) for part in split(self.model, self.scope)
        ]

    @cached_property
    def misplaced(self) -> int:
        """How many replicas are, after, on brokers outside of their topic's set."""
        sets = self.model.sets
        return 0 if sets is None else int(sets.misplaced(self.placement.model, self.placement.layout).sum())

    @cached_property
    def leaders_lacking(self) -> int:
        """How often a broker leads, after, fewer partitions of a chosen topic than it shall."""
        if self.scope.min_leaders is None:
            return 0
        found = (find_lacks(one.placement.model, one.scope, one.placement.leader) for one in self.of_sets)
        return sum(len(lacks.topic) for lacks in found if lacks is not None)

    @cached_property
    def figures(self) -> Figures:
        """All numbers of the outcome."""
        model, after = self.model, self.placement
        known = model.partitions
        arrived = self.arrivals
        other_dir = self.other_dir
        counts: dict[str, Any] = {
            "partitions_changed": len(self.changed),
            "replicas_moved": len(arrived),
            "leaders_moved": int(np.count_nonzero(after.leader[:known] != model.leader)),
            "bytes_moved": int(after.model.size[self.partition_after[arrived]].sum()),
            "log_dir_moves": len(other_dir),
            "log_dir_bytes": int(self.bytes_after[other_dir].sum()),
        }
        loads = self.loads()
        of_sets = [part.loads() for part in self.of_sets] if self.model.sets else [loads]
        least = sum(int(np.maximum(0, of_set["bytes"][1] - of_set["bytes"][0]).sum()) for of_set in of_sets)
        balances: dict[str, Any] = {
            f"{name}_{when}": _worst(
                part.balance(pair[name][place], _RESOURCES[name])
                for part, pair in zip(self.of_sets, of_sets, strict=True)
            )
            for name in loads
            for place, when in enumerate(("before", "after"))
        }
        more_than_order = np.zeros(after.model.partitions, np.bool_)
        more_than_order[self.partition_after[arrived]] = True
        more_than_order[self.partition_after[other_dir]] = True
        more_than_order[:known] |= np.diff(after.layout.offsets)[:known] != model.replication_factor
        counts["order_only"] = int(np.count_nonzero(~more_than_order[self.changed]))
        if self._rest is not None:
            counts = {name: count + self._rest.changes.count(name) for name, count in counts.items()}
        moved = counts["bytes_moved"]
        return Figures(
            **counts,
            partitions_added=after.model.partitions - known,
            partitions_kept=after.kept,
            least_bytes=least,
            least_bytes_for_balance=sum(
                part.least_for_balance(*pair["bytes"]) for part, pair in zip(self.of_sets, of_sets, strict=True)
            ),
            bytes_over_least=moved / least if least else 1.0,
            **balances,
        )

    def loads(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """By broker, before and after: bytes, replicas and leaders."""
        model, after, count = self.model, self.placement, self.model.brokers
        led_before, led = model.leader[model.leader >= 0], after.leader[after.leader >= 0]
        loads = {
            "bytes": (sum_by(model.broker, model.bytes, count), sum_by(after.layout.broker, self.bytes_after, count)),
            "replicas": (np.bincount(model.broker, minlength=count), np.bincount(after.layout.broker, minlength=count)),
            "leaders": (np.bincount(led_before, minlength=count), np.bincount(led, minlength=count)),
        }
        if model.rest is None or self._rest is None:
            return loads
        sums = model.rest.sums, self._rest.sums
        others = {name: [one.whole_by_broker(name, count) for one in sums] for name in loads}
        return {name: (now + others[name][0], then + others[name][1]) for name, (now, then) in loads.items()}

    @cached_property
    def unevenness(self) -> tuple[float, ...]:
        """Which part of all bytes, replicas, leaders and, where known, write rates is, after, above a broker's share.

        The fullest broker alone would not tell plans apart where one partition is larger than a share.
        """
        if self.model.sets is not None:
            return tuple(map(max, zip(*(part.unevenness for part in self.of_sets), strict=True)))
        loads: dict[str, NDArray[Any]] = {name: after for name, (_, after) in self.loads().items()}
        if (rate := self.placement.model.write_rate) is not None:
            layout = self.placement.layout
            loads["rate"] = np.bincount(layout.broker, rate[self.partition_after], minlength=self.model.brokers)
            if self._rest is not None:
                loads["rate"] = loads["rate"] + self._rest.sums.load(self.model, Resource.NETWORK_IN)
        found = []
        for name, after in loads.items():
            weight = self._weight(_RESOURCES[name])
            share = weight / max(weight.sum(), 1e-300)
            found.append(float(np.maximum(0.0, after / max(1, after.sum()) - share).sum()))
        return tuple(found)

    def _weight(self, resource: Resource) -> NDArray[np.float64]:
        """By broker: its part of a resource beside others; one that is not known counts as the average."""
        weight = np.nan_to_num(weights(self.model, resource), nan=1.0)
        sharers = self.model.alive & ~self.scope.leaves
        if resource in LED and self.scope.may_lead_else is not None:
            sharers &= self.scope.may_lead
        return np.where(sharers, weight, 0.0)

    def balance(self, load: NDArray[np.int64], resource: Resource) -> Balance:
        """How even a load by broker is."""
        weight = self._weight(resource)
        stays = weight > 0
        if not stays.any() or not load[stays].any():
            return Balance(1.0, 1.0)
        fill = load[stays] / (weight[stays] * load[stays].sum() / weight.sum())
        return Balance(float(fill.max()), float(fill.min()))

    def least_for_balance(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> int:
        """What any plan must copy whose fullest broker is no fuller, and emptiest no emptier, than after this one."""
        weight = self._weight(Resource.DISK)
        stays = weight > 0
        if not stays.any():
            return 0
        weight = weight[stays]
        fill = after[stays] / weight
        lack = np.maximum(0, fill.min() * weight - before[stays]).sum()
        # What came from elsewhere was copied on top of what left a full broker; what was dropped left without a copy.
        grown = int(after[stays].sum()) - int(before[stays].sum())
        above = np.maximum(0, before[stays] - fill.max() * weight).sum() + grown
        least = int(np.maximum(0, after - before).sum())
        return max(0, min(least, int(max(lack, above))))


def _worst(of_sets: Iterable[Balance]) -> Balance:
    """The fullest and the emptiest broker of all sets."""
    listed = list(of_sets) or [Balance(1.0, 1.0)]
    return Balance(max(one.most for one in listed), min(one.least for one in listed))
