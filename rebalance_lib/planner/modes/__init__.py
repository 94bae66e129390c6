"""One module per mode; each has ``place(model, scope, request)``, which answers with a placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lib.planner.modes import (
    balance,
    demote,
    disks,
    drain,
    drain_log_dirs,
    kafka,
    leaders,
    light,
    partitions,
    repair,
    replace,
    replication_factor,
)
from rebalance_lib.planner.request import Mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from rebalance_lib.planner.model import ClusterModel
    from rebalance_lib.planner.request import Request
    from rebalance_lib.planner.scope import Scope
    from rebalance_lib.planner.workspace import Placement

PLACERS: dict[Mode, Callable[[ClusterModel, Scope, Request], Placement]] = {
    Mode.BALANCE: balance.place,
    Mode.EXPAND: balance.place,
    Mode.TOPICS: balance.place,
    Mode.DRAIN: drain.place,
    Mode.REPLACE: replace.place,
    Mode.REPAIR: repair.place,
    Mode.LEADERS: leaders.place,
    Mode.DISKS: disks.place,
    Mode.REPLICATION_FACTOR: replication_factor.place,
    Mode.PARTITIONS: partitions.place,
    Mode.LIGHT: light.place,
    Mode.KAFKA: kafka.place,
    Mode.DEMOTE: demote.place,
    Mode.DRAIN_LOG_DIRS: drain_log_dirs.place,
}
