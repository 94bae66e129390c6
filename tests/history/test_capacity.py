"""When a disk is full: growth without its rhythm, its steps and its noise."""

from __future__ import annotations

import numpy as np
import pytest

from bench.capacity import NEAR, score
from rebalance_lib.history.capacity import Passing, forecast, straight_line

HOURS = np.arange(21 * 24 + 1)
AT = HOURS * 3600.0
DAY = HOURS / 24
STEPPED = 50 + DAY - 10.0 * (DAY >= 12)


def test_the_example_of_the_module():
    found = forecast(AT, STEPPED)
    assert (found.used, found.growth, found.steps) == (61, pytest.approx(1), (pytest.approx(-10),))
    assert found.passes(72) == Passing(11, 11, 11)
    growth, level = np.polyfit(DAY - 21, STEPPED, 1)
    assert (growth, level) == (pytest.approx(0.30, abs=0.005), pytest.approx(59.4, abs=0.05))
    assert straight_line(AT, STEPPED, 72) == pytest.approx(42, abs=0.1)


def test_bytes_are_as_good_as_any_unit():
    found = forecast(AT, 1e12 * STEPPED)
    assert (found.growth, found.passes(72e12)) == (pytest.approx(1e12), Passing(11, 11, 11))


def test_a_limit_is_passed_at_the_peak_of_the_day():
    # 61 + days at noon of the week, and 2 % more six hours after midnight: 72 is passed a day or so before the level is
    found = forecast(AT, (50 + DAY) * (1 + 0.02 * np.sin(2 * np.pi * DAY)))
    level, with_peak = found.passes(82).likely, 81 / 1.02 - 71
    assert with_peak <= level < 11
    assert (level % 1) == pytest.approx(0.25, abs=3 / 24)


def test_what_does_not_grow_is_not_full_within_a_year():
    assert forecast(AT, 50 + 0 * DAY).passes(60) == Passing(None, None, None)
    assert forecast(AT, 90 - DAY).passes(95) == Passing(None, None, None)
    assert forecast(AT, 50 + 0.001 * DAY).passes(60).likely is None


def test_what_is_above_the_limit_has_passed_it():
    assert forecast(AT, STEPPED).passes(61) == Passing(0, 0, 0)


def test_a_saw_counts_into_growth():
    """Retention that deletes 9 every five days, where 2 come in a day: in the end 1 in five days."""
    days = np.arange(60 * 24) / 24
    found = forecast(days * 86_400, 50 + 2 * days - 9.0 * (days // 5))
    assert found.steps == ()
    assert found.growth == pytest.approx(0.2, abs=0.02)


def test_an_empty_broker_does_not_grow_and_does_not_count():
    found = forecast(AT, np.where(DAY < 7, 0.0, 50 + DAY))
    assert (found.growth, found.steps) == (pytest.approx(1), ())
    assert forecast(AT, np.where(DAY < 20.5, 0.0, 50 + DAY)) is None
    assert forecast(AT, 0 * DAY).passes(10) == Passing(None, None, None)


def test_a_copy_on_its_way_is_no_growth():
    spike = np.where((HOURS > 480) & (HOURS < 486), 30.0, 0.0)
    noise = np.random.default_rng(1).normal(size=len(HOURS)) * 0.1
    found = forecast(AT, 50 + DAY + noise + spike)
    assert (found.growth, found.steps) == (pytest.approx(1, abs=0.02), ())


def test_samples_may_be_few_out_of_order_and_missing():
    few = np.array([0, 30 * 3600.0, 10 * 3600.0])
    assert forecast(few, 100 + few / 3600).growth == pytest.approx(24)
    kept = (HOURS % 24 < 20) & ~((HOURS > 200) & (HOURS < 260))
    assert forecast(AT[kept][::-1], STEPPED[kept][::-1]).growth == pytest.approx(1, abs=0.01)
    assert forecast(AT[::24], (50 + DAY)[::24]).passes(82).likely == pytest.approx(11, abs=0.1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_less_than_a_day_is_no_forecast(count):
    assert forecast(AT[:count], STEPPED[:count]) is None


def test_noise_makes_a_range():
    noise = np.random.default_rng(2).normal(size=len(HOURS))
    early, likely, late = forecast(AT, 50 + DAY + noise).passes(82)
    assert early < likely < late
    assert early <= 11 <= late


def test_nine_of_ten_generated_series_are_within_a_tenth():
    """The small version of ``python -m bench.capacity``, whose first series these are."""
    found = score(range(1, 31))
    assert np.mean(found.ours <= NEAR) >= 0.9
    assert np.mean(found.line <= NEAR) < 0.5
