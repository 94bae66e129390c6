"""URIs that name a connection, such as ``s3://minio@bucket/prefix``, as Airflow's object storage has them.

Tasks, triggerer and api-server reach such a place through Airflow: `rebalance_lib` asks `filesystem`. A Spark job
cannot ask Airflow: it is given the same place without the connection, and the credentials in its environment, where
neither arguments nor logs, rendered templates or XComs show them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rebalance_lib.errors import InvalidInputError
from rebalance_lib.storage import BUCKET_ONLY, connection_of, scheme_of, without_connection

S3 = {"s3", "s3a"}
SETTINGS = "FSSPEC_S3"  # where fsspec looks for the options of S3


def filesystem(scheme: str, conn_id: str) -> Any:
    """The file system of a connection, by the provider that has the scheme; None if no provider has it.

    Providers of object stores start an event loop of their own: call it from a thread that has none.
    """
    from airflow.sdk.io import attach, has_fs

    try:
        return attach(scheme, conn_id).fs
    except ValueError:
        if has_fs(scheme):
            raise
        return None


@contextmanager
def handed_over(arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments of a Spark job without connections; meanwhile, what they stand for is in the environment.

    That is the environment of the process that starts the job. The job's driver has it if it runs on this machine,
    as with the deploy mode ``client``; workers have it too if the master is ``local``.

    Raises:
        InvalidInputError: The arguments name several connections, or one that is not for S3.
    """
    named = {
        (scheme_of(one), name) for one in arguments if scheme_of(one) in BUCKET_ONLY and (name := connection_of(one))
    }
    if not named:
        yield list(arguments)
        return
    if len(named) > 1 or not {scheme for scheme, _ in named} <= S3:
        listed = ", ".join(sorted(f"{scheme}://{name}@" for scheme, name in named))
        raise InvalidInputError(
            f"Spark cannot be given {listed}: one connection, for S3, can be handed over; give URIs without a "
            "connection, and the credentials in the environment of Airflow's workers and of Spark"
        )
    before = os.environ.get(SETTINGS)
    os.environ[SETTINGS] = json.dumps(_settings(*named.pop()))
    try:
        yield [without_connection(one) if scheme_of(one) in S3 else one for one in arguments]
    finally:
        if before is None:
            del os.environ[SETTINGS]
        else:
            os.environ[SETTINGS] = before


def _settings(scheme: str, conn_id: str) -> dict[str, Any]:
    """What s3fs needs to reach a place as the connection does, in its own words."""
    opened = filesystem(scheme, conn_id)
    if opened is None:
        raise InvalidInputError(
            f"{scheme}://{conn_id}@ names a connection: install apache-airflow-providers-amazon[s3fs], or name none"
        )
    session = opened.session
    found: dict[str, Any] = {
        "endpoint_url": opened.endpoint_url,
        "config_kwargs": opened.config_kwargs,
        "client_kwargs": {"region_name": session.get_config_variable("region")},
    }
    credentials = asyncio.run(_credentials(session))
    if credentials is None:
        return {**found, "anon": True}
    names = {"key": credentials.access_key, "secret": credentials.secret_key, "token": credentials.token}
    return {**found, **names}


async def _credentials(session: Any) -> Any:
    found = await session.get_credentials()
    return None if found is None else await found.get_frozen_credentials()
