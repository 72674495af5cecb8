"""Columns of every kind of layout, octets and values written by hand; no row may need the row codec."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from specwire.generated.columns import BINARY_PAIRS, COMMON, PAIRS, UINT64
from specwire.generated.columns.decoding import ColumnDecoder
from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Padding,
    Pairs,
    Part,
    Presence,
    ProtocolLayout,
    Record,
    Rest,
    Shape,
    Size,
    Span,
    Stack,
    Text,
    Type,
    Union,
)
from specwire.generated.messages import Message
from tests.generated.column_agreement import FRAMES, column_build

ONE = Span("prefix", 1)
REST = Span("rest")


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both builds of the column decoder."""
    with column_build(request.param):
        yield


class NotReadTogether(Exception):
    """A row came to the row codec."""


def refuse(frames: object, **sender: object) -> NoReturn:
    raise NotReadTogether(frames)


def field(name: str, type: Type, *, optional: bool = False, flags: bool = False) -> Field:
    return Field(name, name, name, type, flags, optional)


def decoder(*messages: tuple[MessageLayout, pa.StructType], **more: Any) -> ColumnDecoder:
    """A decoder of messages that differ in their first octet, or as `more` says."""
    announcing, shapes = more.pop("announcing", 0), more.pop("shapes", ())
    selectors = () if shapes else ((more.pop("header", 0), 1),)
    layouts = tuple(layout for layout, _ in messages)
    layout = ProtocolLayout("hand", "Hand v1", selectors, layouts, announcing, shapes)
    schema = pa.schema([*COMMON, *(pa.field(entry.class_name, type) for entry, type in messages)])
    return ColumnDecoder(schema, layout, refuse, {}, **more)


def alone(*fields: tuple[Field, pa.DataType | None]) -> ColumnDecoder:
    """A decoder of one message: the octet 07, then these fields."""
    frame = Frame("M", (field("id", Constant(b"\x07", "0x07")), *(one for one, _ in fields)))
    type = pa.struct([pa.field(one.name, arrow) for one, arrow in fields if arrow is not None])
    return decoder((MessageLayout("M", "M", ((b"\x07",),), (frame,)), type))


def values(columns: ColumnDecoder, *frames: bytes) -> list[Any]:
    """What is in the message of each row, which is one frame that begins with 07."""
    return rows(columns, [[b"\x07" + frame] for frame in frames])


def rows(columns: ColumnDecoder, messages: list[list[bytes]], name: str = "M") -> list[Any]:
    batch = columns.decode(pa.array(messages, FRAMES))
    batch.validate(full=True)
    found: list[Any] = batch.column(name).to_pylist()
    return found


def test_integers_of_every_width() -> None:
    """Network order; signed columns of the next width."""
    types: list[pa.DataType] = [
        pa.int16(),
        pa.int32(),
        pa.int32(),
        pa.int64(),
        pa.int64(),
        pa.int64(),
        pa.int64(),
        UINT64,
    ]
    for width, type in enumerate(types, 1):
        columns = alone((field("n", Integer(width)), type))
        top, low = b"\xff" * width, b"\x00" * (width - 1) + b"\x02"
        assert values(columns, top, low, b"\x01" + b"\x00" * (width - 1)) == [
            {"n": 256**width - 1},
            {"n": 2},
            {"n": 256 ** (width - 1)},
        ]


def test_values_an_integer_may_have() -> None:
    columns = alone((field("n", Integer(2, (1, 0x0203, 0xFFFF))), pa.int32()))
    assert values(columns, b"\x02\x03", b"\xff\xff", b"\x00\x01") == [{"n": 515}, {"n": 65535}, {"n": 1}]
    with pytest.raises(NotReadTogether):
        values(columns, b"\x00\x02")


def test_constants_padding_and_fixed_octets() -> None:
    columns = alone(
        (field("c", Constant(b"abcdefghijk", "abcdefghijk")), None),
        (field("p", Padding(3, b"\0")), None),
        (field("o", Octets(Span("fixed", 2))), pa.binary()),
        (field("t", Text(Span("fixed", 4), padding=b" ")), pa.string()),
    )
    assert values(
        columns, b"abcdefghijk\1\2\3\xff\xfeab  ", b"abcdefghijk   ##    ", b"abcdefghijk   ##a  b"
    ) == [
        {"o": b"\xff\xfe", "t": "ab"},
        {"o": b"##", "t": ""},
        {"o": b"##", "t": "a  b"},
    ]
    for bad in (b"abcdefghijK   ##    ", b"abcdefghijk   ##   ", b"abcdefghijk   ##     "):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def test_optional_fields_at_the_end() -> None:
    columns = alone(
        (field("a", Integer(1)), pa.int16()),
        (field("b", Integer(2), optional=True), pa.int32()),
        (field("c", Text(ONE), optional=True), pa.string()),
    )
    assert values(columns, b"\1", b"\1\0\2", b"\1\0\2\3xyz") == [
        {"a": 1, "b": None, "c": None},
        {"a": 1, "b": 2, "c": None},
        {"a": 1, "b": 2, "c": "xyz"},
    ]
    with pytest.raises(NotReadTogether):
        values(columns, b"\1", b"\1\0")


def test_text_up_to_what_ends_it() -> None:
    columns = alone(
        (field("a", Text(Span("until", until=b"\r\n"))), pa.string()),
        (field("end", Constant(b"\r\n", "CRLF")), None),
        (field("b", Text(REST)), pa.string()),
    )
    assert values(columns, b"x\r\ny", b"\r\n", b"\rz\r\n\r\n") == [
        {"a": "x", "b": "y"},
        {"a": "", "b": ""},
        {"a": "\rz", "b": "\r\n"},
    ]
    with pytest.raises(NotReadTogether):
        values(columns, b"x\r", b"\ny\r\n")


def test_octets_of_bounded_number() -> None:
    columns = alone((field("o", Octets(REST, 1, 3)), pa.binary()))
    assert values(columns, b"a", b"abc") == [{"o": b"a"}, {"o": b"abc"}]
    for bad in (b"", b"abcd"):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def test_lists_in_lists() -> None:
    """A count, then lists with a count of their own."""
    of_numbers = ListOf(1, Integer(2))
    columns = alone((field("l", ListOf(1, of_numbers)), pa.list_(pa.list_(pa.int32()))))
    assert values(columns, b"\0", b"\2\0\1\0\5", b"\1\2\0\1\1\0") == [
        {"l": []},
        {"l": [[], [5]]},
        {"l": [[1, 256]]},
    ]
    for bad in (b"\1\2\0\1\1", b"\2\0", b"\1\0\0"):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def test_lists_up_to_the_end_and_least_number() -> None:
    columns = alone((field("l", ListOf(0, Text(ONE), 1)), pa.list_(pa.string())))
    assert values(columns, b"\1a", b"\0\2bc\0") == [{"l": ["a"]}, {"l": ["", "bc", ""]}]
    with pytest.raises(NotReadTogether):
        values(columns, b"")


def test_records_in_lists_with_sizes() -> None:
    """A record: its size, a number, then text up to the end that the size says."""
    record = Record(
        "R", (field("size", Size(((b"", 1),))), field("n", Integer(1)), field("t", Text(REST))), "r"
    )
    type = pa.struct([pa.field("n", pa.int16()), pa.field("t", pa.string())])
    columns = alone((field("l", ListOf(1, record)), pa.list_(type)))
    assert values(columns, b"\2\1\5\3\6ab", b"\0") == [
        {"l": [{"n": 5, "t": ""}, {"n": 6, "t": "ab"}]},
        {"l": []},
    ]
    for bad in (b"\1\0", b"\1\4\6ab"):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def test_one_of_several_records() -> None:
    """Octet 41: a number; octets 42 43: nothing."""
    one = Record("A", (field("tag", Constant(b"A", "A")), field("n", Integer(1))))
    other = Record("B", (field("tag", Constant(b"BC", "BC")),))
    type = pa.struct(
        [
            pa.field("a", pa.struct([pa.field("n", pa.int16())])),
            pa.field("b", pa.struct([pa.field("_present", pa.bool_())])),
        ]
    )
    columns = alone((field("u", ListOf(0, Union((one, other), (b"A", b"BC")))), pa.list_(type)))
    assert values(columns, b"A\7BCA\1", b"BC") == [
        {"u": [{"a": {"n": 7}, "b": None}, {"a": None, "b": {"_present": True}}, {"a": {"n": 1}, "b": None}]},
        {"u": [{"a": None, "b": {"_present": True}}]},
    ]
    with pytest.raises(NotReadTogether):
        values(columns, b"C")


@pytest.mark.parametrize(("split", "name", "value"), [("first", "a", "b=c"), ("last", "a=b", "c")])
def test_names_and_values_in_one_text(split: Any, name: str, value: str) -> None:
    columns = alone((field("p", Pairs(1, Text(ONE), split=split)), PAIRS))
    assert values(columns, b"\1\5a=b=c", b"\2\1=\4\xc3\xa9=x") == [
        {"p": [{"name": name, "value": value}]},
        {"p": [{"name": "", "value": ""}, {"name": "\u00e9", "value": "x"}]},
    ]
    for bad in (b"\1\1a", b"\2\3a=b", b"\1\2=\xff"):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def test_names_and_values_side_by_side() -> None:
    """Octets as values, at least one pair, up to the end."""
    columns = alone((field("p", Pairs(0, Text(ONE), Octets(Span("prefix", 2)), minimum=1)), BINARY_PAIRS))
    assert values(columns, b"\1a\0\2\xff\0", b"\0\0\0\1b\0\0") == [
        {"p": [{"name": "a", "value": b"\xff\0"}]},
        {"p": [{"name": "", "value": b""}, {"name": "b", "value": b""}]},
    ]
    with pytest.raises(NotReadTogether):
        values(columns, b"")


def test_sizes_in_several_forms() -> None:
    """01 and an octet, or 02 and eight: so many octets follow."""
    columns = alone(
        (field("s", Size(((b"\1", 1), (b"\2", 8)))), None), (field("o", Octets(REST)), pa.binary())
    )
    assert values(columns, b"\1\2ab", b"\2\0\0\0\0\0\0\0\1c", b"\1\0") == [
        {"o": b"ab"},
        {"o": b"c"},
        {"o": b""},
    ]
    for bad in (b"\1\2a", b"\1\0a", b"\3\0", b"\2\xff\xff\xff\xff\xff\xff\xff\xffa", b"\2\0"):
        with pytest.raises(NotReadTogether):
            values(columns, bad)


def framed(*parts: tuple[Part, pa.DataType], **more: Any) -> ColumnDecoder:
    """A decoder of one message: frames, of which the header begins with 07 and flags."""
    type = pa.struct([pa.field(part.name, arrow) for part, arrow in parts])
    return decoder((MessageLayout("M", "M", ((b"\x07",),), tuple(part for part, _ in parts)), type), **more)


def test_stack_and_frames_that_flags_announce() -> None:
    """Bit 1: hops up to an empty frame; bit 2: a topic, which NUL may end; the header comes last."""
    header = Frame("flags", (field("id", Constant(b"\7", "7")), field("flags", Integer(1), flags=True)))
    columns = framed(
        (Stack("hops", field("hops", Text(REST, terminated=True)), Presence("announced", 1, 1)), pa.list_(pa.string())),
        (Frame("topic", (field("topic", Text(REST, terminated=True)),), Presence("announced", 2, 2)), pa.string()),
        (header, pa.int16()),
        header=-1, announcing=3,
    )  # fmt: skip
    assert rows(
        columns, [[b"\7\4"], [b"a\0", b"b", b"", b"\7\1"], [b"", b"t\0", b"\7\3"], [b"", b"\7\2"]]
    ) == [
        {"hops": None, "topic": None, "flags": 4},
        {"hops": ["a", "b"], "topic": None, "flags": 1},
        {"hops": [], "topic": "t", "flags": 3},
        {"hops": None, "topic": "", "flags": 2},
    ]
    for bad in ([b"\0", b"", b"\7\1"], [b"a", b"\7\1"], [b"a\0b", b"\7\2"], [b"x", b"\7\0"], [b"\7\2"]):
        with pytest.raises(NotReadTogether):
            rows(columns, [bad])


def test_frames_that_may_be_left_out_keywords_and_json() -> None:
    head = Frame("head", (field("id", Constant(b"\7", "7")), field("n", Integer(1))))
    columns = framed(
        (head, pa.int16()),
        (Frame("word", (field("word", Keyword(("GET", "PUTS"))),)), pa.string()),
        (Frame("json", (field("json", Json()),), Presence("counted")), pa.string()),
        (Frame("body", (field("body", Octets(REST)),), Presence("counted")), pa.binary()),
    )
    assert rows(columns, [[b"\7\1", b"GET"], [b"\7\2", b"PUTS", b"{}"], [b"\7\3", b"GET", b"", b"b"]]) == [
        {"head": 1, "word": "GET", "json": None, "body": None},
        {"head": 2, "word": "PUTS", "json": "{}", "body": None},
        {"head": 3, "word": "GET", "json": "", "body": b"b"},
    ]
    for bad in ([b"\7\1"], [b"\7\1", b"GETS"], [b"\7\1", b"GET", b"\xff"], [b"\7\1", b"GET", b"", b"", b""]):
        with pytest.raises(NotReadTogether):
            rows(columns, [bad])


def test_all_frames_that_are_left() -> None:
    head = Frame("head", (field("id", Constant(b"\7", "7")), field("n", Integer(1))))
    columns = framed((head, pa.int16()), (Rest("more", field("more", Integer(2))), pa.list_(pa.int32())))
    assert rows(columns, [[b"\7\1"], [b"\7\2", b"\0\1", b"\1\0"]]) == [
        {"head": 1, "more": []},
        {"head": 2, "more": [1, 256]},
    ]
    with pytest.raises(NotReadTogether):
        rows(columns, [[b"\7\1", b"\0\1\2"]])


def test_messages_that_only_their_senders_tell_apart() -> None:
    """Two frames of any content from A or B; one that begins with 01 from anybody."""
    plain = pa.struct([pa.field("x", pa.binary())])

    def entry(name: str) -> MessageLayout:
        return MessageLayout(
            name,
            name,
            (),
            (Frame("x", (field("x", Octets(REST)),)), Frame("y", (field("y", Constant(b"!", "!")),))),
        )

    first = MessageLayout("One", "One", (), (Frame("x", (field("x", Octets(REST)),)),))
    columns = decoder(
        (entry("Ask"), plain), (entry("Tell"), plain), (first, plain), by_sender=True,
        shapes=(
            ("One", Shape((("01", False),), 1, 1)),
            ("Ask", Shape((), 2, 2, ("A",))),
            ("Tell", Shape((), 2, 2, ("B", "C"))),
        ),
    )  # fmt: skip
    messages = pa.array([[b"x", b"!"], [b"y", b"!"], [b"\1"], [b"z", b"!"]], FRAMES)
    batch = columns.decode(messages, pa.array(["B", "A", None, "C"]))
    assert batch.column("_message").to_pylist() == ["Tell", "Ask", "One", "Tell"]
    assert batch.column("Tell").to_pylist() == [{"x": b"x"}, None, None, {"x": b"z"}]
    for senders in (pa.array(["", "A", "A", "C"]), pa.array(["D", "A", "A", "C"]), None):
        with pytest.raises(NotReadTogether):
            columns.decode(messages, senders)


def test_decimal_of_unsigned_eight_octets() -> None:
    columns = alone((field("n", Integer(8)), UINT64))
    assert values(columns, b"\x80" + b"\0" * 7) == [{"n": Decimal(2**63)}]


def test_row_codec_gets_what_is_no_message() -> None:
    """The decoder has no opinion of its own on what is wrong."""
    seen: list[Any] = []

    def decode(frames: list[bytes]) -> Message:
        seen.append(frames)
        raise NotReadTogether

    columns = alone((field("n", Integer(1)), pa.int16()))
    columns.row_codec = decode
    with pytest.raises(NotReadTogether):
        values(columns, b"\1", b"\1\2", b"\3")
    assert seen == [[b"\7\1\2"]]
