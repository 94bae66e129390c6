"""One Spark session for all tests of a process; a job that finds one uses it, and leaves it open."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tiny jobs: one piece is enough for a shuffle, and neither a second plan nor a compiler pays. One core, so that one
# Python worker does all tasks: to import what they need takes longer than most of them.
MASTER = "local[1]"
SMALL = {
    "spark.default.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Its gateway logs once more while Python shuts down, when nobody can hear it.
logging.getLogger("py4j").setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def spark(object_store: ObjectStore) -> Iterator[SparkSession]:
    """Its workers find the object store as this process does: their environment is that of the moment it began."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(MASTER).config(map=SMALL).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
