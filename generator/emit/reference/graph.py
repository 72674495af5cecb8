"""Drawing of a graph of states, with labels in boxes on the arrows.

A `Graph` has states with lines inside, and arrows with lines on them. A transition that stays in
its state is written inside it, like an internal transition in UML, and needs no arrow.
`specwire.generator.emit.reference.layered` computes the position of every box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal
from xml.etree.ElementTree import Element

from markupsafe import Markup

from specwire.generator.emit.reference.drawing import add, add_text, drawing, number, text_width, written
from specwire.generator.emit.reference.layered import Box, Route, place

LINE = 16.0
HEAD = 24.0
_MARGIN = 16.0
START = 12.0
WIDEST = 945.0
"""A drawing wider than this runs from top to bottom, unless that is wider still."""
LARGEST = 120
"""Largest number of boxes of a readable drawing."""

Shape = Literal["state", "place", "begin", "end"]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of text in a box: direction (``send``, ``receive`` or empty), message, and target state."""

    text: str
    kind: str = ""
    href: str | None = None
    data: tuple[tuple[str, str], ...] = ()
    """Data attributes with the content of the line, for programs."""


@dataclass(frozen=True, slots=True)
class Node:
    """State: its name and internal transitions; `double` if the dialog may end here."""

    name: str
    lines: tuple[Line, ...] = ()
    shape: Shape = "state"
    start: bool = False
    double: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """Arrow between two states, by number, labelled with `lines`."""

    source: int
    target: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """States, the first being the start, and the arrows between them."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]

    @property
    def drawable(self) -> bool:
        """Whether the drawing is small enough to be readable."""
        return len(self.nodes) + len(self.arrows) <= LARGEST


@dataclass(frozen=True, slots=True)
class _Placed:
    """Boxes and routes with positions, layers to the right; with `down`, layers go down."""

    boxes: list[Box]
    labels: list[Box]
    routes: list[tuple[Route, Route]]
    down: bool

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the drawing."""
        boxes = [self.turned(box) for box in self.boxes + self.labels]
        width = max(box.x + box.width / 2 for box in boxes)
        return width + _MARGIN, max(box.y + box.height / 2 for box in boxes) + _MARGIN

    def turned(self, box: Box) -> Box:
        """Return a box as drawn."""
        return Box(box.height, box.width, box.y, box.x) if self.down else box


def draw_graph(graph: Graph, name: str) -> Markup:
    """Return the drawing, from left to right or, if that is too wide, from top to bottom.

    `name` is its accessible name.
    """
    placed = _place(graph, down=False)
    if placed.size[0] > WIDEST:
        placed = min(placed, _place(graph, down=True), key=lambda one: one.size[0])
    svg = drawing(*placed.size, name, kind="states", links=True)
    for arrow, label, ways in zip(graph.arrows, placed.labels, placed.routes, strict=True):
        source, target = placed.boxes[arrow.source], placed.boxes[arrow.target]
        _draw_way(svg, _points(source, label, ways[0]), down=placed.down)
        _draw_way(svg, _points(label, target, ways[1]), down=placed.down)
    for arrow, label in zip(graph.arrows, placed.labels, strict=True):
        _draw_label(svg, arrow, placed.turned(label))
    for node, box in zip(graph.nodes, placed.boxes, strict=True):
        _draw_node(svg, node, placed.turned(box))
    return written(svg)


def _place(graph: Graph, *, down: bool) -> _Placed:
    """Compute all positions, with a margin that has room for the start marker."""
    placed = _Placed([], [], [], down)
    placed.boxes.extend(placed.turned(_node_box(node)) for node in graph.nodes)
    placed.labels.extend(placed.turned(_label_box(arrow.lines)) for arrow in graph.arrows)
    ends = [(arrow.source, arrow.target) for arrow in graph.arrows]
    placed.routes.extend(place(placed.boxes, placed.labels, ends))
    boxes = placed.boxes + placed.labels
    left = min(box.x - box.width / 2 for box in boxes) - _MARGIN - START
    top = min(box.y - box.height / 2 for box in boxes) - _MARGIN - (START if down else 0)
    for box in boxes:
        box.move(-left, -top)
    for way in (way for ways in placed.routes for way in ways):
        way.move(-left, -top)
    return placed


def _node_box(node: Node) -> Box:
    if node.shape in ("begin", "end"):
        return Box(16, 16)
    widest = max([text_width(node.name) * 1.08, *(text_width(line.text) for line in node.lines)])
    height = HEAD + (len(node.lines) * LINE + 8 if node.lines else 4)
    return Box(widest + 24, height)


def _label_box(lines: Sequence[Line]) -> Box:
    return Box(max((text_width(line.text) for line in lines), default=0) + 14, len(lines) * LINE + 6)


def _draw_way(svg: Element, points: Sequence[tuple[float, float]], *, down: bool) -> None:
    """Draw a route with its arrowhead; with `down`, the x direction of `points` is drawn downwards."""
    add(svg, "path", {"class": "arrow", "d": _curve(points, down=down)})
    (before, _), (x, y) = points[-2:]
    back = -6 if before <= x else 6
    sides = f"l-3.5 {back}h7z" if down else f"l{back} -3.5v7z"
    add(svg, "path", {"class": "head", "d": f"M{_point(x, y, down)}{sides}"})


def _points(source: Box, target: Box, way: Route) -> list[tuple[float, float]]:
    """Return the route from the side of one box to the facing side of the other, as (x, y)."""
    middle = way.points[1:-1]
    if middle and abs(middle[0][0] - source.x) > abs(middle[-1][0] - source.x):
        middle.reverse()
    forward = target.x >= source.x
    out = source.width / 2 if forward else -source.width / 2
    into = -target.width / 2 if forward else target.width / 2
    return [(source.x + out, source.y), *middle, (target.x + into, target.y)]


def _curve(points: Sequence[tuple[float, float]], *, down: bool) -> str:
    """Return a path through the points that enters and leaves each along the direction of the layers."""
    path = f"M{_point(*points[0], down)}"
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (x1 + x2) / 2
        path += f"C{_point(middle, y1, down)} {_point(middle, y2, down)} {_point(x2, y2, down)}"
    return path


def _point(x: float, y: float, down: bool) -> str:
    return f"{number(y)} {number(x)}" if down else f"{number(x)} {number(y)}"


def _draw_label(svg: Element, arrow: Arrow, box: Box) -> None:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    frame: dict[str, str | float] = {"class": "on-arrow", "x": x, "y": y, "rx": 4}
    add(svg, "rect", frame | {"width": box.width, "height": box.height})
    for row, line in enumerate(arrow.lines):
        _draw_line(svg, line, box.x, y + LINE * row + 15, box.width)


def _draw_line(svg: Element, line: Line, x: float, y: float, width: float) -> None:
    parent = add(svg, "a", {"href": line.href}) if line.href else svg
    text = add_text(parent, x, y, line.text, width, kind=f"line {line.kind}".strip())
    for key, value in line.data:
        text.set(f"data-{key}", value)


def _draw_node(svg: Element, node: Node, box: Box) -> None:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    if node.shape in ("begin", "end"):
        add(svg, "circle", {"class": "start", "cx": box.x, "cy": box.y, "r": 4})
    if node.shape == "end":
        add(svg, "circle", {"class": "end", "cx": box.x, "cy": box.y, "r": 7})
    if node.shape in ("begin", "end"):
        return
    if node.start:
        add(svg, "circle", {"class": "start", "cx": x - 16, "cy": box.y, "r": 5})
        add(svg, "path", {"class": "arrow", "d": f"M{number(x - 16)} {number(box.y)}H{number(x)}"})
    group = add(svg, "g", {"data-state": node.name})
    _draw_frame(group, node.shape, box, 0)
    if node.double:
        _draw_frame(group, "double", box, 3)
    add_text(group, box.x, y + 18, node.name, box.width, kind="name")
    if node.lines:
        add(group, "path", {"class": "rule", "d": f"M{number(x)} {number(y + HEAD + 2)}h{number(box.width)}"})
    for row, line in enumerate(node.lines):
        _draw_line(group, line, box.x, y + HEAD + LINE * row + 17, box.width)


def _draw_frame(parent: Element, kind: str, box: Box, inside: float) -> None:
    attributes: dict[str, str | float] = {"class": kind, "rx": 6 - inside / 2}
    attributes |= {"x": box.x - box.width / 2 + inside, "y": box.y - box.height / 2 + inside}
    attributes |= {"width": box.width - 2 * inside, "height": box.height - 2 * inside}
    add(parent, "rect", attributes)
