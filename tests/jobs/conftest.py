"""One Spark session for all tests of the jobs; a job that finds one uses it, and leaves it open."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.object_store import ObjectStore

# Its gateway logs once more while Python shuts down, when nobody can hear it.
logging.getLogger("py4j").setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def spark(object_store: ObjectStore) -> Iterator[SparkSession]:
    """Its workers find the object store as this process does: their environment is that of the moment it began."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
