"""Emitter of the fast encoders: straight-line code from messages to frames.

Values that `struct` and `str` refuse need no check. Values that they accept but that would decode
differently, such as a NUL or an ``=`` in a name, are checked. A value that does not fit raises any
exception that ``encode`` catches. `specwire.generator.emit.encoding_fields` emits the fields inside
a frame or record.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.encoding_fields import Encoder, Run
from specwire.generator.emit.python import Lines, announcing_bits, fixed_size, octets_literal
from specwire.generator.emit.records import function_name, strict_matters


def encode_body(message: ir.Message, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the statements that assign ``frames``, and the struct objects that they use."""
    encoder = Encoder(message.name, message.fields, protocol)
    parts = message.parts
    flags = next((f for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), None)
    if flags and announcing_bits(protocol):
        encoder.lines.add(f"flags = self.{flags.attribute}")
        encoder.refuse_if(f"flags & 0x{announcing_bits(protocol):02x}")
    _exclusive(encoder, message)
    if all(isinstance(part, ir.Frame) and part.presence == ir.Always() for part in parts):
        frames = [_frame(encoder, part) for part in parts if isinstance(part, ir.Frame)]
        encoder.lines.add(f"frames = [{', '.join(frames)}]")
    else:
        _append_frames(encoder, message)
    return str(encoder.lines), encoder.structs


def _exclusive(encoder: Encoder, message: ir.Message) -> None:
    """Check that two readings of one frame are not both present."""
    groups: dict[int, list[str]] = {}
    for part in message.parts:
        if isinstance(part, ir.Frame) and isinstance(part.presence, ir.Announced):
            groups.setdefault(part.presence.mask, []).append(part.fields[0].attribute)
    for names in groups.values():
        if len(names) > 1:
            encoder.refuse_if(" and ".join(f"self.{name} is not None" for name in names))


def _append_frames(encoder: Encoder, message: ir.Message) -> None:
    encoder.lines.add("frames: list[bytes] = []")
    counted: list[str] = []
    for part in message.parts:
        match part:
            case ir.Rest(field=found):
                _add_elements(encoder, found)
            case ir.Stack():
                _stack(encoder, part)
            case ir.Frame(presence=ir.Announced(value=value)):
                name = part.fields[0].attribute
                with encoder.lines.block(f"if self.{name} is not None:"):
                    encoder.lines.add(f"flags |= 0x{value:02x}")
                    encoder.lines.add(f"frames.append({_frame(encoder, part)})")
            case ir.Frame(presence=ir.Counted()):
                name = part.fields[0].attribute
                if counted:
                    encoder.refuse_if(f"self.{name} is not None and self.{counted[-1]} is None")
                counted.append(name)
                with encoder.lines.block(f"if self.{name} is not None:"):
                    encoder.lines.add(f"frames.append({_frame(encoder, part)})")
            case ir.Frame(presence=ir.Always(value=value)):
                if value:
                    encoder.lines.add(f"flags |= 0x{value:02x}")
                encoder.lines.add(f"frames.append({_frame(encoder, part)})")


def _stack(encoder: Encoder, part: ir.Stack) -> None:
    name = part.field.attribute
    if isinstance(part.presence, ir.Announced):
        condition = f"self.{name} is not None"
        if part.letter == "forbidden":
            condition += f" and (self.{name} != () or not strict)"
        with encoder.lines.block(f"if {condition}:"):
            encoder.lines.add(f"flags |= 0x{part.presence.value:02x}")
            _push(encoder, part.field)
    else:
        _push(encoder, part.field)


def _push(encoder: Encoder, found: ir.Field) -> None:
    _add_elements(encoder, found, least=1)
    encoder.refuse_if('b"" in frames')
    encoder.lines.add('frames.append(b"")')


def _add_elements(encoder: Encoder, found: ir.Field, least: int = 0) -> None:
    """Add the frames of a stack or rest; another check ensures that all have `least` octets."""
    name, type = f"self.{found.attribute}", found.type
    encoder.tuple_only(name)
    if isinstance(type, ir.OctetsType) and (type.minimum > least or type.maximum is not None):
        items = encoder.names.fresh("items", "list[bytes]")
        encoder.lines.add(f"{items} = [as_octets(item) for item in {name}]")
        if type.minimum > least:
            encoder.refuse_if(f"any(len(item) < {type.minimum} for item in {items})")
        if type.maximum is not None:
            encoder.refuse_if(f"any(len(item) > {type.maximum} for item in {items})")
        encoder.lines.add(f"frames += {items}")
    else:
        encoder.lines.add(f"frames += {_elements(type, name)}")


def _elements(type: ir.Type, items: str) -> str:
    match type:
        case ir.TextType(terminated=True):
            return f"[terminated(item, strict) for item in {items}]"
        case ir.TextType():
            return f"map(str.encode, {items})"
    return f"[as_octets(item) for item in {items}]"


def _frame(encoder: Encoder, part: ir.Frame) -> str:
    """Return the expression for the octets of one frame, after adding the statements it needs."""
    fields = part.fields
    constants = [f.type.octets for f in fields if isinstance(f.type, ir.ConstantType)]
    if len(constants) == len(fields):
        return octets_literal(b"".join(constants))
    if len(fields) == 1 and fixed_size(fields[0].type) is None and not fields[0].optional:
        whole = _whole(encoder, fields[0])
        if whole:
            return whole
    return Run(encoder, "self").expression(fields)


def record_writer(record: ir.RecordType, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the body of ``_write_<record>(record)``, which returns its octets, and its struct objects."""
    encoder = Encoder(record.class_name, record.fields, protocol, Lines(1))
    with encoder.lines.block(f"if not isinstance(record, {record.class_name}):"):
        encoder.lines.add("raise TypeError")
    owner = encoder.names.local("record")
    if owner != "record":
        encoder.lines.add(f"{owner} = record")
    expression = Run(encoder, owner).expression(record.fields)
    encoder.lines.add(f"return {expression}")
    return str(encoder.lines), encoder.structs


def union_writer(union: ir.UnionType, protocol: ir.Protocol) -> str:
    """Return the body of ``_write_<union>(record)``, which writes each option by its class."""
    lines = Lines(1)
    strict = ", strict" if strict_matters(protocol) else ""
    for option in union.options:
        with lines.block(f"if isinstance(record, {option.class_name}):"):
            lines.add(f"return _write_{function_name(option)}(record{strict})")
    lines.add("raise TypeError")
    return str(lines)


def _whole(encoder: Encoder, found: ir.Field) -> str | None:
    """Return the expression for a value that fills its frame, None for any other."""
    name = f"self.{found.attribute}"
    # Check the type: objects other than str, such as messages, may have an ``encode`` method too.
    text = f"str.encode({name})"
    match found.type:
        case ir.KeywordType(options=options):
            encoder.refuse_if(f"{name} not in {options!r}")
            return text
        case ir.TextType(length=ir.Length(kind="rest"), terminated=terminated):
            return f"terminated({name}, strict)" if terminated else text
        case ir.JsonType():
            return text
        case ir.OctetsType(length=ir.Length(kind="rest"), minimum=0, maximum=None):
            return f"{name} if type({name}) is bytes else as_octets({name})"
        case ir.OctetsType(length=ir.Length(kind="rest"), minimum=minimum, maximum=maximum):
            octets = encoder.names.fresh("octets", "bytes")
            encoder.lines.add(f"{octets} = as_octets({name})")
            if minimum:
                encoder.refuse_if(f"len({octets}) < {minimum}" if minimum > 1 else f"not {octets}")
            if maximum is not None:
                encoder.refuse_if(f"len({octets}) > {maximum}")
            return octets
    return None
