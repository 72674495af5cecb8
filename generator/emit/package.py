"""Emitter of ``__init__.py``, the public interface of a generated package, and of ``payloads.py``.

The module selects the build, so programs import classes and `decode` from here. Imports from
``codec`` always give the Python build. Enumerations and constants are the same in both. Type
checkers only see ``codec``.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit import payloads
from specwire.generator.emit.native import native_digest
from specwire.generator.emit.python import sentence
from specwire.generator.emit.records import records
from specwire.generator.emit.write import Emitter, header, render, takes_part

MODULES = ("columns", "constructs", "machine", "schema", "strategies")
"""Modules imported on first access, because they need packages that take long to load."""


def emit(protocol: ir.Protocol) -> dict[str, str]:
    """Return the files: the interface, and the classes of payloads if the profile describes any."""
    return {"__init__.py": _interface(protocol), "payloads.py": payloads.emit(protocol)}


def _interface(protocol: ir.Protocol) -> str:
    built = [message.class_name for message in protocol.messages]
    built += [record.class_name for record in records(protocol)]
    built += ["AnyMessage", "MESSAGES", "UNEXPECTED", "answer", "decode"]
    shared = [enum.class_name for enum in protocol.enums]
    shared += [constant.name for constant in protocol.constants]
    shared += ["EDITION", *(["Flags"] if protocol.flags else [])]
    modules = tuple(filter(takes_part, MODULES))
    if protocol.payloads.payloads:
        modules = tuple(sorted((*modules, "payloads")))
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
    """Return the sort key of the linter for ``__all__``: constants, then classes, then the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


EMITTER = Emitter(None, emit, requires=("codec", "stream"))
