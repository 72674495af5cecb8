"""Writes ``__init__.py``: what a program sees of a generated package.

It is the door of the package: it decides which build a program gets, so classes and `decode` come from here, and
whoever takes them from ``codec`` gets the build in Python in any case. Enumerations and constants are the same in
both. To type checkers there is only ``codec``.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.native import native_digest
from specwire.generator.emit.python import sentence
from specwire.generator.emit.records import records
from specwire.generator.emit.write import Emitter, header, render, takes_part

MODULES = ("columns", "constructs", "machine", "schema", "strategies")
"""Modules that are imported when first asked for: they need packages that take long to load."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's ``__init__``."""
    built = [message.class_name for message in protocol.messages]
    built += [record.class_name for record in records(protocol)]
    built += ["AnyMessage", "MESSAGES", "UNEXPECTED", "answer", "decode"]
    shared = [enum.class_name for enum in protocol.enums]
    shared += [constant.name for constant in protocol.constants]
    shared += ["EDITION", *(["Flags"] if protocol.flags else [])]
    modules = tuple(filter(takes_part, MODULES))
    stream = ["StreamDecoder", "frame"] if protocol.stream else []
    errors = ["DecodeError", "EncodeError", "Violation"]
    roles = ", ".join(f"{role.letter} is the {role.name} ({role.socket})" for role in protocol.roles)
    about = f"{protocol.title}. Source: {protocol.source}.\n\n{sentence(f'Roles: {roles}') if roles else ''}"
    return render(
        "package.py.j2",
        header=header(protocol, f"{protocol.edition}: messages and codec.", about),
        name=protocol.name,
        digest=native_digest(protocol),
        built=built,
        shared=shared,
        stream=stream,
        errors=errors,
        modules=modules,
        everything=sorted([*built, *shared, *stream, *errors, *modules, "ACCELERATED"], key=_case_then_name),
    )


def _case_then_name(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as the linter sorts ``__all__``."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


EMITTER = Emitter("__init__.py", emit, requires=("codec", "stream"))
