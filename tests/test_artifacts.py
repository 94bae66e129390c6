"""A run's artifacts appear whole or not at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import InvalidInputError


@pytest.fixture(params=["file", "memory"])
def artifacts(request, tmp_path):
    return Artifacts(tmp_path.as_uri() if request.param == "file" else f"memory://{tmp_path}")


def test_text_json_and_tables_come_back(artifacts):
    table = pa.table({"broker": [1, 2]})
    artifacts.write_text("a.txt", "ä")
    artifacts.write_json("deep/b.json", {"x": [1]})
    artifacts.write_table("c.parquet", table)
    assert artifacts.read_text("a.txt") == "ä"
    assert (artifacts / "deep").read_json("b.json") == {"x": [1]}
    assert artifacts.read_table("c.parquet").equals(table)
    assert artifacts.exists("a.txt")
    assert not artifacts.exists("b.json")


def test_a_second_write_replaces_the_first(artifacts):
    artifacts.write_text("a", "one")
    artifacts.write_text("a", "two")
    assert artifacts.read_text("a") == "two"


@pytest.mark.parametrize("read", ["read_text", "read_json", "read_table"])
def test_a_missing_file_is_named(artifacts, read):
    with pytest.raises(InvalidInputError, match=r"nothing\.here is missing"):
        getattr(artifacts, read)("nothing.here")


def test_publishing_replaces_what_stood_there(artifacts):
    place = artifacts / "plan"
    place.write_text("old", "1")
    staged = place.staging()
    staged.write_text("new", "2")
    place.publish(staged)
    assert place.read_text("new") == "2"
    assert not place.exists("old")
    assert not staged.exists("new")


def test_an_unknown_kind_of_storage_is_named():
    with pytest.raises(InvalidInputError, match="carrier-pigeon"):
        Artifacts("carrier-pigeon://x").read_text("y")
