"""The Spark session of a job: settings of its own, and nobody else's session touched.

    with session("kafka-rebalance compute_placement") as spark:
        tune_spark(spark, partitions)
        ...

There are three cases:

- *A session is active*, in a notebook, a test or a larger program. The job gets a session of its own on the same Spark
  application, with SQL settings and temporary views of its own. The other keeps its settings, its views and its place
  as the active session, and is not stopped.
- *A Spark Connect server is configured*, by ``SPARK_REMOTE`` or ``spark-submit --remote``. The job gets a session of
  that server: no JVM has to start. The server's Python workers need this project, installed or by ``addArtifacts``.
- *Neither.* A Spark application is started and stopped at the end. What spark-submit, spark-defaults.conf or the
  environment says of a property goes before `OWN`.

Through Connect there is no ``sparkContext`` (so no ``defaultParallelism``: use `parallelism`), no ``rdd``, no
``newSession`` and no ``setCheckpointDir``. ``mapInArrow``, ``applyInArrow``, ``cogroup.applyInArrow``,
``createDataFrame`` of an Arrow table, ``toArrow``, temporary views, ``persist``, ``localCheckpoint``, broadcast hints
and ``inputFiles`` work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

REMOTE = "SPARK_REMOTE"
OWN = {
    "spark.log.level": "WARN",  # else a thousand lines hide the few that matter
    "spark.ui.enabled": "false",  # a web server that nobody opens while a plan is made takes a second to start
    "spark.ui.showConsoleProgress": "false",
    # Over TCP, each task waits some 40 ms for a delayed acknowledgement: 300 empty tasks took 9 s so, and 3 s without.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.unix.domain.socket.dir": "/tmp",  # noqa: S108 - YARN's own is longer than the path of a socket may be
    # Two attempts of a task at a time would write the same staged files.
    "spark.speculation": "false",
    # By default each sort and each aggregate of a task begins with a page of up to 64 MB, which is cleared first. With
    # 4 GB of heap that took 500 MB and 2 s of a plan of 10,000 partitions (`python -m bench.startup`).
    "spark.buffer.pageSize": "2m",
}
PARTITIONS_OF_A_SHUFFLE = 2_000_000
MOST_SHUFFLE_PARTITIONS = 200
# What is checked in SQL is counted before: thousands of rows for each cluster, however large. Spark would spend time
# on planning anew, and for few clusters on compilers: see "Start-up" in docs/scaling.md.
ALWAYS = {"spark.sql.adaptive.enabled": "false"}
FEW_PARTITIONS = 200_000
FOR_FEW = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
ROWS_TO_COUNT_SPLITS = 4_096


def is_submitted() -> bool:
    """Whether spark-submit runs this program: there is a JVM already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def start_session(app_name: str) -> Future[SparkSession]:
    """Begin to start Spark: a program does so before it imports what else it needs, and both take less time.

    A program that ends early need not wait for it.
    """
    started: Future[SparkSession] = Future()

    def start() -> None:
        try:
            started.set_result(_make(app_name))
        except BaseException as error:
            started.set_exception(error)

    Thread(target=start, daemon=True).start()
    return started


@contextmanager
def session(app_name: str, started: Future[SparkSession] | None = None) -> Iterator[SparkSession]:
    """A session that the job may tune; another that is active stays as it is.

    Args:
        app_name: What the application is called, unless spark-submit has named it.
        started: The answer of `start_session`, if it was called.
    """
    active = SparkSession.getActiveSession() if started is None else None
    if active is not None:
        another = another_session(active)
        try:
            yield another
        finally:
            close_session(another)
            _activate(active)
        return
    own = _make(app_name) if started is None else started.result()
    try:
        yield own
    finally:
        own.stop()


def tune_spark(spark: SparkSession, partitions: int) -> None:
    """Suit a session that the job made to what there is to plan; what was set for it before stays.

    Args:
        spark: The session of `session`, never another.
        partitions: Of all clusters together.
    """
    shuffle = max(1, min(MOST_SHUFFLE_PARTITIONS, partitions // PARTITIONS_OF_A_SHUFFLE))
    wanted = ALWAYS | {"spark.sql.shuffle.partitions": str(shuffle)} | (FOR_FEW if partitions < FEW_PARTITIONS else {})
    given = spark.conf.getAll
    for name, value in wanted.items():
        if name not in given:
            spark.conf.set(name, value)


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time by default: ``defaultParallelism``, also through Spark Connect."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    splits = spark.range(ROWS_TO_COUNT_SPLITS).select(f.spark_partition_id().alias("split"))
    return int(splits.distinct().count())


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def another_session(active: SparkSession) -> SparkSession:
    """A session of the same application with settings of its own; `close_session` releases it."""
    return active.cloneSession() if is_remote(active) else active.newSession()


def close_session(another: SparkSession) -> None:
    """Release what a Spark Connect server keeps for a session of `another_session`; otherwise there is nothing to do.

    ``stop`` would do more: it ends the server if pyspark started it, and the application where there is no server.
    """
    if is_remote(another):
        for release in (another.client.release_session, another.client.close):
            with suppress(Exception):  # the server forgets a session that is not used, an hour later by default
                release()


def _activate(former: SparkSession) -> None:
    """Make the former session the active one again: whoever makes a data frame becomes it."""
    if not is_remote(former):
        SparkSession._activeSession = former  # noqa: SLF001 - pyspark has no other way
        former._jvm.SparkSession.setActiveSession(former._jsparkSession)  # noqa: SLF001


def _make(app_name: str) -> SparkSession:
    builder = SparkSession.builder
    if REMOTE in os.environ:
        return builder.getOrCreate()
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - not there where only Spark's client is installed

    SparkContext._ensure_initialized()  # noqa: SLF001 - what spark-submit gave is known to the JVM alone
    given = SparkConf()
    missing = {name: value for name, value in {"spark.app.name": app_name, **OWN}.items() if not given.contains(name)}
    return builder.config(map=missing).getOrCreate()
