"""Messages of a protocol for the page: a drawing and a table for each of their frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import bits_of, condition_text, fixed_octets, run_of
from specwire.generator.emit.reference.columns import view_columns
from specwire.generator.emit.reference.envelope import draw_message
from specwire.generator.emit.reference.facts import Table
from specwire.generator.emit.reference.octets import draw_frame
from specwire.generator.emit.reference.rules import rule_anchor
from specwire.generator.emit.reference.snippets import construct, left_out
from specwire.generator.emit.reference.telling import told_by
from specwire.generator.emit.reference.wording import (
    default_words,
    letter_words,
    octets_words,
    presence_words,
    type_words,
)


@dataclass(frozen=True, slots=True)
class Row:
    """Field, with every column as text; `depth` is the number of records around it."""

    offset: str
    name: str
    attribute: str
    depth: int
    type: str
    octets: str
    default: str
    unit: str
    special: tuple[str, ...]
    doc: str
    rule: str
    rule_href: str
    line: str


@dataclass(frozen=True, slots=True)
class PartView:
    """Frame or frames of a message: a section of its table, and a drawing if it has details."""

    title: str
    """Title; empty if the message consists of this frame."""
    name: str
    presence: str
    drawing: Markup
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class MessageView:
    """Message of the protocol."""

    name: str
    anchor: str
    class_name: str
    rule: str
    rule_href: str
    line: str
    doc: str
    senders: str
    told_by: tuple[str, ...]
    """What distinguishes it from other messages, one text for each spelling."""
    overview: Markup
    """Drawing of all frames in order; empty if there is one."""
    parts: tuple[PartView, ...]
    units: bool
    specials: bool
    """Whether any field has a unit, or special values."""
    columns: int
    python: str
    left_out: tuple[str, ...]
    table: Table
    """Its table on Spark."""


def view_messages(protocol: ir.Protocol) -> tuple[MessageView, ...]:
    """Return every message in the order of the specification."""
    return tuple(_message(message, protocol) for message in protocol.messages)


def _message(message: ir.Message, protocol: ir.Protocol) -> MessageView:
    names = {role.letter: role.name for role in protocol.roles}
    parts = tuple(_parts(message, protocol))
    rows = [row for part in parts for row in part.rows]
    units, specials = any(row.unit for row in rows), any(row.special for row in rows)
    return MessageView(
        name=message.name,
        anchor=f"message-{message.class_name}",
        class_name=message.class_name,
        rule=message.rule,
        rule_href=_rule_href(message.rule),
        line=_line(message.line),
        doc=message.doc,
        senders=" or ".join(names.get(letter, letter) for letter in message.senders),
        told_by=told_by(message, names),
        overview=Markup("") if _is_one_frame(message) else draw_message(message, protocol.flags),
        parts=parts,
        units=units,
        specials=specials,
        columns=7 + units + specials,
        python=construct(protocol, message),
        left_out=left_out(protocol, message),
        table=view_columns(message, protocol),
    )


def _is_one_frame(message: ir.Message) -> bool:
    return len(message.parts) == 1 and isinstance(message.parts[0], ir.Frame)


def _parts(message: ir.Message, protocol: ir.Protocol) -> Iterator[PartView]:
    sure = True  # whether the frame's index is the same in every message of this type
    alone = _is_one_frame(message)
    for number, part in enumerate(message.parts, 1):
        name = message.name if alone else f"{message.name}, {part.name}"
        drawing = Markup("")
        if isinstance(part, ir.Frame):
            place = f"Frame {number}" if sure else "Frame"
            rows = tuple(_rows(part.fields, protocol))
            if alone or len(part.fields) > 1:
                drawing = draw_frame(part.fields, f"Octets of {name}")
        else:
            place = "Frames"
            rows = (_row(part.field, None, 0, "", protocol),)
        sure = sure and isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always | ir.Counted)
        yield PartView(
            title="" if alone else f"{place}: {part.name}",
            name=name,
            presence=" ".join(filter(None, (presence_words(part, protocol.flags), letter_words(part)))),
            drawing=drawing,
            rows=rows,
        )


def _rows(fields: Iterable[ir.Field], protocol: ir.Protocol) -> Iterator[Row]:
    offset: int | None = 0
    for field in fields:
        yield _row(field, offset, 0, "", protocol)
        yield from _inner_rows(field, 1, protocol)
        bits = bits_of(field.type)
        size = 0 if bits and bits.shift else fixed_octets(run_of((field,)))
        offset = None if offset is None or size is None else offset + size


def _inner_rows(field: ir.Field, depth: int, protocol: ir.Protocol) -> Iterator[Row]:
    """Yield the fields of the records in a field, including those in lists and unions."""
    for record in _records(field.type):
        for inner in record.fields:
            yield _row(inner, None, depth, f"{record.name}.", protocol)
            yield from _inner_rows(inner, depth + 1, protocol)


def _records(type: ir.Type) -> tuple[ir.RecordType, ...]:
    match type:
        case ir.RecordType():
            return (type,)
        case ir.UnionType(options=options):
            return options
        case ir.ListType(element=element):
            return _records(element)
        case _:
            return ()


def _row(field: ir.Field, offset: int | None, depth: int, path: str, protocol: ir.Protocol) -> Row:
    return Row(
        offset="" if offset is None else str(offset),
        name=path + field.name,
        attribute=field.attribute if field.attribute != field.name else "",
        depth=depth,
        type=type_words(field.type) + (f", {condition_text(field.option)}" if field.option else ""),
        octets=octets_words(field.name, field.type),
        default=default_words(field, protocol.constants),
        unit=field.unit or "",
        special=tuple(_special(field, protocol)),
        doc=field.doc,
        rule=field.rule or "",
        rule_href=_rule_href(field.rule) if field.rule else "",
        line=_line(field.line) if field.rule else "in place",
    )


def _special(field: ir.Field, protocol: ir.Protocol) -> Iterator[str]:
    for constant in protocol.constants:
        if constant.name in field.sentinels:
            yield f"{constant.name} = {constant.value}"
    enum = field.type.enum if isinstance(field.type, ir.IntegerType | ir.BitType) else None
    for found in protocol.enums:
        if found.name == enum:
            yield from (f"{name} = {value}" for name, value in found.members)


def _rule_href(rule: str) -> str:
    role, _, name = rule.rpartition(":")
    return f"#{rule_anchor(name, role or None)}"


def _line(line: int) -> str:
    return f"line {line}" if line else "profile"
