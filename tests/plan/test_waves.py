"""Which moves begin: caps are kept full, never exceeded, and every move runs in the end."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan.pace import Order, Pace
from rebalance_lib.plan.waves import SLOT_BYTES, Move, Waves, in_order
from rebalance_lib.topology import TopicPartition


def move(name: str, sender: int, *receivers: int, size: int = SLOT_BYTES, at_risk: bool = False) -> Move:
    return Move(TopicPartition(name, 0), sender, receivers, size, at_risk)


def names(moves):
    return [m.partition.topic for m in moves]


def test_the_next_move_begins_when_one_ends_whatever_the_others_do():
    a, b, c = move("a", 9, 1), move("b", 9, 1), move("c", 9, 2)
    waves = Waves(Pace(moves_in=1), [a, b, c])
    assert names(waves.begin()) == ["a", "c"]
    assert waves.begin() == []
    waves.end(a)
    assert names(waves.begin()) == ["b"]


def test_small_or_large_ones_first_and_those_at_risk_before_all():
    moves = [move("small", 1, 2, size=1), move("large", 1, 2, size=9), move("risk", 1, 2, size=5, at_risk=True)]
    assert names(in_order(moves, Order.SMALLEST_FIRST)) == ["risk", "small", "large"]
    assert names(in_order(moves, Order.LARGEST_FIRST)) == ["risk", "large", "small"]


def test_what_is_larger_than_a_cap_runs_alone():
    waves = Waves(Pace(bytes_in_flight=15), [move("huge", 1, 2, 3, size=50), move("tiny", 4, 5, size=1)])
    assert names(waves.begin()) == ["huge"]
    waves.end(move("huge", 1, 2, 3, size=50))
    assert names(waves.begin()) == ["tiny"]


def test_the_next_stage_of_a_partition_waits_in_its_place():
    a, b = move("a", 9, 1), move("b", 9, 1)
    waves = Waves(Pace(moves_in=1), [a, b])
    assert names(waves.begin()) == ["a"]
    waves.end(a)
    waves.follow(move("a", 9, 2, 1))
    assert waves.begin() == [move("a", 9, 2, 1)]
    waves.end(move("a", 9, 2, 1))
    assert names(waves.begin()) == ["b"]


def test_a_move_that_is_added_later_waits_behind_the_others():
    a, b = move("a", 9, 1), move("b", 9, 1)
    waves = Waves(Pace(moves_in=1), [a, b])
    waves.begin()
    waves.add(move("c", 9, 1))
    assert waves.begin() == []
    waves.end(a)
    assert names(waves.begin()) == ["b"]
    waves.end(b)
    assert names(waves.begin()) == ["c"]


def test_what_is_under_way_already_counts():
    waves = Waves(Pace(moves_out=2), [move("a", 1, 3), move("b", 1, 4)], under_way=[move("own", 1, 2)])
    assert names(waves.begin()) == ["a"]


def test_a_move_that_copies_nothing_is_always_let_through():
    waves = Waves(Pace(moves_in_cluster=1), [move("order", 1)], under_way=[move("own", 1, 2)])
    assert names(waves.begin()) == ["order"]


@pytest.mark.parametrize("name", ["throttle", "moves_in", "bytes_in_flight"])
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(InvalidInputError, match=f"{name.replace('_', ' ')} is 0"):
        Pace(**{name: 0})


def test_small_moves_share_a_slot_by_their_bytes_and_at_most_a_hundred_do():
    parts = [move(f"m{number}", 9, 1, size=4_000_000) for number in range(4)]
    assert names(Waves(Pace(moves_in=1), parts).begin()) == ["m0", "m1"]
    tiny = [move(f"t{number:03}", 9, 1, size=0) for number in range(250)]
    waves = Waves(Pace(moves_in=2), tiny)
    assert len(waves.begin()) == 200
    waves.end(tiny[0])
    assert names(waves.begin()) == ["t200"]


def test_what_fits_beside_large_moves_begins_though_larger_ones_wait():
    large, more = move("large", 9, 1), move("more", 9, 1)
    half, small = move("half", 9, 1, size=5_000_000), move("small", 9, 1, size=1_000_000)
    waves = Waves(Pace(moves_in=2), [large, half, more, small])
    assert names(waves.begin()) == ["large", "half", "small"]
    waves.end(large)
    assert names(waves.begin()) == ["more"]


brokers = st.integers(1, 6)
moves = st.lists(
    st.builds(
        lambda sender, receivers, size: (sender, tuple(receivers), size),
        brokers,
        st.lists(brokers, max_size=3, unique=True),
        st.integers(0, 200_000) | st.integers(0, 2 * SLOT_BYTES),
    ),
    max_size=30,
)
limit = st.none() | st.integers(1, 4)


paces = st.builds(
    Pace,
    moves_in=limit,
    moves_out=limit,
    moves_in_cluster=limit,
    bytes_in_flight=st.none() | st.integers(1, 5 * SLOT_BYTES),
)


@given(moves, paces, st.randoms())
def test_caps_hold_are_kept_full_and_every_move_runs(parts, pace, random):
    waiting = [Move(TopicPartition("t", number), *part) for number, part in enumerate(parts)]
    waves = Waves(pace, waiting)
    running: list[Move] = []
    begun: list[Move] = []
    while True:
        new = waves.begin()
        running += new
        begun += new
        check_caps(pace, running)
        left = [m for m in waiting if m not in begun]
        assert not any(fits(pace, running, m) for m in left)
        if not running:
            break
        ended = running.pop(random.randrange(len(running)))
        waves.end(ended)
    assert sorted(m.partition for m in begun) == sorted(m.partition for m in waiting)


def loads(running):
    """Every load with the number of moves in it, counted the plain way."""
    load, count = Counter(), Counter()
    for m in running:
        copies, part = len(m.receivers), hundredths(m.size)
        parts = {("out", m.sender): copies * part, ("cluster",): copies, ("bytes",): m.bytes}
        parts |= {("in", receiver): part for receiver in m.receivers}
        for key, amount in parts.items():
            load[key] += amount
            count[key] += amount > 0
    return load, count


def hundredths(size):
    """A copy takes a hundredth of a slot for every 100 kB, but one at least and a whole slot at most."""
    return min(max(size // 100_000, 1), 100)


def limits(pace):
    brokers = {"in": pace.moves_in, "out": pace.moves_out}
    caps = {way: None if cap is None else 100 * cap for way, cap in brokers.items()}
    return {**caps, "cluster": pace.moves_in_cluster, "bytes": pace.bytes_in_flight}


def check_caps(pace, running):
    load, count = loads(running)
    for key, amount in load.items():
        limit = limits(pace)[key[0]]
        assert limit is None or amount <= limit or count[key] == 1


def fits(pace, running, m):
    before, _ = loads(running)
    after, _ = loads([*running, m])
    changed = [key for key in after if after[key] != before[key]]
    return all(
        limits(pace)[key[0]] is None or after[key] <= limits(pace)[key[0]] or before[key] == 0 for key in changed
    )
