"""Network capacities for the verifier, counted from the plan, the snapshot and the rates of partitions alone.

    network-capacity   no broker is written more to than its ``network_in`` allows, or than now if that is more already

It is independent of any planner. A partition without a rate weighs nothing, and a broker without a capacity has no
limit.

Example: a broker of 100 bytes per second has replicas to which 90 are written: one of 20 may come if one of 10 goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lib.plan.columns import Lists, find_sorted, partition_keys
from rebalance_lib.plan.verify_limits import Breach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rebalance_lib.topology import Snapshot

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Traffic:
    """What is written to each partition, and what brokers with a known ``network_in`` have and can take."""

    rates: pa.Table  # topic, partition and write_rate, bytes per second
    brokers: NDArray[np.int32]
    load: NDArray[np.float64]
    most: NDArray[np.float64]

    @classmethod
    def of(cls, snapshot: Snapshot, rates: pa.Table) -> Traffic:
        """Read capacities, and what each broker holds now."""
        known = {row["broker"]: (row["capacity"] or {}).get("network_in") for row in snapshot.brokers.to_pylist()}
        given = {id_: most for id_, most in sorted(known.items()) if most is not None}
        brokers = np.array(list(given), np.int32)
        rows = snapshot.replicas.filter(pc.invert(snapshot.replicas["adding"]))
        load = _sum(brokers, rows["broker"].to_numpy(), _rate(rates, rows))
        return cls(rates, brokers, load, np.maximum(np.array(list(given.values()), np.float64), load))

    def breaches(self, entries: pa.Table, before: Lists, after: Lists) -> Iterator[Breach]:
        """Brokers that a plan's entries bring above what they can take."""
        if not len(self.brokers):
            return
        rate = _rate(self.rates, entries)
        gained = _sum(self.brokers, after.values, rate[after.rows]) - _sum(
            self.brokers, before.values, rate[before.rows]
        )
        for at in np.flatnonzero(self.load + gained > self.most * (1 + _ROUNDING)).tolist():
            row = int(after.rows[after.values == self.brokers[at]][0])
            message = f"broker {self.brokers[at]} would be written {self.load[at] + gained[at]:.0f} bytes per second to"
            yield Breach("network-capacity", row, f"{message}, and may be {self.most[at]:.0f}")


def _rate(rates: pa.Table, rows: pa.Table) -> NDArray[np.float64]:
    """By row: what is written to its partition."""
    known, wanted = partition_keys(rates, rows)
    order = np.argsort(known, kind="stable")
    place = find_sorted(known[order], wanted)
    rate = np.append(np.nan_to_num(rates["write_rate"].to_numpy().astype(np.float64))[order], 0.0)
    return np.where(place >= 0, rate[place], 0.0)


def _sum(brokers: NDArray[np.int32], values: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    place = find_sorted(brokers, values)
    return np.bincount(place[place >= 0], weight[place >= 0], minlength=len(brokers)).astype(np.float64)
