"""Reader of an edition from a file: the IR as JSON, as ``specwire show ir NAME --json`` prints it.

The file was correct when it was written, but may be truncated, edited or of another version.
Everything that a comparison relies on, and that the types do not ensure, is checked again. A fault
is reported in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specwire.generator import ir
from specwire.generator.compare.matching import fields_of

HOW = "create one with `specwire show ir NAME --json`"

READ_VERSIONS = (2, 3, 4, ir.IR_VERSION)
"""Versions of the IR that this program reads: 2 is that of specwire 0.1, 3 and 4 have fewer types."""


class IrFileError(ValueError):
    """Raised if a file is not the IR of a protocol, or has an unsupported version, with the reason."""


def read_ir(text: bytes) -> ir.Protocol:
    """Return the protocol of an IR in JSON.

    Raises:
        IrFileError: `text` is not the IR of a protocol, or has an unsupported version.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise IrFileError(f"not JSON ({error}); {HOW}") from error
    version = value.get("ir_version") if isinstance(value, dict) else None
    if version is None:
        raise IrFileError(f"JSON, but not the IR of a protocol; {HOW}")
    if version not in READ_VERSIONS:
        raise IrFileError(f"IR of version {version!r}, but this program reads {ir.IR_VERSION}; {HOW}")
    try:
        protocol = msgspec.convert(value, ir.Protocol)
    except (msgspec.ValidationError, RecursionError) as error:
        raise IrFileError(f"not the IR of a protocol ({error}); {HOW}") from error
    for fault in _faults(protocol):
        raise IrFileError(f"not the IR of a protocol ({fault}); {HOW}")
    protocol = _with_senders(protocol) if version == 2 else protocol
    return msgspec.structs.replace(protocol, ir_version=ir.IR_VERSION)


def _with_senders(protocol: ir.Protocol) -> ir.Protocol:
    """Return IR of version 2 with senders of all shapes; only those that need a sender have them."""
    replace = msgspec.structs.replace
    messages = tuple(
        replace(
            message,
            shapes=tuple(
                replace(shape, senders=message.senders, needs_sender=bool(shape.senders))
                for shape in message.shapes
            ),
        )
        for message in protocol.messages
    )
    return replace(protocol, messages=messages)


def _faults(protocol: ir.Protocol) -> Iterator[str]:
    """Yield faults that would break a comparison."""
    enums = {enum.name: enum for enum in protocol.enums}
    for message in protocol.messages:
        for part in message.parts:
            for field in fields_of(part):
                for fault in _field_faults(field, enums):
                    yield f"{message.name}.{field.name}: {fault}"
    for dialog in protocol.dialogs:
        states = {state.name for state in dialog.strict}
        phases = {phase.name for phase in dialog.concurrent.phases}
        moves = {t.target for state in dialog.strict for t in state.transitions}
        steps = {t.target for phase in dialog.concurrent.phases for t in phase.moves}
        steps |= {start.phase for phase in dialog.concurrent.phases for start in phase.starts}
        if not states or not phases or not moves <= states or not steps <= phases:
            yield f"dialog {dialog.name} leads to an undefined place"


def _type_faults(type: ir.Type, enums: dict[str, ir.Enum]) -> Iterator[str]:
    match type:
        case ir.ConstantType(hex=octets):
            if not _is_octets(octets):
                yield f"{octets!r} is not octets in hexadecimal"
        case ir.IntegerType():
            yield from _integer_faults(type, enums)
        case ir.BitType():
            yield from _bit_faults(type, enums)
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            if not _is_octets(length.until) or not _is_octets(length.among):
                yield "a length that cannot be read"
        case ir.BooleanType(octets=octets):
            if not 1 <= octets <= 8:
                yield f"a boolean of {octets} octets"
        case ir.VarintType(maximum=maximum):
            if not 1 <= maximum <= 10:
                yield f"an integer of up to {maximum} octets with 7 bits in each"
        case ir.DigitsType(minimum=minimum, maximum=maximum):
            if not 1 <= minimum <= maximum <= 20:
                yield f"a number of {minimum} to {maximum} digits"
        case ir.CounterType(number=number, counts=counts):
            yield from _type_faults(number, enums)
            if not counts:
                yield "a number that counts nothing"
        case ir.ChecksumType(number=number, over=over):
            yield from _type_faults(number, enums)
            if not over:
                yield "a checksum of nothing"
        case ir.SizeType(forms=forms):
            if not forms or not all(_is_octets(form.tag) and 1 <= form.octets <= 8 for form in forms):
                yield "a size that cannot be written"
        case ir.PaddingType(octets=octets, fill=fill, multiple=multiple):
            if (octets < 1) != (multiple > 0) or not _is_octets(fill) or len(fill) != 2:
                yield "padding that cannot be written"
        case ir.ListType(element=element, until=until, before=before, after=after):
            if not all(map(_is_octets, (until, before, after))):
                yield "octets around entries that are not octets"
            yield from _type_faults(element, enums)
        case ir.PairsType(until=until, before=before, between=between, after=after):
            if not all(map(_is_octets, (until, before, between, after))):
                yield "octets around entries that are not octets"
        case ir.RecordType(fields=fields):
            for field in fields:
                for fault in _field_faults(field, enums):
                    yield f"{field.name}: {fault}"
        case ir.UnionType(options=options, tags=tags):
            if not options or len(options) != len(tags) or not all(map(_is_octets, tags)):
                yield "records and tags that do not belong together"
            for option in options:
                yield from _type_faults(option, enums)


def _field_faults(field: ir.Field, enums: dict[str, ir.Enum]) -> Iterator[str]:
    if field.option is not None and not _is_octets(field.option.octets):
        yield f"{field.option.octets!r} is not octets in hexadecimal"
    yield from _type_faults(field.type, enums)


def _bit_faults(type: ir.BitType, enums: dict[str, ir.Enum]) -> Iterator[str]:
    if not 1 <= type.octets <= 8 or type.shift < 0 or not 1 <= type.width <= 8 * type.octets - type.shift:
        yield f"{type.width} bits of an integer of {type.octets} octets"
    elif type.enum is not None and type.enum not in enums:
        yield f"there is no enumeration {type.enum!r}"


def _integer_faults(type: ir.IntegerType, enums: dict[str, ir.Enum]) -> Iterator[str]:
    if not 1 <= type.octets <= 8:
        yield f"an integer of {type.octets} octets"
        return
    least, most = ir.bounds(type)
    if type.enum is not None and type.enum not in enums:
        yield f"there is no enumeration {type.enum!r}"
    elif type.enum is not None and any(not least <= value <= most for _, value in enums[type.enum].members):
        yield f"a member of {type.enum} does not fit"
    elif any(not least <= value <= most for value in type.values):
        yield "a value that does not fit"


def _is_octets(text: str) -> bool:
    return set(text) <= set("0123456789abcdef") and len(text) % 2 == 0
