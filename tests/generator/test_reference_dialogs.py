"""State diagrams of reference pages: every state and way once, for each role, nothing on top of anything."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generator.emit.reference.graph import LARGEST, Arrow, Graph, Line, Node, draw_graph
from specwire.generator.emit.reference.layered import Box, place
from specwire.generator.ir.dialogs import Dialog
from tests.examples import examples
from tests.generator.reference_pages import NAMES, compilation, drawings, page_of

DIALOGS = [(name, dialog) for name in NAMES for dialog in compilation(name).protocol.dialogs]
IDS = [f"{name}-{dialog.name}" for name, dialog in DIALOGS]

Way = tuple[str, str, str]


def figure(name: str, dialog: Dialog, what: str, role: str) -> Element:
    """Return a drawing of the page by what it is called."""
    wanted = f"State diagram of {dialog.name}, {what}, role {role}"
    (found,) = (d for d in drawings(page_of(name), "states") if d.get("aria-label") == wanted)
    return found


def ways(drawing: Element) -> Counter[Way]:
    """Return the labelled ways of a drawing: label, from, to."""
    lines = (text for text in drawing.iter("text") if "data-label" in text.attrib)
    return Counter(
        (line.attrib["data-label"], line.attrib["data-from"], line.attrib["data-to"]) for line in lines
    )


def states(drawing: Element) -> Counter[str]:
    """Return the states of a drawing."""
    return Counter(group.attrib["data-state"] for group in drawing.iter("g"))


@pytest.mark.parametrize(("name", "dialog"), DIALOGS, ids=IDS)
def test_strict_reading_is_drawn_for_each_role(name: str, dialog: Dialog) -> None:
    """Every state and transition of the table is drawn exactly once, and nothing else."""
    expected = Counter((t.label, s.name, t.target) for s in dialog.strict for t in s.transitions)
    for role in dialog.roles:
        drawn = figure(name, dialog, "strict reading", role)
        assert ways(drawn) == expected
        assert states(drawn) == Counter(state.name for state in dialog.strict)
        doubled = sum(rect.get("class") == "double" for rect in drawn.iter("rect"))
        assert doubled == sum(state.accepting for state in dialog.strict)


@pytest.mark.parametrize(("name", "dialog"), DIALOGS, ids=IDS)
def test_concurrent_reading_is_drawn_for_each_role(name: str, dialog: Dialog) -> None:
    """Every move and start is drawn once, every place with all that begins it and all its replies."""
    reading = dialog.concurrent
    expected = Counter((m.label, p.name, m.target) for p in reading.phases for m in p.moves)
    expected += Counter((s.label, p.name, s.phase) for p in reading.phases for s in p.starts)
    for role in dialog.roles:
        drawn = figure(name, dialog, "phases", role)
        assert ways(drawn) == expected
        assert states(drawn) == Counter(phase.name for phase in reading.phases)
        if reading.places:
            drawn = figure(name, dialog, "exchanges", role)
            assert states(drawn) == Counter(reading.places)
            replies = Counter((r.label, r.place, r.then or "") for r in reading.replies)
            begun = {(s.label, "", s.place) for p in reading.phases for s in p.starts if s.place}
            assert ways(drawn) == replies + Counter(begun)


def test_each_role_sees_its_own_messages_as_sent() -> None:
    """The client sends OHAI and receives OHAI-OK; the server the other way round."""
    (dialog,) = compilation("filemq").protocol.dialogs
    seen = {}
    for role in dialog.roles:
        for text in figure("filemq", dialog, "strict reading", role).iter("text"):
            if text.get("data-label"):
                seen[role, text.attrib["data-label"]] = (text.text, text.attrib["class"])
    assert seen["C", "C:Ohai"] == ("send OHAI", "line send")
    assert seen["S", "C:Ohai"] == ("recv OHAI", "line receive")
    assert seen["C", "S:OhaiOk"] == ("recv OHAI-OK", "line receive")
    assert seen["S", "S:OhaiOk"] == ("send OHAI-OK", "line send")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_lies_on_top_of_anything(name: str) -> None:
    """In every drawing, boxes keep apart, stay inside, and are wide enough for what is in them."""
    for drawing in drawings(page_of(name), "states"):
        boxes = [
            [float(rect.attrib[key]) for key in ("x", "y", "width", "height")]
            for rect in drawing.iter("rect")
            if rect.get("class") != "double"
        ]
        width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
        assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
        assert not any(_overlap(one, other) for one, other in combinations(boxes, 2))
        for text in drawing.iter("text"):
            middle, half = float(text.attrib["x"]), len(text.text or "") * 7.25 / 2
            level = float(text.attrib["y"]) - 4
            assert any(
                x <= middle - half and middle + half <= x + w and y <= level <= y + h for x, y, w, h in boxes
            ), text.text


def _overlap(one: list[float], other: list[float]) -> bool:
    apart = (
        one[0] + one[2] <= other[0] + 0.01
        or other[0] + other[2] <= one[0] + 0.01
        or one[1] + one[3] <= other[1] + 0.01
        or other[1] + other[3] <= one[1] + 0.01
    )
    return not apart


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_any_graph_has_its_places(data: st.DataObject) -> None:
    """Graphs of any shape, with loops and parts that do not hang together, are placed without overlap."""
    count = data.draw(st.integers(1, 8))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    ends = data.draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), unique=True, max_size=16))
    sizes = st.tuples(st.integers(16, 200), st.integers(16, 120))
    boxes = [Box(*data.draw(sizes)) for _ in range(count)]
    labels = [Box(*data.draw(sizes)) for _ in ends]
    routes = place(boxes, labels, ends)
    assert len(routes) == len(ends) and all(len(way.points) >= 2 for ways in routes for way in ways)
    corners = [[b.x - b.width / 2, b.y - b.height / 2, b.width, b.height] for b in boxes + labels]
    assert not any(_overlap(one, other) for one, other in combinations(corners, 2))


def test_what_is_too_large_is_not_drawn() -> None:
    """A picture of more boxes than anybody could read is left to the table."""
    nodes = tuple(Node(f"S{number}") for number in range(LARGEST + 1))
    assert not Graph(nodes, ()).drawable
    assert Graph(nodes[:LARGEST], ()).drawable


def test_drawn_text_is_text() -> None:
    """Names are escaped."""
    drawn = draw_graph(Graph((Node("<b>", (Line("&amp;", href="#x"),)), Node("y")), (Arrow(0, 1, ()),)), '"')
    assert "&lt;b&gt;" in drawn and "&amp;amp;" in drawn and "<b>" not in drawn
