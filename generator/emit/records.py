"""Records and unions of a protocol: each one that a message contains, once, inner ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

from specwire.generator import ir

Answer = TypeVar("Answer")


def _kept(ask: Callable[[ir.Protocol], Answer]) -> Callable[[ir.Protocol], Answer]:
    """Cache the result for the last protocol: emitters ask once for each message."""
    # Compare by identity: hashing a protocol takes time proportional to its size.
    last: list[tuple[ir.Protocol, Answer]] = []

    @wraps(ask)
    def answer(protocol: ir.Protocol) -> Answer:
        if not last or last[0][0] is not protocol:
            last[:] = [(protocol, ask(protocol))]
        return last[0][1]

    return answer


@_kept
def records(protocol: ir.Protocol) -> tuple[ir.RecordType, ...]:
    """Return the record types of the messages, each after those that it holds."""
    return tuple(dict.fromkeys(type for type in _types(protocol) if isinstance(type, ir.RecordType)))


@_kept
def unions(protocol: ir.Protocol) -> tuple[ir.UnionType, ...]:
    """Return the union types of the messages, each after its options."""
    return tuple(dict.fromkeys(type for type in _types(protocol) if isinstance(type, ir.UnionType)))


@_kept
def strict_matters(protocol: ir.Protocol) -> bool:
    """Return whether ``strict`` changes the encoding of a record, as it contains a NUL-terminated text."""
    return any(
        isinstance(field.type, ir.TextType) and field.type.terminated
        for record in records(protocol)
        for field in record.fields
    )


@_kept
def lends_slices(protocol: ir.Protocol) -> bool:
    """Return whether a message has octets that are part of a frame, so that without copies they are views."""
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
    """Return whether a value is, or contains, octets."""
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
    """Return the part of a function's name that identifies a record or union."""
    if isinstance(type, ir.RecordType):
        return _snake(type.class_name)
    return "one_of_" + "_".join(_snake(option.class_name) for option in type.options)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")


def _types(protocol: ir.Protocol) -> Iterator[ir.Type]:
    seen: set[int] = set()
    for message in protocol.messages:
        for field in message.fields:
            yield from _inside(field.type, seen)


def _inside(type: ir.Type, seen: set[int]) -> Iterator[ir.Type]:
    """Yield a type after the types in it; a shared type is yielded once."""
    if id(type) in seen:
        return
    seen.add(id(type))
    match type:
        case ir.ListType(element=element):
            yield from _inside(element, seen)
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from _inside(field.type, seen)
        case ir.UnionType(options=options):
            for option in options:
                yield from _inside(option, seen)
    yield type
