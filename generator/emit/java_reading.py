"""Fast readers in Java: statements that read a valid message, one value after another.

Each message that its tags identify gets a method. It makes the cursor store one value after another
in its column. It does not report faults: the tables of ``java_layout`` read an invalid message
again and report them. A message with a type that is not handled here, such as a union, has no
method and is always read by the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from specwire.generator import ir
from specwire.generator.emit.java_layout import members
from specwire.generator.emit.python import announcing_bits
from specwire.generator.plan.layouts import selected

WORD = 8
"""Largest number of octets that are compared as one number."""

COLUMNS = 64
"""Largest number of columns of such a message: one bit of a number for each."""


class TablesOnly(Exception):
    """The message cannot be read this way."""


@dataclass(frozen=True)
class Reading:
    """Conditions that identify a message, and the statements that read it; `number` is its index."""

    message: ir.Message
    number: int
    told: tuple[str, ...]
    statements: tuple[str, ...]


def readings(protocol: ir.Protocol) -> list[Reading]:
    """Return the readers of the messages that can be read this way, in the protocol's order.

    Of two messages with the same tag the first is chosen, so the second has a reader only if the
    first has one.
    """
    found: list[Reading] = []
    left_out: set[tuple[bytes, ...]] = set()
    if any(selector.pattern for selector in protocol.selectors) or any(m.shapes for m in protocol.messages):
        return found
    for number, message in enumerate(protocol.messages):
        tags = selected(message, protocol)
        try:
            told = tuple(_told(tag, protocol.selectors) for tag in tags if tag not in left_out)
            statements = tuple(_statements(message, number, protocol))
        except TablesOnly:
            left_out.update(tags)
            continue
        if told:
            found.append(Reading(message, number, told, statements))
    return found


def tag_statements(protocol: ir.Protocol) -> list[str]:
    """Return the statements that read the values used by the conditions of all messages."""
    told = "\n".join(condition for reading in readings(protocol) for condition in reading.told)
    found = []
    for number, selector in enumerate(protocol.selectors):
        whole = selector.octets is None
        call = f"whole({selector.frame})" if whole else f"head({selector.frame}, {selector.octets})"
        if f"{_tag(number)} ==" in told:
            found.append(f"long {_tag(number)} = in.{call};")
    return found


def _tag(selector: int) -> str:
    return f"tag{selector}"


def _told(tag: Sequence[bytes], selectors: Sequence[ir.Selector]) -> str:
    """Return the condition that each selector finds its piece of a tag."""
    pieces = enumerate(zip(tag, selectors, strict=True))
    return " && ".join(_finds(piece, selector, number) for number, (piece, selector) in pieces)


def _finds(piece: bytes, selector: ir.Selector, number: int) -> str:
    if not 0 < len(piece) <= WORD or selector.octets not in (None, len(piece)):
        raise TablesOnly
    if len(piece) == WORD:
        method = "fills" if selector.octets is None else "begins"
        return f"in.{method}({selector.frame}, {len(piece)}, {_number(piece)})"
    if selector.octets is None:
        # The cursor's form of a whole frame: its number of octets, then the octets.
        piece = bytes([len(piece)]) + piece.rjust(WORD - 1, b"\0")
    return f"{_tag(number)} == {_number(piece)}"


def _word(octets: bytes) -> str:
    if not 0 < len(octets) <= WORD:
        raise TablesOnly
    return f"{len(octets)}, {_number(octets)}"


def _number(octets: bytes) -> str:
    return f"0x{octets.hex()}L"


def _statements(message: ir.Message, number: int, protocol: ir.Protocol) -> Iterator[str]:
    columns = sum(len(_columns(part)) for part in message.parts)
    if columns > COLUMNS:
        raise TablesOnly
    if columns:
        room = sum(_room(field.type) for part in message.parts for field in _columns(part))
        yield f"in.begin({columns}, {room});"
    yield from _flags(message, protocol)
    header_last = any(selector.frame < 0 for selector in protocol.selectors)
    column = 0
    for place, part in enumerate(message.parts):
        reserved = int(header_last and place < len(message.parts) - 1)
        lines = _part(part, protocol, column, reserved)
        condition = _condition(message, place)
        others = _decimals(_columns(part), column) if isinstance(part, ir.Frame) else []
        yield from lines if condition is None else _block(f"if ({condition})", lines, others)
        column += len(_columns(part))
    yield f"return in.{'done' if columns else 'present'}({number});"


def _room(type: ir.Type) -> int:
    """Return an estimate of the octets of a value in a row, besides its column and its octets on the wire.

    Unused room is memory that Java clears for each message, so lists are assumed to have a few
    short entries.
    """
    match type:
        case ir.IntegerType(octets=octets):
            return 16 if octets == WORD else 0
        case ir.ListType():
            return 48
        case ir.PairsType():
            return 96
    return WORD


def _block(head: str, lines: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    indented = [f"    {line}" for line in lines]
    otherwise = ["} else {", *(f"    {line}" for line in others)] if others else []
    return [f"{head} {{", *indented, *otherwise, "}"]


def _decimals(fields: Sequence[ir.Field], column: int) -> list[str]:
    """Skip absent decimal columns, starting at a column: Spark reserves room for them."""
    return [
        f"in.noDecimal({place});"
        for place, field in enumerate(fields, column)
        if isinstance(field.type, ir.IntegerType) and field.type.octets == WORD
    ]


def _columns(part: ir.Part) -> list[ir.Field]:
    return _with_columns(part.fields if isinstance(part, ir.Frame) else (part.field,))


def _with_columns(fields: Sequence[ir.Field]) -> list[ir.Field]:
    return [field for field in fields if not isinstance(field.type, _IMPLIED)]


_IMPLIED = (ir.ConstantType, ir.PaddingType, ir.SizeType)


def _condition(message: ir.Message, place: int) -> str | None:
    """Return the condition that a part is present, None if it always is."""
    part = message.parts[place]
    if isinstance(part, ir.Rest):
        return None
    match part.presence:
        case ir.Always():
            return None
        case ir.Announced(mask=mask, value=value):
            return f"(flags & 0x{mask:02x}) == 0x{value:02x}"
        case ir.Counted():
            behind = sum(
                not isinstance(other, ir.Rest) and isinstance(other.presence, ir.Always)
                for other in message.parts[place + 1 :]
            )
            return f"in.index() < in.frames() - {behind}"


def _flags(message: ir.Message, protocol: ir.Protocol) -> Iterator[str]:
    """Read the octet that announces parts and check it against the parts."""
    allowed: dict[int, set[int]] = {}
    for part in message.parts:
        presence = ir.Always() if isinstance(part, ir.Rest) else part.presence
        if not isinstance(presence, ir.Counted) and presence.mask:
            values = allowed.setdefault(presence.mask, set())
            values.add(presence.value)
            if isinstance(presence, ir.Announced):
                values.add(0)
    where = _flags_place(message)
    if where is None:
        if allowed:
            raise TablesOnly
        return
    known = 0
    for mask in allowed:
        known |= mask
    yield f"int flags = in.flags({where[0]}, {where[1]}, 0x{announcing_bits(protocol) & ~known:02x});"
    for mask, values in allowed.items():
        if len(values) < 2 ** mask.bit_count():
            either = " || ".join(f"(flags & 0x{mask:02x}) == 0x{value:02x}" for value in sorted(values))
            yield f"in.require({either});"


def _flags_place(message: ir.Message) -> tuple[int, int] | None:
    """Return frame and offset of the flags, or None; the last frame is counted from the end."""
    for place, part in enumerate(message.parts):
        offset = 0
        for field in part.fields if isinstance(part, ir.Frame) else ():
            if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
                return (-1 if place == len(message.parts) - 1 else place), offset
            offset += max(_size(field.type), 0)
    return None


def _size(type: ir.Type) -> int:
    """Return the fixed number of octets of a value, -1 if it varies."""
    match type:
        case ir.ConstantType(hex=hex):
            return len(hex) // 2
        case ir.IntegerType(octets=octets) | ir.PaddingType(octets=octets):
            return octets
        case ir.TextType(length=length) | ir.OctetsType(length=length) if length.kind == "fixed":
            return length.octets
    return -1


def _part(part: ir.Part, protocol: ir.Protocol, column: int, reserved: int) -> list[str]:
    if isinstance(part, ir.Frame):
        if len(part.fields) == 1 and _whole(part.fields[0].type) == "OCTETS":
            return [f"in.frame({column}, {reserved});"]
        inside = _fields(part.fields, protocol, column, alone=len(part.fields) == 1)
        return [f"in.open({reserved});", *inside, "in.close();"]
    kind = _whole(part.field.type, least=int(isinstance(part, ir.Stack)))
    if kind is None:
        raise TablesOnly
    whole = f"Cursor.Whole.{kind}"
    if isinstance(part, ir.Stack):
        return [f"in.stack({column}, {whole}, {reserved});"]
    return [f"in.rest({column}, {whole});"]


def _whole(type: ir.Type, least: int = 0) -> str | None:
    """Return the kind of a value that fills its frame, of `least` octets or more; None for other types."""
    match type:
        case ir.TextType(padding=None, length=ir.Length(kind="rest"), terminated=terminated):
            return "TERMINATED" if terminated else "TEXT"
        case ir.OctetsType(length=ir.Length(kind="rest"), minimum=minimum, maximum=None) if minimum <= least:
            return "OCTETS"
    return None


def _fields(fields: Sequence[ir.Field], protocol: ir.Protocol, column: int, *, alone: bool) -> list[str]:
    if not fields:
        return []
    field, *others = _joined(fields)
    if isinstance(field.type, _IMPLIED):
        own, after = _implied(field.type), column
    else:
        own, after = _value(field.type, protocol, column, alone=alone), column + 1
    lines = [*own, *_fields(others, protocol, after, alone=False)]
    if not field.optional:
        return lines
    return _block("if (in.left() > 0)", lines, _decimals(_with_columns(fields), column))


def _joined(fields: Sequence[ir.Field]) -> Sequence[ir.Field]:
    """Merge the constants at the start of the fields into one."""
    first, *others = fields
    while others and isinstance(first.type, ir.ConstantType):
        second = others[0]
        if second.optional or not isinstance(second.type, ir.ConstantType):
            break
        both = msgspec.structs.replace(first.type, hex=first.type.hex + second.type.hex, text=None)
        first, others = msgspec.structs.replace(first, type=both), others[1:]
    return [first, *others]


def _implied(type: ir.Type) -> list[str]:
    match type:
        case ir.PaddingType(octets=octets):
            return [f"in.skip({octets});"]
        case ir.ConstantType(hex=hex):
            whole = bytes.fromhex(hex)
            pieces = (whole[at : at + WORD] for at in range(0, len(whole), WORD))
            return [f"in.constant({len(piece)}, {_number(piece)});" for piece in pieces]
    raise TablesOnly


def _value(type: ir.Type, protocol: ir.Protocol, column: int, *, alone: bool) -> list[str]:
    """Return the statements that read a value into its column; `alone` if it fills its frame."""
    match type:
        case ir.IntegerType(octets=octets):
            read = f"in.decimal({column});" if octets == WORD else f"in.integer({column}, {octets});"
            known = " || ".join(f"in.value() == {member}" for member in members(type, protocol))
            return [read, f"in.require({known});"] if known else [read]
        case ir.TextType(padding=None, length=length, terminated=terminated):
            return [f"in.{'terminated' if terminated else 'text'}({column}, {_length(length)});"]
        case ir.OctetsType(length=length, minimum=minimum, maximum=None):
            return [f"in.octets({column}, {_length(length)}{f', {minimum}' if minimum else ''});"]
        case ir.JsonType():
            return [f"in.text({column}, in.left());"]
        case ir.KeywordType(options=options) if alone:
            known = " || ".join(f"in.filled({_word(option.encode())})" for option in options)
            return [f"in.require({known});", f"in.text({column}, in.left());"]
        case ir.ListType(count_octets=count, element=element, minimum=minimum) if count:
            return [f"in.texts({column}, {count}, {_prefix(element)}, {minimum});"]
        case ir.PairsType(count_octets=count, name=name, split=split, minimum=minimum) if count and split:
            first = str(split == "first").lower()
            return [f"in.divided({column}, {count}, {_prefix(name)}, {first}, {minimum});"]
        case ir.PairsType(count_octets=count, name=name, value=value, minimum=minimum) if count and value:
            sizes = f"{_prefix(name)}, {_prefix(value)}"
            return [f"in.pairs({column}, {count}, {sizes}, {minimum});"]
    raise TablesOnly


def _length(length: ir.Length) -> str:
    match length.kind:
        case "rest":
            return "in.left()"
        case "fixed":
            return str(length.octets)
        case "prefix":
            return f"in.length({length.octets})"
    raise TablesOnly


def _prefix(type: ir.Type) -> int:
    """Return the width of a text's length prefix."""
    match type:
        case ir.TextType(padding=None, terminated=False, length=ir.Length(kind="prefix", octets=octets)):
            return octets
    raise TablesOnly
