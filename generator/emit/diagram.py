"""Drawings of dialogs: the text of a Mermaid state diagram or of a DOT graph.

Both are generated from a `Drawing`, the tables of a dialog as nodes and edges. In the strict
reading, that is the automaton. In the concurrent reading, it is the life cycle, and next to it the
exchanges that run inside it. A request leads to the place where it waits; a reply leads from there,
or out. Edges between the same two nodes form one arrow with several labels.

Labels seen by one role say what it does: ``send Ohai`` or ``receive OhaiOk``. Otherwise they name
the sender: ``C Ohai``, without a colon, which ends a label in Mermaid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specwire.generator.ir.dialogs import Dialog

Reading = Literal["strict", "concurrent"]

BREAK = "\\n"
"""Line break inside a DOT label."""


@dataclass(frozen=True, slots=True)
class Node:
    """State or phase; `final` if the dialog may end there."""

    name: str
    final: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """Messages that lead from one node to another; None is outside, where an exchange begins or ends."""

    source: str | None
    target: str | None
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes in order, the first being the start; edges; and for each exchange the edges between places."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    exchanges: tuple[tuple[Edge, ...], ...] = ()


def draw(dialog: Dialog, reading: Reading) -> Drawing:
    """Return a reading of a dialog as nodes and edges."""
    if reading == "strict":
        moves = [
            (state.name, move.target, move.label) for state in dialog.strict for move in state.transitions
        ]
        return Drawing(tuple(Node(state.name, state.accepting) for state in dialog.strict), _join(moves))
    phases = dialog.concurrent.phases
    moves = [(phase.name, move.target, move.label) for phase in phases for move in phase.moves]
    moves += [(phase.name, start.phase, start.label) for phase in phases for start in phase.starts]
    return Drawing(
        tuple(Node(phase.name, phase.closed) for phase in phases), _join(moves), _exchanges(dialog)
    )


def mermaid(dialog: Dialog, reading: Reading, role: str | None = None) -> str:
    """Return the text of a Mermaid ``stateDiagram-v2``, its labels as `role` sees them."""
    drawing = draw(dialog, reading)
    lines = ["stateDiagram-v2", "    direction LR"]
    if drawing.nodes:
        lines.append(f"    [*] --> {drawing.nodes[0].name}")
    for edge in drawing.edges:
        lines.append(f"    {edge.source} --> {edge.target}: {_spoken(edge, role, '<br>')}")
    lines += [f"    {node.name} --> [*]" for node in drawing.nodes if node.final]
    if drawing.exchanges:
        lines.append('    state "requests without reply" as waiting {')
        for number, edges in enumerate(drawing.exchanges):
            lines += ["        --"] if number else []
            for edge in edges:
                # A place may have the name of a phase, and both are in one diagram.
                source, target = (f"waiting_{end}" if end else "[*]" for end in (edge.source, edge.target))
                lines.append(f"        {source} --> {target}: {_spoken(edge, role, '<br>')}")
        lines.append("    }")
    return "\n".join(lines) + "\n"


def dot(dialog: Dialog, reading: Reading, role: str | None = None) -> str:
    """Return the text of a DOT graph, its labels as `role` sees them; final nodes have a double line."""
    drawing = draw(dialog, reading)
    lines = [f'digraph "{dialog.name}" {{', "    rankdir=LR;", "    node [shape=box, style=rounded];"]
    for node in drawing.nodes:
        lines.append(f'    "{node.name}"{" [peripheries=2]" if node.final else ""};')
    for edge in drawing.edges:
        lines.append(f'    "{edge.source}" -> "{edge.target}" [label="{_spoken(edge, role, BREAK)}"];')
    for number, edges in enumerate(drawing.exchanges):
        outside = f"exchange {number + 1}"
        lines.append(f"    subgraph cluster_{number} {{")
        lines.append(f'        label="waiting for a reply"; node [style=dashed]; "{outside}" [shape=point];')
        for edge in edges:
            source, target = (f"waiting {end}" if end else outside for end in (edge.source, edge.target))
            lines.append(f'        "{source}" -> "{target}" [label="{_spoken(edge, role, BREAK)}"];')
        lines.append("    }")
    return "\n".join([*lines, "}"]) + "\n"


def _join(moves: Iterable[tuple[str | None, str | None, str]]) -> tuple[Edge, ...]:
    """Return one edge for all labels between the same two nodes, in order of first occurrence."""
    labels: dict[tuple[str | None, str | None], dict[str, None]] = {}
    for source, target, label in moves:
        labels.setdefault((source, target), {})[label] = None
    return tuple(Edge(source, target, tuple(found)) for (source, target), found in labels.items())


def _exchanges(dialog: Dialog) -> tuple[tuple[Edge, ...], ...]:
    """Return the edges between places, grouped by the messages that connect them."""
    reading = dialog.concurrent
    moves: list[tuple[str | None, str | None, str]] = [
        (None, start.place, start.label) for phase in reading.phases for start in phase.starts if start.place
    ]
    moves += [(reply.place, reply.then, reply.label) for reply in reading.replies]
    group = {place: place for place in reading.places}
    for source, target, _ in moves:
        if source is not None and target is not None and group[source] != group[target]:
            old, new = group[target], group[source]
            group = {place: new if name == old else name for place, name in group.items()}
    by_group: dict[str, list[tuple[str | None, str | None, str]]] = {}
    for move in moves:
        by_group.setdefault(group[str(move[0] or move[1])], []).append(move)
    return tuple(_join(found) for found in by_group.values())


def _spoken(edge: Edge, role: str | None, between: str) -> str:
    return between.join(spoken(label, role) for label in edge.labels)


def spoken(label: str, role: str | None) -> str:
    """Return a label in words: what `role` does with the message, or who sends it."""
    sender, _, name = label.partition(":")
    if role is None:
        return f"{sender} {name}"
    return f"{'send' if sender == role else 'receive'} {name}"
