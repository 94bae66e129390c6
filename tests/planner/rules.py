"""What no plan may break, counted over dictionaries, apart from the planner's arrays and from `verify_plan`."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rebalance_lib.planner import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rebalance_lib.plan import Plan
    from rebalance_lib.planner import Request
    from tests.planner.clusters import Cluster

MENDING = (Mode.DRAIN, Mode.REPLACE, Mode.REPAIR, Mode.DEMOTE, Mode.DRAIN_LOG_DIRS)


def broken(before: Cluster, plan: Plan, request: Request) -> list[str]:
    """Every rule that a plan breaks, in words; none if it is right."""
    after = before.after(plan)
    return [
        *wrong_topics(before, plan, request),
        *wrong_brokers(before, plan, request),
        *wrong_factors(before, after, request),
        *wrong_leaders(before, plan, request),
        *worse_racks(before, after, request),
        *outside_of_sets(before, after),
        *overfull_disks(before, after, request),
        *overspent_budgets(before, after, request),
    ]


def arrivals(before: Cluster, after: Cluster) -> Iterator[tuple[str, int, int]]:
    """Partition, broker and bytes of every replica that is copied to a broker that had none."""
    for name, held in after.partitions.items():
        had = before.partitions.get(name)
        for broker in held.replicas:
            if had is None or broker not in had.replicas:
                yield str(name), broker, had.size if had is not None else 0


def bytes_moved(before: Cluster, after: Cluster) -> int:
    return sum(size for _, _, size in arrivals(before, after))


def chosen(before: Cluster, request: Request) -> set[str]:
    """The topics that a request may touch."""
    topics = {name.topic: held.internal for name, held in before.partitions.items()}
    everything = request.include_internal or request.mode in MENDING
    picked = {
        topic
        for topic, internal in topics.items()
        if (any(fnmatchcase(topic, word) for word in request.topics) if request.topics else everything or not internal)
    }
    return {topic for topic in picked if not any(fnmatchcase(topic, word) for word in request.excluded_topics)}


def wrong_topics(before: Cluster, plan: Plan, request: Request) -> Iterator[str]:
    allowed = chosen(before, request)
    for entry in plan:
        if entry.topic not in allowed:
            yield f"{entry.topic_partition} is not of a chosen topic"
        if entry.topic_partition not in before.partitions and request.mode is not Mode.PARTITIONS:
            yield f"{entry.topic_partition} does not exist"


def wrong_brokers(before: Cluster, plan: Plan, request: Request) -> Iterator[str]:
    cordoned = {id_ for id_, host in before.hosts.items() if host.cordoned and set(host.disks) <= set(host.cordoned)}
    allowed = set(request.allowed_brokers or before.live) & set(before.live) - set(request.excluded_brokers) - cordoned
    if request.mode is Mode.DRAIN:
        allowed -= set(request.brokers)
    if request.mode is Mode.EXPAND:
        allowed &= set(request.brokers or (id_ for id_ in before.hosts if not before.replicas_by_broker()[id_]))
    if request.mode is Mode.REPLACE:
        allowed &= set(request.replacements)
    for entry in plan:
        held = before.partitions.get(entry.topic_partition)
        had = set(held.replicas) if held is not None else set()
        if len(set(entry.replicas)) < len(entry.replicas):
            yield f"{entry.topic_partition} names a broker twice: {entry.replicas}"
        if strangers := set(entry.replicas) - had - allowed:
            yield f"{entry.topic_partition} goes to {strangers}, who may not be given replicas"
        if gone := (had - set(entry.replicas)) & set(request.excluded_brokers):
            yield f"{entry.topic_partition} leaves {gone}, who are excluded"


def wrong_leaders(before: Cluster, plan: Plan, request: Request) -> Iterator[str]:
    """Excluded brokers keep what they lead, and lead nothing else unless nobody else can."""
    excluded = set(request.excluded_brokers)
    for entry in plan:
        held = before.partitions.get(entry.topic_partition)
        old, new = held.replicas[0] if held is not None else None, entry.replicas[0]
        others = set(entry.replicas) & set(before.live) - excluded
        if old != new and (old in excluded or (new in excluded and others)):
            yield f"{entry.topic_partition} was led by {old} and would be by {new}, of whom {excluded} are excluded"


def wrong_factors(before: Cluster, after: Cluster, request: Request) -> Iterator[str]:
    picked = chosen(before, request)
    for name, held in after.partitions.items():
        wanted = len(before.partitions[name].replicas) if name in before.partitions else None
        if request.mode is Mode.REPLICATION_FACTOR and name.topic in picked:
            wanted = request.replication_factor
        if request.mode is Mode.REPAIR and request.replication_factor and name.topic in picked and wanted:
            wanted = max(wanted, request.replication_factor)
        if wanted is not None and len(held.replicas) != wanted:
            yield f"{name} has {len(held.replicas)} replicas instead of {wanted}"


def outside_of_sets(before: Cluster, after: Cluster) -> Iterator[str]:
    """A replica is given to no broker outside of its topic's set."""
    for name, broker, _ in arrivals(before, after):
        if broker not in before.set_of(name.rpartition("-")[0]):
            yield f"{name} goes to {broker}, outside of its topic's broker set"


def racks_of(cluster: Cluster, replicas: tuple[int, ...], members: set[int] | None = None) -> Counter[str]:
    """How many replicas are in each rack; those on dead brokers, and outside of their set, are in none."""
    inside = (broker for broker in replicas if members is None or broker in members)
    racks = (cluster.rack(broker) for broker in inside if cluster.hosts[broker].alive)
    return Counter(rack for rack in racks if rack is not None)


def fewest_in_the_fullest(brokers_in_rack: Counter[str], replicas: int) -> int:
    """How many replicas one rack must hold if they are spread as well as these racks allow."""
    return next(
        (most for most in range(replicas + 1) if sum(min(n, most) for n in brokers_in_rack.values()) >= replicas),
        replicas,
    )


def worse_racks(before: Cluster, after: Cluster, request: Request) -> Iterator[str]:
    """A rack that a drain leaves without a live broker cannot be kept: the others are then shared as they can be."""
    if not before.racks_count:
        return
    drained = set(request.brokers) if request.mode is Mode.DRAIN else set()
    for name, held in after.partitions.items():
        if name not in before.partitions or held.replicas == before.partitions[name].replicas:
            continue
        had, members = before.partitions[name].replicas, before.set_of(name.topic)
        left = Counter(before.rack(broker) for broker in before.live if broker not in drained and broker in members)
        old, new = racks_of(before, had, members), racks_of(before, held.replicas, members)
        if len(new) < min(len(old), len(held.replicas), len(left)):
            yield f"{name} was in {len(old)} racks and would be in {len(new)}: {had} to {held.replicas}"
        comparable = sum(old.values()) == len(had) and len(held.replicas) <= len(had)
        fullest = max(old.values(), default=0)
        if drained or before.sets:
            fullest = max(fullest, fewest_in_the_fullest(left, len(held.replicas)))
        if comparable and max(new.values(), default=0) > fullest:
            yield f"{name} would have {max(new.values())} replicas in a rack: {had} to {held.replicas}"


def overfull_disks(before: Cluster, after: Cluster, request: Request) -> Iterator[str]:
    held = after.bytes_by_disk()
    came = {
        (broker, disk)
        for name, now in after.partitions.items()
        for broker, disk in zip(now.replicas, now.log_dirs, strict=True)
        if name not in before.partitions
        or broker not in before.partitions[name].replicas
        or before.partitions[name].log_dirs[before.partitions[name].replicas.index(broker)] != disk
        if name not in before.partitions or before.partitions[name].size > 0
    }
    for broker, disk in came:
        capacity = before.hosts[broker].disks.get(disk) if disk is not None else None
        if capacity is None:
            continue
        full = held[broker, disk] + before.hosts[broker].other_data
        # One byte of grace: a part of a capacity is no whole number.
        if full > capacity * request.max_fill + max(1, capacity >> 50):
            yield f"{disk} of broker {broker} would hold {full} of {capacity}, above {request.max_fill:.0%}"


def overspent_budgets(before: Cluster, after: Cluster, request: Request) -> Iterator[str]:
    copied = list(arrivals(before, after))
    spent = sum(size for _, _, size in copied)
    if request.byte_budget is not None and spent > request.byte_budget:
        yield f"{spent} bytes are copied, the budget is {request.byte_budget}"
    if request.move_budget is not None and len(copied) > request.move_budget:
        yield f"{len(copied)} replicas are copied, the budget is {request.move_budget}"
