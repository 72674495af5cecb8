"""Layout of a protocol: the IR without names and meanings that only people read.

The layout is the data in a package's ``layout.py``, and the input of
`specwire.generated.lowering.lower`. Its types are those of `specwire.generated.layout`.
"""

from __future__ import annotations

import msgspec

from specwire.generator import ir
from specwire.generator.passes.shapes import role_letters, takes_sender, weight
from specwire.generator.support import layout


def layout_of(protocol: ir.Protocol) -> layout.ProtocolLayout:
    """Return the layout of all messages of a protocol."""
    by_sender = takes_sender(protocol)
    return layout.ProtocolLayout(
        protocol.name,
        protocol.edition,
        tuple((selector.frame, selector.octets) for selector in protocol.selectors),
        tuple(_Layouts(protocol, message).message() for message in protocol.messages),
        announcing_bits(protocol),
        _shapes(protocol, by_sender=by_sender),
        role_letters(protocol) if by_sender else (),
        protocol.redact,
        protocol.folded,
        protocol.max_depth,
    )


def announcing_bits(protocol: ir.Protocol) -> int:
    """Return the bits of the flags octet that announce parts."""
    bits = 0
    for flag in protocol.flags:
        bits |= flag.value if flag.announces else 0
    return bits


def selected(message: ir.Message, protocol: ir.Protocol) -> tuple[tuple[bytes, ...], ...]:
    """Return the octets at the selectors in a message: for each spelling of its tag, one piece
    each.

    Empty if patterns tell messages apart.
    """
    found: list[tuple[bytes, ...]] = []
    if not protocol.selectors or any(selector.pattern for selector in protocol.selectors):
        return ()
    for tag in message.tags:
        octets = bytes.fromhex(tag)
        pieces: list[bytes] = []
        for selector in protocol.selectors:
            size = selector.octets or _frame_size(message, selector.frame, octets)
            pieces.append(octets[:size])
            octets = octets[size:]
        found.append(tuple(pieces))
    return tuple(found)


def _frame_size(message: ir.Message, index: int, octets: bytes) -> int:
    """Return the length of the spelling with which `octets` begin, in a frame that is one
    constant."""
    part = message.parts[index]
    assert isinstance(part, ir.Frame)
    type = part.fields[0].type
    options = [type.octets] if isinstance(type, ir.ConstantType) else []
    if isinstance(type, ir.KeywordType):
        options = [option.encode() for option in type.options]
    return next(len(option) for option in options if octets.startswith(option))


def _shapes(protocol: ir.Protocol, *, by_sender: bool) -> tuple[tuple[str, layout.Shape], ...]:
    """Return the shapes with their message classes, the most specific first."""
    rows = [(message.class_name, shape) for message in protocol.messages for shape in message.shapes]
    rows.sort(key=lambda row: -weight(row[1]))
    return tuple((name, _shape(shape, by_sender=by_sender)) for name, shape in rows)


def _shape(shape: ir.Shape, *, by_sender: bool) -> layout.Shape:
    heads = tuple((head.octets, head.whole) for head in shape.frames)
    senders = shape.senders if by_sender else ()
    by_octets = bool(senders) and not shape.needs_sender
    return layout.Shape(heads, shape.least, shape.most, senders, by_octets)


class _Layouts:
    """Conversion of one message to its layout."""

    def __init__(self, protocol: ir.Protocol, message: ir.Message) -> None:
        self.protocol = protocol
        self.source = message

    def message(self) -> layout.MessageLayout:
        message = self.source
        patterned = any(selector.pattern for selector in self.protocol.selectors)
        return layout.MessageLayout(
            message.name,
            message.class_name,
            selected(message, self.protocol),
            tuple(map(self.part, message.parts)),
            message.tags if patterned else (),
        )

    def part(self, part: ir.Part) -> layout.Part:
        match part:
            case ir.Frame(name=name, fields=fields, presence=presence, letter=letter):
                return layout.Frame(name, self.run(fields), _presence(presence), letter)
            case ir.Stack(name=name, field=field, presence=presence, letter=letter, delimiter=delimiter):
                end = bytes.fromhex(delimiter)
                return layout.Stack(name, self.field(field), _presence(presence), letter, end)
            case ir.Rest(name=name, field=field):
                return layout.Rest(name, self.field(field))

    def run(self, fields: tuple[ir.Field, ...], owner: str = "") -> tuple[layout.Field, ...]:
        """Return the fields of a run; counters, checksums and options refer to others by their
        attributes."""
        attributes = {field.name: field.attribute for field in fields}
        found: list[layout.Field] = []
        for field in fields:
            laid = self.field(field, owner)
            match laid.type:
                case layout.Counter(counts=counts):
                    named = tuple(attributes[name] for name in counts)
                    laid = msgspec.structs.replace(
                        laid, type=msgspec.structs.replace(laid.type, counts=named)
                    )
                case layout.Checksum(over=over):
                    named = tuple(attributes[name] for name in over)
                    laid = msgspec.structs.replace(laid, type=msgspec.structs.replace(laid.type, over=named))
            if laid.option is not None and laid.option.field:
                option = msgspec.structs.replace(laid.option, field=attributes[laid.option.field])
                laid = msgspec.structs.replace(laid, option=option)
            found.append(laid)
        return tuple(found)

    def field(self, field: ir.Field, owner: str = "") -> layout.Field:
        """Return a field; `owner` is the rule of the record that contains it."""
        rule = field.rule or owner or self.source.name
        flags = isinstance(field.type, ir.IntegerType) and field.type.bitmask
        option = None if field.option is None else _option(field.option)
        type = self.type(field.type)
        return layout.Field(field.name, field.attribute, rule, type, flags, field.optional, option)

    def type(self, type: ir.Type) -> layout.Type:
        match type:
            case ir.ConstantType(octets=octets, folded=folded):
                return layout.Constant(octets, constant_words(type), folded)
            case ir.KeywordType(options=options, folded=folded):
                return layout.Keyword(options, folded)
            case ir.PaddingType(octets=number, fill=fill, multiple=multiple):
                return layout.Padding(number, bytes.fromhex(fill), multiple)
            case ir.CounterType(number=number, counts=counts, plus=plus):
                laid = self.bits(number) if isinstance(number, ir.BitType) else _count(number)
                return layout.Counter(laid, counts, plus)
            case ir.ChecksumType(number=number, algorithm=algorithm, over=over):
                return layout.Checksum(self.integer(number), algorithm, over)
            case ir.SizeType(forms=forms):
                return layout.Size(tuple((bytes.fromhex(form.tag), form.octets) for form in forms))
            case ir.BitType():
                return self.bits(type)
            case ir.PresentType():
                return layout.Present()
            case ir.JsonType():
                return layout.Json()
            case _:
                return self.element(type)

    def element(self, type: ir.Element) -> layout.Element:
        match type:
            case ir.UuidType(order=order):
                return layout.Uuid(order)
            case ir.TextType():
                return _text(type)
            case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
                return layout.Octets(_span(length), minimum, maximum)
            case ir.ListType(count_octets=count, element=element, minimum=minimum):
                return layout.ListOf(
                    count, self.element(element), minimum, type.counted, _optional_count(type.number),
                    *map(bytes.fromhex, (type.until, type.before, type.after)),
                )  # fmt: skip
            case ir.PairsType():
                return self.pairs(type)
            case ir.RecordType():
                return self.record(type)
            case ir.UnionType(name=name, options=options, tags=tags, folded=folded):
                heads = tuple(map(bytes.fromhex, tags))
                return layout.Union(tuple(map(self.record, options)), heads, folded, name)
            case ir.EnclosingType(name=name):
                return layout.Enclosing(name)
            case _:
                return self.number(type)

    def number(self, type: ir.NumberType) -> layout.Coding:
        match type:
            case ir.IntegerType():
                return self.integer(type)
            case ir.FloatType(octets=octets, order=order):
                return layout.Float(octets, order)
            case ir.BooleanType(octets=octets, order=order):
                return layout.Boolean(octets, order)
            case ir.VarintType(order=order, maximum=maximum, signed=signed):
                return layout.Varint(order, maximum, signed)
            case ir.DigitsType(base=base, minimum=minimum, maximum=maximum, signed=signed):
                return layout.Digits(base, minimum, maximum, signed)

    def integer(self, type: ir.IntegerType) -> layout.Integer:
        return layout.Integer(type.octets, members_of(type, self.protocol), type.order, type.signed)

    def bits(self, type: ir.BitType) -> layout.Bits:
        members = members_of(type, self.protocol)
        return layout.Bits(
            type.octets, type.shift, type.width, type.order, type.boolean, type.constant, members, type.spare,
            type.announces,
        )  # fmt: skip

    def pairs(self, type: ir.PairsType) -> layout.Pairs:
        value: layout.Text | layout.Octets | None = None
        match type.value:
            case ir.TextType() as text:
                value = _text(text)
            case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
                value = layout.Octets(_span(length), minimum, maximum)
        return layout.Pairs(
            type.count_octets, _text(type.name), value, type.split, type.rule, type.minimum, type.counted,
            _optional_count(type.number),
            *map(bytes.fromhex, (type.until, type.before, type.between, type.after)),
        )  # fmt: skip

    def record(self, type: ir.RecordType) -> layout.Record:
        return layout.Record(type.class_name, self.run(type.fields, type.rule or ""), type.rule)


def constant_words(type: ir.ConstantType) -> str:
    """Return a constant as errors print it."""
    if type.text is not None:
        return repr(type.text)
    return f"0x{type.hex}" if type.hex else "nothing"


def members_of(type: ir.IntegerType | ir.BitType, protocol: ir.Protocol) -> tuple[int, ...]:
    """Return the allowed values of an integer; empty if any value is allowed."""
    if type.open:
        return ()
    named = next((enum.members for enum in protocol.enums if enum.name == type.enum), ())
    return tuple(value for _, value in named) or type.values


def _presence(presence: ir.Presence) -> layout.Presence:
    match presence:
        case ir.Always(mask=mask, value=value):
            return layout.Presence("always", mask, value)
        case ir.Announced(mask=mask, value=value):
            return layout.Presence("announced", mask, value)
        case ir.Counted():
            return layout.Presence("counted")


def _text(type: ir.TextType) -> layout.Text:
    pattern = None if type.pattern is None else type.pattern.encode("latin-1")
    padding = None if type.padding is None else bytes.fromhex(type.padding)
    return layout.Text(_span(type.length), pattern, type.terminated, padding)


def _span(length: ir.Length) -> layout.Span:
    until = bytes.fromhex(length.until)
    among = bytes.fromhex(length.among)
    return layout.Span(length.kind, length.octets, until, _optional_count(length.number), among)


def _option(option: ir.Option) -> layout.Option:
    return layout.Option(
        option.kind, option.number, bytes.fromhex(option.octets), option.folded, option.field, option.mask,
        option.values, option.left,
    )  # fmt: skip


def _optional_count(number: ir.CountType | None) -> layout.Integer | layout.Varint | layout.Digits | None:
    return None if number is None else _count(number)


def _count(number: ir.CountType) -> layout.Integer | layout.Varint | layout.Digits:
    """Return how a length or a count is written."""
    match number:
        case ir.IntegerType(octets=octets, order=order):
            return layout.Integer(octets, order=order)
        case ir.VarintType(order=order, maximum=maximum):
            return layout.Varint(order, maximum)
        case ir.DigitsType(base=base, minimum=minimum, maximum=maximum):
            return layout.Digits(base, minimum, maximum)
