"""When the execution of a plan began, and the ids that its topics had then.

By its id, a topic that is deleted and created again under the same name is known from the one that was planned; one
that was missing then has an id that no topic has. The time is what a maximum run time counts from. Both outlive the
process; a run that was finalized begins anew next time.

There are two copies, as of saved throttles, each written through to the disk: if one is damaged, the other one counts.
Ids that are taken anew when a topic was created again would make the new topic the planned one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.clock import Clock
from rebalance_lib.cluster import PartitionMetadata
from rebalance_lib.errors import InvalidInputError, RebalanceError
from rebalance_lib.execution.job import Job
from rebalance_lib.execution.plan_status import Ends
from rebalance_lib.execution.requests import forget_requests, read_requests
from rebalance_lib.topology import TopicPartition

EXECUTION, BACKUP = "execution.json", "execution.backup.json"
MISSING_ID = "missing"  # of a topic that was not there when the run began: whatever has its name later is another one


@dataclass(frozen=True, slots=True)
class Execution:
    """A plan, by digest, that is being executed on a cluster: since when, and its topics' ids."""

    cluster_id: str
    digest: str
    started_at: datetime
    topic_ids: Mapping[str, str]
    in_stages: bool = True
    ended: bool = False


def note_begin(
    job: Job, live: Mapping[TopicPartition, PartitionMetadata], clock: Clock, *, in_stages: bool
) -> Execution:
    """Note that the plan is being executed, unless it is noted already.

    Args:
        job: The plan.
        live: Its partitions.
        clock: What tells the time.
        in_stages: Whether partitions take their new replicas one at a time: then a reassignment to a stage is our own.
    """
    known = read_execution(job.artifacts)
    if known is not None and known.digest == job.plan.digest and not known.ended:
        if (in_stages and not known.in_stages) or _read(job.artifacts, EXECUTION) is None:
            known = replace(known, in_stages=in_stages or known.in_stages)
            _write(job.artifacts, known)
        return known
    topics = {tp.topic for tp in job.targets}
    ids = dict.fromkeys(topics - {tp.topic for tp in live}, MISSING_ID)
    ids |= {tp.topic: state.topic_id for tp, state in live.items() if tp.topic in topics and state.topic_id}
    execution = Execution(job.cluster_id, job.plan.digest, clock.now(), ids, in_stages)
    _write(job.artifacts, execution)
    return execution


def note_end(artifacts: Artifacts) -> None:
    """Note that the run has ended in good order: what people asked of it is over, and the next one begins anew."""
    forget_requests(artifacts, read_requests(artifacts))
    known = read_execution(artifacts)
    if known is not None and not known.ended:
        _write(artifacts, replace(known, ended=True))


def read_execution(artifacts: Artifacts) -> Execution | None:
    """What is noted, from whichever copy is whole; None if there is none: then the ids are taken anew."""
    return _read(artifacts, EXECUTION) or _read(artifacts, BACKUP)


def _read(artifacts: Artifacts, name: str) -> Execution | None:
    if not artifacts.exists(name):
        return None
    try:
        content: Any = artifacts.read_json(name)
        started = datetime.fromisoformat(content["started_at"])
        ids = {str(topic): str(one) for topic, one in content["topic_ids"].items()}
        cluster_id, digest = str(content["cluster_id"]), str(content["digest"])
        return Execution(cluster_id, digest, started, ids, bool(content["in_stages"]), bool(content["ended"]))
    except (InvalidInputError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None


def planned_ends(job: Job, *, in_stages: bool = True) -> Ends:
    """Both ends of the plan's partitions, and the ids that its topics had when its execution began.

    Ids that cannot be read now are not known: what must be cleaned up is cleaned up without them.

    Args:
        job: The plan.
        in_stages: What counts where that cannot be read: whether a reassignment to a stage may be our own.
    """
    with suppress(RebalanceError):
        execution = read_execution(job.artifacts)
        if execution is not None and execution.digest == job.plan.digest and not execution.ended:
            return Ends(job.targets, job.origins, execution.topic_ids, execution.in_stages)
    return Ends(job.targets, job.origins, in_stages=in_stages)


def _write(artifacts: Artifacts, execution: Execution) -> None:
    content = {
        "cluster_id": execution.cluster_id,
        "digest": execution.digest,
        "started_at": execution.started_at.isoformat(),
        "topic_ids": dict(execution.topic_ids),
        "in_stages": execution.in_stages,
        "ended": execution.ended,
    }
    for name in (BACKUP, EXECUTION):
        artifacts.write_json(name, content, durable=True)
