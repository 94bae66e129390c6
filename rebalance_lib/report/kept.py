"""What stays where it was to be taken away: the partitions that brokers to be demoted still lead after a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rebalance_lib.planner import Choice

NAMED = 50  # partitions that a list in a file names at most


def leaders_kept(choice: Choice) -> dict[str, Any] | None:
    """The partitions whose preferred leaders stay on demoted brokers; None in all other modes."""
    request, outcome = choice.request, choice.recommended.outcome
    if request is None or request.mode != "demote":
        return None
    model, leader = outcome.model, outcome.placement.leader
    found = np.flatnonzero(np.isin(model.broker_ids[leader], request.brokers))
    return {"count": len(found), "partitions": [model.name(p) for p in found[:NAMED].tolist()]}
