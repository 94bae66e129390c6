"""Bring a layout into balance: each pass repairs racks, levels loads, and puts lists in order.

The bulk of the bytes goes at once from brokers above their share to brokers below theirs, see ``compiled.shift``. Then
replicas move downhill for all resources together, from the moves that gain the most by the byte on, see
``compiled.descend``. Where racks must keep their totals, because each holds one copy of everything, brokers exchange
only within their rack. Where sizes are coarse, single moves and swaps follow. Leaders come last, since they are free.

A pass is repeated from where it ended until nothing improves, so that planning again after a plan finds nothing to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner.compiled.descend import Aim, Price, descend
from rebalance_lib.planner.compiled.even import even_out
from rebalance_lib.planner.compiled.polish import polish
from rebalance_lib.planner.compiled.settle import repair_racks
from rebalance_lib.planner.compiled.shift import Wanted, shift
from rebalance_lib.planner.goals import GOALS, View
from rebalance_lib.planner.order import leader_shares, order_lists
from rebalance_lib.planner.resources import LED, Resource, weights, with_unknown
from rebalance_lib.planner.shares import Exchange, band, even_shares, exchange
from rebalance_lib.planner.workspace import Layout, Placement, Workspace, to_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.request import Request

    Floats = NDArray[np.float64]

REPEATS = 30  # far more than it takes: each must leave less than the one before
SLACK = 0.002  # of a broker's share: bytes that may leave with replicas that leave for their number alone
FEW_LEADERS = 0.05  # of a broker's share of leaders
FIRST_PRICE, LAST_PRICE, CHEAPER = 40.0, 0.002, 4.0
"""What a byte costs first, last, and how much less in the next pass: how far apart, in shares, two brokers must be for
bytes to move for their own sake. Starting at 0.6 instead of 40 copies a sixth more for the same balance (gen.py skew,
100,000 partitions, with rates and capacities); dividing by three instead of four copies 0.05 % less and takes 4 %
longer, by eight copies 0.5 % more and takes 20 % less.
"""
AWAY = 0.02
"""Of the price is what a replica costs that has moved already, where there are many: so those that would gain little
are not weighed at the first prices, which takes half of the time and copies 0.2 % less than at no cost (gen.py skew,
1,000,000 partitions, with rates and capacities); 0.1 is no faster, and moves 1 % more replicas. Where there are few,
each that moves on may be the one that is needed.
"""
ROUNDS = 8
FINER = 0.3  # of the tolerance: once data moves, it may as well end nearer to the shares
FINEST, INNER = 0.1, 0.9  # of the tolerance: where moves downhill end for bytes, and for all else
SHIFTED = (Resource.DISK, Resource.REPLICAS)
LOOSE = 0.05  # how far bytes may be from their share while numbers are evened out, halved from round to round
LEAST_TOLERANCE = 1e-4  # what a tolerance of 0 counts as where deviations are measured in tolerances
ROUNDING = 1e-9
LEAST_NEARER = 1e-3  # of a measure: what an earlier goal must have gained, for a later one to pay for it
LEAST_GAIN = 0.1  # of the unevenness: what a pass must do away with, to be worth its moves
OF_BYTES = 10  # times as much as others do bytes count in what a pass must gain: they are what it costs
SPENT = 0.02  # of a byte budget: what is left is too little for another round
FEW_SLOTS = 60_000  # beyond, there are enough sizes to choose from
POLISH_WORK = 30_000_000


Shares = dict[Resource, "Floats"]
"""By resource and broker: the fair share."""


def shares_of(work: Workspace, *, fair: bool = False) -> Shares:
    """What each broker should hold of the load on brokers that stay, and of replicas that still need a place.

    Fair shares do not ask what may leave or come, so that they stay the same whatever moves.
    """
    shares = {one: _share(work, number, fair=fair) for number, one in enumerate(work.resources)}
    at_most = np.where(work.scope.takes, np.inf, work.brokers["replicas"])
    shares[Resource.LEADERS] = leader_shares(work, work.scope.may_lead, at_most)
    return shares


def _share(work: Workspace, number: int, *, fair: bool) -> Floats:
    """The shares of a resource that follows from where replicas are."""
    model, scope, load, of_copy = work.model, work.scope, work.state.load[number], work.state.weight[number]
    stays = model.alive & ~scope.leaves
    part, keeps = with_unknown(np.where(stays, weights(model, work.resources[number]), 0.0), load)
    at_least, at_most = np.zeros(model.brokers), np.full(model.brokers, np.inf)
    if not fair:
        at_least = np.where(scope.gives, work.immovable(number), load)
        at_most = np.where(scope.takes, np.inf, load)
    at_least, at_most = np.where(keeps, load, (at_least, at_most))
    at_least = np.where(stays, at_least, 0.0)
    total, limits = float(load[stays].sum()) + float(of_copy[work.unassigned].sum()), _rack_limits(work, number, stays)
    if model.rest is not None:
        total = min(total, float(limits.sum()))  # parts of whole numbers are rounded
    return even_shares(
        total,
        part,
        np.maximum(model.rack, 0),
        limits,
        at_least=at_least,
        at_most=at_most,
    )


def rebalance(work: Workspace) -> Placement:
    """A workspace brought into balance, as far as the budgets go.

    If moves make a goal of leaders worse that comes before theirs in the list, they are left out, and what is then left
    to do is looked at once more from there, so that planning again finds nothing.
    """
    kept = Placement(work.model, work.layout, work.leader)
    for attempt in range(REPEATS):
        found = _passes(work)
        worse = _leaders_worse(work, kept.layout, found.layout)
        if worse is None:
            break
        narrower = replace(work.request, goals=work.request.goals_up_to(worse))
        found = _passes(replace(work.resumed(kept.layout, kept.leader), request=narrower))
        # The first workspace may know more than its layout: what a mode has moved already, and from where.
        if work.request.limited or (attempt and found.layout.is_like(kept.layout)):
            break
        kept, work = found, work.resumed(found.layout, found.leader)
    return found


def _leaders_worse(work: Workspace, before: Layout, after: Layout) -> str | None:
    """The first goal of leaders that is further from being met than before, of those before a goal of replicas."""
    names = list(work.request.goal_tolerances)
    last = max((names.index(one) for one in work.resources if one in names), default=-1)
    had, has = (View(work.model, work.scope, work.request, layout) for layout in (before, after))
    for goal in (GOALS[name] for name in names[:last] if name in LED):
        least, most = had.measure(goal), has.measure(goal)
        if least is not None and most is not None and most > max(least, goal.limit(has)) * (1 + ROUNDING):
            return goal.name
    return None


def _passes(work: Workspace) -> Placement:
    """Passes until one changes nothing.

    A pass looks at nothing but where replicas and leaders are, and the last one changes nothing: so planning again,
    from where the plan leads to, begins with a pass that changes nothing. Every pass but the last one lessens crowded
    racks, unevenness or leaders too many or too few, in this order, so that there is a last one.
    """
    work = _leveled(work)
    placement = order_lists(work)
    for _ in range(REPEATS):
        if work.request.limited or _settled(work, placement):
            break
        work = _leveled(work.resumed(placement.layout, placement.leader))
        if work.layout.is_like(placement.layout):
            break  # lists are in order already
        placement = order_lists(work)
    return placement


def _leveled(work: Workspace) -> Workspace:
    """Racks repaired, and loads levelled as often as that gains enough; the workspace is used up by it.

    What has left a disk makes space there for the next time only.
    """
    for _ in range(REPEATS):
        work, again = level_once(work)
        if not again:
            break
    return work


def level_once(work: Workspace) -> tuple[Workspace, bool]:
    """Racks repaired, and loads levelled if that gains enough; and whether it may gain more to do it again."""
    shares = shares_of(work)
    repaired, _refused = repair_racks(work.state, work.order, to_int(shares[Resource.DISK]))
    if repaired:
        shares = shares_of(work)
    uneven = unevenness(work, shares)
    if uneven == 0:
        return work, False
    # What gains too little is not begun: it would be moved for nothing. The gain is measured by fair shares: where
    # data flows one way only, the others drift with every pass.
    start, fair = work.layout, shares_of(work, fair=True)
    before = unevenness(work, fair)
    work, fair = _level_in_order(work, shares, fair)
    gained, layout = before - unevenness(work, fair), work.settled_layout()
    if gained <= uneven * least_gain(work.request) or layout is None:
        return work.resumed(start, work.leader), False
    if work.request.limited:
        return work, False  # the budget is for all of it
    return work.resumed(layout, work.leader), True


def _level_in_order(work: Workspace, shares: Shares, fair: Shares) -> tuple[Workspace, Shares]:
    """Level; if that makes a goal worse for the sake of later ones, once more from the same start without these.

    Bytes come first in `level`, whatever the list of goals: they are what it costs. `fair` are the fair shares before;
    those after come with the workspace.
    """
    start, request, budget, had = work.layout, work.request, work.state.budget.copy(), _most(work, fair)
    while True:
        level(work, shares)
        polish_few(work, shares)
        fair = shares_of(work, fair=True)
        worse = _made_worse(had, _most(work, fair))
        if worse is None:
            return replace(work, request=request), fair
        narrower = replace(work.request, goals=work.request.goals_up_to(worse))
        work = replace(work.resumed(start, work.leader), request=narrower)
        work.state.budget[:] = budget


def _most(work: Workspace, shares: Shares) -> dict[Resource, tuple[float, bool]]:
    """By goal, in their order: the most that a broker has over its share, and whether all are within their bands."""
    found = {}
    for one in sorted(work.resources, key=work.request.weight_of, reverse=True):
        share, load, (_, high) = shares[one], work.load(one), bands(work, shares, one)
        if work.request.weight_of(one) and share.any():
            found[one] = float((load[share > 0] / share[share > 0]).max()), bool(np.all(load <= high, where=share > 0))
    return found


def _made_worse(had: dict[Resource, tuple[float, bool]], has: dict[Resource, tuple[float, bool]]) -> Resource | None:
    """The first goal but the last that is further from its bands than before, while none before it is nearer to its."""
    for one in list(has)[:-1]:
        (before, was_within), (after, is_within) = had[one], has[one]
        if not is_within and after > before * (1 + ROUNDING):
            return one
        if not was_within and after < before * (1 - LEAST_NEARER):
            return None
    return None


def least_gain(request: Request) -> float:
    """Which part of the unevenness must go, for moves to be worth it: with a budget that is too small, any."""
    return 0.0 if request.limited else LEAST_GAIN


def _settled(work: Workspace, placement: Placement) -> bool:
    """Whether nothing is out of its band, so that another pass, which costs time, would change nothing."""
    share = leader_shares(work, work.scope.may_lead, work.load(Resource.REPLICAS))
    low, high = band(share, work.request.tolerance_of(Resource.LEADERS))
    leads = np.bincount(placement.leader[placement.leader >= 0], minlength=work.model.brokers)
    if np.any(leads < low) or np.any(leads > high):
        return False
    shares = shares_of(work)
    return unevenness(work, shares) == 0 and repair_racks(work.state, work.order, to_int(shares[Resource.DISK]))[0] == 0


def ideal_bytes(work: Workspace) -> int:
    """How many bytes even loads ask for, before any replica is looked at; 0 within the tolerance."""
    return _exchange(work, shares_of(work)[Resource.DISK], work.request.tolerance_of(Resource.DISK)).amount


def level(work: Workspace, shares: Shares) -> None:
    """Bring what follows from where replicas are within its bands; leaders are left for the end.

    A round shifts bytes, then evens out numbers of replicas with the smallest ones, which may leave bytes a little
    uneven again; the next round corrects that with what has been moved already, which costs nothing more. What is then
    still outside, and all other resources, is left to moves downhill.
    """
    tolerance, finer = work.request.tolerance_of(Resource.DISK), 1.0
    budget = work.state.budget[0]
    for number in range(ROUNDS):
        moved = _shift_bytes(work, shares, tolerance * finer)
        if work.state.budget[0] < SPENT * budget:
            return
        if len(work.resources) > len(SHIFTED):
            break
        finer = FINER if moved else finer
        moved += _even_replicas(work, shares, max(tolerance, LOOSE / 2**number))
        if not moved:
            break
    _even_replicas(work, shares, tolerance)
    if unevenness(work, shares) > 0:
        _move_downhill(work, shares)


def _move_downhill(work: Workspace, shares: Shares) -> None:
    """Let replicas move at a price that comes down until all are within the aim, or no move is worth the last price."""
    aim = _aim(work, shares)
    tolerance, share = work.request.tolerance_of(Resource.DISK), shares[Resource.DISK]
    most_leaders = bands(work, shares, Resource.LEADERS)[1]
    byte = 2 / (max(1.0, share[share > 0].mean()) * max(tolerance, LEAST_TOLERANCE) ** 2) if share.any() else 0.0
    away = AWAY if len(work.state.slots) > FEW_SLOTS else 0.0
    price, uneven = FIRST_PRICE, np.inf
    while _outside(work, aim):
        descend(work.state, work.order, aim, Price(price * byte, away * price * byte), most_leaders)
        before, uneven = uneven, unevenness(work, shares)
        if price == LAST_PRICE and uneven >= (1 - LEAST_GAIN) * before:
            break
        price = max(LAST_PRICE, price / CHEAPER)


def _aim(work: Workspace, shares: Shares) -> Aim:
    """Where brokers shall be: well within their bands for bytes, since once data moves it may as well end there."""
    low, high, unit = (np.empty_like(work.state.load) for _ in range(3))
    for number, one in enumerate(work.resources):
        low[number], high[number] = bands(work, shares, one, FINEST if one is Resource.DISK else INNER)
        tolerance = max(work.request.tolerance_of(one), LEAST_TOLERANCE)
        unit[number] = np.sqrt(work.request.weight_of(one)) / np.maximum(shares[one] * tolerance, 1e-3)
    return Aim(low, high, unit)


def _outside(work: Workspace, aim: Aim) -> bool:
    """Whether a broker that may give has too much, or one that may take too little."""
    counts = np.array([work.request.weight_of(one) > 0 for one in work.resources])
    load, scope = work.state.load[counts], work.scope
    aim = Aim(aim.low[counts], aim.high[counts], aim.unit[counts])
    return bool(np.any((load > aim.high) & scope.gives) or np.any((load < aim.low) & scope.takes))


def polish_few(work: Workspace, shares: Shares) -> None:
    """Single moves and swaps, where there are few sizes to choose from."""
    if len(work.state.slots) <= FEW_SLOTS and work.request.weight_of(Resource.DISK):
        tolerance = work.request.tolerance_of(Resource.DISK)
        polish(work.state, shares[Resource.DISK], tolerance, 4 * work.model.brokers + 100, POLISH_WORK)


def _shift_bytes(work: Workspace, shares: Shares, tolerance: float) -> int:
    share, brokers = shares[Resource.DISK], work.brokers
    wanted = _exchange(work, share, tolerance)
    amount, left = wanted.amount, int(work.state.budget[0])
    if not amount or not work.request.weight_of(Resource.DISK):
        return 0
    part = 1.0
    if amount > left:
        # A part of the way: from the fullest brokers to the emptiest ones, not a little of everybody.
        part = left / amount
        wanted = _exchange(work, share, tolerance, part)
    # A few leaders too many are handed to followers where they are: moving their replicas would force the choice.
    leads, even = brokers["leads"], shares[Resource.LEADERS]
    spare = np.where(leads > even * (1 + FEW_LEADERS), leads - even, 0)
    wanted_moves = Wanted(
        wanted.give,
        wanted.take,
        np.rint((brokers["replicas"] - shares[Resource.REPLICAS]) * part).astype(np.int64),
        np.rint(spare * part).astype(np.int64),
        (share * SLACK).astype(np.int64),
    )
    moved: int = shift(work.state, work.order, wanted_moves, not crosses_racks(work), work.request.seed)
    return moved


def _even_replicas(work: Workspace, shares: Shares, loose: float) -> int:
    if not work.request.weight_of(Resource.REPLICAS):
        return 0
    low, high = bands(work, shares, Resource.REPLICAS)
    count, stays = work.load(Resource.REPLICAS), shares[Resource.REPLICAS] > 0
    if not np.any((count > high) & stays) and not np.any((count < low) & stays & work.scope.takes):
        return 0
    share = shares[Resource.DISK]
    edges = share * (1 - loose), share * (1 + loose)
    if not work.request.weight_of(Resource.DISK):
        edges = np.full_like(share, -np.inf), np.full_like(share, np.inf)
    most_leaders = bands(work, shares, Resource.LEADERS)[1]
    moved: int = even_out(work.state, work.order[::-1], low, high, *edges, most_leaders)
    return moved


def _exchange(work: Workspace, share: Floats, tolerance: float, part: float = 1.0) -> Exchange:
    """What brokers give and take: within racks where these keep their totals, else over all of them in turns."""
    load = work.brokers["bytes"].astype(np.float64)
    gives, takes = work.scope.gives & (share > 0), work.scope.takes
    within_racks = not crosses_racks(work)
    groups = [np.ones(len(load), np.bool_)]
    if within_racks:
        groups = [work.model.rack == rack for rack in range(work.state.racks)]
    give, take = np.zeros(len(load), np.int64), np.zeros(len(load), np.int64)
    for group in groups:
        givers, takers = gives & group, takes & group
        wanted = exchange(load, share, tolerance, givers=givers, takers=takers)
        if part < 1:
            limit = part * wanted.amount
            wanted = exchange(load, share, tolerance, givers=givers, takers=takers, limit=limit)
        give += wanted.give
        take += wanted.take
    return Exchange(give, take)


def crosses_racks(work: Workspace) -> bool:
    """Whether replicas may leave their rack: not if every movable partition has exactly one in each."""
    if work.state.racks < 2:
        return False
    lengths = work.lengths[work.state.partitions["movable"][:-1] > 0]
    of_rest = set() if work.model.rest is None else work.model.rest.sums.movable_factors
    return bool(np.any(lengths != work.state.racks)) or bool(of_rest - {work.state.racks})


def bands(work: Workspace, shares: Shares, resource: Resource, part: float = 1.0) -> tuple[Floats, Floats]:
    """Between which loads each broker is near enough to its share, or which part of the way from it."""
    tolerance = part * work.request.tolerance_of(resource)
    share = shares[resource]
    if resource in {Resource.REPLICAS, Resource.LEADERS}:
        return band(share, tolerance)
    return share * (1 - tolerance), share * (1 + tolerance)


def _rack_limits(work: Workspace, number: int, stays: NDArray[np.bool_]) -> Floats:
    """The most that each rack can hold if every partition is spread over racks as well as can be."""
    racks = work.state.racks
    in_rack = np.bincount(np.maximum(work.model.rack, 0)[stays], minlength=racks)
    limits = np.zeros(racks)
    loads = np.bincount(work.lengths, work.state.weight[number])
    if work.model.rest is not None:
        of_rest = work.model.rest.sums.by_factor(work.resources[number])
        factors = max(len(loads), len(of_rest))
        loads = np.pad(loads, (0, factors - len(loads))) + np.pad(of_rest, (0, factors - len(of_rest)))
    for factor, load in enumerate(loads):
        copies = next((m for m in range(1, factor + 1) if np.minimum(in_rack, m).sum() >= factor), factor)
        limits += load * np.minimum(in_rack, copies)
    return limits


def _excess(work: Workspace, load: NDArray[Any], share: Floats, low: Floats, high: Floats) -> float:
    """How far loads are out of their bands, in shares: too much at who may give, too little at who may take."""
    above = np.where(work.scope.gives, np.maximum(0, load - high), 0)
    below = np.where(work.scope.takes, np.maximum(0, low - load), 0)
    return float(((above + below) / np.maximum(share, 1.0))[share > 0].sum())


def out_of_balance(work: Workspace) -> float:
    """The unevenness by fair shares, which follows from the layout alone: what lessens it never comes back.

    Shares of brokers whose capacity is not known change with what they have.
    """
    return unevenness(work, shares_of(work, fair=True))


def unevenness(work: Workspace, shares: Shares) -> float:
    """How far a workspace is out of its bands; leaders are as even as these allow."""
    off = 0.0
    for number, one in enumerate(work.resources):
        weight = work.request.weight_of(one) * (OF_BYTES if one is Resource.DISK else 1)
        off += weight * _excess(work, work.state.load[number], shares[one], *bands(work, shares, one))
    return off
