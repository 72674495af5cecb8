"""The picture of the README is drawn from the code: parts above what they need, and nothing missing."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import picture
from structure import Structure, levels, read_structure

NEEDS = {
    "transport": frozenset[str](),
    "log": frozenset[str](),
    "capture": frozenset({"transport"}),
    "flux": frozenset({"capture", "transport", "log"}),
    "job": frozenset({"flux", "capture"}),
}


def test_levels() -> None:
    """A part is above everything that it needs."""
    assert levels(NEEDS) == {"transport": 0, "log": 0, "capture": 1, "flux": 2, "job": 3}


def test_parts_that_need_each_other() -> None:
    """They get levels all the same."""
    found = levels({"a": frozenset({"b"}), "b": frozenset({"a"})})
    assert sorted(found.values()) == [0, 1]


@pytest.fixture(scope="module")
def structure() -> Structure:
    """The structure of this repository, which takes a second to read."""
    return read_structure()


def test_structure_is_of_this_repository(structure: Structure) -> None:
    """What a reader would look for is there."""
    assert {"flux", "filemq", "norfab", "zre"} <= set(structure.protocols)
    assert {"codec", "machine", "schema"} <= set(structure.targets)
    assert structure.steps[0] == "load profile" and "resolve names" in structure.steps
    assert "transport" in structure.needs["flux"] and "cli" not in structure.needs


def test_all_of_it_is_drawn(structure: Structure) -> None:
    """As text in an SVG that can be read."""
    root = ElementTree.fromstring(picture.draw(structure))
    drawn = {element.text for element in root.iter() if element.tag.endswith("}text")}
    assert {*structure.protocols, *structure.steps, *structure.targets, *structure.needs} <= drawn


def test_no_part_covers_another(structure: Structure) -> None:
    """However many there are in a row."""
    root = ElementTree.fromstring(picture.draw(structure))
    parts = [element for element in root.iter() if element.get("class") == "part"][
        1:
    ]  # the first is the command line
    rows: dict[str, list[int]] = {}
    for part in parts:
        rows.setdefault(str(part.get("y")), []).append(int(str(part.get("x"))))
    gaps = [right - left for row in rows.values() for left, right in pairwise(sorted(row))]
    assert gaps and min(gaps) > picture.PART_WIDTH


def test_text_is_readable_on_a_telephone(structure: Structure) -> None:
    """At 358 pixels, the width of a page's content there, no text is smaller than 10 pixels; none is cut off."""
    root = ElementTree.fromstring(picture.draw(structure))
    assert 14 * 358 / picture.WIDTH > 10
    sizes = [int(size) for size in re.findall(r"(\d+)px", picture.STYLE)]
    assert min(sizes) == 14
    for element in root.iter():
        if element.tag.endswith("}text") and element.get("text-anchor") != "middle":
            assert int(str(element.get("x"))) + len(element.text or "") * 8 < picture.WIDTH, element.text


def test_picture_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`make generate` draws it."""
    assert picture.main(["--check"]) == 0, capsys.readouterr().out
