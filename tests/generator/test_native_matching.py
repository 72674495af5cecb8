"""Bits, conditions, letters of either case, delimiters and nested records in the compiled codec, by hand.

Every message is read and written in C; what is refused gets the errors of the pure codec.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Thread, stack_size
from types import ModuleType
from typing import Any
from zlib import crc32

import pytest

from specwire.generated.builds import PURE
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from tests.generator.layouts import field, message, protocol
from tests.generator.test_native_compile import told, twin
from tests.generator.test_native_values import built, without
from tests.house.repository import has_compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python"),
    pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python"),
]
Fields = tuple[ir.Field, ...]
Rows = list[tuple[str, dict[str, Any], list[bytes]]]
REST, BYTE = ir.OctetsType(ir.Length("rest")), ir.IntegerType(1)
LETTERS = ir.Length("run", 1, among=bytes(range(0x61, 0x7B)).hex())
CRLF = "0d0a"


def word(name: str, text: str, *, folded: bool = False, option: ir.Option | None = None) -> ir.Field:
    constant = ir.ConstantType(text.encode().hex(), text=text, folded=folded)
    return field(name, constant, option=option)


def announced(name: str, value: int = 1, mask: int = 0, number: int = 1) -> ir.Option:
    return ir.Option("number", number, field=name, values=(value,), mask=mask)


def begun(text: bytes, *, folded: bool = False) -> ir.Option:
    return ir.Option("octets", 1, octets=text.hex(), folded=folded)


BITS: Fields = (
    field("version", ir.BitType(2, 14, 2, "little", constant=2)),
    field("spare", ir.BitType(2, 13, 1, "little", spare=True)),
    field("extended", ir.BitType(2, 12, 1, "little", announces=True)),
    field("count", ir.CounterType(ir.BitType(2, 8, 4, "little"), ("sources",))),
    field("marker", ir.BitType(2, 7, 1, "little", boolean=True)),
    field("kind", ir.BitType(2, 0, 7, "little", values=(5, 6))),
    field("size", ir.CounterType(ir.BitType(1, 2, 6), ("text",), 1)),
    field("low", ir.BitType(1, 0, 2)),
    field("sources", ir.ListType(0, ir.IntegerType(4), counted=True)),
    field("text", ir.TextType(ir.Length("counted"))),
    field("profile", ir.IntegerType(2), option=announced("extended")),
    field("length", ir.CounterType(BYTE, ("extension",)), option=announced("extended")),
    field("extension", ir.OctetsType(ir.Length("counted")), option=announced("extended")),
    field("body", REST),
)
OPTIONS: Fields = (
    field("flags", BYTE),
    field("extra", BYTE, option=announced("flags", 0x80, 0x80)),
    field("kind", ir.IntegerType(1, signed=True)),
    field("detail", BYTE, option=announced("kind", -1, number=2)),
    word("mark", ":", option=begun(b":")),
    field("prefix", ir.TextType(ir.Length("until", until="20")), option=begun(b":")),
    word("space", " ", option=begun(b":")),
    field("name", ir.TextType(LETTERS)),
    word("literal", " NoReply", folded=True, option=begun(b" noreply", folded=True)),
    field("quiet", ir.PresentType(), option=begun(b" noreply", folded=True)),
    word("end", "\r\n"),
    field("sum", ir.ChecksumType(ir.IntegerType(4), "crc32", ("detail", "name"))),
    field("more", BYTE, option=ir.Option("left", 3, left=2)),
    field("most", BYTE, option=ir.Option("left", 4, left=2)),
    field("trailer", ir.OctetsType(ir.Length("fixed", 2))),
)  # fmt: skip
NAME, LINE = ir.TextType(ir.Length("until", until="3a20")), ir.TextType(ir.Length("until", until=CRLF))
SHORT = ir.Length("prefix", 1)
LINES: Fields = (
    field("first", ir.TextType(LETTERS)),
    field("others", ir.ListType(0, ir.TextType(LETTERS), before="20", until=CRLF)),
    word("end", "\r\n"),
    field("headers", ir.PairsType(0, NAME, LINE, between="3a20", after=CRLF, until=CRLF)),
    word("end_2", "\r\n"),
    field("settings", ir.PairsType(0, LINE, split="first", after=CRLF, until=CRLF)),
    word("end_3", "\r\n"),
    field("items", ir.PairsType(1, ir.TextType(SHORT), ir.OctetsType(SHORT), before="5b", between="3d", after="5d")),
)  # fmt: skip


def letters(name: str, tag: bytes) -> ir.RecordType:
    fields = field("mark", ir.ConstantType(tag.hex(), folded=True)), field("number", BYTE)
    return ir.RecordType(name.lower(), name, fields)


CHOSEN = ir.UnionType(
    "chosen",
    (letters("Short", b"a"), letters("Longer", b"ab")),
    (b"a".hex(), b"ab".hex()),
    folded=True,
)


def one_frame() -> ir.Protocol:
    """Messages of one frame, told apart by letters in either case; the last has another frame."""
    runs: dict[str, Fields] = {
        "Bits": BITS,
        "Some": OPTIONS,
        "Line": LINES,
        "Pick": (field("chosen", CHOSEN),),
    }
    messages = []
    for number, (tag, fields) in enumerate(runs.items(), 1):
        parts: tuple[ir.Part, ...] = (ir.Frame("all", (word("head", tag, folded=True), *fields)),)
        if tag == "Pick":
            answer = field("answer", ir.KeywordType(("Yes", "NO"), folded=True))
            parts += (ir.Frame("answer", (answer,)),)
        messages.append(message(number, parts, tag.lower().encode().hex()))
    return protocol(tuple(messages), ir.Selector(0, 4), folded=True)


def frames() -> ir.Protocol:
    """A value that contains itself, and frames around a delimiter, told apart by the number of frames."""
    plain = ir.RecordType("plain", "Plain", (field("mark", ir.ConstantType("2b")), field("number", BYTE)))
    counter = field("count", ir.CounterType(BYTE, ("items",)))
    items = field("items", ir.ListType(0, ir.EnclosingType("value"), counted=True))
    many = ir.RecordType("many", "Many", (field("mark", ir.ConstantType("2a")), counter, items))
    value = ir.UnionType("value", (plain, many), ("2b", "2a"))
    stack = ir.Stack("route", field("route", REST), delimiter=b"<|>".hex())
    rest = ir.Rest("buffers", field("buffers", REST))
    header = ir.Frame("header", (field("header", ir.JsonType()),))
    messages = (
        message(1, (ir.Frame("value", (field("value", value),)),), "", (ir.Shape((), 1, 1),)),
        message(2, (stack, header, rest), "", (ir.Shape((), 2, None),)),
    )
    return protocol(messages, None, max_depth=DEPTH)


DEPTH = 256


@pytest.fixture(scope="module")
def package() -> Iterator[ModuleType]:
    with built(one_frame(), "native_matching") as module:
        yield module


@pytest.fixture(scope="module")
def nested() -> Iterator[ModuleType]:
    with built(frames(), "native_nested") as module:
        yield module


def check(package: ModuleType, class_name: str, values: dict[str, Any], frames: list[bytes]) -> None:
    """Both directions are done in C, and by the pure codec alike."""
    found = getattr(package, class_name)(**values)
    with without(package):
        assert [octets.hex(" ") for octets in found.encode()] == [octets.hex(" ") for octets in frames]
        decoded = package.decode(frames)
        assert decoded == found and decoded.encode() == frames
    assert package.codec.decode(frames) == decoded
    assert twin(package, found).encode() == frames


SUM = crc32(b"a").to_bytes(4, "big")
NOTHING = {"extra": None, "detail": None, "prefix": None, "more": None, "most": None}
ROWS: Rows = [
    (
        # 10 0 1 0010 1 0000101 is 0x9285; 4 octets of text + 1 are 000101, and 11 the low bits.
        "Message1",
        {"marker": True, "kind": 5, "low": 3, "sources": (1, 258), "text": "text", "profile": 7,
         "extension": b"ab", "body": b"z"},
        [b"Bits" + bytes.fromhex("8592 17 00000001 00000102") + b"text" + bytes.fromhex("0007 02 6162 7a")],
    ),
    (
        "Message1",
        {"marker": False, "kind": 6, "low": 0, "sources": (), "text": "", "profile": None, "extension": None,
         "body": b""},
        [b"Bits" + bytes.fromhex("0680 04")],
    ),
    (
        "Message2",
        {**NOTHING, "flags": 0, "kind": 0, "name": "a", "quiet": False, "trailer": b"xy"},
        [b"Some\0\0a\r\n" + SUM + b"xy"],
    ),
    (
        "Message2",
        {"flags": 0x81, "extra": 4, "kind": -1, "detail": 9, "prefix": "me", "name": "abc", "quiet": True, "more": 5,
         "most": 6, "trailer": b"xy"},
        [b"Some\x81\4\xff\x09:me abc NoReply\r\n" + crc32(b"\x09abc").to_bytes(4, "big") + b"\5\6xy"],
    ),
    (
        "Message2",
        {**NOTHING, "flags": 1, "kind": 1, "name": "abc", "quiet": False, "more": 5, "trailer": b"xy"},
        [b"Some\x01\x01abc\r\n" + crc32(b"abc").to_bytes(4, "big") + b"\5xy"],
    ),
    (
        "Message3",
        {"first": "get", "others": ("a", "bc"), "headers": (("k", "v: w"), ("n", "")), "settings": (("a", "b=c"),),
         "items": (("k", b"v"), ("", b""))},
        [b"Lineget a bc\r\nk: v: w\r\nn: \r\n\r\na=b=c\r\n\r\n\2[\1k=\1v][\0=\0]"],
    ),
    (
        "Message3",
        {"first": "x", "others": (), "headers": (), "settings": (), "items": ()},
        [b"Linex\r\n\r\n\r\n\0"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("class_name", "values", "frames"), ROWS)
def test_one_frame_by_hand(
    package: ModuleType, class_name: str, values: dict[str, Any], frames: list[bytes]
) -> None:
    check(package, class_name, values, frames)


def test_the_longest_tag_decides(package: ModuleType) -> None:
    check(package, "Message4", {"chosen": package.Short(number=1), "answer": "NO"}, [b"Picka\1", b"NO"])
    check(package, "Message4", {"chosen": package.Longer(number=1), "answer": "Yes"}, [b"Pickab\1", b"Yes"])


@pytest.mark.parametrize(
    ("frames", "again"),
    [
        ([b"pICKaB\1", b"yES"], [b"Pickab\1", b"Yes"]),
        ([b"SOME\0\0a noreply\r\n" + SUM + b"xy"], [b"Some\0\0a NoReply\r\n" + SUM + b"xy"]),
        ([b"bits" + bytes.fromhex("06a0 04")], [b"Bits" + bytes.fromhex("0680 04")]),
    ],
)
def test_what_is_read_but_written_in_another_way(
    package: ModuleType, frames: list[bytes], again: list[bytes]
) -> None:
    """Letters in either case, and bits without meaning."""
    with without(package):
        assert package.decode(frames).encode() == again
    assert package.codec.decode(frames).encode() == again


REFUSED = [
    [b"Bits" + bytes.fromhex("0640 04")],
    [b"Bits" + bytes.fromhex("0780 04")],
    [b"Bits" + bytes.fromhex("0681 04")],
    [b"Bits" + bytes.fromhex("0680 00")],
    [b"Bits" + bytes.fromhex("0680 0c")],
    [b"Bits" + bytes.fromhex("0690 04 00")],
    [b"Some\0\0\r\n" + bytes(4) + b"xy"],
    [b"Some\0\0:me\r\n" + SUM + b"xy"],
    [b"Some\0\0a\r\n" + SUM + b"x"],
    [b"Some\0\0a\r\n" + SUM + b"12xy1"],
    [b"Some\0\0b\r\n" + SUM + b"xy"],
    [b"Linex  a\r\n\r\n\r\n\0"],
    [b"Linex\r\nk: v\r\n"],
    [b"Linex\r\n\r\nab\r\n\r\n\0"],
    [b"Linex\r\n\r\n\r\n\1[\0=\0"],
    [b"Pickb\1", b"no"],
    [b"Picka\1", b"nope"],
]


@pytest.mark.parametrize("frames", REFUSED)
def test_octets_that_are_refused(package: ModuleType, frames: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        package.decode(frames)
    assert told(package.decode, frames) == told(package.codec.decode, frames)


UNFIT = [
    (0, {"kind": 4}), (0, {"kind": 128}), (0, {"low": 4}), (0, {"low": True}), (0, {"marker": 1}),
    (0, {"sources": (1,) * 16}), (0, {"text": "x" * 63}), (0, {"profile": None}), (0, {"extension": None}),
    (3, {"kind": None}), (3, {"kind": 1}), (3, {"flags": 1}), (3, {"extra": None}), (3, {"detail": None}),
    (3, {"more": None}), (3, {"quiet": None}), (3, {"quiet": 1}), (3, {"name": ""}), (3, {"name": "A"}),
    (3, {"prefix": "a b"}), (5, {"first": ""}), (5, {"others": ("",)}), (5, {"others": ("a b",)}),
    (5, {"headers": (("a: ", "b"),)}), (5, {"headers": (("\r\na", "b"),)}), (5, {"headers": (("a", "\r\n"),)}),
    (5, {"settings": (("a=", ""),)}), (5, {"settings": (("a", "\r\n"),)}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "changes"), UNFIT)
def test_values_that_both_builds_refuse(package: ModuleType, row: int, changes: dict[str, Any]) -> None:
    class_name, values, _ = ROWS[row]
    found = getattr(package, class_name)(**(values | changes))
    assert told(found.encode) == told(twin(package, found).encode)
    if changes != {"low": True}:
        with pytest.raises(EncodeError):
            found.encode()


def test_frames_around_a_delimiter(nested: ModuleType) -> None:
    values = {"route": (b"a", b"", b"<|"), "header": "{}", "buffers": (b"x", b"<|>")}
    check(nested, "Message2", values, [b"a", b"", b"<|", b"<|>", b"{}", b"x", b"<|>"])
    check(nested, "Message2", {"route": (), "header": "", "buffers": ()}, [b"<|>", b""])
    for frames in ([b"a", b"{}"], [b"a", b"<|>"]):
        assert told(nested.decode, frames) == told(nested.codec.decode, frames)
    with pytest.raises(EncodeError):
        nested.Message2(**(values | {"route": (b"<|>",)})).encode()


def chain(module: ModuleType, records: int) -> Any:
    """A message with so many records that contain each other."""
    value = module.Plain(number=7)
    for _ in range(records - 1):
        value = module.Many(items=(value,))
    return module.Message1(value=value)


def test_records_in_themselves_up_to_the_limit(nested: ModuleType) -> None:
    many, plain = nested.Many, nested.Plain
    value = many(items=(plain(number=1), many(items=()), plain(number=2)))
    check(nested, "Message1", {"value": value}, [b"*\3+\1*\0+\2"])
    octets = b"*\1" * (DEPTH - 1) + b"+\7"
    with without(nested):
        assert nested.decode([octets]).encode() == chain(nested, DEPTH).encode() == [octets]
    assert told(chain(nested, DEPTH + 1).encode) == told(chain(nested.codec, DEPTH + 1).encode)
    with pytest.raises(EncodeError, match=f"at most {DEPTH} values inside each other"):
        chain(nested, DEPTH + 1).encode()
    deeper = [b"*\1" + octets]
    assert told(nested.decode, deeper) == told(nested.codec.decode, deeper)


def test_hostile_depth_on_a_small_stack(nested: ModuleType) -> None:
    """Octets that nest values without end are refused, with 512 KiB of stack, too."""
    found: list[Any] = []
    frames = [b"*\1" * 100_000]
    before = stack_size(512 * 1024)
    try:
        thread = Thread(target=lambda: found.append(told(nested.decode, frames)))
        thread.start()
        thread.join(timeout=60)
    finally:
        stack_size(before)
    assert found[0][1]["kind"] == "limit"
