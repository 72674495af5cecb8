"""Columns of numbers of every coding, UUIDs, counters, trailers, padding and checksums.

Octets and values are written by hand; those of 7-bit groups are the examples of the documentation of protocol
buffers and of Wikipedia's article on LEB128. Each is decoded and encoded, and no row may need the row codec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from specwire.generated.columns import COMMON, UINT64
from specwire.generated.columns.decoding import ColumnDecoder
from specwire.generated.columns.encoding import encode_columns
from specwire.generated.layout import (
    Boolean,
    Checksum,
    Coding,
    Constant,
    Counter,
    Digits,
    Float,
    Frame,
    Integer,
    ListOf,
    MessageLayout,
    Octets,
    Padding,
    ProtocolLayout,
    Span,
    Text,
    Type,
    Uuid,
    Varint,
)
from tests.generated.column_agreement import FRAMES, column_build
from tests.generated.test_columns_layouts import NotReadTogether, field, refuse

COUNTED = Span("counted")
SPACE = ("space", Constant(b" ", "' '"), None)
TOP = 2**64 - 1
Fields = Sequence[tuple[str, Type, pa.DataType | None]]


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both builds of the column codec."""
    with column_build(request.param):
        yield


class Codec:
    """Columns of one message: the octet 07, then some fields."""

    def __init__(self, *fields: tuple[str, Type, pa.DataType | None]) -> None:
        parts = field("id", Constant(b"\7", "0x07")), *(field(name, type) for name, type, _ in fields)
        entry = MessageLayout("M", "M", ((b"\7",),), (Frame("M", parts),))
        self.layout = ProtocolLayout("hand", "Hand v1", ((0, 1),), (entry,))
        self.type = pa.struct([pa.field(name, arrow) for name, _, arrow in fields if arrow is not None])
        schema = pa.schema([*COMMON, pa.field("M", self.type)])
        self.decoder = ColumnDecoder(schema, self.layout, refuse, {})

    def decode(self, *frames: bytes) -> list[Any]:
        batch = self.decoder.decode(pa.array([[b"\7" + frame] for frame in frames], FRAMES))
        batch.validate(full=True)
        found: list[Any] = batch.column("M").to_pylist()
        return found

    def encode(self, *rows: dict[str, Any]) -> list[bytes]:
        batch = pa.record_batch({"M": pa.array(rows, self.type)})
        found: Any = encode_columns(batch, self.layout, ModuleType("classes"))
        found.validate(full=True)
        return [frame[1:] for (frame,) in found.to_pylist()]


def check(codec: Codec, rows: Sequence[tuple[bytes, dict[str, Any]]]) -> None:
    """Check rows together in both directions."""
    assert codec.decode(*(octets for octets, _ in rows)) == [values for _, values in rows]
    assert codec.encode(*(values for _, values in rows)) == [octets for octets, _ in rows]


def check_refused(codec: Codec, *frames: bytes) -> None:
    """Check that each frame is left to the row codec."""
    for frame in frames:
        with pytest.raises(NotReadTogether):
            codec.decode(frame)


NUMBERS: list[tuple[Coding, pa.DataType, list[tuple[bytes, Any]]]] = [
    (Integer(2, order="little"), pa.int32(), [(b"\1\2", 513), (b"\xff\0", 255)]),
    (Integer(3, order="little"), pa.int32(), [(b"\1\2\3", 0x030201), (b"\xff\xff\xff", 2**24 - 1)]),
    (Integer(8, order="little"), UINT64, [(b"\1" + b"\0" * 7, Decimal(1)), (b"\xff" * 8, Decimal(TOP))]),
    (Integer(1, signed=True), pa.int8(), [(b"\x80", -128), (b"\x7f", 127), (b"\xff", -1)]),
    (Integer(3, signed=True), pa.int32(), [(b"\xff\xff\xfe", -2), (b"\x80\0\0", -(2**23)), (b"\0\0\5", 5)]),
    (Integer(3, order="little", signed=True), pa.int32(), [(b"\xfe\xff\xff", -2), (b"\5\0\0", 5)]),
    (Integer(8, signed=True), pa.int64(), [(b"\x80" + b"\0" * 7, -(2**63)), (b"\xff" * 8, -1)]),
    (Integer(2, (-1, 3), signed=True), pa.int16(), [(b"\xff\xff", -1), (b"\0\3", 3)]),
    (Float(4), pa.float32(), [(b"\x3f\xc0\0\0", 1.5), (b"\x80\0\0\0", -0.0), (b"\x7f\x80\0\0", float("inf"))]),
    (Float(8, order="little"), pa.float64(), [(b"\0\0\0\0\0\0\xf8\xbf", -1.5), (bytes(8), 0.0)]),
    (Boolean(), pa.bool_(), [(b"\0", False), (b"\1", True)]),
    (Boolean(2, order="little"), pa.bool_(), [(b"\0\0", False), (b"\1\0", True)]),
    (Varint(), UINT64, [(b"\x96\1", Decimal(150)), (b"\xac\2", Decimal(300)), (b"\xe5\x8e\x26", Decimal(624485)),
                        (b"\0", Decimal(0)), (b"\xff" * 9 + b"\1", Decimal(TOP))]),
    (Varint("big"), UINT64, [(b"\x81\0", Decimal(128)), (b"\x7f", Decimal(127)), (b"\xff\x7f", Decimal(16383)),
                             (b"\x81" + b"\xff" * 8 + b"\x7f", Decimal(TOP))]),
    (Varint(signed="zigzag"), pa.int64(), [(b"\0", 0), (b"\1", -1), (b"\2", 1), (b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
                                           (b"\xff" * 9 + b"\1", -(2**63))]),
    (Varint(signed="complement"), pa.int64(), [(b"\xc0\xbb\x78", -123456), (b"\x7f", -1), (b"\xc0\0", 64),
                                               (b"\x3f", 63), (b"\x80" * 9 + b"\x7f", -(2**63))]),
    (Digits(), UINT64, [(b"0", Decimal(0)), (b"42", Decimal(42)), (b"18446744073709551615", Decimal(TOP))]),
    (Digits(16, 2, 4), pa.int64(), [(b"ff", 255), (b"0a", 10), (b"beef", 0xBEEF)]),
    (Digits(10, 3, 3), pa.int64(), [(b"007", 7), (b"999", 999)]),
    (Digits(10, 1, 19, True), pa.int64(), [(b"-7", -7), (b"9223372036854775807", 2**63 - 1)]),
    (Digits(10, 1, 19, True), pa.int64(), [(b"-9223372036854775808", -(2**63)), (b"0", 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("coding", "arrow", "rows"), NUMBERS, ids=str)
def test_numbers(coding: Coding, arrow: pa.DataType, rows: list[tuple[bytes, Any]]) -> None:
    """A number, then a space: alone, and as the items of a list."""
    codec = Codec(("n", coding, arrow), SPACE)
    check(codec, [(octets + b" ", {"n": value}) for octets, value in rows])
    if not isinstance(coding, Digits) or coding.minimum == coding.maximum:
        numbers = Codec(("l", ListOf(1, coding), pa.list_(arrow)))
        every = bytes((len(rows),)) + b"".join(octets for octets, _ in rows)
        check(numbers, [(every, {"l": [value for _, value in rows]}), (b"\0", {"l": []})])


@pytest.mark.parametrize(
    ("coding", "frames"),
    [
        (Boolean(), [b"\2 ", b" "]),
        (Integer(2, (-1, 3), signed=True), [b"\0\1 "]),
        (Varint(), [b"\xff" * 9 + b"\2 ", b"\x80", b"\x80" * 10 + b"\0 "]),
        (Varint(maximum=2), [b"\x80\x80\0 "]),
        (Varint("big"), [b"\x82" + b"\xff" * 8 + b"\x7f "]),
        (Varint(signed="complement"), [b"\x80" * 9 + b"\1 "]),
        (Digits(), [b" ", b"18446744073709551616 ", b"x ", b"-1 "]),
        (Digits(10, 2, 3), [b"1 ", b"1234 "]),
        (Digits(10, 3, 3), [b"1 7 ", b"12"]),
        (Digits(10, 1, 19, True), [b"-0 ", b"- ", b"9223372036854775808 ", b"--1 "]),
    ],
    ids=str,
)
def test_octets_that_are_no_such_number(coding: Coding, frames: list[bytes]) -> None:
    signed = getattr(coding, "signed", False)
    arrow = pa.bool_() if isinstance(coding, Boolean) else pa.int64() if signed else UINT64
    check_refused(Codec(("n", coding, arrow), SPACE), *frames)


def test_numbers_in_longer_forms() -> None:
    """Groups and digits that are not the fewest are read."""
    codec = Codec(("n", Varint(), UINT64))
    assert codec.decode(b"\x80\0", b"\xff\x80\0") == [{"n": Decimal(0)}, {"n": Decimal(127)}]
    codec = Codec(("n", Digits(16), pa.int64()), SPACE)
    assert codec.decode(b"00FF ", b"000000000000000000aB ") == [{"n": 255}, {"n": 171}]


@pytest.mark.parametrize(
    ("order", "octets"),
    [("big", "00112233445566778899aabbccddeeff"), ("little", "33221100554477668899aabbccddeeff")],
)
def test_uuids(order: Any, octets: str) -> None:
    """Canonical text; with ``little``, the first three parts are in little-endian order."""
    codec = Codec(("u", Uuid(order), pa.string()), ("n", Integer(1), pa.int16()))
    text = "00112233-4455-6677-8899-aabbccddeeff"
    zero = "00000000-0000-0000-0000-000000000000"
    rows = [(bytes.fromhex(octets) + b"\5", {"u": text, "n": 5}), (bytes(17), {"u": zero, "n": 0})]
    check(codec, rows)
    check_refused(codec, bytes(16))


@pytest.mark.parametrize(
    ("coding", "numbers"),
    [
        (Integer(1), (b"\3", b"\1")),
        (Integer(2, order="little"), (b"\3\0", b"\1\0")),
        (Varint(), (b"\3", b"\1")),
        (Digits(10, 2, 2), (b"03", b"01")),
    ],
    ids=str,
)
def test_a_number_apart_from_what_it_counts(coding: Any, numbers: tuple[bytes, bytes]) -> None:
    """The number of octets of a text and 1 more, a colon, then the text."""
    three, one = numbers
    codec = Codec(
        ("c", Counter(coding, ("t",), 1), None), ("colon", Constant(b":", "':'"), None),
        ("t", Text(COUNTED), pa.string()), ("n", Integer(1), pa.int16()),
    )  # fmt: skip
    check(codec, [(three + b":ab\5", {"t": "ab", "n": 5}), (one + b":\6", {"t": "", "n": 6})])
    nothing = one.replace(b"1", b"0").replace(b"\1", b"\0")
    check_refused(codec, nothing + b":\5", three + b":a", three + b":abcd")


def test_a_number_of_items() -> None:
    codec = Codec(
        ("c", Counter(Integer(1), ("l",)), None), ("n", Integer(1), pa.int16()),
        ("l", ListOf(0, Integer(2), counted=True), pa.list_(pa.int32())), SPACE,
    )  # fmt: skip
    check(codec, [(b"\2\7\0\1\1\0 ", {"n": 7, "l": [1, 256]}), (b"\0\7 ", {"n": 7, "l": []})])
    check_refused(codec, b"\2\7\0\1 ", b"\1\7\0\1\1\0 ", b"\xff\7\0\1 ")


def test_a_number_of_the_octets_of_several_fields() -> None:
    """A number and a list, which take exactly as many octets."""
    codec = Codec(
        ("c", Counter(Integer(2), ("n", "l")), None), ("n", Integer(1), pa.int16()),
        ("l", ListOf(0, Text(Span("prefix", 1))), pa.list_(pa.string())), ("rest", Octets(Span("rest")), pa.binary()),
    )  # fmt: skip
    check(
        codec,
        [
            (b"\0\1\5", {"n": 5, "l": [], "rest": b""}),
            (b"\0\4\5\1a\0xy", {"n": 5, "l": ["a", ""], "rest": b"xy"}),
        ],
    )
    check_refused(codec, b"\0\0", b"\0\2\5", b"\0\2\5\1a", b"\0\x09\5\1a")


def test_octets_before_a_trailer() -> None:
    codec = Codec(("o", Octets(Span("rest", 2)), pa.binary()), ("n", Integer(2), pa.int32()))
    check(codec, [(b"abc\0\1", {"o": b"abc", "n": 1}), (b"\1\0", {"o": b"", "n": 256})])
    check_refused(codec, b"\1", b"")


def test_padding_to_a_multiple() -> None:
    """The position of the number is a multiple of 4, from the octet 07 on."""
    codec = Codec(
        ("t", Text(Span("prefix", 1)), pa.string()), ("p", Padding(0, b"-", 4), None),
        ("n", Integer(2), pa.int32()),
    )  # fmt: skip
    rows = [
        (b"\0--\0\1", {"t": "", "n": 1}),
        (b"\2ab\0\2", {"t": "ab", "n": 2}),
        (b"\3abc---\0\3", {"t": "abc", "n": 3}),
    ]
    check(codec, rows)
    assert codec.decode(b"\0xy\0\1") == [{"t": "", "n": 1}]
    check_refused(codec, b"\0-", b"\0--\0")


def test_checksums() -> None:
    """The CRC-32 of 123456789 is CBF43926; here it stands before and after what it covers."""
    crc = Checksum(Integer(4), "crc32", ("a", "b"))
    parts = ("a", Text(Span("fixed", 3)), pa.string()), ("b", Text(Span("rest", 4)), pa.string())
    codec = Codec(*parts, ("crc", crc, None))
    check(codec, [(b"123456789\xcb\xf4\x39\x26", {"a": "123", "b": "456789"})])
    check_refused(codec, b"123456789\xcb\xf4\x39\x27", b"123456780\xcb\xf4\x39\x26", b"12\xcb\xf4\x39\x26")
    codec = Codec(
        ("crc", crc, None), parts[0], ("n", Integer(1), pa.int16()), ("b", Text(Span("rest")), pa.string())
    )
    check(codec, [(b"\xcb\xf4\x39\x26123\x07456789", {"a": "123", "n": 7, "b": "456789"})])
