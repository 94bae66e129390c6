"""The job with its runs and its history in an object store, which nothing but fsspec's package for it can reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from rebalance_lib.execution import Run
from rebalance_lib.jobs import compute_placement as job
from rebalance_lib.planner import ClusterModel, Mode, Request, candidates
from tests.history.samples import Row, write
from tests.jobs.test_plans import skewed
from tests.object_store import SECRET


def test_everything_of_a_job_may_be_in_an_object_store(object_store):
    bucket = object_store.bucket()
    run, history = Run((bucket / "runs" / "one").uri), bucket / "history"
    snapshot = skewed(3)
    run.write_snapshot(snapshot)
    leaders = snapshot.replicas.filter(snapshot.replicas["leader"]).select(["topic", "partition", "broker"]).to_pylist()
    for at, written in (
        (-3600, 0),
        (0, 7200),
    ):  # what came in the hour before the snapshot
        rows = [Row(*leader.values(), True, 10_000, 0, 10_000 + written) for leader in leaders]
        write(history, snapshot.cluster_id, {at: rows})
    here = candidates(ClusterModel.of(snapshot), Request(Mode.BALANCE))
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    command += ["--conf", "spark.ui.enabled=false", job.__file__, "--run", run.uri, "--mode", "balance"]
    command += ["--history", history.uri]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert SECRET not in done.stdout + done.stderr
    assert run.summary()["rates_known"], "the history was read"
    assert run.summary()["candidates"].keys() == {one.name for one in here}
    assert run.plan().digest in (run.artifacts / "plan").read_text("review.md")
    assert run.artifacts.names() == ["plan", "snapshot"], "what it needed on its way is gone"
