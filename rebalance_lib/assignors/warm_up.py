"""Compile the sticky assignor's loops ahead of their first use: ``python -m rebalance_lib.assignors.warm_up``."""

from __future__ import annotations

from rebalance_lib.assignors.assign import assign
from rebalance_lib.assignors.subscription import Subscription


def main() -> None:
    """Share out twice in a group with mixed subscriptions, so that partitions are assigned, moved and brought back."""
    partitions = {"a": 3, "b": 3, "c": 2}
    wanted = {"m1": ["a"], "m2": ["a", "b"], "m3": ["b", "c"]}
    owned = assign("sticky", partitions, {member: Subscription(topics) for member, topics in wanted.items()})
    members = {member: Subscription(topics, owned[member], 1) for member, topics in wanted.items()}
    assign("sticky", partitions, {**members, "m4": Subscription(["a", "b", "c"])})


if __name__ == "__main__":
    main()
