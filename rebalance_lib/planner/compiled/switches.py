"""One choice for each partition, switched one at a time until no load is above its target; see ``exact.switches``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebalance_lib.planner.compiled.cache import compiled, inlined

ABOVE, DEARER = (0.2, 0.2, 0.02), (3.0, 1.0, 1.0)
"""By seed, in turn: what it costs, in shares, that a load is above its target at all; and what such a load costs more
from a step on that gains nothing. Of 14 hard programs each had one that it was solved best by, in turn they left 0.23 %
in the mean to the best known, the first alone 0.27 %, the second 0.33 %, the third 0.56 %.
"""
NOISE = 0.3  # of a cost: how much chance there is in which switch is taken; without it, more steps gained nothing
TENURE, VARIED = 2, 5  # steps for which a switch is not taken back, and how much that varies
ROUNDING = 1e-9


class Columns(NamedTuple):
    """What there is to choose from, partition by partition, and the rows that each column adds to."""

    first: Any  # by partition: its first column; one more behind the last
    begin: Any  # by column: its first entry; one more behind the last
    row: Any  # by entry
    value: Any  # by entry


@inlined
def cost_of(over, price, above):
    """What a load costs that is so far over its target."""
    return price * (over + above) if over > ROUNDING else 0.0


@compiled
def bring_below(columns, chosen, over, work, seed):
    """Switch columns, in place, until no load is over its target; whether that was reached within the counted work.

    ``over`` has by row how far its load is above the target, and is kept up to date.
    """
    first, begin, row, value = columns
    above, dearer = ABOVE[seed % len(ABOVE)], DEARER[seed % len(DEARER)]
    price = np.ones(len(over))
    allowed_from = np.zeros(len(chosen), np.int64)
    chance = np.uint64(seed + 1)
    step = 0
    while work > 0:
        step += 1
        work -= len(over) + len(chosen)
        now = 0.0
        for r in range(len(over)):
            now += cost_of(over[r], price[r], above)
        if now == 0.0:
            return True
        best, best_partition, least, least_cost = -1, -1, np.inf, np.inf
        for p in range(len(chosen)):
            if allowed_from[p] > step or first[p + 1] - first[p] < 2:
                continue
            old = chosen[p]
            adds = False
            for entry in range(begin[old], begin[old + 1]):
                adds = adds or over[row[entry]] > ROUNDING
            if not adds:
                continue
            work -= begin[first[p + 1]] - begin[first[p]]
            without = now
            for entry in range(begin[old], begin[old + 1]):
                r = row[entry]
                without -= cost_of(over[r], price[r], above)
                over[r] -= value[entry]
                without += cost_of(over[r], price[r], above)
            for column in range(first[p], first[p + 1]):
                if column == old:
                    continue
                cost = without
                for entry in range(begin[column], begin[column + 1]):
                    r = row[entry]
                    cost += cost_of(over[r] + value[entry], price[r], above) - cost_of(over[r], price[r], above)
                # xorshift: the same chances on every machine
                chance ^= chance << np.uint64(13)
                chance ^= chance >> np.uint64(7)
                chance ^= chance << np.uint64(17)
                blurred = max(cost, 0.0) * (1 + NOISE * (chance >> np.uint64(11)) / 9007199254740992.0)
                if blurred < least:
                    best, best_partition, least, least_cost = column, p, blurred, cost
            for entry in range(begin[old], begin[old + 1]):
                over[row[entry]] += value[entry]
        if best < 0:
            continue
        if least_cost >= now:
            for r in range(len(over)):
                if over[r] > ROUNDING:
                    price[r] += dearer
        old = chosen[best_partition]
        for entry in range(begin[old], begin[old + 1]):
            over[row[entry]] -= value[entry]
        for entry in range(begin[best], begin[best + 1]):
            over[row[entry]] += value[entry]
        chosen[best_partition] = best
        allowed_from[best_partition] = step + 1 + TENURE + step % VARIED
    return False
