"""What is set for the whole installation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafka_rebalance_airflow import config
from rebalance_lib.errors import InvalidInputError

RETENTIONS = {
    "keep_runs_days": (config.keep_runs, 90),
    "keep_history_days": (config.keep_history, 30),
    "thin_history_after_days": (config.thin_history_after, 2),
}


@pytest.mark.parametrize("option", RETENTIONS)
def test_a_retention_is_in_days(option, monkeypatch):
    read, default = RETENTIONS[option]
    assert read() == timedelta(days=default)
    monkeypatch.setenv(f"AIRFLOW__KAFKA_REBALANCE__{option.upper()}", "0.5")
    assert read() == timedelta(hours=12)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "a week", "1e9"])
@pytest.mark.parametrize("option", RETENTIONS)
def test_what_is_no_retention_is_refused(option, value, monkeypatch):
    monkeypatch.setenv(f"AIRFLOW__KAFKA_REBALANCE__{option.upper()}", value)
    with pytest.raises(InvalidInputError, match=rf"\[kafka_rebalance\] {option} is '{value}': give a number of days"):
        RETENTIONS[option][0]()
