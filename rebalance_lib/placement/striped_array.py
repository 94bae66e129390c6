"""The walk of ``striped`` for all partitions at once.

Both functions are given, one column per partition, the ring position of the leader in row 0 and the place
where the walk for followers begins, and fill the other rows.

Without racks a follower's position is a formula. With racks it is the outcome of a search, and three facts
turn the search into a few passes over whole arrays:

1. The walk leaves out the leader, but stepping onto the leader changes nothing: its rack and itself are
   taken. So it is a plain walk around the ring.
2. After ``u`` replicas every partition holds ``min(u, racks)`` racks. All partitions therefore look for the
   same kind of thing at the same time: first a rack not yet held, later a broker not yet held.
3. The ring is made of rounds: each round has one broker of every rack that still has any, so later rounds
   are made of fewer racks, never of others. Suppose that ``2u + 1`` neighbours all stand in the ``u`` racks
   held. No round has ``u + 1`` of them, so they touch three rounds and cover one of them whole: that round
   has held racks only, so has all that follows, and the search may go on at the start of the ring, where
   the first round has every rack and answers within ``u + 1`` places. However uneven the racks, a search
   ends after ``3u + 2`` passes.

Example: brokers 0 to 8 stand in the ring in this order, broker 1 alone in rack b, the others in rack a. A
partition led by broker 2 looks for rack b from broker 3 on. Brokers 3, 4 and 5 are in rack a: that is ``2u
+ 1`` neighbours for ``u = 1``, so it leaves out 6, 7 and 8, goes on at broker 0 and finds broker 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Positions: TypeAlias = npt.NDArray[np.int32]

PARTITIONS_AT_ONCE = 1 << 16
"""Few enough that the arrays of one pass stay in the processor's cache."""


def fill_without_racks(positions: Positions, steps: Positions, brokers: int) -> None:
    """Fill rows 1 and up of ``positions``: neighbours in the walk, whatever they are."""
    for replica in range(1, len(positions)):
        positions[replica] = (positions[0] + 1 + (steps + (replica - 1)) % (brokers - 1)) % brokers


def fill_with_racks(positions: Positions, steps: Positions, racks: Positions) -> None:
    """Fill rows 1 and up of ``positions``: fresh racks first, then fresh brokers."""
    for begin in range(0, positions.shape[1], PARTITIONS_AT_ONCE):
        part = slice(begin, begin + PARTITIONS_AT_ONCE)
        _fill_part(positions[:, part], steps[part], racks)


def _fill_part(positions: Positions, steps: Positions, racks: Positions) -> None:
    brokers = len(racks)
    rack_count = len(np.unique(racks))
    itself = np.arange(brokers, dtype=np.int32)
    here = (positions[0] + 1 + steps) % brokers
    held_racks = [racks[positions[0]]]
    for replica in range(1, len(positions)):
        if replica < rack_count:
            _advance(here, racks, held_racks, restart_after=2 * replica + 1)
            held_racks.append(racks[here])
        else:
            _advance(here, itself, list(positions[:replica]), restart_after=brokers)
        positions[replica] = here
        _step(here, slice(None), brokers)


def _advance(here: Positions, kind: Positions, held: Sequence[Positions], *, restart_after: int) -> None:
    """Move each entry of ``here`` on to the next position whose kind is not held; in place."""
    searching = np.flatnonzero(_is_held(kind[here], held))
    misses = 1
    while searching.size:
        if misses == restart_after:
            here[searching] = 0
        else:
            _step(here, searching, len(kind))
        misses += 1
        still = _is_held(kind[here[searching]], [taken[searching] for taken in held])
        searching = searching[still]


def _is_held(kinds: Positions, held: Sequence[Positions]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = kinds == held[0]
    for taken in held[1:]:
        found |= kinds == taken
    return found


def _step(here: Positions, which: Positions | npt.NDArray[np.intp] | slice, brokers: int) -> None:
    moved = here[which] + 1
    moved[moved == brokers] = 0
    here[which] = moved
