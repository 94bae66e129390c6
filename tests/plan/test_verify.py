"""Each rule of a right plan, broken on purpose, and a plain reading of the rules over random plans."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError, PlanFormatError
from rebalance_lib.plan import Plan, Rule, Rules, verify_plan
from rebalance_lib.topology import Broker, TopicPartition

FOO_0, FOO_1, BAR_0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)
BROKERS = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b"), Broker(4, "b"), Broker(5, "c")]


def broken(before, after, brokers=BROKERS, **options):
    plan = after if isinstance(after, pa.Table) else Plan.from_assignment(after)
    violations = verify_plan(plan, brokers=brokers, before=Plan.from_assignment(before), rules=Rules(**options))
    return [(violation.partition, violation.rule.value) for violation in violations]


def rows(*entries):
    names = ("topic", "partition", "replicas")
    return pa.Table.from_pylist([dict(zip(names, entry, strict=True)) for entry in entries])


def test_the_worked_example():
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "b")]
    before, plan = Plan.from_assignment({FOO_0: [1, 3]}), Plan.from_assignment({FOO_0: [1, 2]})
    (violation,) = verify_plan(plan, brokers=brokers, before=before)
    assert (violation.partition, violation.rule) == (FOO_0, Rule.RACK_SPREAD)
    assert str(violation) == "foo-0: rack-spread: its replicas were in 2 racks and would be in 1"


def test_a_right_plan_has_no_violations():
    assert broken({FOO_0: [1, 3], FOO_1: [2, 4], BAR_0: [1]}, {FOO_0: [5, 3], BAR_0: [4]}) == []


def test_an_empty_plan_is_right_even_for_an_empty_cluster():
    assert broken({FOO_0: [1]}, {}) == []
    assert broken({}, {}, brokers=[]) == []


def test_a_partition_in_two_entries():
    assert broken({FOO_0: [1]}, rows(("foo", 0, [1]), ("foo", 0, [2]))) == [(FOO_0, "duplicate-partition")]


def test_a_partition_that_the_cluster_does_not_have():
    assert broken({FOO_0: [1]}, {FOO_1: [1]}) == [(FOO_1, "unknown-partition")]
    assert broken({}, {FOO_1: [1]}) == [(FOO_1, "unknown-partition")]


def test_a_plan_for_new_partitions_has_no_others():
    before = {FOO_0: [1, 3]}
    new = {TopicPartition("foo", number): [3, 1] for number in range(3)}
    assert broken(before, new, new_partitions=True) == [(FOO_0, "duplicate-partition")]
    del new[FOO_0]
    assert broken(before, new, new_partitions=True) == []
    assert broken(before, {TopicPartition("foo", 1): [9, 1]}, new_partitions=True) == [
        (TopicPartition("foo", 1), "unknown-broker")
    ]


def test_two_replicas_on_one_broker():
    assert broken({FOO_0: [1, 2]}, rows(("foo", 0, [2, 2]))) == [(FOO_0, "duplicate-broker")]


def test_a_broker_that_the_cluster_does_not_have():
    assert broken({FOO_0: [1]}, {FOO_0: [9]}, brokers=[Broker(1), Broker(2)]) == [(FOO_0, "unknown-broker")]
    assert broken({FOO_0: [1]}, rows(("foo", 0, [-1])), brokers=[Broker(1)]) == [(FOO_0, "unknown-broker")]


def test_a_replica_added_to_a_broker_that_is_not_allowed():
    assert broken({FOO_0: [1]}, {FOO_0: [5]}, allowed_brokers=[3, 4]) == [(FOO_0, "broker-not-allowed")]


def test_a_replica_may_stay_on_a_broker_that_is_not_allowed():
    assert broken({FOO_0: [1, 3]}, {FOO_0: [5, 1]}, allowed_brokers=[5]) == []


def test_a_drained_broker_must_be_empty_afterwards():
    before = {FOO_0: [1, 3], FOO_1: [1, 3], BAR_0: [1]}
    found = broken(before, {FOO_0: [2, 3], FOO_1: [3, 1]}, drained_brokers=[1])
    assert found == [(BAR_0, "broker-not-drained"), (FOO_1, "broker-not-drained")]
    assert broken(before, {FOO_0: [2, 3], FOO_1: [2, 3], BAR_0: [2]}, drained_brokers=[1]) == []


def test_the_replication_factor_is_kept_unless_another_is_asked_for():
    before, after = {FOO_0: [1, 3], BAR_0: [1]}, {FOO_0: [1, 3, 5], BAR_0: [2]}
    assert broken(before, after) == [(FOO_0, "replication-factor")]
    assert broken(before, after, replication_factor={"foo": 3}) == []
    assert broken(before, after, replication_factor=3) == [(BAR_0, "replication-factor")]
    assert broken(before, after, replication_factor={"bar": 3}) == [
        (BAR_0, "replication-factor"),
        (FOO_0, "replication-factor"),
    ]


def test_a_partition_without_replicas_has_not_its_replication_factor():
    assert broken({FOO_0: [1]}, rows(("foo", 0, []))) == [(FOO_0, "replication-factor")]


def test_fewer_replicas_may_be_in_fewer_racks_but_not_share_one():
    assert broken({FOO_0: [1, 3, 5]}, {FOO_0: [1, 3]}, replication_factor=2) == []
    assert broken({FOO_0: [1, 3, 5]}, {FOO_0: [1, 2]}, replication_factor=2) == [(FOO_0, "rack-spread")]


def test_as_many_racks_but_a_fuller_one_is_worse():
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "a"), Broker(4, "b"), Broker(5, "b")]
    assert broken({FOO_0: [1, 2, 4, 5]}, {FOO_0: [1, 2, 3, 4]}, brokers) == [(FOO_0, "rack-spread")]
    assert broken({FOO_0: [1, 2, 3, 4]}, {FOO_0: [1, 2, 4, 5]}, brokers) == []


def test_more_replicas_may_fill_a_rack_further():
    assert broken({FOO_0: [1, 3]}, {FOO_0: [1, 3, 2]}, replication_factor=3) == []


def test_a_partition_that_shared_a_rack_before_may_do_so_still():
    assert broken({FOO_0: [1, 2]}, {FOO_0: [3, 4]}) == []


def test_racks_count_only_if_all_brokers_have_one():
    assert broken({FOO_0: [1, 3]}, {FOO_0: [1, 2]}, [Broker(1, "a"), Broker(2, "a"), Broker(3)]) == []


def test_a_broker_that_is_gone_has_no_rack_to_keep():
    assert broken({FOO_0: [1, 9]}, {FOO_0: [1, 2]}) == []


def test_a_table_that_is_no_plan_at_all_is_refused():
    before = Plan.from_assignment({})
    with pytest.raises(PlanFormatError, match="a plan needs the column topic"):
        verify_plan(pa.table({"a": [1]}), brokers=[], before=before)
    with pytest.raises(InvalidInputError, match="the plan has no topic in 1 rows"):
        verify_plan(rows((None, 0, [1])), brokers=[], before=before)
    with pytest.raises(InvalidInputError, match="replicas that are null"):
        verify_plan(rows(("foo", 0, [1, None])), brokers=[], before=before)


def rules_by_hand(old, new, racks, allowed, drained):
    """The rules as the module states them, for one partition, in plain Python."""
    if any(count > 1 for count in Counter(new).values()):
        yield Rule.DUPLICATE_BROKER
    if any(broker not in racks for broker in new):
        yield Rule.UNKNOWN_BROKER
    if any(broker in racks and broker not in old and broker not in allowed for broker in new):
        yield Rule.BROKER_NOT_ALLOWED
    if any(broker in drained for broker in new):
        yield Rule.BROKER_NOT_DRAINED
    if len(old) != len(new):
        yield Rule.REPLICATION_FACTOR
    if None not in racks.values():
        was = Counter(racks[broker] for broker in old if broker in racks)
        becomes = Counter(racks[broker] for broker in new if broker in racks)
        left = Counter(rack for broker, rack in racks.items() if broker not in drained)
        allowed_share = max(max(was.values(), default=0), least_share(left, len(new)) if drained else 0)
        fuller = max(becomes.values(), default=0) > allowed_share
        comparable = becomes.total() <= was.total()
        if len(becomes) < min(len(was), len(new), len(left)) or (comparable and fuller):
            yield Rule.RACK_SPREAD


def least_share(left, replicas):
    """What the fullest rack holds if replicas are dealt out one by one to racks with brokers that are still free."""
    share = 0
    for dealt in range(replicas):
        if sum(min(brokers, share) for brokers in left.values()) <= dealt:
            share += 1
    return share


ids = st.integers(0, 7)


@given(
    st.dictionaries(ids, st.sampled_from(["a", "b", "c"]) | st.sampled_from(["a", "b", None])),
    st.lists(st.tuples(st.lists(ids, min_size=1, max_size=4, unique=True), st.lists(ids, max_size=4)), max_size=6),
    st.sets(ids),
    st.sets(ids, max_size=1),
)
def test_the_verifier_says_what_a_plain_reading_of_the_rules_says(racks, cases, allowed, drained):
    before = Plan.from_assignment({TopicPartition("foo", number): old for number, (old, _) in enumerate(cases)})
    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("replicas", pa.list_(pa.int32()))])
    entries = [{"topic": "foo", "partition": number, "replicas": new} for number, (_, new) in enumerate(cases)]
    found = verify_plan(
        pa.Table.from_pylist(entries, schema),
        brokers=[Broker(*item) for item in racks.items()],
        before=before,
        rules=Rules(allowed_brokers=allowed, drained_brokers=drained),
    )
    expected = {
        (number, rule)
        for number, (old, new) in enumerate(cases)
        for rule in rules_by_hand(old, new, racks, allowed, drained)
    }
    assert {(violation.partition.partition, violation.rule) for violation in found} == expected


def test_a_drained_rack_no_longer_counts():
    brokers = [Broker(1, "a"), Broker(2, "b"), Broker(3, "c"), Broker(4, "a")]
    before = Plan.from_assignment({TopicPartition("foo", 0): [1, 2, 3]})
    to_a_again = Plan.from_assignment({TopicPartition("foo", 0): [1, 2, 4]})
    assert verify_plan(to_a_again, brokers=brokers, before=before, rules=Rules(drained_brokers=[3])) == []
    [worse, *_] = verify_plan(to_a_again, brokers=brokers, before=before)
    assert worse.rule is Rule.RACK_SPREAD


def test_what_is_left_of_racks_must_still_be_shared_evenly():
    brokers = [Broker(id_, rack) for id_, rack in ((1, "a"), (2, "b"), (3, "c"), (4, "a"), (5, "b"), (6, "a"))]
    before = Plan.from_assignment({TopicPartition("foo", 0): [1, 2, 3]})
    all_in_a = Plan.from_assignment({TopicPartition("foo", 0): [1, 4, 6]})
    [found] = verify_plan(all_in_a, brokers=brokers, before=before, rules=Rules(drained_brokers=[3]))
    assert (found.rule, found.message) == (Rule.RACK_SPREAD, "its replicas were in 3 racks and would be in 1")


def test_a_dead_broker_has_no_rack_in_a_list_that_it_leaves_nor_in_one_that_it_stays_in():
    before = {FOO_0: [1, 9], FOO_1: [1, 9, 3], BAR_0: [1, 9, 3]}
    replaced = {FOO_0: [1, 2], FOO_1: [2, 9, 3]}
    assert broken(before, replaced, dead_brokers=[9]) == []
    assert broken(before, {FOO_1: [1, 9, 2]}, dead_brokers=[9]) == [(FOO_1, "rack-spread")]
    assert broken(before, {BAR_0: [1, 9, 2]}, [*BROKERS, Broker(6)], dead_brokers=[9]) == []


def test_a_rack_may_not_be_filled_further_beside_a_replica_that_stays_on_a_dead_broker():
    brokers = [Broker(1, "a"), Broker(2, "a"), Broker(3, "a"), Broker(4, "b"), Broker(5, "b")]
    before = {FOO_0: [1, 2, 4, 5, 9]}
    assert broken(before, {FOO_0: [1, 2, 3, 4, 9]}, brokers, dead_brokers=[9]) == [(FOO_0, "rack-spread")]
    assert broken(before, {FOO_0: [1, 2, 3, 4, 5]}, brokers, dead_brokers=[9]) == []


def test_a_dead_broker_may_keep_a_replica_and_is_given_none():
    assert broken({FOO_0: [1, 9]}, {FOO_0: [9, 1]}, dead_brokers=[9]) == []
    assert broken({FOO_0: [1, 3]}, {FOO_0: [1, 9]}, dead_brokers=[9]) == [
        (FOO_0, "broker-not-allowed"),
        (FOO_0, "rack-spread"),
    ]
