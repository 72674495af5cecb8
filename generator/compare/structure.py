"""The structure of a type on the wire, without the words of the grammar.

Records contain rules, comments, lines and class names of the grammar, which do not affect the
octets. Names of fields are kept, because they are the names of columns.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from specwire.generator import ir

T = TypeVar("T", bound=ir.Type)


def structure(type: T) -> T:
    """Return the type without the words of the grammar."""
    match type:
        case ir.ListType(element=element):
            return msgspec.structs.replace(type, element=structure(element))
        case ir.PairsType():
            return msgspec.structs.replace(type, rule=None)
        case ir.RecordType(fields=fields):
            bare = tuple(_bare(field) for field in fields)
            return msgspec.structs.replace(type, name="", class_name="", rule=None, doc="", fields=bare)
        case ir.UnionType(options=options):
            return msgspec.structs.replace(type, name="", options=tuple(map(structure, options)))
    return type


def _bare(field: ir.Field) -> ir.Field:
    return ir.Field(
        field.name,
        "",
        structure(field.type),
        None,
        0,
        "",
        unit=field.unit,
        default=field.default,
        sentinels=field.sentinels,
        optional=field.optional,
    )
