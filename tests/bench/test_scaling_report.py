"""What is drawn from four sizes: how time grows, and what it would be for a fleet."""

from __future__ import annotations

import pytest

from bench.scaling_report import AXES, Line, fit, render

SIZES = (10, 30, 100, 300)


def points(seconds_of):
    return [
        {
            "size": size,
            "seconds": seconds_of(size),
            "whole_seconds": seconds_of(size) + 1,
            "peak_bytes": 10**8 * size,
            "timings": {"load": 0.5, "plan": seconds_of(size)},
            "reason": "",
        }
        for size in SIZES
    ]


def test_a_straight_line_is_found_with_its_fixed_part():
    line = fit(SIZES, [2 + 0.1 * size for size in SIZES])
    assert (line.fixed, line.each) == pytest.approx((2, 0.1))
    assert line.exponent < 1


def test_growth_that_is_proportional_has_exponent_one_and_quadratic_two():
    assert fit(SIZES, [0.1 * size for size in SIZES]).exponent == pytest.approx(1)
    assert fit(SIZES, [0.1 * size**2 for size in SIZES]).exponent == pytest.approx(2)


def test_nothing_costs_less_than_nothing():
    line = fit(SIZES, [0.1 * size**2 for size in SIZES])
    assert line.fixed == 0
    assert line.each > 0


def test_more_cores_divide_what_grows_and_leave_what_is_fixed():
    assert Line(2, 0.1, 1).seconds(1000, cores_over_measured=16 / 2) == pytest.approx(14.5)


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "images").mkdir()
    parts = [f"<!-- {part}: begin -->\n<!-- {part}: end -->\n" for part in (*AXES, "projection")]
    (tmp_path / "scaling.md").write_text("\n".join(parts))
    return tmp_path


def test_the_document_tells_each_axis_measured_or_not(docs):
    stopped = {**points(lambda size: size)[0], "reason": "stopped after 600 s"}
    render({"clusters": points(lambda size: 2 + 0.1 * size), "brokers": [stopped]}, docs)
    text = (docs / "scaling.md").read_text()
    assert "| clusters | planning | load | whole run | memory |" in text
    assert "| 300 | 32.0 s | 0.500 s | 33.0 s | 30.00 GB |" in text
    assert "about 2.0 s fixed and 100 s for every thousand clusters" in text
    assert "stopped after 600 s" in text
    assert text.count("Not measured: ") == 2
    assert "| 1,000 clusters | 2.0 s |" in text
    assert (docs / "images" / "scaling-clusters.svg").is_file()
    assert not (docs / "images" / "scaling-brokers.svg").is_file()


def test_a_document_without_figures_says_so(docs):
    render({}, docs)
    assert (docs / "scaling.md").read_text().count("Not measured") == 5
