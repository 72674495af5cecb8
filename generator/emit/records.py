"""The records and unions of a protocol: every one that a message holds, each once, the inner ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

from specwire.generator import ir

Answer = TypeVar("Answer")


def _kept(ask: Callable[[ir.Protocol], Answer]) -> Callable[[ir.Protocol], Answer]:
    """Cache the answer about the last protocol: emitters ask for each message, and an answer visits all messages."""
    # By identity, because hashing a protocol takes time in proportion to its size.
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
    """Whether some record is written otherwise under ``strict``: it holds a text that the letter ends with NUL."""
    return any(
        isinstance(field.type, ir.TextType) and field.type.terminated
        for record in records(protocol)
        for field in record.fields
    )


@_kept
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
    seen: set[int] = set()
    for message in protocol.messages:
        for field in message.fields:
            yield from _inside(field.type, seen)


def _inside(type: ir.Type, seen: set[int]) -> Iterator[ir.Type]:
    """Yield a type after those in it; visit a type that fields share once."""
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
