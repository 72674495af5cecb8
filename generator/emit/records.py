"""Records and unions of a protocol: each one that a message contains, once, inner ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TypeVar

from specwire.generator import ir
from specwire.generator.emit.python import element_annotation

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
def enclosing(protocol: ir.Protocol) -> Mapping[str, str]:
    """Return the Python type of every union, by the name with which values inside it refer to it."""
    return {union.name: element_annotation(union) for union in unions(protocol)}


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
