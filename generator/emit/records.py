"""The records and unions of a protocol: every one that a message holds, each once, the inner ones first."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir


def records(protocol: ir.Protocol) -> tuple[ir.RecordType, ...]:
    """Return the record types of the messages, each after those that it holds."""
    return tuple(dict.fromkeys(type for type in _types(protocol) if isinstance(type, ir.RecordType)))


def unions(protocol: ir.Protocol) -> tuple[ir.UnionType, ...]:
    """Return the union types of the messages, each after its options."""
    return tuple(dict.fromkeys(type for type in _types(protocol) if isinstance(type, ir.UnionType)))


def strict_matters(protocol: ir.Protocol) -> bool:
    """Whether some record is written otherwise under ``strict``: it holds a text that the letter ends with NUL."""
    return any(
        isinstance(field.type, ir.TextType) and field.type.terminated
        for record in records(protocol)
        for field in record.fields
    )


def lends_slices(protocol: ir.Protocol) -> bool:
    """Whether some message has octets that are not all of a frame: without a copy, a view on a part of it."""
    parts = [part for message in protocol.messages for part in message.parts if isinstance(part, ir.Frame)]
    return any(
        holds_octets(field.type)
        for part in parts
        for field in part.fields
        if len(part.fields) > 1 or field.optional or not _is_rest(field.type)
    )


def _is_rest(type: ir.Type) -> bool:
    return isinstance(type, ir.OctetsType) and type.length.kind == "rest"


def holds_octets(type: ir.Type) -> bool:
    """Whether a value is octets, or has octets inside."""
    match type:
        case ir.OctetsType():
            return True
        case ir.PairsType(value=value):
            return value is not None and holds_octets(value)
        case ir.ListType(element=element):
            return holds_octets(element)
        case ir.RecordType(fields=fields):
            return any(holds_octets(field.type) for field in fields)
        case ir.UnionType(options=options):
            return any(map(holds_octets, options))
    return False


def function_name(type: ir.RecordType | ir.UnionType) -> str:
    """Return the part of a function's name that says which record, or which union, it is about."""
    if isinstance(type, ir.RecordType):
        return _snake(type.class_name)
    return "one_of_" + "_".join(_snake(option.class_name) for option in type.options)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")


def _types(protocol: ir.Protocol) -> Iterator[ir.Type]:
    for message in protocol.messages:
        for field in message.fields:
            yield from _inside(field.type)


def _inside(type: ir.Type) -> Iterator[ir.Type]:
    match type:
        case ir.ListType(element=element):
            yield from _inside(element)
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from _inside(field.type)
        case ir.UnionType(options=options):
            for option in options:
                yield from _inside(option)
    yield type
