"""The structure of a type on the wire, without the words of the grammar.

Records contain rules, comments, lines and class names of the grammar, which do not affect the
octets. Names of fields are kept, because they are the names of columns. A value like one around it
is named by how many records and unions are between them.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from specwire.generator import ir

T = TypeVar("T", bound=ir.Type)


def structure(type: T, around: tuple[str, ...] = ()) -> T:
    """Return the type without the words of the grammar; `around` are the records and unions around it,
    the innermost first."""
    match type:
        case ir.ListType(element=element):
            return msgspec.structs.replace(type, element=structure(element, around))
        case ir.EnclosingType(name=name) if name in around:
            return msgspec.structs.replace(type, name=str(around.index(name)))
        case ir.PairsType():
            return msgspec.structs.replace(type, rule=None)
        case ir.RecordType(class_name=name, fields=fields):
            bare = tuple(_bare(field, (name, *around)) for field in fields)
            return msgspec.structs.replace(type, name="", class_name="", rule=None, doc="", fields=bare)
        case ir.UnionType(name=name, options=options):
            bare_options = tuple(structure(option, (name, *around)) for option in options)
            return msgspec.structs.replace(type, name="", options=bare_options)
    return type


def bare_option(option: ir.Option | None) -> ir.Option | None:
    """Return the condition of an option without its number in the run."""
    return None if option is None else msgspec.structs.replace(option, number=0)


def _bare(field: ir.Field, around: tuple[str, ...]) -> ir.Field:
    return ir.Field(
        field.name,
        "",
        structure(field.type, around),
        None,
        0,
        "",
        unit=field.unit,
        default=field.default,
        sentinels=field.sentinels,
        optional=field.optional,
        option=bare_option(field.option),
    )
