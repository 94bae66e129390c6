"""No plan breaks a rule, whatever the cluster and whatever is asked; an ask that cannot be met is refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.plan import Plan, Rules, verify_plan
from rebalance_lib.planner import Mode, Request
from rebalance_lib.topology import Broker
from tests.planner.clusters import choices, cluster, odd_clusters, topic
from tests.planner.examples import EXAMPLES
from tests.planner.rules import broken, bytes_moved

NEED_TOPICS = (Mode.TOPICS, Mode.REPLICATION_FACTOR, Mode.PARTITIONS)


def rarely(values):
    """Mostly what is not given."""
    return st.one_of(st.none(), st.none(), st.none(), values)


@st.composite
def requests(draw, cluster, mode):
    """Any ask about brokers and topics that the cluster has."""
    ids, live = list(cluster.hosts), cluster.live
    topics = sorted({name.topic for name in cluster.partitions})
    options = {
        "mode": mode,
        "brokers": tuple(
            draw(st.lists(st.sampled_from(ids), min_size=mode in (Mode.DRAIN, Mode.DEMOTE), max_size=2, unique=True))
        ),
        "excluded_brokers": draw(rarely(st.sampled_from(ids).map(lambda id_: (id_,)))) or (),
        "allowed_brokers": draw(rarely(st.lists(st.sampled_from(live), unique=True).map(tuple))) or (),
        "include_internal": draw(st.booleans()),
        "tolerance": draw(st.sampled_from([0.0, 0.01, 0.1])),
        "byte_budget": draw(rarely(st.sampled_from([0, 1, 5, 1 << 41]))),
        "move_budget": draw(rarely(st.sampled_from([0, 1, 3]))),
        "max_fill": draw(st.sampled_from([0.9, 1.0, 0.5])),
        "balance": draw(st.booleans()),
        "seed": draw(st.integers(0, 3)),
        "fill_level": draw(st.sampled_from([0.3, 0.6, 0.8])),
    }
    if topics and (mode in NEED_TOPICS or draw(st.booleans())):
        options["topics"] = tuple(draw(st.lists(st.sampled_from([*topics, "*"]), min_size=1, max_size=2)))
    if topics and draw(st.integers(0, 3)) == 0:
        options["excluded_topics"] = (draw(st.sampled_from(topics)),)
    if mode is Mode.REPLACE:
        options["replacements"] = draw(st.permutations(live))[: len(options["brokers"])]
    if mode in (Mode.REPLICATION_FACTOR, Mode.REPAIR):
        options["replication_factor"] = draw(st.integers(1, 4))
    if mode is Mode.DRAIN_LOG_DIRS:
        paths = [f"{id_}:{path}" for id_ in ids for path in cluster.hosts[id_].disks]
        options["log_dirs"] = tuple(draw(st.lists(st.sampled_from(paths), min_size=1, max_size=2, unique=True)))
    if mode is Mode.PARTITIONS:
        options["partitions"] = draw(st.integers(1, 8))
    return options


def offered_or_refused(before, options):
    """The candidates, or none if the ask is refused; nothing but a refusal in words may come instead."""
    try:
        request = Request(**options)
        return request, choices(before, request)
    except InvalidInputError:
        return None, []


@pytest.mark.parametrize("mode", Mode)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_plan_breaks_a_rule(mode, data):
    before = data.draw(odd_clusters())
    request, offered = offered_or_refused(before, data.draw(requests(before, mode)))
    assert len(offered) <= 4
    assert len({one.plan.digest for one in offered}) == len(offered)
    for one in offered:
        after, figures = before.after(one.plan), one.figures
        assert broken(before, one.plan, request) == []
        assert figures.bytes_moved == bytes_moved(before, after)
        assert figures.least_bytes_for_balance <= figures.least_bytes <= figures.bytes_moved
        assert figures.leaders_moved == sum(
            after.partitions[name].replicas[0] != held.replicas[0] for name, held in before.partitions.items()
        )


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode not in (Mode.DISKS, Mode.EXPAND, Mode.LIGHT)])
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_plan_crowds_the_larger_of_uneven_racks(mode, data):
    """Every partition is spread as well as these racks allow, which a plan that does not look at them soon undoes."""
    many, few = data.draw(st.integers(4, 6)), data.draw(st.integers(2, 3))
    racks = {id_: "a" if id_ < many else "b" for id_ in range(many + few)}
    lists = [[0, many, 1, many + 1], [many, 2, 3, many + 1]] * 3
    before = cluster(racks, topic("orders", [data.draw(st.permutations(replicas)) for replicas in lists]))
    request, offered = offered_or_refused(before, data.draw(requests(before, mode)))
    for one in offered:
        assert broken(before, one.plan, request) == []


@pytest.mark.parametrize("mode", [Mode.BALANCE, Mode.DRAIN, Mode.REPAIR])
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_verifier_finds_nothing_either(mode, data):
    before = data.draw(odd_clusters())
    request, offered = offered_or_refused(before, {"mode": mode, "brokers": (next(iter(before.hosts)),)})
    dead = set(before.hosts) - set(before.live)
    for one in offered:
        found = verify_plan(
            one.plan,
            brokers=[Broker(id_, before.hosts[id_].rack) for id_ in before.live],
            before=Plan.from_assignment(before.assignment()),
            rules=Rules(dead_brokers=dead, drained_brokers=request.brokers if mode is Mode.DRAIN else ()),
        )
        assert found == []
