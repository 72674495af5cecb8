"""Plan of a protocol with the names that error messages print.

The plan has slots, and the layout has the name and the rule of the field in each slot. Both are
found together here, once for each protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

import msgspec

from specwire.generated import plan as ops
from specwire.generated.layout import Field, Frame, ListOf, MessageLayout, ProtocolLayout, Record, Type, Union
from specwire.generated.lowering import lower

Value = (
    ops.Expect | ops.Number | ops.TakeText | ops.TakeOctets | ops.Word | ops.Pad | ops.Loop | ops.Nest
    | ops.Choose | ops.Sized
)  # fmt: skip
"""Operation on the value in one slot."""


class NamedMessage(msgspec.Struct, frozen=True):
    """Operations of one message, and its fields by their slots."""

    layout: MessageLayout
    parts: tuple[ops.Part, ...]
    titles: tuple[tuple[Field | None, str], ...]
    """For each part, its only field and that field's name; the part's own name if it has several fields."""
    fields: Mapping[str, Field]
    records: Mapping[str, Mapping[str, Field]]
    """For each class of a record of the protocol, its fields by their slots."""
    required_after: tuple[int, ...]
    """For each part, the minimum number of frames of the parts after it."""
    flags: tuple[int, ops.Number, int | None] | None
    """Index of the part with the flags, their operation, and their offset; None if it varies."""


class NamedPlan(msgspec.Struct, frozen=True):
    """Messages of a protocol by class, and the records in them by class."""

    layout: ProtocolLayout
    messages: Mapping[str, NamedMessage]
    records: Mapping[str, ops.RecordPlan]


@lru_cache(maxsize=64)
def named_plan(layout: ProtocolLayout) -> NamedPlan:
    """Return the plan of a protocol; it is lowered once."""
    plan = lower(layout)
    records: dict[str, Mapping[str, Field]] = {}
    for part in (part for message in layout.messages for part in message.parts):
        for field in part.fields if isinstance(part, Frame) else (part.field,):
            _collect(field.type, records)
    messages = {
        message.class_name: _message(message, named, records)
        for message, named in zip(layout.messages, plan.messages, strict=True)
    }
    return NamedPlan(layout, messages, {record.class_name: record for record in plan.records})


class NamedVisitor(ops.Visitor):
    """Visitor of the operations of one message that knows the name and the rule of the field it is at.

    The path is as in errors, for example ``headers[1].value``. The method of an operation with
    others inside yields their bodies; so the depth of a message never exhausts Python's stack.
    """

    def __init__(self, plan: NamedPlan, message: NamedMessage) -> None:
        self.plan = plan
        self.message = message
        self.field: Field | None = None
        self.path = ""
        self.rule: str | None = None
        """Rule of the item, if it differs from the field's rule."""
        self.entry = ""
        """Path of the innermost pair."""
        self.split = ""
        """How the text in the innermost loop is split."""
        self._fields = message.fields
        self._prefix = ""

    def visit(self, body: ops.Body) -> None:
        """Perform every operation of a body, and those inside them."""
        self.perform(iter((body,)))

    def perform(self, bodies: Iterator[ops.Body]) -> None:
        """Perform every operation of bodies, and those inside them."""
        waiting = [bodies]
        while waiting:
            body = next(waiting[-1], None)
            if body is None:
                waiting.pop()
            else:
                waiting.append(self._inside(body))

    def _inside(self, body: ops.Body) -> Iterator[ops.Body]:
        """Perform the operations of a body; yield the bodies inside them."""
        for op in body:
            inside = self.operation(op)
            if inside is not None:
                yield from inside

    def fixed(self, op: ops.Fixed) -> None:
        """Perform operations of fixed size, which have no others inside."""
        for inner in op.body:
            self.operation(inner)

    @property
    def rule_name(self) -> str:
        """Name of the rule that is violated here."""
        return self.rule or (self.field.rule if self.field else self.message.layout.name)

    def move(self, field: Field | None, path: str) -> None:
        """Move to another field, or to none."""
        self.field, self.path, self.rule = field, path, None

    def enter(self, slot: str) -> None:
        """Move to the field of a slot; that of an item is named by its loop."""
        name = slot.removesuffix("#")
        if name in (ops.NAME, ops.VALUE):
            self.path = f"{self.entry}.{name[1:-1]}"
        elif name != ops.ITEM:
            field = self._fields[name]
            self.move(field, self._prefix + field.name)

    def items(self, op: ops.Loop, numbers: Iterable[int]) -> Iterator[int]:
        """Move to each item of a loop, then to the loop again."""
        field, path, outer = self.field, self.path, self.split
        self.split = op.pairs
        for number in numbers:
            self.move(field, f"{path}[{number}]")
            if op.pairs:
                self.entry, self.rule = self.path, op.rule
            yield number
        self.split = outer
        self.move(field, path)
        self.rule = op.rule

    @contextmanager
    def inside(self, class_name: str) -> Iterator[None]:
        """Enter the record in the current field, and leave it."""
        field, path, outer = self.field, self.path, (self._fields, self._prefix)
        self._fields, self._prefix = self.message.records[class_name], f"{path}."
        yield
        self._fields, self._prefix = outer
        self.move(field, path)


def values(body: ops.Body) -> Iterator[Value]:
    """Yield the operations of a run that have a slot, also those inside operations that group others."""
    for op in body:
        match op:
            case ops.Fixed() | ops.Region() | ops.Optional():
                yield from values(op.body)
            case ops.Sized():
                yield op
                yield from values(op.body)
            case ops.Mark() | ops.Verify():
                pass
            case _:
                yield op


def _message(
    message: MessageLayout, plan: ops.MessagePlan, records: Mapping[str, Mapping[str, Field]]
) -> NamedMessage:
    titles: list[tuple[Field | None, str]] = []
    fields: list[Field] = []
    for part in message.parts:
        inside = part.fields if isinstance(part, Frame) else (part.field,)
        titles.append((inside[0], inside[0].name) if len(inside) == 1 else (None, part.name))
        fields += inside
    return NamedMessage(
        message, plan.parts, tuple(titles), _by_slot(fields), records, _required_after(plan), _flags(plan)
    )


def _required_after(plan: ops.MessagePlan) -> tuple[int, ...]:
    needs: list[int] = []
    total = 0
    for part in reversed(plan.parts):
        needs.append(total)
        rest = isinstance(part, ops.ManyFrames) and not part.delimited
        total += part.presence.kind == "always" and not rest
    return tuple(reversed(needs))


def _flags(plan: ops.MessagePlan) -> tuple[int, ops.Number, int | None] | None:
    for position, part in enumerate(plan.parts):
        for op in values(part.body):
            if isinstance(op, ops.Number) and op.flags:
                return position, op, _offset(part.body, op)
    return None


def _offset(body: ops.Body, wanted: ops.Op) -> int | None:
    """Return the offset of an operation of a body; None if it varies."""
    offset = 0
    for op in ops.operations(body):
        if op is wanted:
            return offset
        size = ops.fixed_octets(op)
        if size is None:
            break
        offset += size
    return None


def _collect(type: Type, records: dict[str, Mapping[str, Field]]) -> None:
    """Add the records inside a value."""
    match type:
        case ListOf(element=element):
            _collect(element, records)
        case Union(options=options):
            for option in options:
                _collect(option, records)
        case Record(class_name=class_name, fields=fields) if class_name not in records:
            records[class_name] = _by_slot(fields)
            for field in fields:
                _collect(field.type, records)


def _by_slot(fields: list[Field] | tuple[Field, ...]) -> Mapping[str, Field]:
    return {field.attribute: field for field in fields}
