"""Slots of a plan that have columns, and the fields that name the columns.

The columns of a message or record are those of its slots that are not hidden, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from specwire.generated.layout import Field
from specwire.generated.named_plan import NamedPlan
from specwire.generated.plan import (
    Body,
    Choose,
    Loop,
    ManyFrames,
    Nest,
    Number,
    Optional,
    Part,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Word,
    operations,
)

Value: TypeAlias = Number | TakeText | TakeOctets | Word | Loop | Nest | Choose
"""Operation on a slot that has a column."""

Fields = Mapping[str, Mapping[str, Field]]
"""For each class of messages and records, its fields by their slots; columns have their names."""


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


def fields_of(plan: NamedPlan) -> Fields:
    """Return the fields of all messages and records."""
    found: dict[str, Mapping[str, Field]] = {}
    for name, message in plan.messages.items():
        found |= {name: message.fields, **message.records}
    return found
