"""Give the states of a graph their places, layer by layer from left to right.

The work is `grandalf`'s, an optional library, imported where the first graph is drawn: it puts states in
layers, orders each layer so that few lines cross, and sends long lines around the boxes. It lays its layers
out from top to bottom, so a box is handed over lying on its side. An arrow's label is a box like a state's,
between the two: so no text ever lies on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

BETWEEN_LAYERS = 34.0
BETWEEN_BOXES = 14.0


@dataclass(slots=True)
class Box:
    """A box and, once it is placed, its middle; on its side, what `grandalf` calls a view."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    @property
    def w(self) -> float:
        """How much of its layer the box takes."""
        return self.height

    @property
    def h(self) -> float:
        """How deep its layer must be for it."""
        return self.width

    @property
    def xy(self) -> tuple[float, float]:
        """The middle, lying on its side."""
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
    """The way of a line between two boxes, from middle to middle, as (x, y)."""

    points: list[tuple[float, float]] = field(default_factory=list)

    def setpath(self, points: Sequence[tuple[float, float]]) -> None:
        """Take the way, lying on its side; called by the layout."""
        self.points = [(x, y) for y, x in points]

    def move(self, right: float, down: float) -> None:
        """Move the way."""
        self.points = [(x + right, y + down) for x, y in self.points]


def place(
    boxes: Sequence[Box], labels: Sequence[Box], ends: Sequence[tuple[int, int]]
) -> list[tuple[Route, Route]]:
    """Give every box its place, the first box leftmost; return the ways to each label and on from it.

    `ends` are, for each label, the boxes that its arrow leads from and to. States that do not hang together
    are placed below each other.
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
    """Return an order of the states in which every arrow leads onwards but those that close a loop.

    A walk in depth leaves a state after all that it leads to; the order is that of leaving, last first.
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
    """Lay out the states that hang together, under what is placed already; return where they end."""
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
