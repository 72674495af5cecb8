"""Emitter of ``machine.py``: the dialogs of a protocol as tables, and the `Session` that checks one.

The tables are those of the IR as Python source. ``specwire.generated.session`` contains the
behaviour of a session. For a protocol without a dialog, the module has roles and timers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.handlers import handlers
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.ir.dialogs import Dialog, Phase
from specwire.generator.ir.names import attribute, constant_name

_RESERVED = frozenset({"DEFAULT", "DIALOGS", "OPEN_LIMIT", "ROLES", "TIMERS"})


@dataclass(frozen=True, slots=True)
class _Row:
    """Entry of a table: its key and its value as Python source."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class _Table:
    """Dialog for the template; every attribute is Python source."""

    constant: str
    name: str
    rule: str
    doc: str
    roles: str
    strict: tuple[_Row, ...]
    phases: tuple[_Row, ...]
    replies: tuple[_Row, ...]
    extras: tuple[_Row, ...]
    """Arguments that only some dialogs need."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of the module, before formatting."""
    tables = tuple(_table(dialog) for dialog in protocol.dialogs)
    roles = _roles(protocol)
    sides = handlers(protocol, roles)
    return render(
        "machine.py.j2",
        header=header(
            protocol,
            f"{protocol.title or protocol.name}: {'dialog tables, session and handlers' if tables else 'roles and timers'}.",
            (_MORE if tables else "") + (_HANDLERS if sides else ""),
        ),
        tables=tables,
        handlers=sides,
        imports=_imports(bool(tables), bool(roles), bool(sides)),
        role_letters=", ".join(_text(letter) for letter in roles),
        roles=tuple(_Row(_text(letter), _text(name)) for letter, name in roles.items()),
        names=", ".join(table.name for table in tables),
        timers=tuple(_Row(_text(name), repr(float(seconds))) for name, seconds in protocol.timers),
    )


EMITTER = Emitter("machine.py", emit, requires=("codec",))

_MORE = """\
The tables are data. A label is a message with its sender, ``ROLE:Message``. `Session` checks one
conversation against the tables; ``specwire.generated.dialog`` describes their format."""
_HANDLERS = """

A handler has one method for each message that a side receives; ``dispatch_to_…`` calls it. Inherit from
the handler of your side: a type checker then reports missing methods."""


def _imports(tables: bool, roles: bool, handlers: bool) -> tuple[str, ...]:
    lines = ["from abc import abstractmethod", "from importlib import import_module"] if handlers else []
    lines.append("from collections.abc import Mapping")
    if roles or tables:
        lines.append(f"from typing import {'TYPE_CHECKING, Literal, Protocol' if handlers else 'Literal'}")
    if tables:
        variables = "Context_contra, Result_co, " if handlers else ""
        lines.append(f"from specwire.generated.dialog import {variables}Dialog, Phase, Reading")
        lines.append("from specwire.generated.events import Events, events_of")
        lines.append("from specwire.generated.session import OPEN_LIMIT, DialogSession")
    return tuple(lines)


def _roles(protocol: ir.Protocol) -> dict[str, str]:
    """Return the names of roles by letter: those of the profile, then any that only a dialog has."""
    names = {role.letter: role.name for role in protocol.roles}
    for dialog in protocol.dialogs:
        for letter in dialog.roles:
            names.setdefault(letter, letter)
    return names


def _table(dialog: Dialog) -> _Table:
    constant = constant_name(dialog.name)
    reading = dialog.concurrent
    return _Table(
        constant=f"{constant}_" if constant in _RESERVED else constant,
        name=_text(dialog.name),
        rule=_text(dialog.rule),
        doc=f"Rule ``{dialog.rule}``: {_count(len(dialog.strict), 'state')} in the strict reading, "
        f"{_count(len(reading.phases), 'phase')} in the concurrent one.",
        roles=_tuple(_text(role) for role in dialog.roles),
        strict=tuple(
            _Row(_text(state.name), _mapping({t.label: _text(t.target) for t in state.transitions}))
            for state in dialog.strict
        ),
        phases=tuple(_Row(_text(phase.name), _phase(phase)) for phase in reading.phases),
        replies=_replies(dialog),
        extras=_extras(dialog),
    )


def _phase(phase: Phase) -> str:
    moves = _mapping({move.label: _text(move.target) for move in phase.moves})
    starts = _mapping(
        {start.label: _tuple((_text(start.phase), _text(start.place))) for start in phase.starts}
    )
    return f"Phase(moves={moves}, starts={starts})"


def _replies(dialog: Dialog) -> tuple[_Row, ...]:
    takes: dict[str, list[str]] = {}
    for reply in dialog.concurrent.replies:
        takes.setdefault(reply.label, []).append(_tuple((_text(reply.place), _text(reply.then))))
    return tuple(_Row(_text(label), _tuple(places)) for label, places in takes.items())


def _extras(dialog: Dialog) -> tuple[_Row, ...]:
    extras: list[_Row] = []
    if dialog.concurrent.errors:
        extras.append(_Row("errors", _tuple(_text(label) for label in dialog.concurrent.errors)))
    if dialog.key:
        extras.append(_Row("key", _tuple(_text(attribute(name)) for name in dialog.key)))
    for name, pairs in (("keyless", dialog.keyless), ("unanswered", dialog.unanswered)):
        if pairs:
            extras.append(_Row(name, _mapping({attribute(field): str(value) for field, value in pairs})))
    return tuple(extras)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _text(value: str | None) -> str:
    return "None" if value is None else json.dumps(value, ensure_ascii=False)


def _tuple(items: Iterable[str]) -> str:
    listed = list(items)
    # A trailing comma would make the formatter put each of several items on its own line.
    return f"({', '.join(listed)}{',' * (len(listed) == 1)})"


def _mapping(items: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{_text(key)}: {value}' for key, value in items.items())}}}"
