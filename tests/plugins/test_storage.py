"""URIs with a connection in them: Airflow looks it up, and Spark is given what it stands for, in secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.sdk.io import attach

from kafka_rebalance_airflow.operators.plan import ComputePlacementOperator
from kafka_rebalance_airflow.storage import handed_over
from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError
from tests.object_store import KEY, SECRET

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import json, sys
from rebalance_lib.artifacts import Artifacts
Artifacts(sys.argv[2]).write_json("arguments.json", sys.argv[1:])
"""


@pytest.fixture
def minio(object_store, monkeypatch):
    """A bucket that can be reached by the connection minio alone, which is made as the provider for S3 makes it."""
    from aiobotocore.session import AioSession
    from s3fs import S3FileSystem

    session = AioSession()
    session.set_credentials(KEY, SECRET)
    session.set_config_variable("region", "us-east-1")
    bucket = object_store.bucket()
    opened = S3FileSystem(
        session=session, endpoint_url=object_store.endpoint, config_kwargs={"s3": {"addressing_style": "path"}}
    )
    attach("s3", "minio", fs=opened)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # or who has no credentials asks a machine of a cloud
    return Artifacts(bucket.uri.replace("s3://", "s3://minio@"))


def in_another_process(uri):
    program = "import sys; from rebalance_lib.artifacts import Artifacts; print(Artifacts(sys.argv[1]).read_text('a'))"
    command = [sys.executable, "-c", program, uri]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT, check=False)


def test_airflow_looks_a_connection_up(minio):
    (minio / "run").write_text("a", "1")
    assert minio.directories() == ["run"]
    assert (minio / "run").read_text("a") == "1"
    staged = (minio / "plan").staging()
    staged.write_text("plan.json", "{}")
    (minio / "plan").publish(staged)
    assert minio.names() == ["plan", "run"]
    (minio / "run").remove()
    assert not minio.exists("run")


def test_a_job_is_given_the_place_and_finds_the_rest_in_its_environment(minio):
    minio.write_text("a", "found")
    plain = minio.uri.replace("minio@", "")
    assert "found" not in in_another_process(plain).stdout, "without the connection it cannot be reached"
    before = dict(os.environ)
    with handed_over(["--run", minio.uri, "--pace", '{"throttle": 1}', "--history", f"{minio.uri}/h"]) as arguments:
        assert arguments == ["--run", plain, "--pace", '{"throttle": 1}', "--history", f"{plain}/h"]
        assert in_another_process(plain).stdout == "found\n"
        assert json.loads(os.environ["FSSPEC_S3"])["config_kwargs"] == {"s3": {"addressing_style": "path"}}
    assert os.environ == before


def test_spark_submit_is_told_no_secret_and_the_job_reaches_its_run(minio, tmp_path, caplog, capfd):
    program = tmp_path / "job.py"
    program.write_text(JOB)
    loads = '{"hours": 6, "statistic": "p95"}'
    step = ComputePlacementOperator(
        task_id="compute_placement", run_uris=minio.uri, request={"mode": "balance"}, loads=loads
    )
    step.application = str(program)
    with caplog.at_level("DEBUG"):
        step.execute({})
    arguments = minio.read_json("arguments.json")
    assert arguments[:2] == ["--run", minio.uri.replace("minio@", "")]
    assert arguments[-6:] == ["--window", "6", "--load", "p95", "--horizon", "0.0"]
    said = caplog.text + "".join(capfd.readouterr())
    assert "spark-submit" in said
    assert SECRET not in said


def test_arguments_without_a_connection_are_left_as_they_are():
    arguments = ["--run", "s3://bucket/x", "--history", "file:///a@b/c", "abfs://container@account/x"]
    with handed_over(arguments) as given:
        assert given == arguments
        assert "FSSPEC_S3" not in os.environ


@pytest.mark.parametrize("uris", [["gs://c@b/x"], ["s3://c@b/x", "s3://d@b/x"]])
def test_what_cannot_be_handed_over_is_named(uris):
    with pytest.raises(InvalidInputError, match="one connection, for S3, can be handed over"), handed_over(uris):
        pass


def test_a_connection_that_nothing_can_look_up_is_named():
    with pytest.raises(InvalidInputError, match=r"gs://c@bucket names the connection c, .* or give gs://bucket"):
        Artifacts("gs://c@bucket").names()
    with pytest.raises(InvalidInputError, match="s3://c@ names a connection: install"), handed_over(["s3://c@b/x"]):
        pass


def test_outside_airflow_a_connection_is_refused():
    done = in_another_process("s3://c@bucket/x")
    assert "InvalidInputError: s3://c@bucket/x names the connection c" in done.stderr
