"""The Spark session of the tests."""

from __future__ import annotations

from tests.spark import spark as spark  # noqa: PLC0414 - as a fixture
