"""A choice of plans in a few figures, as data: what ``summary.json`` holds and every other text is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rebalance_lib.plan.diff import LARGEST_MOVES
from rebalance_lib.plan.pace import Pace
from rebalance_lib.report.factors import factor_changes
from rebalance_lib.report.forecast import Forecasts
from rebalance_lib.report.group_figures import group_figures
from rebalance_lib.report.kept import leaders_kept
from rebalance_lib.report.loads import load_figures
from rebalance_lib.report.moves import FIGURES, brokers_table
from rebalance_lib.report.risks import risks
from rebalance_lib.threads import side_by_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalance_lib.planner import Candidate, Choice, ClusterModel
    from rebalance_lib.planner.outcome import Outcome

VERSION = 1
BROKERS_SHOWN = 20


def summarize(choice: Choice, pace: Pace | None = None) -> dict[str, Any]:
    """The cluster, the request, and each candidate in figures; what is not below a candidate is of the recommended.

    `of_candidate` gives the same for another one.
    """
    from rebalance_lib.planner.resources import unknown_capacities  # noqa: PLC0415 - brings numba, as below

    pace = pace or Pace()
    model, chosen = choice.model, choice.recommended
    sizes, rest = model.snapshot.replicas["size_bytes"], model.rest
    summary = {
        "version": VERSION,
        "cluster_id": model.snapshot.cluster_id,
        "snapshot_taken_at": model.snapshot.taken_at,
        "mode": None if choice.request is None else str(choice.request.mode),
        "request": None if choice.request is None else choice.request.as_dict(),
        "recommended": chosen.name,
        "partitions": choice.before.partitions,
        "partitions_left_alone": chosen.outcome.scope.offline,
        "remarks": list(chosen.outcome.scope.remarks),
        "replicas_kept": _kept(choice),
        "leaders_kept": leaders_kept(choice),
        "bytes_total": (pc.sum(sizes).as_py() or 0) + (rest.sums.total("snapshot_bytes") if rest else 0),
        "rates_known": model.write_rate is not None,
        "loads": load_figures(model.snapshot, choice.rates, rest),
        "brokers_without_rack": _without_rack(model),
        "unknown_capacities": {str(one): ids for one, ids in unknown_capacities(model).items()},
        "certificate": certificate_figures(choice),
        "dead_brokers": model.broker_ids[~model.alive].tolist(),
        "replicas_of_unknown_size": sizes.null_count + (rest.sums.total("unknown_sizes") if rest else 0),
        "pace": pace.as_dict(),
        "timings": dict(choice.timings),
    }
    forecasts = Forecasts.of(model, pace)
    described = side_by_side(
        lambda one: _candidate(one, summary, forecasts, choice), choice.candidates, model.partitions
    )
    summary["candidates"] = {one.name: figures for one, figures in zip(choice.candidates, described, strict=True)}
    return of_candidate(summary, chosen.name)


def of_candidate(summary: dict[str, Any], name: str) -> dict[str, Any]:
    """The summary with the figures of this candidate in place of those of the recommended one."""
    one = summary["candidates"][name]
    figures = {key: one["figures"][key] for key in _OF_FIGURES}
    return {**summary, **figures, **{key: one[key] for key in _OF_CANDIDATES}}


_OF_FIGURES = (
    "partitions_changed",
    "replicas_moved",
    "leaders_moved",
    "order_only",
    "bytes_moved",
    "least_bytes",
    "bytes_over_least",
)
_OF_CANDIDATES = ("digest", "partitions_in_fewer_racks", "brokers", "largest_moves", "forecast")


def _candidate(one: Candidate, cluster: dict[str, Any], forecasts: Forecasts, choice: Choice) -> dict[str, Any]:
    """One plan: what it moves, how long that takes, what brokers hold before and after, and what may go wrong."""
    outcome = one.outcome
    # There is nothing to copy to new partitions.
    expected = None if one.figures.partitions_added else forecasts.of_candidate(one).as_dict()
    groups = group_figures(choice.impacts, one.name)
    goals = _goals(one, cluster["certificate"], choice)
    fills = [log_dir["fill"] for log_dir in expected["log_dirs"] if log_dir["fill"] is not None] if expected else []
    return {
        "digest": one.plan.digest,
        "figures": one.figures.as_dict(),
        "goals": goals,
        "seconds": expected["seconds"] if expected else 0.0,
        "forecast": expected,
        "peak_fill": max(fills, default=None),
        "partitions_in_fewer_racks": outcome.in_fewer_racks,
        "brokers": brokers_before_after(outcome),
        "largest_moves": largest_moves(outcome),
        "factor_changes": factor_changes(outcome),
        "risks": risks(cluster, outcome.in_fewer_racks, expected, groups, goals),
        "groups": groups,
    }


def certificate_figures(choice: Choice) -> dict[str, Any] | None:
    """How even the cluster could be, and the least that any plan must copy for its tolerances; None if no request."""
    from rebalance_lib.planner.certified import certificate_of  # noqa: PLC0415 - brings numba and HiGHS

    certificate = choice.certificate
    if certificate is None and choice.request is not None:
        certificate = certificate_of(choice.model, choice.recommended.outcome.scope, choice.request)
    if certificate is None:
        return None
    figures = {"least_bytes": certificate.least_bytes, "best": certificate.best}
    return figures | ({"best_of_sets": list(certificate.best_of_sets)} if certificate.best_of_sets else {})


def _goals(one: Candidate, certificate: dict[str, Any] | None, choice: Choice) -> list[dict[str, Any]]:
    """What each goal says of a candidate, with the best that any plan could reach."""
    best, best_of_sets = ((certificate or {}).get(name, {}) for name in ("best", "best_of_sets"))
    found = one.outcome.verdicts(choice.request, best, best_of_sets, choice.before)
    return [verdict.as_dict() for verdict in found]


def _kept(choice: Choice) -> dict[str, int]:
    """By broker that is to be emptied: the replicas that it keeps, because their topics are excluded."""
    from rebalance_lib.planner.request import EMPTYING  # noqa: PLC0415 - brings numba, which most commands never need

    request, outcome = choice.request, choice.recommended.outcome
    if request is None or request.mode not in EMPTYING:
        return {}
    _, after = outcome.loads()["replicas"]
    held = zip(outcome.model.broker_ids.tolist(), after.tolist(), strict=True)
    return {str(id_): count for id_, count in held if count and id_ in request.brokers}


def _without_rack(model: ClusterModel) -> list[int]:
    """The live brokers that have no rack where others have one: because of them, racks do not count."""
    rows = model.snapshot.brokers.filter(model.snapshot.brokers["alive"])
    missing = pc.is_null(rows["rack"])
    return rows.filter(missing)["broker"].to_pylist() if pc.any(pc.invert(missing)).as_py() else []


def brokers_before_after(outcome: Outcome) -> list[dict[str, Any]]:
    """Per broker: bytes, replicas and leaders, as they are and as the plan leaves them."""
    return [
        {
            "broker": row["broker"],
            "rack": row["rack"],
            **{when: {name: row[f"{name}_{when}"] for name in FIGURES} for when in ("before", "after")},
        }
        for row in brokers_table(outcome).to_pylist()
    ]


def changed_most(brokers: Sequence[dict[str, Any]], count: int = BROKERS_SHOWN) -> list[dict[str, Any]]:
    """Of many brokers those that change most, by bytes, then replicas, then leaders; in their order."""

    def change(broker: dict[str, Any]) -> tuple[int, ...]:
        return tuple(abs(broker["after"][name] - broker["before"][name]) for name in FIGURES)

    if len(brokers) <= count:
        return list(brokers)
    chosen = sorted(range(len(brokers)), key=lambda place: change(brokers[place]), reverse=True)[:count]
    return [brokers[place] for place in sorted(chosen)]


def largest_moves(outcome: Outcome) -> list[dict[str, Any]]:
    """The partitions that copy the most bytes, the largest first."""
    model, after, changed = outcome.model, outcome.placement, outcome.changed
    copies = np.bincount(outcome.partition_after[outcome.arrivals], minlength=after.model.partitions)
    copied = (copies * after.model.size)[changed]
    if len(changed) > LARGEST_MOVES:
        least = np.partition(copied, -LARGEST_MOVES)[-LARGEST_MOVES]
        larger, as_large = np.flatnonzero(copied > least), np.flatnonzero(copied == least)
        changed = changed[np.sort(np.r_[larger, as_large[: LARGEST_MOVES - len(larger)]])]
    rows: list[dict[str, Any]] = [
        {
            "partition": after.model.name(p),
            "from": _brokers(model.broker_ids, model.broker, model.offsets, p) if p < model.partitions else [],
            "to": _brokers(model.broker_ids, after.layout.broker, after.layout.offsets, p),
            "bytes": int(copies[p] * after.model.size[p]),
        }
        for p in changed.tolist()
    ]
    return sorted(rows, key=lambda row: -row["bytes"])[:LARGEST_MOVES]


def _brokers(ids: Any, broker: Any, offsets: Any, p: int) -> list[int]:
    listed: list[int] = ids[broker[offsets[p] : offsets[p + 1]]].tolist()
    return listed
