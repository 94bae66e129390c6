"""Bring a layout into balance: the rounds around the kernel.

A round shifts bytes between brokers that are out of the band around their share, then evens out numbers of replicas
with the smallest ones, which may leave bytes a little uneven again; the next round mends that with what has been moved
already, which costs nothing more. The bands narrow from round to round. Where racks must keep their totals, because
each holds one copy of everything, brokers exchange only within their rack. Where sizes are coarse, single moves and
swaps follow. Leaders come last, since they are free.

The whole is repeated from where it ended until nothing improves, so that planning again after a plan finds nothing to
do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rebalance_lib.planner.compiled.even import even_out, polish
from rebalance_lib.planner.compiled.leader_rates import swap_leaders
from rebalance_lib.planner.compiled.settle import repair_racks
from rebalance_lib.planner.compiled.shift import shift
from rebalance_lib.planner.leaders import even_leaders
from rebalance_lib.planner.shares import Exchange, band, even_shares, exchange
from rebalance_lib.planner.workspace import Placement, Workspace, sum_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rebalance_lib.planner.request import Request

    Floats = NDArray[np.float64]

ROUNDS = 8
REPEATS = 30  # far more than it takes: each must leave less than the one before
SLACK = 0.002  # of a broker's share: bytes that may leave with replicas that leave for their number alone
LOOSE = 0.05  # how far bytes may be from their share while numbers are evened out, halved from round to round
FINER = 0.3  # of the tolerance: once data moves, it may as well end nearer to the shares
FEW_LEADERS = 0.05  # of a broker's share of leaders
RATE_TOLERANCE = 0.1  # rates are estimates: a finer band would be noise
LEAST_GAIN = 0.1  # of the unevenness: what a pass must do away with, to be worth its moves
SPENT = 0.02  # of a byte budget: what is left is too little for another round
POLISH_SLOTS = 60_000  # beyond, there are enough sizes to choose from
POLISH_WORK = 30_000_000


@dataclass(frozen=True, eq=False)
class Shares:
    """Each broker's fair share of what is balanced."""

    bytes: Floats
    replicas: Floats
    leaders: Floats
    write_rate: Floats | None


def shares_of(work: Workspace, *, fair: bool = False) -> Shares:
    """What each broker should hold of the load on brokers that stay, and of replicas that still need a place.

    Fair shares do not ask what may leave or come, so that they stay the same whatever moves.
    """
    model, scope, loads = work.model, work.scope, work.loads
    stays = model.alive & ~scope.leaves
    weights = np.where(stays, model.weight, 0.0)
    size = model.size.astype(np.float64)
    fixed_broker, fixed_bytes = work.immovable
    arriving = work.homeless

    def split(load: Any, immovable: Any, of_copy: Floats) -> Floats:
        keeps = np.where(scope.gives, immovable, load)
        return even_shares(
            float(load[stays].sum()) + float(of_copy[arriving].sum()),
            weights,
            np.maximum(model.rack, 0),
            _rack_limits(work, of_copy, stays),
            at_least=None if fair else np.where(stays, keeps, 0).astype(np.float64),
            at_most=None if fair else np.where(scope.takes, np.inf, load).astype(np.float64),
        )

    rate = None
    if model.write_rate is not None:
        rate = split(rate_by_broker(work), np.zeros(model.brokers), model.write_rate)
    return Shares(
        bytes=split(loads["bytes"], sum_by(fixed_broker, fixed_bytes, model.brokers), size),
        replicas=split(loads["replicas"], np.bincount(fixed_broker, minlength=model.brokers), np.ones_like(size)),
        leaders=leader_shares(work, weights, np.where(scope.takes, np.inf, loads["replicas"])),
        write_rate=rate,
    )


def rebalance(work: Workspace) -> Placement:
    """A workspace brought into balance, as far as the budgets go.

    A pass looks at nothing but where replicas and leaders are, and the last one changes nothing: so planning again,
    from where the plan leads to, begins with a pass that changes nothing. Every pass but the last one lessens crowded
    racks, unevenness or leaders too many or too few, in this order, so that there is a last one.
    """
    limited = work.request.limited
    for _ in range(REPEATS):
        start, leader = work.layout, work.leader
        placement, settled = _pass(work, limited)
        if settled or (placement.layout.is_like(start) and np.array_equal(placement.leader, leader)):
            break
        work = work.resumed(placement.layout, placement.leader)
    return placement


def _pass(work: Workspace, limited: bool) -> tuple[Placement, bool]:
    """Repair racks, level loads if that gains enough, and even out leaders; whether there is no use in another pass.

    The workspace is used up by it.
    """
    shares = shares_of(work)
    repaired, _refused = repair_racks(*work.arrays, work.order, whole(shares.bytes))
    if repaired:
        shares = shares_of(work)
    uneven = unevenness(work, shares)
    if uneven > 0:
        # What gains too little is not begun: it would be moved for nothing. The gain is measured by fair shares: where
        # data flows one way only, the others drift with every pass.
        fair = shares_of(work, fair=True)
        start, before = work.layout, unevenness(work, fair)
        level(work, shares)
        polish_few(work, shares)
        if before - unevenness(work, fair) <= uneven * least_gain(work.request):
            work = work.resumed(start, work.leader)
    placement = Placement.of(work, lead(work))
    return placement, limited or _settled(work, placement)


def least_gain(request: Request) -> float:
    """Which part of the unevenness must go, for moves to be worth it: with a budget that is too small, any."""
    return 0.0 if request.limited else LEAST_GAIN


def _settled(work: Workspace, placement: Placement) -> bool:
    """Whether nothing is out of its band, so that another pass, which costs time, would change nothing.

    What leaders send is not looked at: where it is known, another pass tells.
    """
    if work.model.write_rate is not None:
        return False
    low, high = band(_leading(work), work.request.tolerance)
    leads = np.bincount(placement.leader[placement.leader >= 0], minlength=work.model.brokers)
    if np.any(leads < low) or np.any(leads > high):
        return False
    shares = shares_of(work)
    return unevenness(work, shares) == 0 and repair_racks(*work.arrays, work.order, whole(shares.bytes))[0] == 0


def ideal_bytes(work: Workspace) -> int:
    """How many bytes even loads ask for, before any replica is looked at; 0 within the tolerance."""
    return _exchange(work, shares_of(work).bytes, 0, work.request.tolerance).amount


def lead(work: Workspace, movable: NDArray[np.bool_] | None = None) -> NDArray[np.int32]:
    """Who leads each partition of a workspace, changed only where it is movable, all in scope if that is not given.

    What excluded brokers lead they keep, and they are given nothing else to lead.
    """
    layout = work.layout
    excluded = work.scope.excluded
    weights = np.where(work.scope.may_lead, work.model.weight, 0.0)
    changeable = (work.scope.movable if movable is None else movable).astype(np.uint8)
    if excluded.any():
        changeable[excluded[work.leader] & (work.leader >= 0)] = 0
    may_lead = work.scope.may_lead.astype(np.uint8)
    leader = even_leaders(
        offsets=layout.offsets,
        broker=layout.broker,
        leader=work.leader,
        movable=changeable,
        may_lead=may_lead,
        share=_leading(work),
        tolerance=work.request.tolerance,
    )
    if work.model.write_rate is not None and weights.any():
        # What is written goes out to each follower, and to one reader: more about readers is not known.
        sent = work.model.write_rate * work.lengths
        led = leader >= 0
        load = np.bincount(leader[led], sent[led], minlength=work.model.brokers)
        share = weights * load[~excluded].sum() / weights.sum()
        high = share * (1 + RATE_TOLERANCE)
        swap_leaders(layout.offsets, layout.broker, leader, changeable, may_lead, sent, high, load, len(sent))
    return leader


def level(work: Workspace, shares: Shares) -> None:
    """Bring bytes, replicas and rates within their bands; leaders are left for the end."""
    finer = False
    budget = work.left[0]
    for number in range(ROUNDS):
        moved = _shift_bytes(work, shares, number, work.request.tolerance * (FINER if finer else 1))
        if work.left[0] < SPENT * budget:
            return
        finer = finer or moved > 0
        moved += _even_replicas(work, shares, max(work.request.tolerance, LOOSE / 2**number))
        if not moved:
            break
    _even_replicas(work, shares, work.request.tolerance)
    if shares.write_rate is not None:
        _even_rates(work, shares)


def polish_few(work: Workspace, shares: Shares) -> None:
    """Single moves and swaps, where there are few sizes to choose from."""
    if len(work.slots) <= POLISH_SLOTS:
        polish(*work.arrays, shares.bytes, work.request.tolerance, 4 * work.model.brokers + 100, POLISH_WORK)


def _shift_bytes(work: Workspace, shares: Shares, number: int, tolerance: float) -> int:
    loads = work.loads
    wanted = _exchange(work, shares.bytes, number, tolerance)
    amount, left = wanted.amount, int(work.left[0])
    if not amount:
        return 0
    part = 1.0
    if amount > left:
        # A part of the way: from the fullest brokers to the emptiest ones, not a little of everybody.
        part = left / amount
        wanted = _exchange(work, shares.bytes, number, tolerance, part)
    surplus = np.rint((loads["replicas"] - shares.replicas) * part).astype(np.int64)
    # A few leaders too many are handed to followers where they are: moving their replicas would force the choice.
    spare = np.where(loads["leads"] > shares.leaders * (1 + FEW_LEADERS), loads["leads"] - shares.leaders, 0)
    leaders = np.rint(spare * part).astype(np.int64)
    slack = (shares.bytes * SLACK).astype(np.int64)
    within_racks = not _crosses_racks(work)
    seed = work.request.seed
    moved: int = shift(
        *work.arrays, work.order, wanted.give, wanted.take, surplus, -surplus, leaders, slack, within_racks, seed
    )
    return moved


def _exchange(work: Workspace, share: Floats, number: int, tolerance: float, part: float = 1.0) -> Exchange:
    """What brokers give and take: within racks where these keep their totals, else over all of them in turns."""
    load = work.loads["bytes"].astype(np.float64)
    gives, takes = work.scope.gives & (share > 0), work.scope.takes
    within_racks = not _crosses_racks(work)
    if not within_racks and number % 2 == 0:
        groups = [np.ones(len(load), np.bool_)]
    else:
        groups = [work.model.rack == rack for rack in range(work.racks)]
    give, take = np.zeros(len(load), np.int64), np.zeros(len(load), np.int64)
    for group in groups:
        total = share[group].sum()
        scale = load[group].sum() / total if total > 0 and not within_racks and len(groups) > 1 else 1.0
        wanted = exchange(load, share * scale, tolerance, givers=gives & group, takers=takes & group)
        if part < 1:
            wanted = exchange(
                load, share * scale, tolerance, givers=gives & group, takers=takes & group, limit=part * wanted.amount
            )
        give += wanted.give
        take += wanted.take
    return Exchange(give, take)


def _crosses_racks(work: Workspace) -> bool:
    """Whether replicas may leave their rack: not if every movable partition has exactly one in each."""
    if work.racks < 2:
        return False
    lengths = work.lengths[work.partitions["movable"][:-1] > 0]
    return bool(np.any(lengths != work.racks))


def _even_replicas(work: Workspace, shares: Shares, loose: float) -> int:
    tolerance = work.request.tolerance
    low, high = band(shares.replicas, tolerance)
    count = work.loads["replicas"]
    stays = shares.replicas > 0
    if not np.any((count > high) & stays) and not np.any((count < low) & stays & work.scope.takes):
        return 0
    return int(
        even_out(
            *work.arrays,
            work.order[::-1],
            np.ones(work.model.partitions),
            count.astype(np.float64),
            low,
            high,
            whole(shares.bytes * (1 - loose)),
            whole(shares.bytes * (1 + loose)),
            np.zeros(len(count), np.int64),
            np.full(len(count), np.iinfo(np.int64).max),
            band(shares.leaders, tolerance)[1],
        )
    )


def _even_rates(work: Workspace, shares: Shares) -> None:
    rate, share = work.model.write_rate, shares.write_rate
    if rate is None or share is None:
        return
    load = rate_by_broker(work)
    low, high = share * (1 - RATE_TOLERANCE), share * (1 + RATE_TOLERANCE)
    if not np.any(load > high) and not np.any(load < low):
        return
    tolerance = work.request.tolerance
    fewest, most = band(shares.replicas, tolerance)
    even_out(
        *work.arrays,
        np.argsort(-rate / np.maximum(1, work.model.size), kind="stable"),
        rate,
        load,
        low,
        high,
        whole(shares.bytes * (1 - tolerance)),
        whole(shares.bytes * (1 + tolerance)),
        fewest.astype(np.int64),
        most.astype(np.int64),
        shares.leaders,
    )


def _leading(work: Workspace) -> Floats:
    """Each broker's share of leaders, as replicas are now."""
    weights = np.where(work.scope.may_lead, work.model.weight, 0.0)
    return leader_shares(work, weights, work.loads["replicas"].astype(np.float64))


def leader_shares(work: Workspace, weights: Floats, at_most: Floats) -> Floats:
    """Racks have no say in who leads, but nobody can lead more partitions than it has replicas of."""
    everyone = np.zeros(work.model.brokers, np.int32)
    kept = np.where(work.scope.excluded, work.loads["leads"], 0).astype(np.float64)
    at_most = np.where(work.scope.excluded, kept, at_most)
    total = float(work.model.partitions)
    return even_shares(total, weights, everyone, np.array([np.inf]), at_least=kept, at_most=at_most)


def rate_by_broker(work: Workspace) -> Any:
    """The write rates of the replicas that each broker holds."""
    rate = work.model.write_rate
    placed = work.slots["broker"] >= 0
    of_slot = np.repeat(rate if rate is not None else np.zeros(work.model.partitions), work.lengths)
    return np.bincount(work.slots["broker"][placed], of_slot[placed], minlength=work.model.brokers)


def _rack_limits(work: Workspace, of_copy: Floats, stays: NDArray[np.bool_]) -> Floats:
    """The most that each rack can hold if every partition is spread over racks as well as can be."""
    racks = work.racks
    in_rack = np.bincount(np.maximum(work.model.rack, 0)[stays], minlength=racks)
    limits = np.zeros(racks)
    for factor, load in enumerate(np.bincount(work.lengths, of_copy)):
        copies = next((m for m in range(1, factor + 1) if np.minimum(in_rack, m).sum() >= factor), factor)
        limits += load * np.minimum(in_rack, copies)
    return limits


def whole(values: Floats) -> NDArray[np.int64]:
    """Whole bytes."""
    return np.minimum(values, float(1 << 62)).astype(np.int64)


def _excess(work: Workspace, load: NDArray[Any], share: Floats, low: Floats, high: Floats) -> float:
    """How far loads are out of their bands, in shares: too much at who may give, too little at who may take."""
    above = np.where(work.scope.gives, np.maximum(0, load - high), 0)
    below = np.where(work.scope.takes, np.maximum(0, low - load), 0)
    return float(((above + below) / np.maximum(share, 1.0))[share > 0].sum())


def unevenness(work: Workspace, shares: Shares) -> float:
    """How far a workspace is out of its bands, bytes before replicas; leaders are as even as these allow."""
    held, replicas = work.loads["bytes"], work.loads["replicas"]
    tolerance = work.request.tolerance
    off = _excess(work, held, shares.bytes, shares.bytes * (1 - tolerance), shares.bytes * (1 + tolerance))
    off = 10 * off + _excess(work, replicas, shares.replicas, *band(shares.replicas, tolerance))
    if work.model.write_rate is None or shares.write_rate is None:
        return off
    rate = rate_by_broker(work)
    edges = shares.write_rate * (1 - RATE_TOLERANCE), shares.write_rate * (1 + RATE_TOLERANCE)
    return off + _excess(work, rate, shares.write_rate, *edges)
