"""Facts about the bodies of a plan that several emitters of Python source need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.support.layout import Boolean, Float
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    Bit,
    Body,
    Choose,
    Expect,
    Fixed,
    Loop,
    ManyFrames,
    MessagePlan,
    Nest,
    Number,
    OneFrame,
    Op,
    Optional,
    Plan,
    RecordPlan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    When,
    Word,
    fixed_octets,
    is_hidden,
    operations,
)

Whole = TakeText | TakeOctets | Word


def whole_value(body: Body) -> Whole | None:
    """Return the operation of a body that is one value up to its end; None for any other body."""
    match body:
        case (Word() as word,):
            return word
        case (TakeText() | TakeOctets() as op,) if op.extent.kind == "rest" and not op.extent.octets:
            return op
    return None


def constant_octets(body: Body) -> bytes | None:
    """Return the octets of a body that is always the same; None for any other body."""
    ops = list(operations(body))
    expected = [op.octets for op in ops if isinstance(op, Expect)]
    return b"".join(expected) if len(expected) == len(ops) else None


def is_folded(body: Body) -> bool:
    """Return whether a constant of a body can have letters of either case."""
    return any(isinstance(op, Expect) and op.folded for op in operations(body))


def annotation_of(op: Op, slot: str = "") -> str:
    """Return the Python type of the value of an operation; of several values, that in `slot`."""
    match op:
        case Number(bits=bits) if bits:
            return "bool" if any(bit.boolean for bit in bits if bit.slot == slot) else "int"
        case Number(coding=coding):
            return "float" if isinstance(coding, Float) else "bool" if isinstance(coding, Boolean) else "int"
        case TakeOctets(uuid=uuid):
            return "UUID" if uuid else "bytes"
        case Loop():
            return f"tuple[{item_annotation(op)}, ...]"
        case Nest(record=record):
            return record
        case Choose(options=options):
            return " | ".join(record for _, record in options)
        case Optional(boolean=True):
            return "bool"
        case Optional(slot=first, body=body):
            return value_annotation(body, slot or first)
    return "str"


def value_annotation(body: Body, slot: str) -> str:
    """Return the Python type of the value of `slot` in a body."""
    return next(annotation_of(op, slot) for op in operations(body) if slot in slots_of(op))


def item_annotation(loop: Loop) -> str:
    """Return the Python type of an item of a loop."""
    match loop.pairs:
        case "":
            return value_annotation(loop.body, ITEM)
        case "both":
            return f"tuple[{value_annotation(loop.body, NAME)}, {value_annotation(loop.body, VALUE)}]"
    return "tuple[str, str]"


def slots_of(op: Op) -> tuple[str, ...]:
    """Return the slots of an operation's values, without hidden ones."""
    match op:
        case Number(bits=bits) if bits:
            return tuple(bit.slot for bit in bits if not is_hidden(bit))
        case Number(slot=slot, counts=counts, checks=checks):
            return () if counts or checks else (slot,)
        case Optional(slot=slot, others=others):
            return (slot, *others)
        case TakeText() | TakeOctets() | Word() | Loop() | Nest() | Choose():
            return (op.slot,)
    return ()


def counters(ops: Iterable[Op]) -> Iterator[Number | Bit]:
    """Yield the numbers, and bits of numbers, that count octets or items."""
    for op in ops:
        if isinstance(op, Number):
            numbers: tuple[Number | Bit, ...] = (op, *op.bits)
            yield from (number for number in numbers if number.counts)


def holds_octets(body: Body, records: Mapping[str, RecordPlan]) -> bool:
    """Return whether a value of a body is, or contains, octets."""
    return any(isinstance(op, TakeOctets) and op.uuid is None for op in reachable(body, records))


def reachable(body: Body, records: Mapping[str, RecordPlan]) -> Iterator[Op]:
    """Yield the operations of a body, of all bodies inside it and of the records in them."""
    waiting = [body]
    seen: set[str] = set()
    while waiting:
        for op in nested(waiting.pop()):
            yield op
            names = [op.record] if isinstance(op, Nest) else []
            names += [record for _, record in op.options] if isinstance(op, Choose) else []
            waiting += [records[name].body for name in names if name not in seen]
            seen.update(names)


def lends_slices(plan: Plan) -> bool:
    """Return whether a message has octets that are part of a frame, so that without copies they are
    views."""
    records = {record.class_name: record for record in plan.records}
    return any(
        isinstance(part, OneFrame) and not whole_value(part.body) and holds_octets(part.body, records)
        for message in plan.messages
        for part in message.parts
    )


def strict_matters(plan: Plan) -> bool:
    """Return whether ``strict`` changes the encoding of a record, as it contains a NUL-terminated
    text."""
    return any(
        isinstance(op, TakeText) and op.terminated for record in plan.records for op in flat(record.body)
    )


def flat(body: Body) -> list[Op]:
    """Return the operations of a body and of those inside it, but not the items of loops."""
    found: list[Op] = []
    for op in operations(body):
        found.append(op)
        if isinstance(op, Optional | Sized | Region):
            found += flat(op.body)
    return found


def may_be_empty(body: Body, records: Mapping[str, RecordPlan]) -> bool:
    """Return whether a body can have no octets."""
    return all(_may_be_empty(op, records) for op in body)


def _may_be_empty(op: Op, records: Mapping[str, RecordPlan]) -> bool:
    match op:
        case TakeOctets(minimum=minimum) if minimum:
            return False
        case TakeText(extent=extent) if extent.kind == "run" and extent.octets:
            return False
        case Loop(minimum=minimum) if minimum:
            return False
        case Nest(record=record):
            return may_be_empty(records[record].body, records)
        case Choose(options=options):
            return any(may_be_empty(records[record].body, records) for _, record in options)
        case Number() | Sized():
            return False
        case Region(body=body):
            return may_be_empty(body, records)
    return not fixed_octets(op)


def choices(plan: Plan) -> tuple[Choose, ...]:
    """Return every choice of a plan once, inner ones first."""
    found = [op for op in _everything(plan) if isinstance(op, Choose)]
    return tuple({op.options: op for op in found}.values())


def nested(body: Body) -> list[Op]:
    """Return the operations of a body and of all bodies inside it."""
    found: list[Op] = []
    for op in body:
        if isinstance(op, Loop | Optional | Sized | Region | Fixed):
            found += nested(op.body)
        found.append(op)
    return found


def flags_slot(message: MessagePlan) -> str:
    """Return the slot of the number whose bits announce parts; empty if there is none."""
    for part in message.parts:
        for op in operations(part.body) if isinstance(part, OneFrame) else ():
            if isinstance(op, Number) and op.flags:
                return op.slot
    return ""


def first_slot(part: OneFrame | ManyFrames) -> str:
    """Return the slot of the value of a part that may be absent."""
    if isinstance(part, ManyFrames):
        return part.slot
    return next(slot for op in operations(part.body) for slot in slots_of(op))


def members_source(members: tuple[int, ...], protocol: ir.Protocol) -> str:
    """Return the source of the allowed values of an integer: by name if they are an enumeration."""
    for enum in protocol.enums:
        if tuple(value for _, value in enum.members) == members:
            return f"_{enum.name.upper()}"
    return repr(members)


def record_function(record: str) -> str:
    """Return the part of a function's name that identifies a record."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in record).strip("_")


def choice_function(options: tuple[tuple[bytes, str], ...]) -> str:
    """Return the part of a function's name that identifies one of several records."""
    return "one_of_" + "_".join(record_function(record) for _, record in options)


def octets_source(octets: bytes) -> str:
    """Return octets as a literal; a repeated octet as a product."""
    if len(octets) > 8 and len(set(octets)) == 1:
        return f"{octets_literal(octets[:1])} * {len(octets)}"
    return octets_literal(octets)


def condition_source(when: When, number: str) -> str:
    """Return the condition that a number, which is an expression, is as `when` says."""
    number = number if re.fullmatch(r"[\w.]+", number) else f"({number})"
    values = [f"0x{value:02x}" if when.mask else str(value) for value in when.values]
    masked = f"{number} & 0x{when.mask:02x}" if when.mask else number
    return f"{masked} == {values[0]}" if len(values) == 1 else f"{masked} in ({', '.join(values)})"


def run_names(plan: Plan) -> dict[bytes, str]:
    """Return the name of the regular expression for each set of octets of which texts are runs."""
    found = [op.extent.among for op in _everything(plan) if isinstance(op, TakeText | TakeOctets)]
    return {among: f"_RUN_{number}" for number, among in enumerate(dict.fromkeys(filter(None, found)), 1)}


def octet_ranges(among: bytes) -> list[tuple[int, int]]:
    """Return the first and last octet of each range of octets, which are in ascending order."""
    found: list[tuple[int, int]] = []
    for octet in among:
        if found and octet == found[-1][1] + 1:
            found[-1] = found[-1][0], octet
        else:
            found.append((octet, octet))
    return found


def run_expression(among: bytes) -> str:
    """Return the regular expression for a run of octets, which are in ascending order."""
    ranges = octet_ranges(among)
    spelled = (f"\\x{first:02x}" + f"-\\x{last:02x}" * (last > first) for first, last in ranges)
    return f"[{''.join(spelled)}]*"


def _everything(plan: Plan) -> list[Op]:
    """Return all operations of a plan."""
    bodies = [record.body for record in plan.records]
    bodies += [part.body for message in plan.messages for part in message.parts]
    return [op for body in bodies for op in nested(body)]
