"""Slots of a plan that have columns, and the fields that name the columns.

The columns of a message or record are those of its slots that are not hidden, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from specwire.generated.layout import Field
from specwire.generated.named_plan import NamedPlan
from specwire.generated.plan import (
    Bit,
    Body,
    Choose,
    Fixed,
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

Value: TypeAlias = Number | Bit | TakeText | TakeOctets | Word | Loop | Nest | Choose | Optional
"""Operation on a slot that has a column; the slot of `Optional` says whether constants are present."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of a protocol."""

    bodies: Mapping[str, Body]
    """Body of each record, by class."""
    conditions: frozenset[str]
    """Slots of the numbers that decide whether an `Optional` is present, of records and messages."""


Fields = Mapping[str, Mapping[str, Field]]
"""For each class of messages and records, its fields by their slots; columns have their names."""


def visible(body: Body) -> Iterator[Value]:
    """Yield the operations of a body whose slots have columns."""
    for op in operations(body):
        match op:
            case Number(bits=bits) if bits:
                yield from (bit for bit in bits if not is_hidden(bit))
            case Number() if not is_hidden(op):
                yield op
            case TakeText() | TakeOctets() | Word() | Loop() | Nest() | Choose():
                yield op
            case Optional(boolean=True):
                yield op
            case Optional(body=inside) | Sized(body=inside) | Region(body=inside):
                yield from visible(inside)


def is_hidden(op: Number | Bit) -> bool:
    """Return whether the slot of a number, or of some bits of one, has no column."""
    if isinstance(op, Bit):
        return op.constant is not None or op.spare or bool(op.counts or op.announces)
    return op.checks or bool(op.counts or op.bits)


def values_of(part: Part) -> list[Value]:
    """Return the operations of a part whose slots have columns; a loop for `ManyFrames`."""
    return [Loop(part.slot, part.body)] if isinstance(part, ManyFrames) else list(visible(part.body))


def records_of(plan: NamedPlan) -> Records:
    """Return the records of a protocol."""
    bodies = {name: record.body for name, record in plan.records.items()}
    parts = [part.body for message in plan.messages.values() for part in message.parts]
    return Records(bodies, frozenset(_conditions([*parts, *bodies.values()])))


def _conditions(bodies: Iterable[Body]) -> Iterator[str]:
    """Yield the slots of the numbers that decide about options."""
    for op in (op for body in bodies for op in body):
        if isinstance(op, Optional) and op.when.slot:
            yield op.when.slot
        if isinstance(op, Optional | Loop | Sized | Region | Fixed):
            yield from _conditions([op.body])


def fields_of(plan: NamedPlan) -> Fields:
    """Return the fields of all messages and records."""
    found: dict[str, Mapping[str, Field]] = {}
    for name, message in plan.messages.items():
        found |= {name: message.fields, **message.records}
    return found
