"""A real S3-compatible server on this machine, for everything that must work on one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

from rebalance_lib.artifacts import Artifacts

KEY, SECRET = "a-key-of-the-tests", "a-secret-of-the-tests"
NUMBERS = itertools.count(1)


class ObjectStore:
    """The server; its address and the credentials are in the environment, as on a machine of a cloud."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.client = boto3.client("s3")

    def bucket(self) -> Artifacts:
        """A new bucket."""
        name = f"bucket-{next(NUMBERS)}"
        self.client.create_bucket(Bucket=name)
        return Artifacts(f"s3://{name}")


@contextmanager
def running() -> Iterator[ObjectStore]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield ObjectStore(given["AWS_ENDPOINT_URL_S3"])
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
