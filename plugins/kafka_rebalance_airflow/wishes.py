"""Another throttle for moves that are under way, by a Variable."""

from __future__ import annotations

import logging
from collections.abc import Callable

VARIABLE = "kafka_rebalance_throttle_"  # and the connection's name; bytes/s
log = logging.getLogger(__name__)


def asking(kafka_conn_id: str) -> Callable[[], int | None]:
    """What asks, at every check, for the throttle that somebody wants; None if nobody does, or it is no number."""

    def asked() -> int | None:
        from airflow.sdk import Variable

        try:
            value = Variable.get(f"{VARIABLE}{kafka_conn_id}", default=None)
            return None if value is None else int(value)
        except Exception as error:
            log.warning("the Variable %s%s was not read: %s", VARIABLE, kafka_conn_id, error)
            return None

    return asked
