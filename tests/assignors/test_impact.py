"""What a plan does to consumer groups, on a small cluster by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.assignors.effects import Effects
from rebalance_lib.assignors.impact import IMPACTS, impact
from rebalance_lib.assignors.live_group import LiveGroup
from rebalance_lib.topology import BROKERS, GROUP_MEMBERS, GROUP_OFFSETS, REPLICAS, Snapshot

RACKS = {1: "a", 2: "b", 3: "c"}
ENTRIES = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("replicas", pa.list_(pa.int32()))])


def snapshot(topics, leaders=None, adding=(), racks=RACKS):
    """Topics with the replicas of their partitions, each with 10 records; the first leads unless another is named."""
    brokers = [
        {"broker": id_, "rack": rack, "host": "h", "port": 9092, "alive": True, "log_dirs": []}
        for id_, rack in racks.items()
    ]
    replicas = [
        {
            "topic": topic,
            "partition": number,
            "position": position,
            "broker": broker,
            "leader": broker == (leaders or {}).get((topic, number), listed[0]),
            "in_sync": True,
            "adding": (topic, number, broker) in adding,
            "removing": False,
            "internal": False,
            "end_offset": 10,
        }
        for topic, lists in topics.items()
        for number, listed in enumerate(lists)
        for position, broker in enumerate(listed)
    ]
    return Snapshot(
        "id", "", pa.Table.from_pylist(brokers, schema=BROKERS), pa.Table.from_pylist(replicas, schema=REPLICAS)
    )


def plan(**topics):
    """By topic and partition, where its replicas go."""
    rows = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for topic, lists in topics.items()
        for number, replicas in lists.items()
    ]
    return pa.Table.from_pylist(rows, schema=ENTRIES)


def members(*people, assignor="range", **group):
    """Each with its name, its partitions by topic, None where they are not known, and its rack."""
    rows = [
        {
            "group": "billing",
            "type": "classic",
            "state": "Stable",
            "assignor": assignor,
            "member": name,
            "client_id": f"client-{name}",
            "host": "h",
            "rack": rack,
            "topics": ["orders"],
            "assignment": None if has is None else [{"topic": t, "partitions": p} for t, p in has.items()],
            **group,
        }
        for name, has, rack in people
    ]
    return pa.Table.from_pylist(rows, schema=GROUP_MEMBERS)


def offsets(committed):
    rows = [{"group": "billing", "topic": t, "partition": n, "committed": at} for (t, n), at in committed.items()]
    return pa.Table.from_pylist(rows, schema=GROUP_OFFSETS)


def told(people, effects, committed=None):
    row = impact(LiveGroup.of(people, offsets(committed or {})), effects)
    return pa.Table.from_pylist([row], schema=IMPACTS).to_pylist()[0]


TWO = snapshot({"orders": [[1, 2], [2, 3]], "audit": [[1], [2]]})
M1, M2 = ("m1", {"orders": [0]}, None), ("m2", {"orders": [1]}, None)


def test_the_example_of_the_effects():
    effects = Effects(snapshot({"orders": [[1, 2]]}), plan(orders={0: [2, 3], 1: [3]}))
    assert effects.partitions(["orders", "gone"]) == ({"orders": 1}, {"orders": 2})
    assert effects.leader_changes.tolist() == [True, False]
    assert effects.find([("orders", 1), ("orders", 2), ("gone", 0)]).tolist() == [1, -1, -1]
    assert effects.racks_of("orders") == [["b", "c"], ["c"]]


def test_the_example_of_an_impact():
    row = told(members(M1, M2), Effects(TWO, plan(orders={2: [3, 1]})))
    assert row["rebalances"]
    assert [(s["member"], s["before"], s["after"], s["kept"]) for s in row["shares"]] == [
        ("m1", 1, 2, 1),
        ("m2", 1, 1, 0),
    ]
    assert (row["change_hands"], row["idle_before"], row["idle_after"]) == (1, 0, 0)
    assert [row[f"{name}_{when}"] for name in ("partitions", "least", "most") for when in ("before", "after")] == [
        2,
        3,
        1,
        1,
        1,
        2,
    ]


def test_a_member_that_was_idle_gets_a_new_partition():
    row = told(members(M1, M2, ("m3", {}, None), assignor="sticky"), Effects(TWO, plan(orders={2: [3, 1]})))
    assert (row["idle_before"], row["idle_after"], row["change_hands"]) == (1, 0, 0)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_order_of_rows_does_not_matter(assignor):
    people = members(M1, M2, ("m3", {}, None), assignor=assignor)
    grown = Effects(TWO, plan(orders={2: [3, 1], 3: [1, 2]}))
    assert told(people.take([2, 0, 1]), grown) == told(people, grown)


def test_a_cooperative_group_is_forecast_at_rest():
    """Its second member is new: it gets its share only after the first has given it up."""
    people = members(("m1", {"orders": [0, 1]}, None), ("m2", {}, None), assignor="cooperative-sticky")
    row = told(people, Effects(TWO, plan(orders={2: [3, 1], 3: [1, 2]})))
    assert [(s["before"], s["after"]) for s in row["shares"]] == [(2, 2), (0, 2)]


def test_a_plan_that_moves_leaders_alone_rebalances_nobody():
    row = told(members(M1, M2), Effects(TWO, plan(orders={0: [2, 1]}, audit={0: [2]})))
    assert not row["rebalances"]
    assert (row["leaders_change"], row["shares"], row["partitions_after"]) == (1, None, None)


def test_who_leads_now_counts_not_who_should():
    cluster = snapshot({"orders": [[1, 2]]}, leaders={("orders", 0): 2})
    one = members(("m1", {"orders": [0]}, None))
    assert told(one, Effects(cluster, plan(orders={0: [2, 1]})))["leaders_change"] == 0
    assert told(one, Effects(cluster, plan(orders={0: [1, 3]})))["leaders_change"] == 1


def test_a_replica_that_is_being_added_may_lead_already():
    """The one that led before died once this one was in sync."""
    cluster = snapshot({"orders": [[1, 3]]}, leaders={("orders", 0): 3}, adding={("orders", 0, 3)})
    one = members(("m1", {"orders": [0]}, None))
    assert told(one, Effects(cluster, plan(orders={0: [3, 2]})))["leaders_change"] == 0
    assert told(one, Effects(cluster, plan(orders={0: [2, 3]})))["leaders_change"] == 1


def test_a_replica_that_is_only_being_added_is_not_near_yet():
    cluster = snapshot({"orders": [[1, 3]]}, adding={("orders", 0, 3)})
    row = told(members(("m1", {"orders": [0]}, "c"), assignor="own"), Effects(cluster, plan(orders={0: [1, 3]})))
    assert (row["rack_gained"], row["rack_lost"]) == (1, 0)


def test_partitions_come_into_the_rack_of_who_reads_them_and_leave_it():
    people = members(("m1", {"orders": [0]}, "a"), ("m2", {"orders": [1]}, "a"), assignor="roundrobin")
    row = told(people, Effects(TWO, plan(orders={0: [2, 3], 1: [2, 1]})))
    assert (row["rack_gained"], row["rack_lost"], row["leaders_change"]) == (1, 1, 1)


def test_members_in_racks_rebalance_where_partitions_come_to_other_racks():
    people = members(("m1", {"orders": [0]}, "a"), ("m2", {"orders": [1]}, "b"))
    row = told(people, Effects(TWO, plan(orders={0: [2, 3], 1: [1, 3]})))
    assert row["rebalances"]
    assert (row["change_hands"], row["rack_gained"], row["rack_lost"]) == (2, 0, 2)


def test_a_group_without_members_is_touched_by_what_it_has_committed():
    nobody = [{"group": "billing", "type": "classic", "state": "Empty"}]
    empty = pa.Table.from_pylist(nobody, schema=GROUP_MEMBERS)
    row = told(empty, Effects(TWO, plan(orders={0: [2, 1], 2: [1, 2]})), {("orders", 0): 4, ("orders", 1): 10})
    assert (row["members"], row["rebalances"], row["leaders_change"], row["lag"]) == (0, False, 1, 6)


@pytest.mark.parametrize("committed", [{}, {("gone", 0): 1}, {("orders", 7): 1}])
def test_a_lag_needs_all_ends(committed):
    assert told(members(M1), Effects(TWO, plan()), committed)["lag"] is None


def test_an_assignor_that_is_not_known_has_no_forecast_and_says_so():
    row = told(members(M1, M2, assignor="stream"), Effects(TWO, plan(orders={2: [3, 1]})))
    assert (row["rebalances"], row["shares"]) == (True, None)
    assert row["remark"] == "no forecast: its assignor is not one of Kafka's"


def test_what_a_member_has_may_not_be_known_and_what_it_gets_still_be_forecast():
    row = told(members(M1, ("m2", None, None)), Effects(TWO, plan(orders={2: [3, 1]})), {("orders", 0): 1})
    assert (row["partitions_before"], row["partitions_after"], row["change_hands"]) == (None, 3, None)
    assert (row["left_idle"], row["leaders_change"]) == (None, 0)
    assert row["remark"] == "what its members have now is not known"


def test_of_a_group_in_the_middle_of_a_rebalance_committed_offsets_tell_what_it_reads():
    """Its broker tells neither assignor nor topics nor partitions then."""
    silent = members(("m1", None, None), assignor=None, state="CompletingRebalance", topics=None)
    row = told(silent, Effects(TWO, plan(orders={0: [2, 1], 2: [3, 1]})), {("orders", 0): 4})
    assert (row["rebalances"], row["leaders_change"], row["lag"], row["shares"]) == (True, 1, 6, None)
    assert row["remark"].startswith("no forecast: not all of its members tell what they subscribe to")
    row = told(silent, Effects(TWO, plan(audit={0: [2]})), {("orders", 0): 4})
    assert (row["rebalances"], row["leaders_change"]) == (False, 0)
    assert row["remark"].endswith("it may read more")


def test_what_the_others_tell_counts_though_one_member_tells_nothing():
    """m1 tells all, m2 nothing; audit is only committed."""
    people = pa.concat_tables([members(M1), members(("m2", None, None), topics=None)])
    row = told(people, Effects(TWO, plan(orders={0: [2, 1], 2: [3, 1]}, audit={0: [2]})), {("audit", 0): 1})
    assert (row["rebalances"], row["leaders_change"], row["shares"]) == (True, 2, None)
    assert told(people, Effects(TWO, plan(audit={2: [1]})), {("audit", 0): 1})["rebalances"]
    row = told(people, Effects(TWO, plan(audit={2: [1]})))
    assert not row["rebalances"]
    assert row["remark"].startswith("no forecast: not all of its members tell")


def test_what_a_member_has_tells_what_it_reads_though_its_subscription_makes_no_sense():
    row = told(members(M1, topics=None), Effects(TWO, plan(orders={2: [3, 1]})))
    assert row["rebalances"]


def test_a_partition_that_two_members_claim_counts_once():
    row = told(members(M1, ("m2", {"orders": [0]}, None)), Effects(TWO, plan(orders={0: [2, 1]})))
    assert row["leaders_change"] == 1


def test_a_group_that_could_not_be_described_says_so():
    hidden = pa.Table.from_pylist([{"group": "g", "type": "classic", "state": "Unknown"}], schema=GROUP_MEMBERS)
    row = told(hidden, Effects(TWO, plan(orders={2: [3, 1]})))
    assert (row["rebalances"], row["remark"]) == (False, "it could not be described: what it reads is not known")


def test_partitions_that_cannot_be_are_nobody_s():
    row = told(members(("m1", {"orders": [-1, 7, -(2**31)], "gone": [0]}, "a")), Effects(TWO, plan(orders={0: [2, 1]})))
    assert (row["leaders_change"], row["rack_gained"], row["rack_lost"]) == (0, 0, 0)


def test_who_had_a_partition_and_gets_none_is_left_idle_though_as_many_are_idle_as_before():
    """The replica of orders-0 goes from the rack of m1 to that of m2."""
    people = members(("m1", {"orders": [0]}, "a"), ("m2", {}, "b"), ("m3", {"orders": [1]}, "c"))
    row = told(people, Effects(snapshot({"orders": [[1], [3]]}), plan(orders={0: [2]})))
    assert [(share["before"], share["after"]) for share in row["shares"]] == [(1, 0), (0, 1), (1, 1)]
    assert (row["idle_before"], row["idle_after"], row["left_idle"]) == (1, 1, 1)


def test_brokers_that_assign_do_not_look_at_racks():
    people = [("m1", {"orders": [0]}, "a"), ("m2", {"orders": [1]}, "b")]
    elsewhere = Effects(TWO, plan(orders={0: [2, 3], 1: [1, 3]}))
    assert not told(members(*people, assignor="range", type="consumer"), elsewhere)["rebalances"]
    grown = Effects(TWO, plan(orders={0: [2, 3], 1: [1, 3], 2: [1, 2], 3: [1, 2]}))
    assert told(members(*people, assignor="uniform", type="consumer"), grown)["change_hands"] == 0


def test_clients_look_at_racks_whatever_their_assignor():
    people = [("m1", {"orders": [0]}, "a"), ("m2", {"orders": [1]}, None)]
    elsewhere = Effects(TWO, plan(orders={0: [2, 3]}))
    assert told(members(*people, assignor="roundrobin"), elsewhere)["rebalances"]
    assert told(members(*people, assignor="stream"), elsewhere)["rebalances"]


def test_a_group_whose_broker_assigns_is_forecast_by_sizes():
    row = told(members(M1, M2, assignor="uniform", type="consumer"), Effects(TWO, plan(orders={2: [3, 1], 3: [3, 1]})))
    assert [share["after"] for share in row["shares"]] == [2, 2]
    assert "its broker may choose other members" in row["remark"]


def test_an_empty_plan_touches_nobody():
    row = told(members(M1, ("m2", {"orders": [1]}, "b")), Effects(TWO, plan()))
    assert (row["rebalances"], row["leaders_change"], row["rack_gained"], row["rack_lost"]) == (False, 0, 0, 0)
