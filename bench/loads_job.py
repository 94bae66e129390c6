"""The loads of a whole history on Spark, as a process of its own: what ``bench.scaling`` measures.

    python -m bench.loads_job HISTORY OUT

Leaves the seconds from an open session to the last load in ``OUT/summary.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from rebalance_lib.jobs.history import partition_loads


def main(history: str, out: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "4g").config("spark.log.level", "ERROR").getOrCreate()
    begun = time.perf_counter()
    window = (datetime(1970, 1, 1, tzinfo=UTC), datetime.now(UTC))
    partition_loads(spark, history, None, *window).write.format("noop").mode("overwrite").save()
    took = time.perf_counter() - begun
    spark.stop()
    Path(out, "summary.json").write_text(json.dumps({"timings": {"plan": took}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
