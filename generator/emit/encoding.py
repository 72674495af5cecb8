"""The fast encoders: messages to frames in straight code.

A run of constants, integers, lengths and counts is one `struct` pack; texts and lists follow it. What
`struct` and `str` refuse needs no check; what they would take and a decoder would read otherwise (a NUL, an
``=`` in a name) is checked. A value that does not fit raises any of the errors that ``encode`` catches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.python import STRUCT_CODES, Lines, announcing_bits, fixed_size, octets_literal
from specwire.generator.names import constant_name


@dataclass
class Encoder:
    """One encoder in the making: its lines and its struct objects."""

    message: ir.Message
    protocol: ir.Protocol
    lines: Lines = field(default_factory=lambda: Lines(3))
    structs: dict[str, str] = field(default_factory=dict)

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add("raise ValueError")

    def local(self, name: str) -> str:
        """Return a local name that no field of the message has."""
        return f"{name}_" if name in {f.attribute for f in self.message.fields} else name

    def tuple_only(self, value: str) -> None:
        """Add the check that keeps out what iterates but would not come back: texts, lists, dictionaries."""
        with self.lines.block(f"if not isinstance({value}, tuple):"):
            self.lines.add("raise TypeError")


def encode_body(message: ir.Message, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the statements that assign ``frames``, and the struct objects that they use."""
    encoder = Encoder(message, protocol)
    parts = message.parts
    flags = next((f for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), None)
    if flags and announcing_bits(protocol):
        encoder.lines.add(f"flags = self.{flags.attribute}")
        encoder.refuse_if(f"flags & 0x{announcing_bits(protocol):02x}")
    _exclusive(encoder)
    if all(isinstance(part, ir.Frame) and part.presence == ir.Always() for part in parts):
        frames = [_frame(encoder, part) for part in parts if isinstance(part, ir.Frame)]
        encoder.lines.add(f"frames = [{', '.join(frames)}]")
    else:
        _append_frames(encoder)
    return str(encoder.lines), encoder.structs


def _exclusive(encoder: Encoder) -> None:
    """Two readings of one frame cannot both be there."""
    groups: dict[int, list[str]] = {}
    for part in encoder.message.parts:
        if isinstance(part, ir.Frame) and isinstance(part.presence, ir.Announced):
            groups.setdefault(part.presence.mask, []).append(part.fields[0].attribute)
    for names in groups.values():
        if len(names) > 1:
            encoder.refuse_if(" and ".join(f"self.{name} is not None" for name in names))


def _append_frames(encoder: Encoder) -> None:
    encoder.lines.add("frames: list[bytes] = []")
    counted: list[str] = []
    for part in encoder.message.parts:
        match part:
            case ir.Rest(field=found):
                encoder.tuple_only(f"self.{found.attribute}")
                encoder.lines.add(f"frames += {_elements(found)}")
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
    encoder.tuple_only(f"self.{found.attribute}")
    encoder.lines.add(f"frames += {_elements(found)}")
    encoder.refuse_if('b"" in frames')
    encoder.lines.add('frames.append(b"")')


def _elements(found: ir.Field) -> str:
    name = f"self.{found.attribute}"
    match found.type:
        case ir.TextType(terminated=True):
            return f"[terminated(item, strict) for item in {name}]"
        case ir.TextType():
            return f"[item.encode() for item in {name}]"
    return f"[as_octets(item) for item in {name}]"


def _frame(encoder: Encoder, part: ir.Frame) -> str:
    """Return the expression for the octets of one frame; statements it needs come before."""
    fields = part.fields
    constants = [f.type.octets for f in fields if isinstance(f.type, ir.ConstantType)]
    if len(constants) == len(fields):
        return octets_literal(b"".join(constants))
    if len(fields) == 1 and fixed_size(fields[0].type) is None:
        whole = _whole(encoder, fields[0])
        if whole:
            return whole
    return _Run(encoder, part).expression()


def _whole(encoder: Encoder, found: ir.Field) -> str | None:
    """The expression for a value that fills its frame, None for one that does not."""
    name = f"self.{found.attribute}"
    match found.type:
        case ir.KeywordType(options=options):
            encoder.refuse_if(f"{name} not in {options!r}")
            return f"{name}.encode()"
        case ir.TextType(length=ir.Length(kind="rest"), terminated=terminated):
            return f"terminated({name}, strict)" if terminated else f"{name}.encode()"
        case ir.JsonType():
            return f"{name}.encode()"
        case ir.OctetsType(length=ir.Length(kind="rest"), minimum=minimum):
            if minimum:
                encoder.refuse_if(f"len({name}) < {minimum}" if minimum > 1 else f"not {name}")
            return f"{name} if type({name}) is bytes else as_octets({name})"
    return None


class _Run:
    """The fields of one frame: packed runs and the variable octets between them."""

    def __init__(self, encoder: Encoder, part: ir.Frame) -> None:
        self.encoder = encoder
        self.part = part
        self.pieces: list[str] = []
        self.codes = ""
        self.arguments: list[str] = []
        self.constant = b""
        self.runs = 0

    def expression(self) -> str:
        """Return the frame as one expression."""
        for found in self.part.fields:
            self._field(found)
        self._flush()
        return " + ".join(self.pieces)

    def _add(self, code: str, argument: str) -> None:
        self._close_constant()
        self.codes += code
        self.arguments.append(argument)

    def _close_constant(self) -> None:
        if self.constant:
            self.codes += f"{len(self.constant)}s"
            self.arguments.append(octets_literal(self.constant))
            self.constant = b""

    def _flush(self) -> None:
        """End the run: one pack, or a literal where there is nothing but constants in it."""
        if self.constant and not self.codes:
            self.pieces.append(octets_literal(self.constant))
            self.constant = b""
        self._close_constant()
        if not self.codes:
            return
        self.runs += 1
        name = f"_WRITE_{constant_name(self.encoder.message.name)}"
        if self.runs > 1:
            name += f"_{self.runs}"
        self.encoder.structs[name] = f">{self.codes}"
        self.pieces.append(f"{name}.pack({', '.join(self.arguments)})")
        self.codes, self.arguments = "", []

    def _field(self, found: ir.Field) -> None:
        name = f"self.{found.attribute}"
        match found.type:
            case ir.ConstantType() as constant:
                self.constant += constant.octets
            case ir.IntegerType(octets=octets, enum=enum, bitmask=bitmask):
                if enum:
                    self.encoder.refuse_if(f"{name} not in _{enum.upper()}")
                derived = bitmask and announcing_bits(self.encoder.protocol)
                self._integer(octets, "flags" if derived else name)
            case ir.TextType(length=length):
                self._text(found, length, name)
            case ir.OctetsType(length=length):
                self._octets(found, length, name)
            case ir.PairsType() as pairs:
                self._pairs(found, pairs)
            case ir.ListType() as items:
                self._list(found, items)

    def _integer(self, octets: int, value: str) -> None:
        if octets in STRUCT_CODES:
            self._add(STRUCT_CODES[octets], value)
        else:
            self._add(f"{octets}s", f'{value}.to_bytes({octets}, "big")')

    def _text(self, found: ir.Field, length: ir.Length, name: str) -> None:
        self.encoder.lines.add(f"{found.attribute} = {name}.encode()")
        self._prefixed(found.attribute, length)

    def _octets(self, found: ir.Field, length: ir.Length, name: str) -> None:
        self.encoder.lines.add(f"{found.attribute} = as_octets({name})")
        if length.kind == "fixed":
            self.encoder.refuse_if(f"len({found.attribute}) != {length.octets}")
            self._add(f"{length.octets}s", found.attribute)
        else:
            self._prefixed(found.attribute, length)

    def _prefixed(self, name: str, length: ir.Length) -> None:
        if length.kind == "prefix":
            self._integer(length.octets, f"len({name})")
        self._flush()
        self.pieces.append(name)

    def _pairs(self, found: ir.Field, type: ir.PairsType) -> None:
        lines, pairs = self.encoder.lines, found.attribute
        pair, name, value = (self.encoder.local(word) for word in ("pair", "name", "value"))
        self.encoder.tuple_only(f"self.{pairs}")
        lines.add(f"{pairs} = []")
        with lines.block(f"for {pair} in self.{pairs}:"):
            lines.add(f"{name}, {value} = {pair}")
            if type.value is not None:
                self.encoder.tuple_only(pair)
                key, content = self.encoder.local("key"), self.encoder.local("content")
                lines.add(f"{key}, {content} = {name}.encode(), {value}.encode()")
                first = f"_U{type.name.length.octets * 8}.pack(len({key})) + {key}"
                second = f"_U{type.value.length.octets * 8}.pack(len({content})) + {content}"
                lines.add(f"{pairs}.append({first} + {second})")
            else:
                entry = self.encoder.local("entry")
                undivided = name if type.split == "first" else value
                self.encoder.refuse_if(f'not isinstance({pair}, tuple) or "=" in {undivided}')
                lines.add(f'{entry} = ({name} + "=" + {value}).encode()')
                lines.add(f"{pairs}.append(_U{type.name.length.octets * 8}.pack(len({entry})) + {entry})")
        self._joined(pairs, type.count_octets)

    def _list(self, found: ir.Field, type: ir.ListType) -> None:
        lines, name = self.encoder.lines, found.attribute
        item, entry = self.encoder.local("item"), self.encoder.local("entry")
        self.encoder.tuple_only(f"self.{name}")
        lines.add(f"{name} = []")
        with lines.block(f"for {item} in self.{name}:"):
            match type.element:
                case ir.IntegerType(octets=octets):
                    lines.add(f'{name}.append({item}.to_bytes({octets}, "big"))')
                case ir.TextType(length=length):
                    lines.add(f"{entry} = {item}.encode()")
                    lines.add(f"{name}.append(_U{length.octets * 8}.pack(len({entry})) + {entry})")
                case ir.OctetsType(length=ir.Length(kind="prefix", octets=octets)):
                    lines.add(f"{entry} = as_octets({item})")
                    lines.add(f"{name}.append(_U{octets * 8}.pack(len({entry})) + {entry})")
                case ir.OctetsType(length=length):
                    lines.add(f"{entry} = as_octets({item})")
                    self.encoder.refuse_if(f"len({entry}) != {length.octets}")
                    lines.add(f"{name}.append({entry})")
        self._joined(name, type.count_octets)

    def _joined(self, name: str, count_octets: int) -> None:
        self._integer(count_octets, f"len({name})")
        self._flush()
        self.pieces.append(f'b"".join({name})')
