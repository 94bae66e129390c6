"""Moves that a linear program begins with."""

from __future__ import annotations

import numpy as np

from rebalance_lib.planner.certificate import Loads, Problem
from rebalance_lib.planner.certificate.first_moves import first_moves
from rebalance_lib.planner.certificate.fractional import FractionalMoves


def moves_of(size: list[int], broker: list[int], share: list[float], takes: list[bool]) -> FractionalMoves:
    """Partitions of one replica each."""
    sizes, everybody = np.array(size, np.int64), np.ones(len(share), np.bool_)
    problem = Problem(
        np.arange(len(size) + 1),
        np.array(broker, np.int32),
        sizes,
        np.ones(len(size), np.bool_),
        np.zeros(len(share), np.int32),
        everybody,
        np.array(takes),
        ~everybody,
        (Loads.within("disk", sizes.astype(np.float64), np.array(share), 0.0),),
    )
    return FractionalMoves(problem, np.arange(len(share)))


def test_who_has_too_much_gives_its_large_replicas_to_those_who_lack() -> None:
    moves = moves_of([5, 4, 2, 1, 1], [0, 0, 0, 0, 3], [6.0, 3.0, 3.0, 1.0], [True] * 4)
    slot, broker = first_moves(moves)
    assert slot.tolist() == [0, 1]
    assert broker.tolist() == [1, 2]


def test_nothing_goes_where_it_cannot_go() -> None:
    moves = moves_of([5, 4, 2, 1, 1], [0, 0, 0, 0, 3], [6.0, 3.0, 3.0, 1.0], [True, True, False, True])
    slot, broker = first_moves(moves)
    assert set(broker.tolist()) <= {1, 3}
    assert not moves.closed[slot, broker].any()


def test_a_cluster_within_its_bands_moves_nothing() -> None:
    slot, broker = first_moves(moves_of([3, 3], [0, 1], [3.0, 3.0], [True, True]))
    assert len(slot) == len(broker) == 0
