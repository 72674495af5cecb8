"""A protocol's layout in words, for golden files that people read: messages, frames, fields, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from specwire.generator import ir


def picture(protocol: ir.Protocol) -> str:
    """Return the layout, a line for each field."""
    return "\n".join(_lines(protocol)) + "\n"


def _lines(protocol: ir.Protocol) -> Iterator[str]:
    yield (
        "messages told apart by "
        + (", ".join(map(_selector, protocol.selectors)) or "their shapes")
        + _folded(folded=protocol.folded)
    )
    if protocol.max_depth:
        yield f"at most {protocol.max_depth} records inside each other"
    for message in protocol.messages:
        yield from _message(message)
    for bit in protocol.flags:
        yield f"flag {bit.name} = {bit.value:#04x}" + (f" announces {bit.announces}" if bit.announces else "")
    for enum in protocol.enums:
        yield f"enumeration {enum.name}: " + ", ".join(f"{name} = {value}" for name, value in enum.members)
    for constant in protocol.constants:
        yield f"constant {constant.name} = {constant.value}"
    for dialog in protocol.dialogs:
        yield f"dialog {dialog.name} of {' and '.join(dialog.roles)}: {', '.join(dialog.labels)}"
    if protocol.stream is not None:
        yield from _stream(protocol.stream)


def _selector(selector: ir.Selector) -> str:
    frame = {0: "the first frame", -1: "the last frame"}.get(selector.frame, f"frame {selector.frame}")
    if selector.pattern:
        return f"how {frame} begins"
    if selector.octets is None:
        return f"{frame} as a whole"
    return f"{_octets(selector.octets)} of {frame}"


def _message(message: ir.Message) -> Iterator[str]:
    tags = f" = {' or '.join(message.tags)}" if message.tags else ""
    senders = f", sent by {' and '.join(message.senders)}" if message.senders else ""
    shadowed = ", where it is no other message" if message.shadowed else ""
    yield f"{message.rule}{tags}{senders}{shadowed}"
    for shape in message.shapes:
        yield f"  {_shape(shape)}"
    for part in message.parts:
        yield from _part(part)


def _shape(shape: ir.Shape) -> str:
    heads = ", ".join(map(_frame_head, shape.frames))
    most = "any number" if shape.most is None else str(shape.most)
    senders = f", sent by {' and '.join(shape.senders)}" if shape.senders else ""
    return f"shape: {heads}; {shape.least} to {most} frames{senders}"


def _frame_head(head: ir.FrameHead) -> str:
    if head.whole:
        return f"{head.octets} and no more" if head.octets else "empty"
    return f"{head.octets}…" if head.octets else "anything"


def _part(part: ir.Part) -> Iterator[str]:
    match part:
        case ir.Frame(name=name, fields=fields):
            yield f"  frame {name}{_presence(part)}"
            for field in fields:
                yield from _field(field, "    ")
        case ir.Stack(name=name, field=field, delimiter=delimiter):
            end = delimiter or "an empty one"
            yield f"  frames {name} up to {end}{_presence(part)}"
            yield from _field(field, "    each ")
        case ir.Rest(name=name, field=field):
            yield f"  frames {name}, all that are left"
            yield from _field(field, "    each ")
        case _:
            assert_never(part)


def _presence(part: ir.Frame | ir.Stack) -> str:
    letter = f", {part.letter} by the letter" if part.letter else ""
    match part.presence:
        case ir.Always(mask=0):
            return letter
        case ir.Always(mask=mask, value=value):
            return f", always there, flags & {mask:#04x} = {value:#04x}{letter}"
        case ir.Announced(mask=mask, value=value):
            return f", there if flags & {mask:#04x} = {value:#04x}{letter}"
        case ir.Counted():
            return f", there if frames are left{letter}"


def _field(field: ir.Field, indent: str) -> Iterator[str]:
    said = [words(field.type)]
    if field.option is not None:
        said.append(_option(field.option))
    if field.sentinels:
        said.append(f"special: {' '.join(field.sentinels)}")
    if field.optional:
        said.append("the frame may end before it")
    elif field.nullable and field.option is None:
        said.append("or None")
    if not field.required and not field.implied:
        said.append(f"default {field.default!r}")
    if field.unit:
        said.append(f"in {field.unit}")
    yield f"{indent}{field.name}: {', '.join(said)}"
    yield from _inside(field.type, indent + "  ")


def _option(option: ir.Option) -> str:
    match option.kind:
        case "left":
            return f"there if more than {_octets(option.left)} are left"
        case "octets":
            return f"there if the next octets are {option.octets}{_folded(folded=option.folded)}"
        case "number":
            mask = f" & {option.mask:#x}" if option.mask else ""
            return f"there if {option.field}{mask} is {' or '.join(map(str, option.values))}"


def _folded(*, folded: bool) -> str:
    return " in either case" * folded


def _inside(type: ir.Type, indent: str) -> Iterator[str]:
    """The fields of records in a value."""
    match type:
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from _field(field, indent)
        case ir.UnionType(options=options, tags=tags):
            for tag, option in zip(tags, options, strict=True):
                yield f"{indent}{tag}: {words(option)}"
                yield from _inside(option, indent + "  ")
        case ir.ListType(element=element):
            yield from _inside(element, indent)
        case _:
            pass


def words(type: ir.Type) -> str:
    """Return what a value is, without the fields inside it."""
    match type:
        case ir.ConstantType(hex=octets, text=text, folded=folded):
            shown = f" ({text})" if text is not None else ""
            return f"constant {octets or 'of no octets'}" + shown + _folded(folded=folded)
        case ir.KeywordType(options=options, folded=folded):
            return "keyword " + " or ".join(options) + _folded(folded=folded)
        case ir.BitType():
            return _bits(type)
        case ir.PresentType():
            return "whether these constants are there"
        case ir.EnclosingType(name=name):
            return f"{name} again"
        case ir.IntegerType(octets=octets, enum=enum, bitmask=bitmask, values=values):
            kind = "flags" if bitmask else "integer"
            named = (
                f" named in {enum}" if enum else f" out of {', '.join(map(str, values))}" if values else ""
            )
            named += " or another" * type.open
            return f"{kind} of {_octets(octets)}{named}{_order(type)}" + ", signed" * type.signed
        case ir.FloatType(octets=octets):
            return f"floating-point number of {_octets(octets)}{_order(type)}"
        case ir.BooleanType(octets=octets):
            return f"boolean of {_octets(octets)}{_order(type)}"
        case ir.VarintType(maximum=maximum, signed=signed, order=order):
            return f"varint of at most {_octets(maximum)}, {order}-endian" + (f", {signed}" if signed else "")
        case ir.DigitsType(base=base, minimum=minimum, maximum=maximum, signed=signed):
            return f"number in {minimum} to {maximum} digits of base {base}" + ", signed" * signed
        case ir.UuidType():
            return f"UUID{_order(type)}"
        case ir.CounterType(number=number, counts=counts, plus=plus):
            return f"count of {' and '.join(counts)}" + f" plus {plus}" * bool(plus) + f", {words(number)}"
        case ir.ChecksumType(number=number, algorithm=algorithm, over=over):
            return f"{algorithm} of {' and '.join(over)}, {words(number)}"
        case ir.TextType():
            return _text(type)
        case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
            least = f", at least {minimum}" if minimum and length.kind != "fixed" else ""
            most = f", at most {maximum}" if maximum is not None and length.kind != "fixed" else ""
            return f"octets, {_length(length)}{least}{most}"
        case ir.PaddingType(octets=octets, fill=fill, multiple=multiple):
            size = f"up to a multiple of {multiple} octets" if multiple else _octets(octets)
            return f"{size} of padding, written as {fill}"
        case ir.SizeType(forms=forms):
            return "size of all that follows, in " + " or ".join(map(_form, forms))
        case ir.JsonType():
            return "JSON, to the end"
        case ir.ListType(element=element):
            return f"list{_count(type)} of {words(element)}{_around(type.before, type.after)}"
        case ir.PairsType():
            return _pairs(type)
        case ir.RecordType(class_name=name):
            return f"record {name}"
        case ir.UnionType(options=options, folded=folded):
            return "one of " + ", ".join(option.class_name for option in options) + _folded(folded=folded)
        case _:
            assert_never(type)


def _bits(type: ir.BitType) -> str:
    said = f"{type.width} bits above {type.shift} others of {_octets(type.octets)}{_order(type)}"
    said += ", a bool" * type.boolean + ", of no meaning" * type.spare
    said += ", whether fields are there" * type.announces
    if type.constant is not None:
        said += f", always {type.constant}"
    if type.enum:
        said += f" named in {type.enum}"
    elif type.values:
        said += f" out of {', '.join(map(str, type.values))}"
    return said + " or another" * type.open


def _text(type: ir.TextType) -> str:
    terminated = ", a NUL behind it by the letter" if type.terminated else ""
    padding = f", padded with {type.padding}" if type.padding else ""
    pattern = f", of {type.pattern}" if type.pattern else ""
    return f"text, {_length(type.length)}{padding}{terminated}{pattern}"


def _pairs(type: ir.PairsType) -> str:
    if type.value is None:
        inside = f"{words(type.name)}, divided at the {type.split} '='"
    else:
        between = f", {type.between}" if type.between else ""
        inside = f"name ({words(type.name)}){between} and value ({words(type.value)})"
    return f"dictionary{_count(type)} of {inside}{_around(type.before, type.after)}"


def _around(before: str, after: str) -> str:
    return (f", {before} before each" if before else "") + (f", {after} after each" if after else "")


def _length(length: ir.Length) -> str:
    match length.kind:
        case "prefix":
            return f"length in {_width(length.number, length.octets)}"
        case "fixed":
            return f"{_octets(length.octets)} long"
        case "rest":
            return f"to the last {_octets(length.octets)}" if length.octets else "to the end"
        case "until":
            return f"up to {length.until}"
        case "run":
            least = f"at least {length.octets} " if length.octets else ""
            return f"{least}of {length.among}"
        case "counted":
            return "counted"


def _order(type: ir.IntegerType | ir.BitType | ir.FloatType | ir.BooleanType | ir.UuidType) -> str:
    return ", little-endian" if type.order == "little" else ""


def _count(type: ir.ListType | ir.PairsType) -> str:
    least = f", at least {type.minimum}" if type.minimum else ""
    end = ", counted" if type.counted else f", up to {type.until}" if type.until else ", to the end"
    count = f", count in {_width(type.number, type.count_octets)}"
    return (count if type.count_octets else end) + least + ","


def _width(number: ir.CountType | None, octets: int) -> str:
    return _octets(octets) if number is None else words(number)


def _form(form: ir.SizeForm) -> str:
    return (f"{form.tag} and " if form.tag else "") + _octets(form.octets)


def _octets(number: int) -> str:
    return f"{number} octet" + ("" if number == 1 else "s")


def _stream(stream: ir.Stream | ir.UnitStream) -> Iterator[str]:
    match stream:
        case ir.Stream(magics=magics, length_octets=length, escape=escape, long_octets=long):
            yield f"stream of parts: magic {' or '.join(magics)}, length in {_octets(length)}, escape {escape}, then {_octets(long)}"
        case ir.UnitStream(heads=heads):
            yield "stream of messages: " + "; ".join(map(_head, heads))
        case _:
            assert_never(stream)


def _head(head: ir.UnitHead) -> str:
    prefix = head.prefix or "anything"
    if head.size_octets:
        return f"{prefix}, {_octets(head.skip)} later a size of {_octets(head.size_octets)}"
    return f"{prefix}, {_octets(head.octets)} in all"
