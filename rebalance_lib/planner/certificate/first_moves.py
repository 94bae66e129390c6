"""Moves for a linear program to begin with: some that together bring every load about where it shall be.

Without them, the program of `fractional` begins with nothing but penalties: all brokers that lack a load look alike
then, so that each round adds moves from one broker to one other, and most rounds pass before all bands are reached. Of
10,000 partitions on 30 brokers, it takes 2 rounds instead of 24, and a tenth of the time.

Algorithm:
    Load by load, each broker that has too much gives the replicas that carry the most of the load by their bytes, the
    larger ones first, until they carry more than it must give. Each broker that lacks gets a part of these moves
    according to what it lacks, by the golden ratio, so that any run of moves is spread alike. Where only one side is
    outside of its bands, those on the other side give or take according to what their bands leave.

Example:
    Broker 0 has 6 bytes too much, in replicas of 5, 4, 2 and 1 bytes; brokers 1 and 2 lack 3 each. With half as much
    again, 9 bytes are to be chosen from: the replicas of 5 and 4 bytes. The first goes to whoever is at 0 of what is
    lacking, broker 1, the second to whoever is at 0.618 of it, broker 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rebalance_lib.planner.certificate.fractional import FractionalMoves
    from rebalance_lib.planner.certificate.problem import Flags, Floats, Ints

COVER = 1.5  # times what must go is chosen from; 1.1 takes half as many rounds more, 0.8 six times as many
GOLDEN = 0.6180339887498949
TINY = 1e-12  # of an average broker: what an empty replica counts as where bytes divide


def first_moves(moves: FractionalMoves) -> tuple[Ints, Ints]:
    """Slots as `FractionalMoves` counts them, each once, and the broker of the group that each goes to."""
    free = moves.placed & ~moves.must_leave  # the program has moves of the others from the start
    slot, broker = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    change = np.zeros(moves.low.shape)  # what the moves chosen so far come to
    for number in range(moves.loads.shape[1]):
        give, take = _amounts(*(edge[:, number] - change[:, number] for edge in (moves.low, moves.high)))
        if not give.any() or not take.any():
            continue
        chosen = _given(moves, number, give, free)
        part = np.arange(len(chosen)) * GOLDEN % 1.0
        target = np.searchsorted(np.cumsum(take) / take.sum(), part, side="right").clip(max=len(take) - 1)
        possible = ~moves.closed[chosen, target]
        slot.append(chosen[possible])
        broker.append(target[possible])
        free[slot[-1]] = False
        np.add.at(change, broker[-1], moves.loads[slot[-1]] / COVER)
        np.subtract.at(change, moves.source[slot[-1]], moves.loads[slot[-1]] / COVER)
    return np.concatenate(slot), np.concatenate(broker)


def _amounts(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """By broker: what it gives and takes of a load, for changes between two limits: as much is given as is taken."""
    give, take = np.maximum(0.0, -high), np.maximum(0.0, low)
    total = max(give.sum(), take.sum())
    may_give, may_take = (np.where(np.isfinite(edge), np.maximum(0.0, edge), 0.0) for edge in (-low, high))
    return _filled_up(give, may_give, total), _filled_up(take, may_take, total)


def _filled_up(amount: Floats, more: Floats, total: float) -> Floats:
    """The amounts, and of those that have none as much more as the total lacks, if they have it."""
    more = np.where(amount > 0, 0.0, more)
    if more.any():
        amount = amount + more * min(1.0, (total - amount.sum()) / more.sum())
    return amount


def _given(moves: FractionalMoves, number: int, give: Floats, free: Flags) -> Ints:
    """The slots of each broker that carry the most of a load by their bytes, as many as what it gives asks for."""
    load = moves.loads[:, number]
    by_byte = load / np.maximum(moves.sizes, TINY)  # both are counted in what an average broker has
    slots = np.flatnonzero(free & (load > 0) & (give[moves.source] > 0))
    slots = slots[np.lexsort((-moves.sizes[slots], -np.round(by_byte[slots], 6), moves.source[slots]))]
    source = moves.source[slots]
    before = np.cumsum(load[slots]) - load[slots]
    before = before - before[np.searchsorted(source, source)]
    chosen: Ints = slots[before < COVER * give[source]]
    return chosen
