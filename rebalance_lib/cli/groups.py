"""``kafka-rebalance groups``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import pyarrow.compute as pc

from rebalance_lib.cli.connection import Connection, cluster_options
from rebalance_lib.cli.group_impacts import show_impacts
from rebalance_lib.cli.group_listing import GroupLine, MemberLine, group_lines, member_lines
from rebalance_lib.cli.options import FILE, PlanFile, command, output_option
from rebalance_lib.cli.output import Output
from rebalance_lib.cluster import Cluster, take_groups, take_snapshot
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.topology import Groups, TopicPartition

EXAMPLE = r"""
kafka-rebalance groups --bootstrap-server kafka:9092
kafka-rebalance groups --bootstrap-server kafka:9092 --group billing
kafka-rebalance groups --bootstrap-server kafka:9092 --reassignment-json-file plan/plan.json
"""
COUNTS = ("members", "topics", "partitions", "least", "most", "idle", "lag")
MEMBER_COLUMNS = ("group", "member", "client id", "host", "instance", "rack", "partitions")


@command("groups", example=EXAMPLE)
@cluster_options
@click.option("--group", "names", metavar="NAME", multiple=True, help="Only this group, with its members; repeatable.")
@click.option(
    "--reassignment-json-file",
    "plan",
    type=FILE,
    help="Show what this plan would do to each group, new partitions too.",
)
@output_option
def groups(*, connection: Connection, output: Output, names: tuple[str, ...], plan: Path | None) -> None:
    """Show each consumer group: its assignor, how its partitions are shared, and how far behind it is.

    Least and most are partitions per member, idle members have none. The lag is the sum over all partitions for which
    the group has committed an offset. A dash is for what is not known.

    With a plan, its effects are shown instead: a group rebalances where its topics get more partitions, and what its
    members have then is forecast with the group's own assignor. Nothing is changed.
    """
    wanted = None if plan is None else PlanFile(plan).read()
    with connection.open() as cluster:
        found = _chosen(take_groups(cluster), names)
        if wanted is not None:
            from rebalance_lib.report.groups import group_impacts  # noqa: PLC0415 - brings numba: a listing needs none

            impacts = group_impacts(found, take_snapshot(cluster), {"plan": wanted})
            show_impacts(output, impacts.drop_columns(["candidate"]).to_pylist(), with_members=bool(names))
            return
        lines = group_lines(found, _ends(cluster, found))
    members = member_lines(found) if names else []
    output.table("Consumer groups", ("group", "state", "assignor", *COUNTS), [_group_cells(line) for line in lines])
    if names:
        output.table("Members", MEMBER_COLUMNS, [_member_cells(line) for line in members])
    listed = {"members": [asdict(line) for line in members]} if names else {}
    output.result({"groups": [asdict(line) for line in lines], **listed})


def _chosen(found: Groups, names: Sequence[str]) -> Groups:
    """These groups, or all."""
    if not names:
        return found
    if missing := sorted(set(names) - set(found.members["group"].to_pylist())):
        raise InvalidInputError(f"no consumer group {', '.join(missing)}: without --group, all of them are listed")
    return Groups(*(table.filter(pc.field("group").isin(names)) for table in (found.members, found.offsets)))


def _ends(cluster: Cluster, found: Groups) -> dict[TopicPartition, int]:
    """The end offsets of all partitions for which an offset is committed, where their leaders tell."""
    topics, partitions = (found.offsets[name].to_pylist() for name in ("topic", "partition"))
    wanted = {TopicPartition(*partition) for partition in zip(topics, partitions, strict=True)}
    states = cluster.partitions(topics)
    leaders = {tp: state.leader for tp, state in states.items() if tp in wanted and state.leader is not None}
    return {partition: offsets.end for partition, offsets in cluster.offsets(leaders).items()}


def _group_cells(line: GroupLine) -> list[str]:
    counts = (getattr(line, name) for name in COUNTS)
    return [line.group, line.state, line.assignor or "-", *("-" if count is None else str(count) for count in counts)]


def _member_cells(line: MemberLine) -> list[str]:
    partitions = "-" if line.partitions is None else ",".join(line.partitions)
    return [line.group, line.member, line.client_id, line.host, line.instance or "-", line.rack or "-", partitions]
