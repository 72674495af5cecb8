"""Layered layout of a graph of states, from left to right.

The optional library `grandalf` does the work and is imported for the first graph. It assigns states
to layers, orders each layer to reduce crossings, and routes long lines around boxes. Its layers run
from top to bottom, so boxes are passed with width and height exchanged. The label of an arrow is a
box between two states, so texts never overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

BETWEEN_LAYERS = 34.0
BETWEEN_BOXES = 14.0


@dataclass(slots=True)
class Box:
    """Box and, once placed, its centre; with axes exchanged, the view object of `grandalf`."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    @property
    def w(self) -> float:
        """Extent of the box within its layer."""
        return self.height

    @property
    def h(self) -> float:
        """Depth of the box across the layers."""
        return self.width

    @property
    def xy(self) -> tuple[float, float]:
        """Centre, with axes exchanged."""
        return self.y, self.x

    @xy.setter
    def xy(self, place: tuple[float, float]) -> None:
        self.y, self.x = place

    def move(self, right: float, down: float) -> None:
        """Move the box."""
        self.x += right
        self.y += down


@dataclass(slots=True)
class Route:
    """Route of a line between two boxes, from centre to centre, as (x, y)."""

    points: list[tuple[float, float]] = field(default_factory=list)

    def setpath(self, points: Sequence[tuple[float, float]]) -> None:
        """Set the route, with axes exchanged; called by the layout."""
        self.points = [(x, y) for y, x in points]

    def move(self, right: float, down: float) -> None:
        """Move the route."""
        self.points = [(x + right, y + down) for x, y in self.points]


def place(
    boxes: Sequence[Box], labels: Sequence[Box], ends: Sequence[tuple[int, int]]
) -> list[tuple[Route, Route]]:
    """Place every box, the first leftmost; return the routes to and from each label.

    For each label, `ends` holds the boxes at both ends of its arrow. Unconnected parts are placed
    below each other.
    """
    from grandalf.graphs import Edge, Graph, Vertex

    vertices = [Vertex(number) for number in range(len(boxes) + len(labels))]
    for vertex, box in zip(vertices, (*boxes, *labels), strict=True):
        vertex.view = box
    edges: list[Any] = []
    backwards: list[Any] = []
    routes: list[tuple[Route, Route]] = []
    ranks = _ranks(len(boxes), ends)
    for (source, target), label in zip(ends, vertices[len(boxes) :], strict=True):
        halves = Edge(vertices[source], label), Edge(label, vertices[target])
        routes.append((Route(), Route()))
        halves[0].view, halves[1].view = routes[-1]
        edges.extend(halves)
        if ranks[target] <= ranks[source]:
            backwards.extend(halves)
    below = 0.0
    for component in Graph(vertices, edges).C:
        below = _place_component(component, backwards, below)
    return routes


def _ranks(count: int, ends: Sequence[tuple[int, int]]) -> list[int]:
    """Return an order of the states in which only arrows that close a loop lead backwards.

    This is the reverse postorder of a depth-first search.
    """
    following: dict[int, list[int]] = {}
    for source, target in ends:
        following.setdefault(source, []).append(target)
    left: list[int] = []
    seen: set[int] = set()
    for first in range(count):
        todo = [(first, iter(following.get(first, ())))] if first not in seen else []
        seen.add(first)
        while todo:
            state, targets = todo[-1]
            new = next((target for target in targets if target not in seen), None)
            if new is None:
                left.append(state)
                todo.pop()
            else:
                seen.add(new)
                todo.append((new, iter(following.get(new, ()))))
    ranks = [0] * count
    for rank, state in enumerate(reversed(left)):
        ranks[state] = rank
    return ranks


def _place_component(component: Any, backwards: Sequence[Any], below: float) -> float:
    """Lay out connected states below those already placed; return where they end."""
    from grandalf.layouts import SugiyamaLayout

    vertices = sorted(component.V(), key=lambda vertex: vertex.data)
    edges = list(component.E())
    layout = SugiyamaLayout(component)
    layout.xspace, layout.yspace = BETWEEN_BOXES, BETWEEN_LAYERS
    inverted = [edge for edge in edges if any(edge is one for one in backwards)]
    entered = {id(edge.v[edge not in inverted]) for edge in edges}
    roots = [vertex for vertex in vertices if id(vertex) not in entered]
    layout.init_all(roots=roots, inverted_edges=inverted)
    layout.draw(16)
    boxes: list[Box] = [vertex.view for vertex in vertices]
    down = below - min(box.y - box.height / 2 for box in boxes)
    right = -min(box.x - box.width / 2 for box in boxes)
    for thing in (*boxes, *(edge.view for edge in edges)):
        thing.move(right, down)
    return max(box.y + box.height / 2 for box in boxes) + 2 * BETWEEN_BOXES
