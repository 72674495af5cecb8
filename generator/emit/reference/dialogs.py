"""Dialogs of a protocol as tables and drawings, one for each role and reading.

Both are generated from the IR's tables, like the generated machine. The drawing is the `Drawing`
that `specwire show machine` prints as text. From the view of a role, its own messages are sent and
all others received. The direction is written as text, not only coloured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from specwire.generator import ir
from specwire.generator.emit.diagram import Drawing, Edge, draw
from specwire.generator.emit.reference.graph import Arrow, Graph, Line, Node, draw_graph
from specwire.generator.emit.reference.rules import rule_anchor
from specwire.generator.ir.dialogs import Concurrent, Dialog

_TOO_LARGE = Markup("<p>Too many states to draw; see the table below.</p>")


@dataclass(frozen=True, slots=True)
class Step:
    """Row of a table: a state, a message with its sender, and the result."""

    state: str
    sender: str
    message: str
    class_name: str
    result: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawing with its caption."""

    caption: str
    drawing: Markup


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a dialog."""

    name: str
    doc: str
    figures: tuple[Figure, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class DialogView:
    """Dialog for the page."""

    name: str
    rule: str
    rule_href: str
    anchor: str
    between: str
    notes: tuple[str, ...]
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """Names that the protocol uses: messages by class name, roles by letter."""

    messages: Mapping[str, str]
    roles: Mapping[str, str]

    def line(self, label: str, role: str, data: Mapping[str, str], more: str = "") -> Line:
        """Return a label from the view of `role`."""
        sender, _, class_name = label.partition(":")
        kind = "send" if sender == role else "receive"
        word = "send" if sender == role else "recv"
        text = f"{word} {self.messages.get(class_name, class_name)}{more}"
        return Line(text, kind, f"#message-{class_name}", (("label", label), *data.items()))

    def step(self, state: str, label: str, result: str) -> Step:
        """Return a label as a table row."""
        sender, _, class_name = label.partition(":")
        message = self.messages.get(class_name, class_name)
        return Step(state, self.roles.get(sender, sender), message, class_name, result)


def view_dialogs(protocol: ir.Protocol) -> tuple[DialogView, ...]:
    """Return every dialog of the protocol with its drawings."""
    words = _Words(
        {message.class_name: message.name for message in protocol.messages},
        {role.letter: role.name for role in protocol.roles},
    )
    return tuple(_dialog(dialog, words) for dialog in protocol.dialogs)


def _dialog(dialog: Dialog, words: _Words) -> DialogView:
    roles = tuple(words.roles.get(role, role) for role in dialog.roles)
    return DialogView(
        name=dialog.name,
        rule=dialog.rule,
        rule_href=f"#{rule_anchor(dialog.rule)}",
        anchor=f"dialog-{dialog.name}",
        between=" and ".join(roles),
        notes=tuple(_notes(dialog)),
        readings=(_strict(dialog, words), _concurrent(dialog, words)),
    )


def _notes(dialog: Dialog) -> Iterable[str]:
    if dialog.key:
        yield f"A reply belongs to the request with the same {' and '.join(dialog.key)}."
    for name, value in dialog.keyless:
        yield f"A {name} of {value} is no key: such a request is not tracked, and such a reply is always allowed."
    for name, value in dialog.unanswered:
        yield f"A request with the bits 0x{value:02x} of {name} set needs no reply."


def _strict(dialog: Dialog, words: _Words) -> Reading:
    drawing = draw(dialog, "strict")
    figures = [
        Figure(
            f"{dialog.name}, strict reading, seen by the {words.roles.get(role, role)}",
            _drawn(states_graph(drawing, role, words), dialog, role, "strict reading"),
        )
        for role in dialog.roles
    ]
    steps = [
        words.step(state.name, transition.label, _go(state.name, transition.target))
        for state in dialog.strict
        for transition in state.transitions
    ]
    doc = f"The rule as written: {_count(len(dialog.strict), 'state')}, one message after the other."
    return Reading("strict", doc, tuple(figures), tuple(steps))


def _concurrent(dialog: Dialog, words: _Words) -> Reading:
    drawing = draw(dialog, "concurrent")
    phases = dialog.concurrent.phases
    waiting = frozenset((p.name, start.label) for p in phases for start in p.starts if start.place)
    figures: list[Figure] = []
    for role in dialog.roles:
        seen = f"seen by the {words.roles.get(role, role)}"
        graph = states_graph(drawing, role, words, waiting)
        figures.append(Figure(f"{dialog.name}, phases, {seen}", _drawn(graph, dialog, role, "phases")))
        if drawing.exchanges:
            graph = exchanges_graph(drawing, role, words)
            drawn = _drawn(graph, dialog, role, "exchanges")
            figures.append(Figure(f"{dialog.name}, exchanges in use, {seen}", drawn))
    doc = "For peers that do not wait for each other: phases, and concurrent exchanges inside them."
    return Reading("concurrent", doc, tuple(figures), tuple(_concurrent_steps(dialog.concurrent, words)))


def states_graph(
    drawing: Drawing, role: str, words: _Words, waiting: frozenset[tuple[str, str]] = frozenset()
) -> Graph:
    """Return states or phases from the view of `role`; mark the labels in `waiting` as such."""
    numbers = {node.name: number for number, node in enumerate(drawing.nodes)}
    inside: dict[str, tuple[Line, ...]] = {}
    arrows: list[Arrow] = []
    for edge in drawing.edges:
        source, target = edge.source or "", edge.target or ""
        more = [" (awaits reply)" if (source, label) in waiting else "" for label in edge.labels]
        lines = _lines(edge, role, words, more)
        if source == target:
            inside[source] = lines
        else:
            arrows.append(Arrow(numbers[source], numbers[target], lines))
    nodes = (
        Node(node.name, inside.get(node.name, ()), start=number == 0, double=node.final)
        for number, node in enumerate(drawing.nodes)
    )
    return Graph(tuple(nodes), tuple(arrows))


def exchanges_graph(drawing: Drawing, role: str, words: _Words) -> Graph:
    """Return the states of waiting for a reply, from the view of `role`, and the messages between them."""
    edges = [edge for exchange in drawing.exchanges for edge in exchange]
    places = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target) if end)
    numbers = {place: number for number, place in enumerate(places)}
    inside: dict[str, tuple[Line, ...]] = {}
    outside: list[Node] = []
    arrows: list[Arrow] = []
    for edge in edges:
        if edge.source and edge.source == edge.target:
            inside[edge.source] = _lines(edge, role, words, [" (more may come)"] * len(edge.labels))
            continue
        source, target = numbers.get(edge.source or ""), numbers.get(edge.target or "")
        if source is None or target is None:
            outside.append(Node("", shape="end" if target is None else "begin"))
        new = len(places) + len(outside) - 1
        ends = (new if source is None else source, new if target is None else target)
        arrows.append(Arrow(*ends, _lines(edge, role, words)))
    nodes = (Node(place, inside.get(place, ()), "place") for place in places)
    return Graph((*nodes, *outside), tuple(arrows))


def _lines(edge: Edge, role: str, words: _Words, more: Sequence[str] = ()) -> tuple[Line, ...]:
    data = {"from": edge.source or "", "to": edge.target or ""}
    texts = more or [""] * len(edge.labels)
    return tuple(words.line(label, role, data, text) for label, text in zip(edge.labels, texts, strict=True))


def _concurrent_steps(reading: Concurrent, words: _Words) -> Iterable[Step]:
    for phase in reading.phases:
        for move in phase.moves:
            yield words.step(phase.name, move.label, _go(phase.name, move.target))
        for start in phase.starts:
            waits = f", {start.place} waits for a reply" if start.place else ""
            yield words.step(phase.name, start.label, f"{_go(phase.name, start.phase)}{waits}")
    for reply in reading.replies:
        then = "it still waits" if reply.then == reply.place else f"{reply.then} waits" if reply.then else ""
        yield words.step(f"{reply.place} waits", reply.label, then or "answered")


def _go(state: str, target: str) -> str:
    return "stay" if target == state else f"go to {target}"


def _drawn(graph: Graph, dialog: Dialog, role: str, what: str) -> Markup:
    if not graph.drawable:
        return _TOO_LARGE
    return draw_graph(graph, f"State diagram of {dialog.name}, {what}, role {role}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
