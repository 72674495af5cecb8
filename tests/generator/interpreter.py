"""A naive interpreter of the IR: messages to frames and back, as the IR's docstrings say.

It shares nothing with the emitters and is written for reading, not for speed. A value is its *content*: the
octets without their length prefix, padding or terminating NUL; a tuple of the contents of entries; for a record
the contents of its fields by name, for one of several records `Chosen`; an int for a number whose octets vary,
for bits, and for what is only there or not; None for what is left out. So a text and an octet string of the same octets have the same content, and so have an
integer and the octets it is made of.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

import msgspec

from specwire.generator import ir

Content: TypeAlias = "bytes | int | tuple[Content, ...] | Mapping[str, Content] | Chosen | None"
Contents = Mapping[str, Content]
Counts: TypeAlias = "dict[str, list[tuple[ir.Field, int]]]"
"""For the first of the fields that are counted together: the fields that count them, and the numbers."""


@dataclass
class Read:
    """What is known of a run that is read: the octets of each field, the numbers of fields, and the bits."""

    spans: dict[str, bytes]
    numbers: dict[str, int]
    integer: int = 0


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
    protocol = with_levels(protocol)
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
            delimiter = bytes.fromhex(part.delimiter)
            if delimiter in octets:
                raise Refused("a frame that ends the stack")
            octets.append(delimiter)
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
    protocol = with_levels(protocol)
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
            delimiter = bytes.fromhex(part.delimiter)
            if delimiter not in left:
                raise Refused("no frame ends the stack")
            end = left.index(delimiter)
            contents[part.field.name] = tuple(
                read_all(protocol, part.field.type, frame) for frame in left[:end]
            )
            if any(text_of(part.field.type, delimiter, frame) for frame in left[:end]):
                raise Refused("a frame of the stack holds what ends it")
            del left[: end + 1]
        elif not left:
            raise Refused("a frame is missing")
        else:
            contents |= read_run(protocol, part.fields, left.pop(0))
    if left:
        raise Refused("frames are left over")
    return message, contents


def called(protocol: ir.Protocol, frames: Sequence[bytes]) -> ir.Message:
    """The message that the selectors find, or whose shape the frames have."""
    if not protocol.selectors:
        return shaped(protocol, frames)
    found = b""
    for selector in protocol.selectors:
        if not -len(frames) <= selector.frame < len(frames):
            raise Refused("a frame is missing")
        frame = frames[selector.frame]
        if selector.pattern:
            return longest_pattern(protocol, frame)
        found += frame if selector.octets is None else frame[: selector.octets]
    found = found.lower() if protocol.folded else found
    for message in protocol.messages:
        if found.hex() in message.tags:
            return message
    raise Refused("no message has that tag")


def shaped(protocol: ir.Protocol, frames: Sequence[bytes]) -> ir.Message:
    """The message with the shape that fits and fixes most octets."""
    fitting = []
    for message in protocol.messages:
        for shape in message.shapes:
            enough = shape.least <= len(frames) and (shape.most is None or len(frames) <= shape.most)
            if enough and all(
                begins(protocol, head, frame) for head, frame in zip(shape.frames, frames, strict=False)
            ):
                octets = sum(2 * len(head.octets.replace("?", "")) + head.whole for head in shape.frames)
                fitting.append((octets, message))
    if not fitting:
        raise Refused("no message has that shape")
    return max(fitting, key=lambda row: row[0])[1]


def begins(protocol: ir.Protocol, head: ir.FrameHead, frame: bytes) -> bool:
    found = (frame.lower() if protocol.folded else frame).hex()
    same = all(a in ("?", b) for a, b in zip(head.octets, found, strict=False))
    return same and (len(found) == len(head.octets) if head.whole else len(found) >= len(head.octets))


def longest_pattern(protocol: ir.Protocol, frame: bytes) -> ir.Message:
    frame = frame.lower() if protocol.folded else frame
    fitting = []
    for message in protocol.messages:
        for pattern in message.tags:
            found = frame.hex()[: len(pattern)]
            if len(found) == len(pattern) and all(a in ("?", b) for a, b in zip(pattern, found, strict=True)):
                fitting.append((len(pattern), message))
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
    omitted = omitted_options(fields, contents)
    for number, field in enumerate(fields):
        behind = valued(fields[number:])
        if field.optional and behind and all(contents.get(later.name) is None for later in behind):
            break
        if field.name in omitted:
            continue
        content = contents.get(field.name)
        match field.type:
            case ir.SizeType():
                octets = write_run(protocol, fields[number + 1 :], contents)
                behind_size = with_size(field.type, octets)
                break
            case ir.CounterType() | ir.ChecksumType() | ir.PaddingType() | ir.BitType() | ir.PresentType():
                written[field.name] = b""
                continue
        if content is None and not field.implied:
            raise Refused("a value is missing")
        written[field.name] = write(protocol, field.type, content)
        if field.optional and not written[field.name]:
            raise Refused("as good as left out")
    derive(protocol, fields, contents, written)
    for group in options_of(fields):
        octets = b"".join(written.get(field.name, b"") for field in group)
        if kind_of(group) == "left" and option_is_there(group, contents) and not octets:
            raise Refused("as good as left out")
    return b"".join(written.values()) + (behind_size or b"")


# Options


def option_of(fields: Sequence[ir.Field], number: int) -> list[ir.Field]:
    """The fields from `number` on with the option of that one."""
    option = fields[number].option
    return list(takewhile(lambda field: field.option == option, fields[number:]))


def options_of(fields: Sequence[ir.Field]) -> Iterator[list[ir.Field]]:
    """The fields of each option, up to a size, behind which is another run."""
    before: ir.Option | None = None
    for number, field in enumerate(fields):
        if isinstance(field.type, ir.SizeType):
            return
        if field.option is not None and field.option != before:
            yield option_of(fields, number)
        before = field.option


def kind_of(group: Sequence[ir.Field]) -> str:
    return "" if group[0].option is None else group[0].option.kind


def option_is_there(group: Sequence[ir.Field], contents: Contents) -> bool:
    """Whether the fields of an option are there: by whether it says so, or by whether it has values."""
    for field in group:
        if isinstance(field.type, ir.PresentType):
            return bool(contents.get(field.name))
    return any(contents.get(field.name) is not None for field in group if not field.implied)


def omitted_options(fields: Sequence[ir.Field], contents: Contents) -> set[str]:
    """The fields that are not there; refuse options that are half there, not as a number says, or behind one
    that is left out."""
    omitted: set[str] = set()
    announced: dict[str, bool] = {}
    ended = False
    for group in options_of(fields):
        option = group[0].option
        assert option is not None
        there = option_is_there(group, contents)
        for field in group:
            valued = not isinstance(field.type, ir.PresentType) and not field.implied
            if valued and (contents.get(field.name) is not None) != there:
                raise Refused("a value is missing")
        if option.kind == "left":
            if there and ended:
                raise Refused("behind one that is left out")
            ended = not there
        if option.kind == "number":
            (number,) = (field for field in fields if field.name == option.field)
            if isinstance(number.type, ir.BitType) and number.type.announces:
                value: int | None = int(announced.setdefault(number.name, there))
            else:
                content = contents.get(number.name)
                value = None if content is None else number_in(number.type, content)
            if there != (value is not None and number_fits(option, value)):
                raise Refused("not what the number says")
        omitted |= set() if there else {field.name for field in group}
    return omitted


def number_fits(option: ir.Option, number: int) -> bool:
    return (number & option.mask if option.mask else number) in option.values


def number_in(type: ir.Type, content: Content) -> int:
    if isinstance(content, int):
        return content
    assert isinstance(type, ir.IntegerType) and isinstance(content, bytes)
    return int.from_bytes(content, type.order, signed=type.signed)


# Bits


def bits_of(field: ir.Field) -> ir.BitType | None:
    type = field.type.number if isinstance(field.type, ir.CounterType) else field.type
    return type if isinstance(type, ir.BitType) else None


def write_bits(
    protocol: ir.Protocol,
    fields: Sequence[ir.Field],
    contents: Contents,
    written: dict[str, bytes],
    counts: Mapping[str, int],
) -> None:
    """Fill in the integers that are made of bits; the first of the bits has all the octets."""
    integer, first = 0, None
    for field in fields:
        bits = bits_of(field)
        if bits is None or field.name not in written:
            continue
        first = first or field.name
        value = 0
        if bits.constant is not None:
            value = bits.constant
        elif bits.announces:
            named = [
                group for group in options_of(fields)
                if group[0].option is not None and group[0].option.field == field.name
            ]  # fmt: skip
            value = int(option_is_there(named[0], contents))
        elif isinstance(field.type, ir.CounterType):
            value = counts[field.name]
        elif not bits.spare:
            content = contents.get(field.name)
            if content is None:
                raise Refused("a value is missing")
            value = number_in(bits, content)
            check_bits(protocol, bits, value)
        if not 0 <= value < 2**bits.width:
            raise Refused("too large")
        integer += value << bits.shift
        if not bits.shift:
            written[first] = integer.to_bytes(bits.octets, bits.order)
            integer, first = 0, None


def check_bits(protocol: ir.Protocol, bits: ir.BitType, value: int) -> None:
    allowed = members(protocol, bits)
    if allowed and value not in allowed:
        raise Refused("not a value of the type")


def members(protocol: ir.Protocol, type: ir.IntegerType | ir.BitType) -> set[int]:
    """The values that are allowed; none if all are."""
    named = {value for one in protocol.enums if one.name == type.enum for _, value in one.members}
    return set() if type.open else named | set(type.values)


# What follows from the rest


def derive(
    protocol: ir.Protocol, fields: Sequence[ir.Field], contents: Contents, written: dict[str, bytes]
) -> None:
    """Fill in counters, then bits, padding and checksums."""
    there = [field for field in fields if field.name in written]
    counts: dict[str, int] = {}
    for field in there:
        bits = bits_of(field)
        if bits is not None and bits.shift + bits.width == 8 * bits.octets:
            written[field.name] = bytes(bits.octets)
    for field in there:
        if isinstance(field.type, ir.CounterType):
            number = field.type.plus + counted(field.type, fields, contents, written)
            counts[field.name] = number
            if not isinstance(field.type.number, ir.BitType):
                written[field.name] = write_number(field.type.number, number)
    write_bits(protocol, fields, contents, written, counts)
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
    return sum(sums) + sum(len(written.get(name, b"")) for name in type.counts)


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
    read = Read({}, {})
    contents, octets = read_region(protocol, fields, octets, {}, read)
    verify(fields, read.spans)
    return contents, octets


def read_region(
    protocol: ir.Protocol, fields: Sequence[ir.Field], octets: bytes, known: Counts, run: Read
) -> tuple[dict[str, Content], bytes]:
    """Return the contents of fields behind the counters `known`; add what is found to `run`."""
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
        # The widest region comes first. A region whose number does not belong to an option contains the option.
        regions = sorted(counts.get(field.name, []), key=lambda one: len(counted_by(one[0])))
        others, widest = regions[:-1], regions[-1] if regions else None
        region = None if not others and counts_itself(field.type) else widest
        begins_option = number == 0 or fields[number - 1].option != field.option
        option = field.option if region is None or region[0].option == field.option else None
        if option and begins_option and not option_fits(option, octets, run.numbers):
            group = option_of(fields, number)
            contents |= {one.name: 0 if isinstance(one.type, ir.PresentType) else None for one in group}
            skipped |= {one.name for one in group}
            continue
        if region is not None:
            counter, size = region
            inside, octets = take(octets, size)
            together = [
                msgspec.structs.replace(other, option=None) if other.option == counter.option else other
                for other in fields
                if other.name in counted_by(counter)
            ]
            found_inside, rest = read_region(protocol, together, inside, {**counts, field.name: others}, run)
            if rest:
                raise Refused("octets are left over")
            contents |= found_inside
            skipped |= set(counted_by(counter))
            continue
        bits = bits_of(field)
        match field.type:
            case ir.SizeType():
                inside, octets = sized(field.type, octets)
                return contents | read_run(protocol, fields[number + 1 :], inside), octets
            case ir.PresentType():
                contents[field.name] = 1
            case ir.BitType(spare=spare, constant=constant):
                found, octets = read_bits(field.type, octets, run)
                if not spare:
                    check_bits(protocol, field.type, found)
                if constant not in (None, found):
                    raise Refused("another constant")
                contents[field.name] = run.numbers[field.name] = found
            case ir.CounterType(number=of, plus=plus, counts=names):
                if isinstance(of, ir.BitType):
                    found, octets = read_bits(of, octets, run)
                else:
                    found, octets = read_number(of, octets)
                run.numbers[field.name] = found
                if found < plus:
                    raise Refused("less than nothing")
                counts[names[0]] = [*counts.get(names[0], []), (field, found - plus)]
            case ir.PaddingType(multiple=multiple) if multiple:
                octets = take(octets, -(total - len(octets)) % multiple)[1]
            case ir.ListType() | ir.PairsType() if widest is not None:
                contents[field.name], octets = read_many(protocol, field.type, octets, widest[1])
            case ir.TextType() | ir.OctetsType() if widest is not None:
                inside, octets = take(octets, widest[1])
                check(protocol, field.type, inside)
                contents[field.name] = inside
            case ir.ChecksumType(number=of):
                octets = read_number(of, octets)[1]
            case _:
                content, octets = read(protocol, field.type, octets)
                contents[field.name] = content
                if isinstance(field.type, ir.IntegerType | ir.VarintType | ir.DigitsType):
                    run.numbers[field.name] = number_in(field.type, content)
        if bits is None or bits.shift + bits.width == 8 * bits.octets:
            run.spans[field.name] = before[: len(before) - len(octets)]
    return contents, octets


def counted_by(counter: ir.Field) -> tuple[str, ...]:
    assert isinstance(counter.type, ir.CounterType)
    return counter.type.counts


def counts_itself(type: ir.Type) -> bool:
    """Whether a number counts the octets or the items of a value, rather than those of a region."""
    match type:
        case ir.ListType(counted=counted) | ir.PairsType(counted=counted):
            return counted
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return length.kind == "counted"
    return False


def option_fits(option: ir.Option, octets: bytes, numbers: Mapping[str, int]) -> bool:
    """Whether the fields of an option are there."""
    match option.kind:
        case "left":
            return len(octets) > option.left
        case "octets":
            wanted = bytes.fromhex(option.octets)
            return same_head(wanted, octets, folded=option.folded)
        case "number":
            return option.field in numbers and number_fits(option, numbers[option.field])


def same_head(head: bytes, octets: bytes, *, folded: bool) -> bool:
    if folded:
        head, octets = head.lower(), octets[: len(head)].lower()
    return octets.startswith(head)


def read_bits(bits: ir.BitType, octets: bytes, run: Read) -> tuple[int, bytes]:
    """Return the number in some bits; the first of an integer take its octets."""
    if bits.shift + bits.width == 8 * bits.octets:
        head, octets = take(octets, bits.octets)
        run.integer = int.from_bytes(head, bits.order)
    return run.integer >> bits.shift & (2**bits.width - 1), octets


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
        case ir.ListType() | ir.PairsType():
            octets = [write_item(protocol, type, item) for item in items(content)]
            if type.until and any(item.startswith(bytes.fromhex(type.until)) for item in octets):
                raise Refused("an item that begins as what ends the items")
            return b"".join([count(type, content), *octets])
        case ir.EnclosingType(name=name):
            return write(protocol, named_type(protocol, name), content)
        case ir.RecordType(fields=fields):
            assert isinstance(content, Mapping)
            return write_run(deeper(protocol), fields, content)
        case ir.UnionType(options=options):
            assert isinstance(content, Chosen)
            for option in options:
                if option.name == content.option:
                    return write(protocol, option, content.contents)
            raise Refused("no such option")
    assert isinstance(content, bytes)
    check(protocol, type, content)
    if isinstance(type, ir.TextType) and type.length.kind == "until":
        until = bytes.fromhex(type.length.until)
        if (content + until).index(until) != len(content):
            raise Refused("the end of the text in it")
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
    of = ir.count_of(type)
    return b"" if of is None else write_number(of, number)


def write_item(protocol: ir.Protocol, type: ir.ListType | ir.PairsType, item: Content) -> bytes:
    if isinstance(type, ir.ListType):
        octets = write(protocol, type.element, item)
    else:
        octets = write_pair(protocol, type, item)
    return bytes.fromhex(type.before) + octets + bytes.fromhex(type.after)


def write_pair(protocol: ir.Protocol, type: ir.PairsType, pair: Content) -> bytes:
    name, value = items(pair)
    if type.value is not None:
        between = bytes.fromhex(type.between)
        return write(protocol, type.name, name) + between + write(protocol, type.value, value)
    assert isinstance(name, bytes) and isinstance(value, bytes)
    if b"=" in (name if type.split == "first" else value):
        raise Refused("divided elsewhere")
    return write(protocol, type.name, name + b"=" + value)


def prefix(type: ir.Type, content: bytes) -> bytes:
    if not isinstance(type, ir.TextType | ir.OctetsType) or type.length.kind != "prefix":
        return b""
    assert type.length.prefix is not None
    return write_number(type.length.prefix, len(content))


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
        case ir.EnclosingType(name=name):
            return read(protocol, named_type(protocol, name), octets)
        case ir.RecordType(fields=fields):
            return read_fields(deeper(protocol), fields, octets)
        case ir.UnionType(options=options, tags=tags, folded=folded):
            # Of two tags that fit, the longer is the right one.
            for tag, option in sorted(zip(tags, options, strict=True), key=lambda row: -len(row[0])):
                if same_head(bytes.fromhex(tag), octets, folded=folded):
                    contents, octets = read_fields(deeper(protocol), option.fields, octets)
                    return Chosen(option.name, contents), octets
            raise Refused("no option has that tag")
    size, octets = size_of(type, octets)
    content, octets = take(octets, size)
    if isinstance(type, ir.TextType) and type.padding is not None:
        content = content.rstrip(bytes.fromhex(type.padding))
    if isinstance(type, ir.TextType) and type.terminated:
        content = content.removesuffix(b"\0")
    if isinstance(type, ir.KeywordType) and type.folded:
        words = [option.encode() for option in type.options]
        content = next((word for word in words if word.lower() == content.lower()), content)
    check(protocol, type, content)
    return one_nan(type, content) if isinstance(type, ir.FloatType) else content, octets


# Values inside themselves


def with_levels(protocol: ir.Protocol) -> ir.Protocol:
    """The protocol with one more than the records that may yet contain each other; 0 for no limit."""
    return msgspec.structs.replace(protocol, max_depth=protocol.max_depth + (protocol.max_depth > 0))


def deeper(protocol: ir.Protocol) -> ir.Protocol:
    """The protocol inside a record."""
    if protocol.max_depth == 1:
        raise Refused("too many records inside each other")
    return msgspec.structs.replace(protocol, max_depth=max(protocol.max_depth - 1, 0))


def named_type(protocol: ir.Protocol, name: str) -> ir.Type:
    """The record of the class, or the union, of that name."""
    for message in protocol.messages:
        for field in message.fields:
            for type in types_in(field.type):
                if isinstance(type, ir.RecordType) and type.class_name == name:
                    return type
                if isinstance(type, ir.UnionType) and type.name == name:
                    return type
    raise KeyError(name)


def types_in(type: ir.Type) -> Iterator[ir.Type]:
    yield type
    match type:
        case ir.ListType(element=element):
            yield from types_in(element)
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from types_in(field.type)
        case ir.UnionType(options=options):
            for option in options:
                yield from types_in(option)


def one_nan(type: ir.FloatType, content: bytes) -> bytes:
    """The octets of a float; those of every NaN are the same."""
    code = ("<" if type.order == "little" else ">") + ("f" if type.octets == 4 else "d")
    (value,) = struct.unpack(code, content)
    return struct.pack(code, math.nan) if math.isnan(value) else content


def read_many(
    protocol: ir.Protocol, type: ir.ListType | ir.PairsType, octets: bytes, number: int | None = None
) -> tuple[Content, bytes]:
    found: list[Content] = []
    until = bytes.fromhex(type.until)
    of = ir.count_of(type)
    if of is not None:
        number, octets = read_number(of, octets)
    while len(found) < number if number is not None else octets and not (until and octets.startswith(until)):
        octets = constant(type.before, octets)
        if isinstance(type, ir.ListType):
            item, octets = read(protocol, type.element, octets)
        else:
            item, octets = read_pair(protocol, type, octets)
        octets = constant(type.after, octets)
        found.append(item)
    if len(found) < type.minimum:
        raise Refused("too few entries")
    return tuple(found), octets


def constant(expected: str, octets: bytes) -> bytes:
    """The octets after a constant."""
    head, octets = take(octets, len(bytes.fromhex(expected)))
    if head.hex() != expected:
        raise Refused("another constant")
    return octets


def read_pair(protocol: ir.Protocol, type: ir.PairsType, octets: bytes) -> tuple[Content, bytes]:
    name, octets = read(protocol, type.name, octets)
    if type.value is not None:
        octets = constant(type.between, octets)
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
    if type.length.kind == "run":
        among = bytes.fromhex(type.length.among)
        return len(octets) - len(octets.lstrip(among)), octets
    assert type.length.prefix is not None
    return read_number(type.length.prefix, octets)


def take(octets: bytes, size: int) -> tuple[bytes, bytes]:
    if len(octets) < size:
        raise Refused("octets are missing")
    return octets[:size], octets[size:]


def text_of(type: ir.Type, content: bytes, frame: bytes) -> bool:
    """Whether a frame has that text, and the NUL behind it that is not written."""
    return isinstance(type, ir.TextType) and type.terminated and frame == content + b"\0"


def check(protocol: ir.Protocol, type: ir.Type, content: bytes) -> None:
    """Refuse content that the type does not have."""
    match type:
        case ir.ConstantType():
            right = content == type.octets
            if type.folded:
                right = content.lower() == type.octets.lower()
        case ir.KeywordType(options=options):
            right = content in [option.encode() for option in options]
        case ir.FloatType() | ir.BooleanType() | ir.UuidType():
            right = len(content) == (16 if isinstance(type, ir.UuidType) else type.octets)
            if isinstance(type, ir.BooleanType):
                right = right and int.from_bytes(content, type.order) in (0, 1)
        case ir.IntegerType(octets=octets, order=order, signed=signed):
            allowed = members(protocol, type)
            right = len(content) == octets and (
                not allowed or int.from_bytes(content, order, signed=signed) in allowed
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
            if length.kind == "run":
                right = right and len(content) >= length.octets
                right = right and set(content) <= set(bytes.fromhex(length.among))
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
