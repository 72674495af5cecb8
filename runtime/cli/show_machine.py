"""`specwire show machine`: the dialogs of a protocol as tables, as drawings, and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from specwire.runtime.cli.console import fail, new_table, output, print_json

if TYPE_CHECKING:
    from specwire.generator import ir
    from specwire.generator.emit.diagram import Edge, Reading
    from specwire.generator.ir.dialogs import Dialog


class Format(StrEnum):
    """How a dialog is shown."""

    TABLE = "table"
    MERMAID = "mermaid"
    DOT = "dot"


class ReadingName(StrEnum):
    """How its rule is read."""

    STRICT = "strict"
    CONCURRENT = "concurrent"


_READINGS: tuple[Reading, ...] = ("strict", "concurrent")


def show_machine(
    protocol: ir.Protocol,
    *,
    dialog: str | None,
    role: str | None,
    reading: ReadingName | None,
    format: Format,
    json: bool,
) -> None:
    """Print the dialogs of `protocol` that `dialog` and `role` leave, in one reading or in both."""
    chosen = _choose(protocol, dialog, role)
    views = [(found, name) for found in chosen for name in _READINGS if reading in (None, name)]
    if json:
        print_json([_as_json(found, name, role) for found, name in views])
    elif format is Format.TABLE:
        for found, name in views:
            _print_table(found, name, role)
    else:
        from specwire.generator.emit.diagram import dot, mermaid

        write = mermaid if format is Format.MERMAID else dot
        sys.stdout.write("\n".join(write(found, name, role) for found, name in views))


def _choose(protocol: ir.Protocol, name: str | None, role: str | None) -> list[Dialog]:
    if not protocol.dialogs:
        fail(f"{protocol.name} has no dialog: declare one under [[dialogs]] in its profile")
    found = [dialog for dialog in protocol.dialogs if name in (None, dialog.name)]
    if not found:
        fail(f"no dialog '{name}'; {protocol.name} has {', '.join(d.name for d in protocol.dialogs)}")
    speaking = [dialog for dialog in found if role is None or role in dialog.roles]
    if not speaking:
        roles = dict.fromkeys(letter for dialog in found for letter in dialog.roles)
        fail(f"no role '{role}'; there is {', '.join(roles)}")
    return speaking


def _print_table(dialog: Dialog, reading: Reading, role: str | None) -> None:
    from rich.text import Text

    from specwire.generator.emit.diagram import draw, spoken

    drawing = draw(dialog, reading)
    title = f"{dialog.name}, {reading} reading" + (f", seen by {role}" if role else "")
    table = new_table(title=title, title_justify="left")
    for head in ("state", "message", "next"):
        table.add_column(head, overflow="fold")
    final = {node.name for node in drawing.nodes if node.final}
    for node in drawing.nodes:
        rows = [
            (label, edge.target)
            for edge in drawing.edges
            if edge.source == node.name
            for label in edge.labels
        ]
        state = f"{node.name} (may end)" if node.name in final and rows else node.name
        for number, (label, target) in enumerate(rows or [("nothing more", None)]):
            shown = spoken(label, role) if target else label
            table.add_row(Text("" if number else state), Text(shown), Text(target or ""))
        table.add_section()
    for edge in (edge for exchange in drawing.exchanges for edge in exchange):
        for label in edge.labels:
            source = f"waiting {edge.source}" if edge.source else "(request)"
            target = f"waiting {edge.target}" if edge.target else "(answered)"
            table.add_row(Text(source), Text(spoken(label, role)), Text(target))
    output().print(table)


def _as_json(dialog: Dialog, reading: Reading, role: str | None) -> dict[str, Any]:
    from specwire.generator.emit.diagram import draw

    drawing = draw(dialog, reading)
    return {
        "dialog": dialog.name,
        "rule": dialog.rule,
        "reading": reading,
        "roles": list(dialog.roles),
        "role": role,
        "states": [{"name": node.name, "final": node.final} for node in drawing.nodes],
        "transitions": _edges(drawing.edges),
        "exchanges": [_edges(exchange) for exchange in drawing.exchanges],
        "key": list(dialog.key),
    }


def _edges(edges: Iterable[Edge]) -> list[dict[str, Any]]:
    return [
        {
            "from": edge.source,
            "to": edge.target,
            "sender": label.partition(":")[0],
            "message": label.partition(":")[2],
        }
        for edge in edges
        for label in edge.labels
    ]
