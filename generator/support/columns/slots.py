"""Slots of a plan that have columns, and the fields that name the columns.

The columns of a message or record are those of its slots that are not hidden, in order. A value
inside a record or union of the same kind has a column of octets, which `Enclosed` reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

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
    is_hidden,
    operations,
)


class Enclosed(msgspec.Struct, frozen=True):
    """Value of a record or union that contains this operation."""

    slot: str
    value: Nest | Choose


Value: TypeAlias = (
    Number | Bit | TakeText | TakeOctets | Word | Loop | Nest | Choose | Optional | Enclosed
)  # fmt: skip
"""Operation on a slot that has a column; the slot of `Optional` says whether constants are present."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of a protocol."""

    bodies: Mapping[str, Body]
    """Body of each record, by class, with `Enclosed` where it contains itself."""
    conditions: frozenset[str]
    """Slots of the numbers that decide whether an `Optional` is present, of records and messages."""
    max_depth: int
    """As in `Plan`."""

    def full(self, depth: int) -> bool:
        """Return whether no record may be inside `depth` others."""
        return 0 < self.max_depth <= depth


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
            case TakeText() | TakeOctets() | Word() | Loop() | Nest() | Choose() | Enclosed():
                yield op
            case Optional(boolean=True):
                yield op
            case Optional(body=inside) | Sized(body=inside) | Region(body=inside):
                yield from visible(inside)


def values_of(part: Part) -> list[Value]:
    """Return the operations of a part whose slots have columns; a loop for `ManyFrames`."""
    return [Loop(part.slot, part.body)] if isinstance(part, ManyFrames) else list(visible(part.body))


def records_of(plan: NamedPlan) -> Records:
    """Return the records of a protocol."""
    bodies: dict[str, Body] = {}
    for message in plan.messages.values():
        for part in message.parts:
            _open(plan, part.body, (), bodies)
    parts = [part.body for message in plan.messages.values() for part in message.parts]
    conditions = frozenset(_conditions([*parts, *bodies.values()]))
    return Records(bodies, conditions, plan.layout.max_depth)


def _open(plan: NamedPlan, body: Body, outer: tuple[str, ...], bodies: dict[str, Body]) -> Body:
    """Return a body inside the records `outer`; add those in it to `bodies`."""
    found: list[Any] = []
    for op in body:
        records = [op.record] if isinstance(op, Nest) else []
        records += [record for _, record in op.options] if isinstance(op, Choose) else []
        if isinstance(op, Nest | Choose) and not set(records).isdisjoint(outer):
            found.append(Enclosed(op.slot, op))
            continue
        for record in records:
            if record not in bodies:
                bodies[record] = _open(plan, plan.records[record].body, (*outer, record), bodies)
        if isinstance(op, Optional | Loop | Sized | Region | Fixed):
            found.append(msgspec.structs.replace(op, body=_open(plan, op.body, outer, bodies)))
        else:
            found.append(op)
    return tuple(found)


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
