"""Emitter of ``layout.py``: the protocol's layout as data, from which the plan is lowered at run time."""

from __future__ import annotations

import msgspec

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.plan.layouts import layout_of


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's layout module."""
    names: set[str] = set()
    source = _source(layout_of(protocol), names)
    title = f"{protocol.edition}: layout of its messages, used to report the exact position of faults."
    return render("layout.py.j2", header=header(protocol, title), names=sorted(names), layout=source)


def _source(value: object, names: set[str]) -> str:
    """Return the Python source of a value; add the classes in it to `names`."""
    match value:
        case msgspec.Struct():
            names.add(type(value).__name__)
            return f"{type(value).__name__}({', '.join(_arguments(value, names))})"
        case tuple():
            items = [_source(item, names) for item in value]
            return f"({', '.join(items)}{',' * (len(items) == 1)})"
        case bytes():
            return octets_literal(value)
    return repr(value)


def _arguments(value: msgspec.Struct, names: set[str]) -> list[str]:
    """Return the arguments of a struct's class without those that have their default.

    Required arguments are positional, and so are numbers and octets directly after them.
    """
    found: list[str] = []
    positional = True
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if field.default is not msgspec.NODEFAULT and item == field.default:
            positional = False
            continue
        plain = isinstance(item, int | bytes) and not isinstance(item, bool)
        positional = positional and (field.default is msgspec.NODEFAULT or plain)
        source = _pattern(item) if field.name == "pattern" else _source(item, names)
        found.append(source if positional else f"{field.name}={source}")
    return found


def _pattern(pattern: bytes) -> str:
    """Return a regular expression over octets as a raw literal."""
    return f'rb"{pattern.decode("latin-1")}"'


EMITTER = Emitter("layout.py", emit)
