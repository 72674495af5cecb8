"""A naive interpreter of the IR: messages of one frame to octets and back, as the IR's docstrings say.

It shares nothing with the emitters and is written for reading, not for speed. A value is its *content*: the
octets without their length prefix, or a tuple of the contents of entries. So a text and an octet string of
the same octets have the same content, and so have an integer and the octets it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from specwire.generator import ir

Content: TypeAlias = "bytes | tuple[Content, ...]"
Contents = Mapping[str, Content]


class Refused(Exception):
    """The octets are not a message, or the content does not fit the type."""


def encode(protocol: ir.Protocol, message: ir.Message, contents: Contents) -> bytes:
    """Return the frame of `message`; constants need no content."""
    return b"".join(write(protocol, field.type, contents.get(field.name, b"")) for field in message.fields)


def decode(protocol: ir.Protocol, octets: bytes) -> tuple[ir.Message, dict[str, Content]]:
    """Return the message that `octets` are, and its contents.

    Raises:
        Refused: they are none.
    """
    (selector,) = protocol.selectors
    for message in protocol.messages:
        if octets[: selector.octets].hex() in message.tags:
            break
    else:
        raise Refused("no message has that tag")
    contents: dict[str, Content] = {}
    rest = octets
    for field in message.fields:
        contents[field.name], rest = read(protocol, field.type, rest)
    if rest:
        raise Refused("octets are left over")
    return message, contents


def write(protocol: ir.Protocol, type: ir.Type, content: Content) -> bytes:
    """Return `content` as the wire has it."""
    if isinstance(type, ir.ConstantType):
        return type.octets
    if isinstance(type, ir.ListType):
        return count(type.count_octets, content) + b"".join(
            write(protocol, type.element, item) for item in content if not isinstance(item, int)
        )
    if isinstance(type, ir.PairsType):
        found = count(type.count_octets, content)
        for pair in content:
            assert isinstance(pair, tuple) and type.value is not None
            found += write(protocol, type.name, pair[0]) + write(protocol, type.value, pair[1])
        return found
    assert isinstance(content, bytes)
    check(protocol, type, content)
    return prefix(type, content) + content


def count(octets: int, content: Content) -> bytes:
    if not isinstance(content, tuple) or len(content) >= 256**octets:
        raise Refused("too many entries")
    return len(content).to_bytes(octets, "big")


def prefix(type: ir.Type, content: bytes) -> bytes:
    if not isinstance(type, ir.TextType | ir.OctetsType) or type.length.kind != "prefix":
        return b""
    if len(content) >= 256**type.length.octets:
        raise Refused("too long")
    return len(content).to_bytes(type.length.octets, "big")


def read(protocol: ir.Protocol, type: ir.Type, octets: bytes) -> tuple[Content, bytes]:
    """Return the content at the start of `octets`, and the octets after it."""
    if isinstance(type, ir.ListType):
        number, octets = take(octets, type.count_octets)
        items: list[Content] = []
        for _ in range(int.from_bytes(number, "big")):
            item, octets = read(protocol, type.element, octets)
            items.append(item)
        return tuple(items), octets
    if isinstance(type, ir.PairsType):
        assert type.value is not None
        number, octets = take(octets, type.count_octets)
        pairs: list[Content] = []
        for _ in range(int.from_bytes(number, "big")):
            name, octets = read(protocol, type.name, octets)
            value, octets = read(protocol, type.value, octets)
            pairs.append((name, value))
        return tuple(pairs), octets
    size, octets = size_of(type, octets)
    content, octets = take(octets, size)
    check(protocol, type, content)
    return content, octets


def size_of(type: ir.Type, octets: bytes) -> tuple[int, bytes]:
    """Return how many octets the content has, and the octets from its first on."""
    if isinstance(type, ir.ConstantType):
        return len(type.octets), octets
    if isinstance(type, ir.IntegerType):
        return type.octets, octets
    assert isinstance(type, ir.TextType | ir.OctetsType)
    if type.length.kind == "fixed":
        return type.length.octets, octets
    if type.length.kind == "rest":
        return len(octets), octets
    number, octets = take(octets, type.length.octets)
    return int.from_bytes(number, "big"), octets


def take(octets: bytes, size: int) -> tuple[bytes, bytes]:
    if len(octets) < size:
        raise Refused("octets are missing")
    return octets[:size], octets[size:]


def check(protocol: ir.Protocol, type: ir.Type, content: bytes) -> None:
    """Refuse content that the type does not have."""
    match type:
        case ir.ConstantType():
            right = content == type.octets
        case ir.IntegerType(octets=octets, enum=None):
            right = len(content) == octets
        case ir.IntegerType(octets=octets, enum=enum):
            members = {value for one in protocol.enums if one.name == enum for _, value in one.members}
            right = len(content) == octets and int.from_bytes(content, "big") in members
        case ir.OctetsType(length=length, minimum=minimum):
            right = len(content) >= minimum and (length.kind != "fixed" or len(content) == length.octets)
        case ir.TextType(length=length, terminated=False):
            right = is_utf8(content) and (length.kind != "fixed" or len(content) == length.octets)
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
