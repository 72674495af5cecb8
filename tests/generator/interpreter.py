"""A naive interpreter of the IR: messages to frames and back, as the IR's docstrings say.

It shares nothing with the emitters and is written for reading, not for speed. A value is its *content*: the
octets without their length prefix, padding or terminating NUL; a tuple of the contents of entries; for a record
the contents of its fields by name, for one of several records `Chosen`; an int for a number whose octets vary;
None for what is left out. So a text and an octet string of the same octets have the same content, and so have an
integer and the octets it is made of.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from specwire.generator import ir

Content: TypeAlias = "bytes | int | tuple[Content, ...] | Mapping[str, Content] | Chosen | None"
Contents = Mapping[str, Content]
Counts: TypeAlias = "dict[str, list[tuple[ir.CounterType | None, int]]]"


@dataclass(frozen=True)
class Chosen:
    """One of several records."""

    option: str
    contents: Contents


class Refused(Exception):
    """The frames are not a message, or the content does not fit the type."""


# Messages


def encode(protocol: ir.Protocol, message: ir.Message, contents: Contents) -> list[bytes]:
    """Return the frames of `message`; what is implied needs no content."""
    frames: list[bytes] = []
    bits = sum(presence.value for part, presence in flagged(message) if is_there(part, contents))
    ended = False
    for part in message.parts:
        if not isinstance(part, ir.Rest) and not isinstance(part.presence, ir.Always):
            if not is_there(part, contents):
                ended = ended or isinstance(part.presence, ir.Counted)
                continue
            if ended:
                raise Refused("a part behind one that is left out")
        if isinstance(part, ir.Frame):
            frames.append(write_run(protocol, part.fields, with_bits(part, contents, bits)))
            continue
        elements = contents[part.field.name]
        assert isinstance(elements, tuple)
        octets = [write(protocol, part.field.type, element) for element in elements]
        if isinstance(part, ir.Stack):
            if b"" in octets:
                raise Refused("an empty frame ends a stack")
            octets.append(b"")
        frames += octets
    if called(protocol, frames) is not message:
        raise Refused("another message's octets")
    return frames


def decode(protocol: ir.Protocol, frames: Sequence[bytes]) -> tuple[ir.Message, dict[str, Content]]:
    """Return the message that `frames` are, and its contents.

    Raises:
        Refused: they are none.
    """
    message = called(protocol, frames)
    flags = read_flags(protocol, message, frames)
    contents: dict[str, Content] = {}
    left = list(frames)
    for number, part in enumerate(message.parts):
        behind = sum(
            not isinstance(later, ir.Rest) and isinstance(later.presence, ir.Always)
            for later in message.parts[number + 1 :]
        )
        if isinstance(part, ir.Rest):
            contents[part.field.name] = tuple(read_all(protocol, part.field.type, frame) for frame in left)
            left = []
            continue
        match part.presence:
            case ir.Announced(mask=mask, value=value):
                there = flags & mask == value
            case ir.Counted():
                there = len(left) > behind
            case _:
                there = True
        if not there:
            fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
            contents |= {field.name: None for field in fields}
        elif isinstance(part, ir.Stack):
            if b"" not in left:
                raise Refused("no empty frame ends the stack")
            end = left.index(b"")
            contents[part.field.name] = tuple(
                read_all(protocol, part.field.type, frame) for frame in left[:end]
            )
            if any(text_of_nothing(part.field.type, frame) for frame in left[:end]):
                raise Refused("a frame of the stack holds nothing")
            del left[: end + 1]
        elif not left:
            raise Refused("a frame is missing")
        else:
            contents |= read_run(protocol, part.fields, left.pop(0))
    if left:
        raise Refused("frames are left over")
    return message, contents


def called(protocol: ir.Protocol, frames: Sequence[bytes]) -> ir.Message:
    """The message that the selectors find."""
    found = b""
    for selector in protocol.selectors:
        if not -len(frames) <= selector.frame < len(frames):
            raise Refused("a frame is missing")
        frame = frames[selector.frame]
        if selector.pattern:
            return longest_pattern(protocol, frame)
        found += frame if selector.octets is None else frame[: selector.octets]
    for message in protocol.messages:
        if found.hex() in message.tags:
            return message
    raise Refused("no message has that tag")


def longest_pattern(protocol: ir.Protocol, frame: bytes) -> ir.Message:
    fitting = []
    for message in protocol.messages:
        for pattern in message.tags:
            octets = [pattern[at : at + 2] for at in range(0, len(pattern), 2)]
            begins = [f"{octet:02x}" for octet in frame[: len(octets)]]
            if len(begins) == len(octets) and all(
                a in ("??", b) for a, b in zip(octets, begins, strict=True)
            ):
                fitting.append((len(octets), message))
    if not fitting:
        raise Refused("no pattern fits")
    return max(fitting, key=lambda row: row[0])[1]


# Flags


def flagged(message: ir.Message) -> list[tuple[ir.Frame | ir.Stack, ir.Always | ir.Announced]]:
    """The parts that flags have a say in."""
    return [
        (part, part.presence)
        for part in message.parts
        if isinstance(part, ir.Frame | ir.Stack)
        if isinstance(part.presence, ir.Always | ir.Announced) and part.presence.mask
    ]


def is_there(part: ir.Frame | ir.Stack, contents: Contents) -> bool:
    if isinstance(part.presence, ir.Always):
        return True
    fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
    return any(contents.get(field.name) is not None for field in fields)


def announcing(protocol: ir.Protocol) -> int:
    return sum(bit.value for bit in protocol.flags if bit.announces)


def is_flags(field: ir.Field) -> bool:
    return isinstance(field.type, ir.IntegerType) and field.type.bitmask


def with_bits(part: ir.Frame, contents: Contents, bits: int) -> Contents:
    """The contents with the flags as on the wire."""
    for field in part.fields:
        content = contents.get(field.name)
        if is_flags(field) and isinstance(content, bytes):
            return {**contents, field.name: bytes((content[0] | bits,))}
    return contents


def read_flags(protocol: ir.Protocol, message: ir.Message, frames: Sequence[bytes]) -> int:
    """The flags of a message, 0 where it has none; bits that announce no part of it are refused."""
    for number, part in enumerate(message.parts):
        if not isinstance(part, ir.Frame) or not any(map(is_flags, part.fields)):
            continue
        place = -1 if number == len(message.parts) - 1 else number
        if not -len(frames) <= place < len(frames):
            raise Refused("the frame with the flags is missing")
        contents = read_run(protocol, part.fields, frames[place])
        (octets,) = (contents[field.name] for field in part.fields if is_flags(field))
        assert isinstance(octets, bytes)
        check_flags(protocol, message, octets[0])
        return octets[0]
    return 0


def check_flags(protocol: ir.Protocol, message: ir.Message, flags: int) -> None:
    known = 0
    presences = [presence for _, presence in flagged(message)]
    for presence in presences:
        known |= presence.mask
        allowed = {other.value for other in presences if other.mask == presence.mask}
        allowed |= {0} if isinstance(presence, ir.Announced) else set()
        if flags & presence.mask not in allowed:
            raise Refused("half of what announces a part")
    if flags & announcing(protocol) & ~known:
        raise Refused("a part is announced that the message has not")


# Runs


def write_run(protocol: ir.Protocol, fields: Sequence[ir.Field], contents: Contents) -> bytes:
    """Return the octets of a run; a size counts all that is written after it."""
    written: dict[str, bytes] = {}
    behind_size = None
    for number, field in enumerate(fields):
        behind = valued(fields[number:])
        if field.optional and behind and all(contents.get(later.name) is None for later in behind):
            break
        content = contents.get(field.name)
        match field.type:
            case ir.SizeType():
                octets = write_run(protocol, fields[number + 1 :], contents)
                behind_size = with_size(field.type, octets)
                break
            case ir.CounterType() | ir.ChecksumType() | ir.PaddingType():
                written[field.name] = b""
                continue
        if content is None and not field.implied:
            raise Refused("a value is missing")
        written[field.name] = write(protocol, field.type, content)
        if field.optional and not written[field.name]:
            raise Refused("as good as left out")
    derive(protocol, fields, contents, written)
    return b"".join(written.values()) + (behind_size or b"")


def derive(
    protocol: ir.Protocol, fields: Sequence[ir.Field], contents: Contents, written: dict[str, bytes]
) -> None:
    """Fill in counters, then padding, then checksums."""
    there = [field for field in fields if field.name in written]
    for field in there:
        if isinstance(field.type, ir.CounterType):
            number = field.type.plus + counted(field.type, fields, contents, written)
            written[field.name] = write_number(field.type.number, number)
    for field in there:
        if isinstance(field.type, ir.PaddingType):
            before = there[: there.index(field)]
            place = sum(
                one.type.number.octets if isinstance(one.type, ir.ChecksumType) else len(written[one.name])
                for one in before
            )
            size = field.type.octets or -place % field.type.multiple
            written[field.name] = bytes.fromhex(field.type.fill) * size
    for field in there:
        if isinstance(field.type, ir.ChecksumType):
            found = checksum(field.type, there, written)
            written[field.name] = write_number(field.type.number, found)


def counted(
    type: ir.CounterType, fields: Sequence[ir.Field], contents: Contents, written: Mapping[str, bytes]
) -> int:
    """What a counter counts: the items of a list, or octets."""
    found = [field for field in fields if field.name in type.counts]
    first = found[0].type
    if isinstance(first, ir.ListType | ir.PairsType) and first.counted and len(found) == 1:
        return len(items(contents[found[0].name]))
    sums = [one.type.number.octets for one in found if isinstance(one.type, ir.ChecksumType)]
    return sum(sums) + sum(len(written[name]) for name in type.counts)


def checksum(type: ir.ChecksumType, fields: Sequence[ir.Field], written: Mapping[str, bytes]) -> int:
    octets = b"".join(written[field.name] for field in fields if field.name in type.over)
    match type.algorithm:
        case "crc32":
            return binascii.crc32(octets)
        case "crc16-ccitt":
            return binascii.crc_hqx(octets, 0xFFFF)
        case "adler32":
            return zlib.adler32(octets)
        case "sum8":
            return sum(octets) % 256
    raise NotImplementedError(type.algorithm)


def write_number(type: ir.IntegerType | ir.VarintType | ir.DigitsType, number: int) -> bytes:
    """Return an integer as the wire has it."""
    match type:
        case ir.IntegerType(octets=octets, order=order, signed=signed):
            try:
                return number.to_bytes(octets, order, signed=signed)
            except OverflowError:
                raise Refused("too large") from None
        case ir.VarintType(order=order, maximum=maximum, signed=signed_):
            if not (-(2**63) <= number < 2**63 if signed_ else 0 <= number < 2**64):
                raise Refused("more than 64 bits")
            if signed_ == "zigzag":
                number = 2 * number if number >= 0 else -2 * number - 1
            for size in range(1, maximum + 1):
                half = 2 ** (7 * size - 1)
                if -half <= number < half if signed_ == "complement" else number < 2 * half:
                    groups = [number >> 7 * place & 127 for place in range(size)]
                    groups = groups[::-1] if order == "big" else groups
                    return bytes([*(group + 128 for group in groups[:-1]), groups[-1]])
            raise Refused("too large")
        case ir.DigitsType(base=base, minimum=minimum, maximum=maximum, signed=signed):
            if not (-(2**63) <= number < 2**63 if signed else 0 <= number < 2**64):
                raise Refused("more than 64 bits")
            text = (str(abs(number)) if base == 10 else hex(abs(number))[2:]).rjust(minimum, "0")
            if len(text) > maximum:
                raise Refused("too many digits")
            return (("-" if number < 0 else "") + text).encode()


def read_number(type: ir.IntegerType | ir.VarintType | ir.DigitsType, octets: bytes) -> tuple[int, bytes]:
    """Return the integer at the start of `octets`, and the octets after it."""
    match type:
        case ir.IntegerType(octets=size, order=order, signed=signed):
            head, octets = take(octets, size)
            return int.from_bytes(head, order, signed=signed), octets
        case ir.VarintType():
            return read_varint(type, octets)
        case ir.DigitsType(base=base, minimum=minimum, maximum=maximum, signed=signed):
            sign = "-?" if signed else ""
            kind = "[0-9]" if base == 10 else "[0-9a-fA-F]"
            found = re.match(f"{sign}{kind}{{{minimum},{maximum}}}".encode(), octets)
            if not found:
                raise Refused("no digits")
            text = found[0].decode()
            number = int(text, base)
            if text.startswith("-") and not number:
                raise Refused("-0")
            if not (-(2**63) <= number < 2**63 if signed else 0 <= number < 2**64):
                raise Refused("more than 64 bits")
            return number, octets[len(text) :]


def read_varint(type: ir.VarintType, octets: bytes) -> tuple[int, bytes]:
    size = next((place for place, octet in enumerate(octets) if octet < 128), type.maximum) + 1
    if size > type.maximum or size > len(octets):
        raise Refused("no end of a number")
    groups = [octet & 127 for octet in octets[:size]]
    if type.order == "big":
        groups.reverse()
    number = sum(group << 7 * place for place, group in enumerate(groups))
    if type.signed == "complement":
        number -= 2 ** (7 * size) if number >= 2 ** (7 * size - 1) else 0
        if not -(2**63) <= number < 2**63:
            raise Refused("more than 64 bits")
        return number, octets[size:]
    if number >= 2**64:
        raise Refused("more than 64 bits")
    if type.signed == "zigzag":
        number = -(number + 1) // 2 if number % 2 else number // 2
    return number, octets[size:]


def valued(fields: Sequence[ir.Field]) -> list[ir.Field]:
    """The fields with a content of their own."""
    return [field for field in fields if not field.implied]


def with_size(type: ir.SizeType, octets: bytes) -> bytes:
    tags = [bytes.fromhex(form.tag) for form in type.forms if form.tag]
    for form in type.forms:
        if len(octets) < 256**form.octets:
            size = bytes.fromhex(form.tag) + len(octets).to_bytes(form.octets, "big")
            if form.tag or not any(map(size.startswith, tags)):
                return size + octets
    raise Refused("no form can hold the size")


def read_run(protocol: ir.Protocol, fields: Sequence[ir.Field], octets: bytes) -> dict[str, Content]:
    """Return the contents of a run that takes all of `octets`."""
    contents, rest = read_fields(protocol, fields, octets)
    if rest:
        raise Refused("octets are left over")
    return contents


def read_fields(
    protocol: ir.Protocol, fields: Sequence[ir.Field], octets: bytes
) -> tuple[dict[str, Content], bytes]:
    """Return the contents of the fields at the start of `octets`, and the octets after them."""
    spans: dict[str, bytes] = {}
    contents, octets = read_region(protocol, fields, octets, {}, spans)
    verify(fields, spans)
    return contents, octets


def read_region(
    protocol: ir.Protocol, fields: Sequence[ir.Field], octets: bytes, known: Counts, spans: dict[str, bytes]
) -> tuple[dict[str, Content], bytes]:
    """Return the contents of fields behind the counters `known`; add the octets of each field to `spans`."""
    contents: dict[str, Content] = {}
    counts: Counts = dict(known)
    skipped: set[str] = set()
    total = len(octets)
    for number, field in enumerate(fields):
        if field.name in skipped:
            continue
        if field.optional and not octets:
            contents |= {later.name: None for later in fields[number:]}
            break
        before = octets
        # The widest region comes first.
        *others, (counter, size) = sorted(
            counts.get(field.name, []), key=lambda one: len(one[0].counts) if one[0] else 0
        ) or [(None, 0)]
        match field.type:
            case ir.SizeType():
                inside, octets = sized(field.type, octets)
                return contents | read_run(protocol, fields[number + 1 :], inside), octets
            case ir.CounterType(number=of, plus=plus, counts=names):
                found, octets = read_number(of, octets)
                if found < plus:
                    raise Refused("less than nothing")
                counts[names[0]] = [*counts.get(names[0], []), (field.type, found - plus)]
            case ir.PaddingType(multiple=multiple) if multiple:
                octets = take(octets, -(total - len(octets)) % multiple)[1]
            case ir.ListType(counted=True) | ir.PairsType(counted=True) if not others and size >= 0:
                contents[field.name], octets = read_many(protocol, field.type, octets, size)
            case _ if counter is not None:
                inside, octets = take(octets, size)
                together = [other for other in fields if other.name in counter.counts]
                if isinstance(field.type, ir.TextType | ir.OctetsType) and (
                    field.type.length.kind == "counted" and not others
                ):
                    check(protocol, field.type, inside)
                    contents[field.name] = inside
                else:
                    narrower = {**counts, field.name: others}
                    found_inside, rest = read_region(protocol, together, inside, narrower, spans)
                    if rest:
                        raise Refused("octets are left over")
                    contents |= found_inside
                    skipped |= set(counter.counts)
                    continue
            case ir.ChecksumType(number=of):
                octets = read_number(of, octets)[1]
            case _:
                contents[field.name], octets = read(protocol, field.type, octets)
        spans[field.name] = before[: len(before) - len(octets)]
    return contents, octets


def verify(fields: Sequence[ir.Field], spans: Mapping[str, bytes]) -> None:
    """Refuse a wrong checksum."""
    there = [field for field in fields if field.name in spans]
    for field in there:
        if isinstance(field.type, ir.ChecksumType):
            right = write_number(field.type.number, checksum(field.type, there, spans))
            if spans[field.name] != right:
                raise Refused("a wrong checksum")


def sized(type: ir.SizeType, octets: bytes) -> tuple[bytes, bytes]:
    """The octets that a size counts, and those after them."""
    for form in sorted(type.forms, key=lambda form: len(form.tag), reverse=True):
        tag = bytes.fromhex(form.tag)
        if octets[: len(tag)] == tag:
            number, octets = take(octets[len(tag) :], form.octets)
            return take(octets, int.from_bytes(number, "big"))
    raise Refused("no form of a size")


# Values


def write(protocol: ir.Protocol, type: ir.Type, content: Content) -> bytes:
    """Return `content` as the wire has it."""
    match type:
        case ir.PaddingType(octets=size, fill=fill):
            return bytes.fromhex(fill) * size
        case ir.ConstantType():
            return type.octets
        case ir.VarintType() | ir.DigitsType():
            assert isinstance(content, int)
            return write_number(type, content)
        case ir.ListType(element=element):
            return b"".join(
                [count(type, content), *(write(protocol, element, item) for item in items(content))]
            )
        case ir.PairsType():
            return b"".join(
                [count(type, content), *(write_pair(protocol, type, pair) for pair in items(content))]
            )
        case ir.RecordType(fields=fields):
            assert isinstance(content, Mapping)
            return write_run(protocol, fields, content)
        case ir.UnionType(options=options):
            assert isinstance(content, Chosen)
            for option in options:
                if option.name == content.option:
                    return write(protocol, option, content.contents)
            raise Refused("no such option")
    assert isinstance(content, bytes)
    check(protocol, type, content)
    if isinstance(type, ir.TextType) and type.padding is not None:
        if content.endswith(bytes.fromhex(type.padding)):
            raise Refused("the text ends as its padding does")
        return content + bytes.fromhex(type.padding) * (type.length.octets - len(content))
    return prefix(type, content) + content


def items(content: Content) -> tuple[Content, ...]:
    assert isinstance(content, tuple)
    return content


def count(type: ir.ListType | ir.PairsType, content: Content) -> bytes:
    number = len(items(content))
    if number < type.minimum:
        raise Refused("too few entries")
    if not type.count_octets:
        return b""
    if number >= 256**type.count_octets:
        raise Refused("too many entries")
    return number.to_bytes(type.count_octets, "big")


def write_pair(protocol: ir.Protocol, type: ir.PairsType, pair: Content) -> bytes:
    name, value = items(pair)
    if type.value is not None:
        return write(protocol, type.name, name) + write(protocol, type.value, value)
    assert isinstance(name, bytes) and isinstance(value, bytes)
    if b"=" in (name if type.split == "first" else value):
        raise Refused("divided elsewhere")
    return write(protocol, type.name, name + b"=" + value)


def prefix(type: ir.Type, content: bytes) -> bytes:
    if not isinstance(type, ir.TextType | ir.OctetsType) or type.length.kind != "prefix":
        return b""
    if len(content) >= 256**type.length.octets:
        raise Refused("too long")
    return len(content).to_bytes(type.length.octets, "big")


def read_all(protocol: ir.Protocol, type: ir.Type, octets: bytes) -> Content:
    """Return the content that all of `octets` are."""
    content, rest = read(protocol, type, octets)
    if rest:
        raise Refused("octets are left over")
    return content


def read(protocol: ir.Protocol, type: ir.Type, octets: bytes) -> tuple[Content, bytes]:
    """Return the content at the start of `octets`, and the octets after it."""
    match type:
        case ir.PaddingType(octets=size):
            return b"", take(octets, size)[1]
        case ir.VarintType() | ir.DigitsType():
            return read_number(type, octets)
        case ir.ListType() | ir.PairsType():
            return read_many(protocol, type, octets)
        case ir.RecordType(fields=fields):
            return read_fields(protocol, fields, octets)
        case ir.UnionType(options=options, tags=tags):
            for option, tag in zip(options, tags, strict=True):
                if octets.startswith(bytes.fromhex(tag)):
                    contents, octets = read_fields(protocol, option.fields, octets)
                    return Chosen(option.name, contents), octets
            raise Refused("no option has that tag")
    size, octets = size_of(type, octets)
    content, octets = take(octets, size)
    if isinstance(type, ir.TextType) and type.padding is not None:
        content = content.rstrip(bytes.fromhex(type.padding))
    if isinstance(type, ir.TextType) and type.terminated:
        content = content.removesuffix(b"\0")
    check(protocol, type, content)
    return one_nan(type, content) if isinstance(type, ir.FloatType) else content, octets


def one_nan(type: ir.FloatType, content: bytes) -> bytes:
    """The octets of a float; those of every NaN are the same."""
    code = ("<" if type.order == "little" else ">") + ("f" if type.octets == 4 else "d")
    (value,) = struct.unpack(code, content)
    return struct.pack(code, math.nan) if math.isnan(value) else content


def read_many(
    protocol: ir.Protocol, type: ir.ListType | ir.PairsType, octets: bytes, number: int | None = None
) -> tuple[Content, bytes]:
    found: list[Content] = []
    if type.count_octets:
        octets_of_count, octets = take(octets, type.count_octets)
        number = int.from_bytes(octets_of_count, "big")
    while octets if number is None else len(found) < number:
        if isinstance(type, ir.ListType):
            item, octets = read(protocol, type.element, octets)
        else:
            item, octets = read_pair(protocol, type, octets)
        found.append(item)
    if len(found) < type.minimum:
        raise Refused("too few entries")
    return tuple(found), octets


def read_pair(protocol: ir.Protocol, type: ir.PairsType, octets: bytes) -> tuple[Content, bytes]:
    name, octets = read(protocol, type.name, octets)
    if type.value is not None:
        value, octets = read(protocol, type.value, octets)
        return (name, value), octets
    assert isinstance(name, bytes)
    if b"=" not in name:
        raise Refused("no '='")
    left, _, right = name.partition(b"=") if type.split == "first" else name.rpartition(b"=")
    return (left, right), octets


def size_of(type: ir.Type, octets: bytes) -> tuple[int, bytes]:
    """Return how many octets the content has, and the octets from its first on."""
    match type:
        case ir.ConstantType():
            return len(type.octets), octets
        case ir.IntegerType() | ir.FloatType() | ir.BooleanType():
            return type.octets, octets
        case ir.UuidType():
            return 16, octets
        case ir.KeywordType() | ir.JsonType():
            return len(octets), octets
    assert isinstance(type, ir.TextType | ir.OctetsType)
    if type.length.kind == "fixed":
        return type.length.octets, octets
    if type.length.kind == "rest":
        if len(octets) < type.length.octets:
            raise Refused("octets are missing")
        return len(octets) - type.length.octets, octets
    if type.length.kind == "until":
        size = octets.find(bytes.fromhex(type.length.until))
        if size < 0:
            raise Refused("nothing ends the text")
        return size, octets
    number, octets = take(octets, type.length.octets)
    return int.from_bytes(number, "big"), octets


def take(octets: bytes, size: int) -> tuple[bytes, bytes]:
    if len(octets) < size:
        raise Refused("octets are missing")
    return octets[:size], octets[size:]


def text_of_nothing(type: ir.Type, frame: bytes) -> bool:
    return isinstance(type, ir.TextType) and type.terminated and frame == b"\0"


def check(protocol: ir.Protocol, type: ir.Type, content: bytes) -> None:
    """Refuse content that the type does not have."""
    match type:
        case ir.ConstantType():
            right = content == type.octets
        case ir.KeywordType(options=options):
            right = content in [option.encode() for option in options]
        case ir.FloatType() | ir.BooleanType() | ir.UuidType():
            right = len(content) == (16 if isinstance(type, ir.UuidType) else type.octets)
            if isinstance(type, ir.BooleanType):
                right = right and int.from_bytes(content, type.order) in (0, 1)
        case ir.IntegerType(octets=octets, order=order, signed=signed):
            members = {value for one in protocol.enums if one.name == type.enum for _, value in one.members}
            members = set() if type.open else members | set(type.values)
            right = len(content) == octets and (
                not members or int.from_bytes(content, order, signed=signed) in members
            )
        case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
            right = len(content) >= minimum and (maximum is None or len(content) <= maximum)
            right = right and (length.kind != "fixed" or len(content) == length.octets)
        case ir.JsonType():
            right = is_utf8(content)
        case ir.TextType(length=length, padding=str()):
            right = is_utf8(content) and len(content) <= length.octets
        case ir.TextType(length=length, terminated=terminated):
            right = is_utf8(content) and not (terminated and b"\0" in content)
            right = right and (length.kind != "fixed" or len(content) == length.octets)
        case _:
            raise NotImplementedError(type)
    if not right:
        raise Refused("not a value of the type")


def is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
