"""What a plan does to a consumer group.

A group rebalances when a topic that it reads gets more partitions, and, if its members say in which racks they are,
when partitions come to other racks. What it then does is forecast with its own assignor, as its clients would do it:
partitions per member now and then, partitions that change hands, members that are left without any. Whatever assignor
a group has, its members fetch from another broker where the leader of a partition changes, and from another rack
where the replica in theirs goes.

Groups whose broker assigns (KIP-848) are forecast by the assignor of clients that shares out alike, without racks,
which brokers do not look at.

Example: ``billing`` has members m1 and m2 for the two partitions of ``orders``, and the range assignor. A plan adds a
third partition: m1 then has 0 and 1, m2 has 2. Partition 1 changes hands, and nobody is idle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rebalance_lib.assignors.assign import STRATEGIES, assign
from rebalance_lib.assignors.effects import NONE
from rebalance_lib.assignors.subscription import Assignment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_lib.assignors.effects import Effects
    from rebalance_lib.assignors.live_group import LiveGroup

IMPACTS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("assignor", pa.string()),
        pa.field("members", pa.int32(), nullable=False),
        pa.field("rebalances", pa.bool_(), nullable=False),  # what follows is null where it does not, or is not known
        pa.field("partitions_before", pa.int32()),
        pa.field("partitions_after", pa.int32()),
        pa.field("least_before", pa.int32()),  # partitions per member
        pa.field("least_after", pa.int32()),
        pa.field("most_before", pa.int32()),
        pa.field("most_after", pa.int32()),
        pa.field("idle_before", pa.int32()),  # members that have none
        pa.field("idle_after", pa.int32()),
        pa.field("left_idle", pa.int32()),  # members that have partitions now, and none then
        pa.field("change_hands", pa.int32()),  # partitions that have another member after than before
        pa.field("leaders_change", pa.int32(), nullable=False),  # partitions that another broker leads after
        pa.field("rack_gained", pa.int32(), nullable=False),  # partitions that get a replica in their member's rack
        pa.field("rack_lost", pa.int32(), nullable=False),  # partitions that lose it
        pa.field("lag", pa.int64()),
        pa.field("remark", pa.string()),  # why there is no forecast, or how far it can be trusted
        pa.field(
            "shares",
            pa.list_(
                pa.field(
                    "item",
                    pa.struct(
                        [
                            ("member", pa.string()),
                            ("client_id", pa.string()),
                            ("host", pa.string()),
                            ("before", pa.int32()),
                            ("after", pa.int32()),
                            ("kept", pa.int32()),
                        ]
                    ),
                )
            ),
        ),
    ]
)

OF_BROKERS = {"uniform": "sticky", "range": "range"}  # assignors of brokers, and the clients' that shares out alike
COOPERATIVE = "cooperative-sticky"
ROUNDS = 10  # of rebalances until a cooperative group rests; most need two, and a few in racks never do
SILENT = "no forecast: not all of its members tell what they subscribe to, as while it rebalances; it may read more"
Row = dict[str, Any]


def impact(group: LiveGroup, effects: Effects) -> Row:
    """A row of `IMPACTS`."""
    read = effects.find(group.partitions)
    gained, lost = _racks(group, effects)
    return {
        **no_impact(group),
        "leaders_change": int(effects.leader_changes[read[read != NONE]].sum()),
        "rack_gained": gained,
        "rack_lost": lost,
        "lag": _lag(group, effects),
        **_forecast(group, effects),
    }


def no_impact(group: LiveGroup, remark: str | None = None) -> Row:
    """A row that tells of no effect."""
    nothing = dict.fromkeys(("leaders_change", "rack_gained", "rack_lost"), 0)
    row = {"group": group.name, "type": group.type, "state": group.state, "assignor": group.assignor}
    return {**row, "members": len(group.members), "rebalances": False, **nothing, "remark": remark}


def _forecast(group: LiveGroup, effects: Effects) -> Row:
    """The part of the row that tells how partitions are shared, before and after."""
    if not group.is_described:
        return {"remark": "it could not be described: what it reads is not known"}
    if not group.members:
        return {}
    rebalances = _rebalances(group, effects)
    if not group.tells_topics:
        return {"rebalances": rebalances, "remark": SILENT}
    if not rebalances:
        return {}
    strategy = OF_BROKERS.get(group.assignor or "") if group.broker_assigns else group.assignor
    if strategy not in STRATEGIES:
        return {"rebalances": True, "remark": "no forecast: its assignor is not one of Kafka's"}
    before = {member.name: list(member.subscription.owned) for member in group.members}
    after, rests = forecast(strategy, group, effects)
    known = group.tells_partitions
    return {
        "rebalances": True,
        **(_sizes(before, "before") if known else {}),
        **_sizes(after, "after"),
        "left_idle": sum(bool(had) and not after[name] for name, had in before.items()) if known else None,
        "change_hands": _change_hands(before, after) if known else None,
        "remark": "; ".join(_remarks(group, strategy, rests=rests)) or None,
        "shares": [
            {
                "member": member.name,
                "client_id": member.client_id,
                "host": member.host,
                "before": len(before[member.name]) if known else None,
                "after": len(after[member.name]),
                "kept": len(set(before[member.name]).intersection(after[member.name])) if known else None,
            }
            for member in group.members
        ],
    }


def forecast(strategy: str, group: LiveGroup, effects: Effects) -> tuple[Assignment, bool]:
    """What the members of a group have when it has rebalanced after the plan, and whether it rests then.

    A cooperative group rebalances until no member has to give up any of its partitions.
    """
    subscriptions = {member.name: member.subscription for member in group.members}
    _, partitions = effects.partitions(group.topics)
    racks = None
    if group.has_racks and not group.broker_assigns:
        racks = {topic: effects.racks_of(topic) for topic in partitions}
    found: Assignment = {}
    for generation in range(2, ROUNDS + 2):
        found = assign(strategy, partitions, subscriptions, racks=racks, as_clients_do=True)
        if strategy != COOPERATIVE or all(set(one.owned) <= set(found[name]) for name, one in subscriptions.items()):
            return found, True
        subscriptions = {
            name: replace(one, owned=found[name], generation=generation) for name, one in subscriptions.items()
        }
    return found, False


def _rebalances(group: LiveGroup, effects: Effects) -> bool:
    """Whether the plan makes it rebalance; clients look at racks too, whatever their assignor."""
    before, after = effects.partitions(group.topics)
    if before != after:
        return True
    return group.has_racks and not group.broker_assigns and effects.racks_change(group.topics)


def _remarks(group: LiveGroup, strategy: str, *, rests: bool) -> Iterator[str]:
    if not group.tells_partitions:
        yield "what its members have now is not known"
    if group.broker_assigns:
        about = "" if group.is_uniform else "about the "
        yield f"{about}sizes as by the {strategy} assignor: its broker may choose other members for them"
    if not rests:
        yield f"it does not rest within {ROUNDS} rebalances: the forecast is what its members have by then"


def _sizes(assignment: Assignment, when: str) -> Row:
    sizes = [len(partitions) for partitions in assignment.values()]
    figures = {"partitions": sum(sizes), "least": min(sizes), "most": max(sizes), "idle": sizes.count(0)}
    return {f"{name}_{when}": value for name, value in figures.items()}


def _change_hands(before: Assignment, after: Assignment) -> int:
    owner = {partition: member for member, partitions in before.items() for partition in partitions}
    return sum(owner.get(one, member) != member for member, partitions in after.items() for one in partitions)


def _racks(group: LiveGroup, effects: Effects) -> tuple[int, int]:
    """How many partitions get, and how many lose, a replica in the rack of the member that has them."""
    if not group.has_racks:
        return 0, 0
    column = [effects.rack_names.get(member.subscription.rack or "", NONE) for member in group.members]
    owned = [len(member.subscription.owned) for member in group.members]
    rows = effects.find([partition for member in group.members for partition in member.subscription.owned])
    racks = np.repeat(np.array(column, np.int64), owned)
    known = (rows != NONE) & (racks != NONE)
    before, after = (present[rows[known], racks[known]] for present in effects.racks)
    return int((after & ~before).sum()), int((before & ~after).sum())


def _lag(group: LiveGroup, effects: Effects) -> int | None:
    """How many records the group has not read yet; None where an end offset is not known."""
    rows = effects.find(group.committed)
    if not len(rows) or np.any(rows == NONE):
        return None
    ends = effects.end_offset[rows]
    return None if np.any(ends == NONE) else int(np.maximum(ends - group.offsets, 0).sum())
