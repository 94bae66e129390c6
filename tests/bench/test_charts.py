"""Charts are well-formed and put things where their axes say."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from bench.charts import HEIGHT, LEFT, RIGHT, WIDTH, Axis, Bar, Panel, Series, chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*panels, names=("a & b", "c")):
    return ET.fromstring(chart(panels, names, "a chart"))  # noqa: S314 - made by this test


def test_a_logarithmic_axis_has_a_tick_at_each_power_of_ten():
    axis = Axis("seconds", 0.01, 150, logarithmic=True)
    assert axis.ticks() == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert axis.share(0.01) == 0
    assert axis.share(150) == 1
    assert Axis("", 1, 100, logarithmic=True).share(10) == pytest.approx(0.5)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.1), (1.0, 2.6), (0, 100), (3, 900)])
def test_a_linear_axis_has_some_round_ticks_inside(low, high):
    ticks = Axis("", low, high).ticks()
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_what_lies_outside_an_axis_is_held_at_its_edge():
    axis = Axis("", 0.1, 100, logarithmic=True)
    assert axis.share(0) == 0
    assert axis.share(1000) == 1


def test_points_stand_where_the_axes_say():
    panel = Panel("p", Axis("x", 0, 10), Axis("y", 0, 10), [Series("a & b", [(5, 10)])])
    point = drawn(panel).findall(f".//{SVG}g//{SVG}circle")[0]
    assert float(point.get("cx")) == pytest.approx((LEFT + WIDTH - RIGHT) / 2)
    assert 0 < float(point.get("cy")) < HEIGHT / 2


def test_bars_are_as_long_as_their_value_and_say_it():
    panel = Panel("p", Axis("s", 0, 10), bars=[Bar("a & b", 2, "2 s"), Bar("c", 8, "8 s")])
    root = drawn(panel)
    widths = [float(bar.get("width")) for bar in root.findall(f".//{SVG}g/{SVG}rect")]
    assert widths[1] / widths[0] == pytest.approx(4, rel=0.01)
    assert {"2 s", "8 s", "a & b"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_panels_stand_two_in_a_row():
    panel = Panel("p", Axis("x", 0, 10))
    places = [group.get("transform") for group in drawn(*[panel] * 3).findall(f"{SVG}g")]
    assert len(set(places)) == 3
    assert places[1].startswith(f"translate({WIDTH},")
