"""A replica for one broker: the smallest of some partitions that it can be given, see ``planner.min_topic_leaders``."""

from __future__ import annotations

from rebalance_lib.planner.compiled.cache import compiled
from rebalance_lib.planner.compiled.moves import DISK, NOWHERE, affordable, fits, in_rack, move


@compiled
def give_smallest(state, order, d):
    """Move a replica of the first partition in this order that broker d can get one of; returns slot and partition.

    Of its replicas the one leaves whose broker holds the most bytes, of those that racks let go; -1 for none.
    """
    slots, brokers = state.slots, state.brokers
    for p in order:
        if not brokers[d].takes or not fits(state, p, d, False):
            continue
        best = NOWHERE
        for slot in range(state.partitions[p].begin, state.partitions[p + 1].begin):
            s = slots[slot].broker
            if s < 0 or not brokers[s].gives or not affordable(state, p, slot):
                continue
            own = in_rack(state, p, slot, brokers[s].rack) + 1
            if in_rack(state, p, slot, brokers[d].rack) + 1 > own:
                continue
            if best == NOWHERE or state.load[DISK, s] > state.load[DISK, slots[best].broker]:
                best = slot
        if best != NOWHERE:
            move(state, p, best, d)
            return best, p
    return NOWHERE, NOWHERE
