"""The table and the picture of docs/explanation/flux-scale.md, made of a few brokers."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from tests.benchmarks.flux_scale import measure, picture, table
from tests.benchmarks.log_chart import HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, draw

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_sizes_are_measured_and_drawn() -> None:
    """A row for each size and, for each fan-out, two lines and the goal."""
    found = [measure(size, 3) for size in (10, 40)]
    heads, _, *rows = table(found).splitlines()
    assert [row.split(" | ")[:3] for row in rows] == [["| 10", "3", "2"], ["| 40", "3", "3"]]
    assert len({row.count("|") for row in (heads, *rows)}) == 1
    assert all(each.peak_octets > 1e6 and each.took_s > 0 for each in found)
    drawing = ElementTree.fromstring(picture(found))
    assert len([*drawing.iter(f"{SVG}polyline")]) == 3


def test_decades_are_as_wide_as_each_other() -> None:
    """Each factor of ten is the same way to the right, and up."""
    points = [(10.0**n, 10.0 ** (n - 3)) for n in range(1, 5)]
    (curve,) = ElementTree.fromstring(draw("a < b", "number", [Line("line", points, "#000")], str)).iter(
        f"{SVG}polyline"
    )
    places = [tuple(map(float, place.split(","))) for place in curve.attrib["points"].split()]
    assert places[0] == (LEFT, HEIGHT - 60)
    assert places[-1] == (WIDTH - RIGHT, TOP)
    steps = {(round(x2 - x1), round(y2 - y1)) for (x1, y1), (x2, y2) in pairwise(places)}
    assert steps == {(180, round((TOP - HEIGHT + 60) / 3))}


def test_names_do_not_meet() -> None:
    """Lines that end in one place have their names below each other."""
    lines = [Line(name, [(1.0, 1.0), (10.0, 10.0)], "#000") for name in ("one", "other")]
    texts = ElementTree.fromstring(draw("", "", lines, str)).iter(f"{SVG}text")
    heights = [float(text.attrib["y"]) for text in texts if text.text in ("one", "other")]
    assert len(heights) == 2
    assert abs(heights[0] - heights[1]) >= 16
