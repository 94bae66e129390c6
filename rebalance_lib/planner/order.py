"""The order of replica lists after replicas have their places: leaders first, then who takes over from them.

Numbers of leaders are evened out exactly, see ``leaders``; then lists are reordered as far as traffic, processors,
topics or what is left after a failure are outside of their limits, see ``compiled.order``. Nothing is copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rebalance_lib.planner.compiled.compare import leader_to_front
from rebalance_lib.planner.compiled.leaders import Leaders
from rebalance_lib.planner.compiled.order import Leading, count_all, order_replicas, reserve, unevenness
from rebalance_lib.planner.compiled.swaps import swap_leaders
from rebalance_lib.planner.leader_racks import preferred, shared_partitions
from rebalance_lib.planner.leaders import Sending, even_leaders, without_ceiling
from rebalance_lib.planner.request import BALANCING
from rebalance_lib.planner.resources import LED, Resource, known_resources, per_leader, per_replica, shared_out, weights
from rebalance_lib.planner.shares import band, even_shares
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, ceiling, load_by_broker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Uneven = tuple[float, float, float]

INNER = 0.9  # of the tolerance: what is outside comes within
LEAST_GAIN = 0.05  # of what is outside of its limits, of one kind: less is not worth a change of lists
LEAST = 1.0  # of what is outside in all: the last tenth of a tolerance on one broker is not worth it either
ROUNDS = 8  # far more than it takes: one that finds nothing is the last
LONGER = 60  # where capacities are unknown, shares change from round to round: of 2,000 random clusters none took 17
PASSES = 2  # gen.py expand: with 1, survivors send up to 1.158 of their share instead of 1.126; 3 take 10 % longer
SWAPS, FEWEST, MOST = 100_000, 4, 64
"""Swaps looked at over all partitions, and at least and at most for each: where there are more, single changes find a
way. Without swaps the leaders of 10,000 partitions (gen.py skew with rates, no data moved) send up to 1.78 of their
share instead of 1.04; 64 for each take ten times as long for no better ones.
"""
ROUNDING = 1e-9
MOST_BROKERS = 3_000  # beyond, a table of all pairs of brokers is too large to look at failures
SCALE = 128.0  # of weights: an order of lists must gain as much as `CHANGE` in ``compiled.order``
CHANGED = ("broker", "may_lead", "load", "high", "topic_leaders", "inherited", "inherited_by_rack")
"""Which arrays of `Leading` a try writes to."""
FAILOVER = {Resource.LEADERS: 0.27, Resource.NETWORK_OUT: 0.8}
"""Which part of its tolerance a survivor may be above its share once a broker or a rack has died: leaders can be had
more even than what they send, where single partitions are large.
"""


def order_lists(work: Workspace, movable: Bools | None = None, *, once: bool = False) -> Placement:
    """The workspace with its lists in order, changed only where they are movable: all in scope if that is not given.

    What excluded brokers lead they keep, and they are given nothing else to lead. It is done once more from where it
    ended, until nothing changes: so planning again finds nothing to do. Beside a full plan, one that moves less is no
    such end: `once` is enough, and within a budget it is done once anyway.
    """
    layout, leader = work.layout, work.leader
    start = layout
    movable = work.scope.movable if movable is None else movable
    once |= work.request.limited and (work.request.mode in BALANCING or work.request.balance)
    for repeat in range(1 if once else ROUNDS):
        changeable = movable & ~(work.scope.excluded[leader] & (leader >= 0))
        chosen = _even_leaders(work, layout, leader, changeable)
        if repeat and np.array_equal(chosen, leader):
            break  # lists were reordered from here already, until nothing changed
        layout = _reordered(work, layout, chosen, changeable, once=once)
        leader = layout.broker[layout.offsets[:-1]]
    return Placement(work.model, start.in_order(layout.broker), leader)


def _even_leaders(work: Workspace, layout: Layout, leader: NDArray[np.int32], movable: Bools) -> NDArray[np.int32]:
    """By partition: who shall lead it."""
    share = _leader_shares(work)
    low, high = (edge.astype(np.int64) for edge in band(share, work.request.tolerance_of(Resource.LEADERS)))
    led = np.zeros(work.model.brokers, np.int64)
    if work.model.rest is not None:
        led = np.rint(work.model.rest.sums.load(work.model, Resource.LEADERS)).astype(np.int64)
    fields = (layout.offsets, layout.broker, electable(work, layout), leader.copy(), movable.astype(np.uint8))
    leaders = Leaders(*fields, np.round(share, 6), low, high, led, *sending(work, layout))
    return even_leaders(leaders, even=work.request.weight_of(Resource.LEADERS) > 0)


def sending(work: Workspace, layout: Layout) -> Sending:
    """By partition, what its leader sends, then by broker: what it sends whoever leads, and what it can at most."""
    model = work.model
    if Resource.NETWORK_OUT not in known_resources(model):
        return without_ceiling(model.partitions, model.brokers)
    sent = per_leader(model, Resource.NETWORK_OUT, np.diff(layout.offsets))
    base = _base(work, layout, Resource.NETWORK_OUT)
    return sent, base, ceiling(model, Resource.NETWORK_OUT)


def _base(work: Workspace, layout: Layout, resource: Resource) -> Floats:
    """By broker: what it has of a resource whoever leads the model's partitions."""
    model = work.model
    base = load_by_broker(layout, per_replica(model, resource), model.brokers)
    return base if model.rest is None else base + model.rest.sums.load(model, resource)


def sends_too_much(work: Workspace, layout: Layout) -> bool:
    """Whether a layout has a broker send more than it can, and more than it does at the start."""
    sent, base, most = sending(work, layout)
    if not np.isfinite(most).any():
        return False
    leader = layout.broker[layout.offsets[:-1]]
    before, after = (np.bincount(one[one >= 0], sent[one >= 0], len(base)) for one in (work.leader, leader))
    return bool(np.any((base + after > most * (1 + ROUNDING)) & (after > before * (1 + ROUNDING))))


def _reordered(work: Workspace, layout: Layout, leader: NDArray[np.int32], movable: Bools, *, once: bool) -> Layout:
    """The layout, of brokers alone, with leaders first and lists reordered as long as that makes it more even.

    Where a few partitions are so busy that whoever inherits one has too much, these brokers are given less to lead.
    """
    layout = replace(layout, broker=layout.broker.copy())
    leader_to_front(layout.offsets, layout.broker, leader)
    best = _leading(work, layout, movable, _leader_shares(work))
    least: Uneven = unevenness(best)
    unknown = any(np.isnan(weights(work.model, one)[work.scope.may_lead]).any() for one in LED)
    in_vain: dict[bool, Leading] = {}  # by kind of try: from where it found nothing
    for _ in range(1 if once else LONGER if unknown else ROUNDS):
        start, before = best, least
        for reserving in (False, True):
            if in_vain.get(reserving) is not best:
                in_vain[reserving] = best
                best, least = _better(work, best, least, reserving=reserving)
        if best is start:
            break
        if unknown:  # then shares follow from the order of lists: it must be better by its own shares, too
            best = _leading(work, replace(layout, broker=best.broker), movable, _leader_shares(work))
            least = unevenness(best)
            if least[0] > before[0] or not _gains(least, before):
                best = start
                break
    return replace(layout, broker=best.broker)


def _better(work: Workspace, leading: Leading, least: Uneven, *, reserving: bool) -> tuple[Leading, Uneven]:
    """Lists reordered, if that makes it more even and leaves numbers of leaders as even as they are."""
    for strict in (False, True):
        if not any(least):
            break
        tried = leading._replace(**{name: getattr(leading, name).copy() for name in CHANGED})
        if reserving:
            reserve(tried)
        changed = order_replicas(tried, PASSES, strict)
        if (looked := min(MOST, SWAPS // max(1, len(leading.movable)))) >= FEWEST:
            changed += swap_leaders(tried, looked)
        if not changed:
            break
        tried = tried._replace(high=leading.high, leader=tried.broker[tried.offsets[:-1]])
        found: Uneven = unevenness(tried)
        if found[0] <= least[0]:
            if not _gains(found, least):
                break
            _count(work, tried)  # changes one by one leave rounding errors
            return tried, unevenness(tried)
    return leading, least


def _gains(found: Uneven, least: Uneven) -> bool:
    """Whether less is outside in all, and enough less of one kind: what survivors inherit may have no remedy."""
    enough = any(now < before * (1 - LEAST_GAIN) for now, before in zip(found, least, strict=True))
    return enough and sum(found) < sum(least) - LEAST


def _leader_shares(work: Workspace) -> Floats:
    return leader_shares(work, work.scope.may_lead, work.brokers["replicas"].astype(np.float64))


def leader_shares(work: Workspace, may_lead: Bools, at_most: Floats) -> Floats:
    """Racks have no say in who leads, but nobody can lead more partitions than it has replicas of."""
    everyone = np.zeros(work.model.brokers, np.int32)
    kept = np.where(work.scope.excluded, work.brokers["leads"], 0).astype(np.float64)
    at_most = np.where(work.scope.excluded, kept, at_most)
    part = may_lead.astype(np.float64)
    slots = work.state.slots["broker"]
    led = shared_partitions(work.scope, work.state.partitions["begin"], slots)
    total = float(work.model.partitions if led is None else np.count_nonzero(led))
    if work.model.rest is not None:
        total += work.model.rest.sums.partitions
    return even_shares(total, part, everyone, np.array([np.inf]), at_least=kept, at_most=at_most)


def electable(work: Workspace, layout: Layout) -> NDArray[np.uint8]:
    """By slot: whether the replica may be made the leader; one that is out of sync may only stay it."""
    model = work.model
    in_sync = np.ones(len(layout.broker), np.bool_)
    lagging = np.flatnonzero(~model.in_sync)
    if len(lagging):
        partition = np.repeat(np.arange(len(layout.offsets) - 1), np.diff(layout.offsets))
        keys = model.slot_partition[lagging] * model.brokers + model.broker[lagging]
        behind = np.isin(partition * model.brokers + layout.broker, keys)
        in_sync = ~behind | (layout.broker == work.leader[partition])
    return preferred(work.scope, layout.offsets, layout.broker, in_sync).astype(np.uint8)


def _leading(work: Workspace, layout: Layout, movable: Bools, leaders: Floats) -> Leading:
    """Limits and loads of all that the order of lists decides."""
    model, scope = work.model, work.scope
    resources = [one for one in known_resources(model) if one in LED]
    copies = np.diff(layout.offsets)
    weight = np.array([per_leader(model, one, copies) for one in resources])
    request = work.request
    tolerance = np.array([request.tolerance_of(one) for one in resources])
    counts = SCALE * np.array([[request.weight_of(one)] for one in resources])
    tolerances = request.goal_tolerances
    part = np.array([_part(work, one) for one in resources])
    base = np.array([_base(work, layout, one) for one in resources])
    total = weight.sum(axis=1, keepdims=True) + base.sum(axis=1, keepdims=True)
    if (led := shared_partitions(scope, layout.offsets, layout.broker)) is not None:
        total = weight[:, led].sum(axis=1, keepdims=True) + base[:, scope.may_lead].sum(axis=1, keepdims=True)
    share = np.empty_like(base)
    share[0] = leaders
    for number, one in enumerate(resources[1:], 1):
        load = base[number] + np.bincount(layout.broker[layout.offsets[:-1]], weight[number], minlength=model.brokers)
        own = np.where(scope.may_lead, weights(model, one), 0.0)
        share[number] = shared_out(float(total[number, 0]), own, load)
    low, high = share * (1 - INNER * tolerance[:, None]), share * (1 + INNER * tolerance[:, None])
    low[0], high[0] = band(leaders, tolerance[0])
    low[1:] = 0.0  # who sends little harms nobody, and may have to inherit much
    outside = ~scope.may_lead
    low[:, outside], high[:, outside] = -np.inf, np.inf
    row, rows = work.state.partitions["row"][:-1], len(work.state.topic_counts)
    led_by_topic = np.bincount(np.maximum(row, 0)[row >= 0], minlength=rows)
    if model.rest is not None:
        led_by_topic = led_by_topic + _led_in_rest(work, rows).sum(axis=1)
    even = np.ceil(led_by_topic / max(1, int(scope.may_lead.sum())))
    fail = [number for number, one in enumerate(resources) if one in FAILOVER]
    if "failover" not in tolerances or model.brokers > MOST_BROKERS or scope.may_lead.sum() < 2:
        fail = []
    growth, growth_by_rack = _growth(
        model.rack, part[fail], total[fail], [_survivor(tolerances, resources[n]) for n in fail]
    )
    least, least_by_rack = _least(model.rack, scope.may_lead, high[fail], [resources[number] for number in fail])
    leading = Leading(
        offsets=layout.offsets,
        broker=layout.broker,
        may_lead=electable(work, layout),
        movable=movable,
        weight=weight,
        base=base,
        load=np.empty_like(base),
        low=low,
        high=high,
        unit=np.sqrt(counts) / np.maximum(share * tolerance[:, None], 1e-3),
        ceiling=np.array([ceiling(model, one) for one in resources]),
        row=row,
        topic_leaders=np.empty((rows, model.brokers), np.int32),
        topic_high=(even + np.maximum(1, np.floor(even * tolerances.get("topic_leaders", 0.0) / 2))).astype(np.int32),
        topic_weight=SCALE * request.weight_of("topic_leaders"),
        fail_weight=np.full(len(fail), SCALE * request.weight_of("failover")),
        fail_unit=1 / np.maximum(share * tolerance[:, None], 1e-3)[fail],
        leader=layout.broker[layout.offsets[:-1]],
        rack=model.rack,
        inherited=np.empty((model.brokers, model.brokers, len(fail)), np.float32),
        inherited_by_rack=np.empty((len(fail), work.state.racks, model.brokers)),
        growth=growth,
        growth_by_rack=growth_by_rack,
        part=part[fail],
        least=least,
        least_by_rack=least_by_rack,
    )
    _count(work, leading)
    return leading


def _count(work: Workspace, leading: Leading) -> None:
    """Count all partitions, and what others add that are not in the model."""
    count_all(leading)
    if work.model.rest is None:
        return
    leading.topic_leaders[:] += _led_in_rest(work, len(leading.topic_leaders))
    for name, table in work.model.rest.inherited.items():
        group, _, resource = name.partition(" ")
        number = [str(one) for one in FAILOVER].index(resource)
        if number < len(leading.fail_weight) and group == "broker":
            leading.inherited[:, :, number] += table.astype(np.float32)
        elif number < len(leading.fail_weight):
            leading.inherited_by_rack[number] += table


def _led_in_rest(work: Workspace, rows: int) -> NDArray[np.int32]:
    """By watched topic and broker: how many partitions it leads that are not in the model."""
    led = np.zeros((rows, work.model.brokers), np.int32)
    if work.model.rest is not None:
        places, topics = work.model.rest.topics.within(work.model)
        row = np.full(len(work.model.topics), -1)
        row[work.model.topic] = work.state.partitions["row"][:-1]
        led[row[places][row[places] >= 0]] = topics.leaders[row[places] >= 0]
    return led


def _survivor(tolerances: dict[str, float], resource: Resource) -> float:
    """What a survivor may have over its share."""
    return 1 + FAILOVER[resource] * tolerances["failover"]


def _part(work: Workspace, resource: Resource) -> Floats:
    """By broker: its part of a resource, 0 for those that may not lead; one that is not known counts as the average."""
    part = np.nan_to_num(weights(work.model, resource), nan=1.0)
    return np.where(work.scope.may_lead, part, 0.0)


def _growth(rack: NDArray[np.int32], part: Floats, total: Floats, factor: list[float]) -> tuple[Floats, Floats]:
    """By load and what dies: what all survivors may have then, over the sum of their parts."""
    racks = int(max(rack.max(initial=0), 0)) + 1
    whole = part.sum(axis=1, keepdims=True)
    in_rack = np.array([np.bincount(np.maximum(rack, 0), one, minlength=racks) for one in part]).reshape(-1, racks)
    allowed = np.array(factor).reshape(-1, 1) * total
    with np.errstate(divide="ignore", invalid="ignore"):
        return allowed / np.maximum(whole - part, 0), allowed / np.maximum(whole - in_rack, 0)


def _least(rack: NDArray[np.int32], may_lead: Bools, high: Floats, resources: list[Resource]) -> tuple[Floats, Floats]:
    """By load and what dies: an even part of what it may lead, in whole leaders, which nobody can do without."""
    racks = int(max(rack.max(initial=0), 0)) + 1
    least, by_rack = np.zeros((len(resources), len(rack))), np.zeros((len(resources), racks))
    in_rack = np.bincount(np.maximum(rack, 0)[may_lead], minlength=racks)
    everyone = int(may_lead.sum())
    for number, one in enumerate(resources):
        if one is Resource.LEADERS:
            led = np.where(may_lead, high[number], 0.0)
            least[number] = np.ceil(led / max(1, everyone - 1))
            of_rack = np.bincount(np.maximum(rack, 0), led, minlength=racks)
            by_rack[number] = np.ceil(of_rack / np.maximum(1, everyone - in_rack))
    return least, by_rack
