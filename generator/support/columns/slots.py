"""Plan of a protocol, and the columns of its slots.

A column has the name of its field; a slot is the attribute of the field. The columns of a message or record are
those of its slots that are not hidden, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from specwire.generated.layout import Field, Frame, ListOf, ProtocolLayout, Record, Type, Union
from specwire.generated.plan import (
    Body,
    Choose,
    Loop,
    ManyFrames,
    Nest,
    Number,
    Optional,
    Part,
    Plan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Word,
    lower,
    operations,
)

Value: TypeAlias = Number | TakeText | TakeOctets | Word | Loop | Nest | Choose
"""Operation on a slot that has a column."""

Names = Mapping[str, Mapping[str, str]]
"""For each class of messages and records, the column of each slot."""


@lru_cache(maxsize=64)
def plan_of(layout: ProtocolLayout) -> Plan:
    """Return the plan of a protocol."""
    return lower(layout)


def visible(body: Body) -> Iterator[Value]:
    """Yield the operations of a body whose slots have columns."""
    for op in operations(body):
        match op:
            case Number(counts=counts, checks=checks) if not counts and not checks:
                yield op
            case TakeText() | TakeOctets() | Word() | Loop() | Nest() | Choose():
                yield op
            case Optional(body=inside) | Sized(body=inside) | Region(body=inside):
                yield from visible(inside)


def values_of(part: Part) -> list[Value]:
    """Return the operations of a part whose slots have columns; a loop for `ManyFrames`."""
    return [Loop(part.slot, part.body)] if isinstance(part, ManyFrames) else list(visible(part.body))


@lru_cache(maxsize=64)
def column_names(layout: ProtocolLayout) -> Names:
    """Return the names of all columns of messages and records."""
    found: dict[str, dict[str, str]] = {}

    def keep(owner: str, fields: Sequence[Field]) -> None:
        found.setdefault(owner, {}).update((field.attribute, field.name) for field in fields)
        for field in fields:
            look(field.type)

    def look(type: Type) -> None:
        match type:
            case ListOf(element=element):
                look(element)
            case Record(class_name=class_name, fields=fields):
                keep(class_name, fields)
            case Union(options=options):
                for option in options:
                    look(option)

    for message in layout.messages:
        for part in message.parts:
            keep(message.class_name, part.fields if isinstance(part, Frame) else (part.field,))
    return found
