"""Messages written from the IR with the place of each of their pieces: what an error must say of a frame cut short.

Nothing of the codecs takes part. A message has every part that it can have, two entries in each list, and values
of as many octets as show where one ends. Each frame is a list of `Piece`s in wire order; `fault` says which of
them a cut goes through, by rules that a user can be told:

- what is cut is named with the octet where it begins; a text or octet string behind its length begins there;
- a count of more entries than there are octets left is wrong itself, and so is a size of more octets than are left;
- what fills a frame may be shorter; it is at fault only where the rest of it is no value, and a frame of a stack
  that is empty ends it, so that those behind it are too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from specwire.generator import ir

ENTRIES = 2
"""Of each list and dictionary."""


@dataclass(frozen=True)
class Piece:
    """Octets that stand or fall together, and the path of the field that they belong to."""

    path: str
    octets: bytes
    entries: int = 0
    """They are a count of so many entries."""
    sizes: bool = False
    """They are the size of all that follows."""
    open: int | None = None
    """They may be shorter, of so many octets at least."""
    ends: bool = False
    """The frame may end before them."""
    stacked: bool = False
    """They are a frame of a stack, which an empty one ends."""
    of: str = "octets"
    """What they are: ``constant``, ``text``, ``member`` (of an enumeration), ``pair``, or just octets."""
    whole: bool = False
    """They are a word, which is looked at as a whole: its fault is at the frame's first octet."""


@dataclass(frozen=True)
class Fault:
    """The field that a cut frame must be refused for, and the octet; neither where it is the number of frames."""

    field: str | None
    offset: int | None


Frame = tuple[Piece, ...]


def written(protocol: ir.Protocol, message: ir.Message) -> Iterator[list[Frame]]:
    """Yield messages that have every part, once for each reading of a frame that has several."""
    readings = _readings(message)
    for number in range(max(map(len, readings.values()), default=1)):
        left_out = {
            part for several in readings.values() for part in several[:number] + several[number + 1 :]
        }
        parts = [part for part in message.parts if part.name not in left_out]
        yield [frame for part in parts for frame in _part(protocol, part, _bits(parts))]


def octets_of(frame: Frame) -> bytes:
    """Return the octets of a frame."""
    return b"".join(piece.octets for piece in frame)


def fault(frame: Frame, length: int) -> Fault | None:
    """Return what is wrong with a frame of which only `length` octets are left; None where that is a frame, too."""
    starts = accumulate((len(piece.octets) for piece in frame), initial=0)
    for piece, start in zip(frame, starts, strict=False):
        end = start + len(piece.octets)
        if piece.ends and length == start:
            return None
        if piece.stacked and not length:
            return Fault(None, None)
        if piece.open is not None:
            return Fault(piece.path, start) if length - start < piece.open else None
        if length < end:
            return Fault(piece.path, 0 if piece.whole else start)
        if piece.entries > length - end or piece.sizes:
            return Fault(piece.path, start)
    return None


def _readings(message: ir.Message) -> dict[int, list[str]]:
    """For each mask of flags that announces several parts, their names: a message has one of them."""
    masks: dict[int, list[str]] = {}
    for part in message.parts:
        if not isinstance(part, ir.Rest) and isinstance(part.presence, ir.Announced):
            masks.setdefault(part.presence.mask, []).append(part.name)
    return {mask: names for mask, names in masks.items() if len(names) > 1}


def _bits(parts: list[ir.Part]) -> int:
    presences = [part.presence for part in parts if not isinstance(part, ir.Rest)]
    return sum(presence.value for presence in presences if not isinstance(presence, ir.Counted))


def _part(protocol: ir.Protocol, part: ir.Part, bits: int) -> Iterator[Frame]:
    if isinstance(part, ir.Frame):
        if len(part.fields) == 1 and isinstance(part.fields[0].type, ir.KeywordType | ir.ConstantType):
            (piece,) = _field(protocol, part.fields[0], bits)
            yield (replace(piece, whole=True),)
        else:
            yield _sized(tuple(piece for field in part.fields for piece in _field(protocol, field, bits)))
        return
    stacked = isinstance(part, ir.Stack)
    for number in range(ENTRIES):
        pieces = _value(protocol, part.field.type, f"{part.field.name}[{number}]")
        yield tuple(replace(piece, stacked=stacked) for piece in pieces)
    if stacked:
        yield ()


def _sized(frame: Frame) -> Frame:
    """The frame with its sizes filled in."""
    lengths = [len(piece.octets) for piece in frame]
    return tuple(
        replace(piece, octets=sum(lengths[number + 1 :]).to_bytes(lengths[number], "big"))
        if piece.sizes
        else piece
        for number, piece in enumerate(frame)
    )


def _field(protocol: ir.Protocol, field: ir.Field, bits: int) -> Iterator[Piece]:
    if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
        yield Piece(field.name, bytes((bits,)))
        return
    if isinstance(field.type, ir.SizeType):
        form = field.type.forms[0]
        yield Piece(field.name, bytes.fromhex(form.tag))
        yield Piece(field.name, bytes(form.octets), sizes=True)
        return
    for number, piece in enumerate(_value(protocol, field.type, field.name)):
        yield replace(piece, ends=field.optional and not number)


def _value(protocol: ir.Protocol, type: ir.Type, path: str) -> Iterator[Piece]:
    match type:
        case ir.ConstantType():
            yield Piece(path, type.octets, of="constant")
        case ir.KeywordType(options=options):
            yield Piece(path, options[0].encode(), of="constant")
        case ir.IntegerType(enum=enum, values=values):
            yield Piece(path, _integer(protocol, type), of="member" if enum or values else "octets")
        case ir.PaddingType(octets=octets):
            yield Piece(path, bytes(octets))
        case ir.JsonType():
            yield Piece(path, b"{ }", open=0, of="text")
        case ir.TextType():
            yield from _spanned(type.length, "text", b"abc", 0, path)
        case ir.OctetsType(minimum=minimum):
            yield from _spanned(type.length, "octets", b"xyz", minimum, path)
        case ir.ListType(count_octets=octets, element=element):
            yield Piece(path, ENTRIES.to_bytes(octets, "big"), entries=ENTRIES)
            for number in range(ENTRIES):
                yield from _value(protocol, element, f"{path}[{number}]")
        case ir.PairsType():
            yield from _pairs(protocol, type, path)
        case _:
            raise NotImplementedError(type)


def _integer(protocol: ir.Protocol, type: ir.IntegerType) -> bytes:
    members = [value for enum in protocol.enums if enum.name == type.enum for _, value in enum.members]
    return (*members, *type.values, 1)[0].to_bytes(type.octets, "big")


def _spanned(length: ir.Length, of: str, octets: bytes, minimum: int, path: str) -> Iterator[Piece]:
    match length.kind:
        case "prefix":
            yield Piece(path, len(octets).to_bytes(length.octets, "big"))
            yield Piece(path, octets, of=of)
        case "fixed":
            yield Piece(path, (octets * length.octets)[: length.octets], of=of)
        case "rest":
            yield Piece(path, octets, open=minimum, of=of)
        case "until":
            yield Piece(path, octets, of=of)


def _pairs(protocol: ir.Protocol, type: ir.PairsType, path: str) -> Iterator[Piece]:
    if type.count_octets:
        yield Piece(path, ENTRIES.to_bytes(type.count_octets, "big"), entries=ENTRIES)
    for number in range(ENTRIES):
        entry = f"{path}[{number}]"
        if type.value is None:
            yield from _spanned(type.name.length, "pair", b"a=b", 0, entry)
            continue
        pieces = [
            *_value(protocol, type.name, f"{entry}.name"),
            *_value(protocol, type.value, f"{entry}.value"),
        ]
        for at, piece in enumerate(pieces):
            yield replace(piece, ends=not type.count_octets and not at)
