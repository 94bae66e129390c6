"""Clusters for the placement tests: written by hand, drawn by Hypothesis, or drawn from a plain generator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from rebalance_lib.topology import Broker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

RACKS = (
    "r1",
    "r10",
    "r2",
    "R2",
    "é",
    "\uff5e",
    "\U0001f418",
    "",
    "b",
    "a",
    "zone-3",
    "zone-1",
    "k",
    "m",
    "q",
    "x",
    "y",
)
"""Names whose order depends on how they are compared; two of them sort differently in UTF-8 and UTF-16."""


def brokers_without_racks(ids: Iterable[int]) -> list[Broker]:
    return [Broker(broker) for broker in ids]


def brokers_in_racks(racks: Mapping[str, Iterable[int]]) -> list[Broker]:
    return [Broker(broker, rack) for rack, ids in racks.items() for broker in ids]


@st.composite
def clusters(draw: st.DrawFn, *, racked: bool | None = None, most: int = 14) -> list[Broker]:
    """Brokers with ids in any order and with gaps; all in racks of any size, or all without."""
    ids = draw(st.lists(st.integers(0, 5000), min_size=1, max_size=most, unique=True))
    if not (draw(st.booleans()) if racked is None else racked):
        return brokers_without_racks(ids)
    names = draw(st.lists(st.sampled_from(RACKS), min_size=len(ids), max_size=len(ids)))
    return [Broker(broker, rack) for broker, rack in zip(ids, names, strict=True)]


def random_cluster(random: Random, *, partly_racked: float, most: int = 24) -> list[Broker]:
    """Like ``clusters``; racks are known for only some of the brokers in a share of the cases."""
    ids = random.sample(range(10_000), random.randint(1, most))
    names = random.sample(RACKS, random.randint(1, min(len(RACKS), len(ids))))
    weights = [random.choice((1, 1, 1, 6)) for _ in names]
    kind = random.random()
    if kind < 0.25:
        return brokers_without_racks(ids)
    racks = random.choices(names, weights, k=len(ids))
    without = {broker for broker in ids if random.random() < 0.2} if kind > 1 - partly_racked else set()
    return [Broker(broker, None if broker in without else rack) for broker, rack in zip(ids, racks, strict=True)]


def printed(brokers: Iterable[Broker], fenced: Iterable[int] = ()) -> str:
    """The brokers as the Java programs read them."""
    gone = set(fenced)
    return ",".join(
        ("!" if broker.id in gone else "") + (f"{broker.id}" if broker.rack is None else f"{broker.id}={broker.rack}")
        for broker in brokers
    )
