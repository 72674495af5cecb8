"""What the slow paths say of every kind of value, on a layout and octets that are written down here."""

from __future__ import annotations

from typing import ClassVar

import pytest

from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    ListOf,
    MessageLayout,
    Octets,
    Padding,
    Pairs,
    ProtocolLayout,
    Record,
    Shape,
    Size,
    Span,
    Text,
    Type,
    Union,
)
from specwire.generated.messages import PureMessage, PureRecord
from specwire.generated.refusal import explain_decode
from specwire.generated.unfit import explain_encode

SHORT, REST = Span("prefix", 1), Span("rest")
AGREED = "a disagreement between them; please report it"


def field(name: str, type: Type, *, optional: bool = False) -> Field:
    return Field(name, name, name, type, optional=optional)


def layout_of(*fields: Field) -> ProtocolLayout:
    """A protocol of one message, whose frame begins with 07."""
    head = Field("id", "id_", "demo", Constant(b"\x07", "0x07"))
    entry = MessageLayout("demo", "Demo", ((b"\x07",),), (Frame("demo", (head, *fields)),))
    return ProtocolLayout("demo", "Demo v1", ((0, 1),), (entry,))


POINT = Record("Point", (field("x", Integer(1)), field("y", Integer(2))), "point")
NOTE = Record("Note", (field("tag", Constant(b"N", "0x4e")), field("text", Text(SHORT))), "note")
STOP = Record("Stop", (field("tag", Constant(b"S", "0x53")),), "stop")
FORMS = Size(((b"\x04", 1), (b"\x06", 8)))
SIZED = Record(
    "Sized", (field("length", Size(((b"", 1),))), field("word", Text(SHORT)), field("rest", Octets(REST)))
)
EXACT = Record("Exact", (field("length", Size(((b"", 1),))), field("word", Text(SHORT))), "exact")

DECODED: list[tuple[str, Field, bytes, str]] = [
    ("record", field("point", POINT), b"\x01\x00", "demo.point.y at octet 2: expected 2 octets, found 1 [Demo v1 y]"),
    ("list of records", field("points", ListOf(1, POINT)), b"\x02\x01\x00\x02\x03\x00", "demo.points[1].y at octet 6: expected 2 octets, found 1 [Demo v1 y]"),
    ("count", field("points", ListOf(1, POINT)), b"\x09\x01\x00\x02", "demo.points at octet 1: expected at most 3 entries in 3 octets, found 9 [Demo v1 points]"),
    ("count of eight octets", field("points", ListOf(8, POINT)), b"\xff" * 8, f"demo.points at octet 1: expected at most 0 entries in 0 octets, found {2**64 - 1} [Demo v1 points]"),
    ("minimum", field("points", ListOf(1, POINT, 2)), b"\x01\x01\x00\x02", "demo.points at octet 1: expected at least 2, found 1 [Demo v1 points]"),
    ("minimum to the end", field("points", ListOf(0, POINT, 2)), b"\x01\x00\x02", "demo.points at octet 1: expected at least 2, found 1 [Demo v1 points]"),
    ("element at the end", field("points", ListOf(0, POINT)), b"\x01\x00\x02\x03", "demo.points[1].y at octet 5: expected 2 octets, found 0 [Demo v1 y]"),
    ("lists of lists", field("rows", ListOf(1, ListOf(1, Integer(1, (1, 2))))), b"\x02\x01\x01\x02\x01\x05", "demo.rows[1][1] at octet 6: expected 1 or 2, found 5 [Demo v1 rows]"),
    ("unknown option", field("items", ListOf(1, Union((NOTE, STOP), (b"N", b"S")))), b"\x02SX", "demo.items[1] at octet 3: expected 0x4e or 0x53, found 0x58 [Demo v1 items]"),
    ("no option", field("item", Union((NOTE, STOP), (b"N", b"S"))), b"", "demo.item at octet 1: expected 0x4e or 0x53, found nothing [Demo v1 item]"),
    ("inside an option", field("items", ListOf(0, Union((NOTE, STOP), (b"N", b"S")))), b"SN\x02\xc3\xc3", "demo.items[1].text at octet 4: 0xc3 is not UTF-8 [Demo v1 text]"),
    ("unknown form", field("length", FORMS), b"\x05\x00", "demo.length at octet 1: expected 0x04 or 0x06, found 0x05 [Demo v1 length]"),
    ("size too small", field("length", FORMS), b"\x04\x00abc", "demo.length at octet 2: expected 3, the number of octets behind it, found 0 [Demo v1 length]"),
    ("size too large", field("length", FORMS), b"\x06" + b"\xff" * 8, f"demo.length at octet 2: expected 0, the number of octets behind it, found {2**64 - 1} [Demo v1 length]"),
    ("half a size", field("length", FORMS), b"\x06\x00", "demo.length at octet 2: expected 8 octets, found 1 [Demo v1 length]"),
    ("record beyond the frame", field("part", SIZED), b"\x05\x01a", "demo.part.length at octet 1: expected at most 2, the number of octets left, found 5 [Demo v1 length]"),
    ("value beyond its record", field("parts", ListOf(1, EXACT)), b"\x02\x02\x01a\x02\x03abc", "demo.parts[1].word at octet 7: expected 3 octets, found 1 [Demo v1 word]"),
    ("left over in a record", field("parts", ListOf(1, EXACT)), b"\x01\x04\x01axy", "demo.parts[0] at octet 5: expected the end of parts[0], found 2 more octets [Demo v1 exact]"),
    ("padding cut", field("filler", Padding(4, b"\0")), b"\x00\x00", "demo.filler at octet 1: expected 4 octets, found 2 [Demo v1 filler]"),
    ("padded text", field("name", Text(Span("fixed", 4), padding=b"\0")), b"a\xff\0\0", "demo.name at octet 2: 0xff is not UTF-8 [Demo v1 name]"),
    ("fixed text", field("name", Text(Span("fixed", 4))), b"abc", "demo.name at octet 1: expected 4 octets, found 3 [Demo v1 name]"),
    ("maximum", field("key", Octets(SHORT, 0, 2)), b"\x03abc", "demo.key at octet 1: expected at most 2 octets, found 3 [Demo v1 key]"),
    ("maximum of the rest", field("key", Octets(REST, 1, 2)), b"abc", "demo.key at octet 1: expected at most 2 octets, found 3 [Demo v1 key]"),
    ("values", field("mode", Integer(2, (1, 2))), b"\x00\x03", "demo.mode at octet 1: expected 1 or 2, found 3 [Demo v1 mode]"),
    ("pairs of octets", field("map", Pairs(0, Text(SHORT), Octets(SHORT), rule="entry")), b"\x01a\x01b\x01c\x05x", "demo.map[1].value at octet 8: expected 5 octets, found 1 [Demo v1 entry]"),
    ("pairs at least", field("map", Pairs(1, Text(SHORT), Octets(SHORT), minimum=1)), b"\x00", "demo.map at octet 1: expected at least 1, found 0 [Demo v1 map]"),
    ("optional, cut", field("more", Integer(2), optional=True), b"\x01", "demo.more at octet 1: expected 2 octets, found 1 [Demo v1 more]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "octets", "sentence"), [row[1:] for row in DECODED], ids=[row[0] for row in DECODED]
)
def test_decode_faults(of: Field, octets: bytes, sentence: str) -> None:
    assert str(explain_decode(layout_of(of), [b"\x07" + octets])) == sentence


READ: list[tuple[Field, bytes]] = [
    (field("points", ListOf(0, POINT)), b""),
    (field("part", SIZED), b"\x04\x01aXY"),
    (field("length", FORMS), b"\x06" + bytes(8)),
    (field("filler", Padding(2, b"\0")), b"\xab\xcd"),
    (field("name", Text(Span("fixed", 4), padding=b"\xff")), b"a\xff\xff\xff"),
    (field("more", Integer(2), optional=True), b""),
]


@pytest.mark.parametrize(("of", "octets"), READ)
def test_what_is_read(of: Field, octets: bytes) -> None:
    assert explain_decode(layout_of(of), [b"\x07" + octets]).found == AGREED


def test_kinds_and_octets_left_over() -> None:
    """A record that is full is no end of the frame."""
    error = explain_decode(layout_of(field("part", EXACT)), [b"\x07\x02\x01a!"])
    assert (error.kind, error.offset, error.field) == ("trailing", 4, None)
    error = explain_decode(layout_of(field("item", Union((NOTE, STOP), (b"N", b"S")))), [b"\x07?"])
    assert (error.kind, error.offset, error.field) == ("tag", 1, "item")


# Encoding


class Point(PureRecord, frozen=True, gc=False):
    x: object = 0
    y: object = 0


class Note(PureRecord, frozen=True, gc=False):
    text: object = ""


class Sized(PureRecord, frozen=True, gc=False):
    word: object = ""
    rest: object = b""


class Demo(PureMessage, frozen=True, gc=False):
    NAME: ClassVar[str] = "demo"
    PROTOCOL: ClassVar[str] = "demo"
    value: object = None
    more: object = None


class Request(Demo, frozen=True, gc=False):
    NAME: ClassVar[str] = "REQUEST"


class Elsewhere:
    """A record of another package: the same name in another module."""

    Point = type(
        "Point", (PureRecord,), {"__module__": "elsewhere", "__annotations__": {}}, frozen=True, gc=False
    )


ENCODED: list[tuple[str, Type, object, str]] = [
    ("record", POINT, Point(1, 65536), "demo.value.y: expected 0 to 65535, found 65536 [Demo v1 y]"),
    ("no record", POINT, (1, 2), "demo.value: expected Point, found tuple (1, 2) [Demo v1 value]"),
    ("another record", POINT, Note("a"), "demo.value: expected Point, found Note Note(text='a') [Demo v1 value]"),
    ("record from elsewhere", POINT, Elsewhere.Point(), "demo.value: expected Point, found Point Point() [Demo v1 value]"),
    ("None", POINT, None, "demo.value: expected Point, found None [Demo v1 value]"),
    ("list of records", ListOf(1, POINT), (Point(), Point(0, -1)), "demo.value[1].y: expected 0 to 65535, found -1 [Demo v1 y]"),
    ("too many", ListOf(1, Integer(1)), (0,) * 256, "demo.value: expected at most 255 entries, found 256 [Demo v1 value]"),
    ("too few", ListOf(0, Integer(1), 2), (0,), "demo.value: expected at least 2, found 1 [Demo v1 value]"),
    ("no list", ListOf(0, POINT), [Point()], "demo.value: expected a tuple, found list [Point(x=0, y=0)] [Demo v1 value]"),
    ("one of", Union((NOTE, STOP), (b"N", b"S")), Point(), "demo.value: expected Note or Stop, found Point Point(x=0, y=0) [Demo v1 value]"),
    ("inside one of", Union((NOTE, STOP), (b"N", b"S")), Note(b"a"), "demo.value.text: expected text, found bytes b'a' [Demo v1 text]"),
    ("size", SIZED, Sized("a", bytes(254)), "demo.value.length: expected at most 255 octets after it, found 256 [Demo v1 length]"),
    ("padded, too long", Text(Span("fixed", 2), padding=b" "), "abc", "demo.value: expected at most 2 octets, found 3 [Demo v1 value]"),
    ("padded, ends as padding", Text(Span("fixed", 4), padding=b" "), "ab ", "demo.value: expected text that does not end with 0x20, which fills it up, found str 'ab ' [Demo v1 value]"),
    ("fixed", Text(Span("fixed", 2)), "\u00e9a", "demo.value: expected 2 octets, found 3 [Demo v1 value]"),
    ("maximum", Octets(SHORT, 0, 2), b"abc", "demo.value: expected at most 2 octets, found 3 [Demo v1 value]"),
    ("values", Integer(1, (1, 2)), 3, "demo.value: expected 1 or 2, found 3 [Demo v1 value]"),
    ("pairs of octets", Pairs(0, Text(SHORT), Octets(SHORT)), (("a", "b"),), "demo.value[0].value: expected octets, found str 'b' [Demo v1 value]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "value", "sentence"), [row[1:] for row in ENCODED], ids=[row[0] for row in ENCODED]
)
def test_encode_faults(of: Type, value: object, sentence: str) -> None:
    layout = layout_of(field("value", of), field("more", Integer(1), optional=True))
    assert str(explain_encode(layout, Demo(value))) == sentence


def test_nothing_may_follow_what_is_left_out() -> None:
    layout = layout_of(field("value", Integer(1), optional=True), field("more", Octets(REST), optional=True))
    for message, sentence in (
        (Demo(None, b"a"), "demo.more: expected None, as the field before it, found bytes b'a' [Demo v1 more]"),
        (Demo(1, b""), "demo.more: expected at least 1 octet: without any it would be read as None, found 0 octets [Demo v1 more]"),
    ):  # fmt: skip
        error = explain_encode(layout, message)
        assert (error.kind, str(error)) == ("length", sentence)
    for message in (Demo(None, None), Demo(1, None), Demo(1, b"a")):
        assert explain_encode(layout, message).found == AGREED


# Patterns


def patterned() -> ProtocolLayout:
    """Commands: 04 and a size or 06 and a long one; READY has its name in the pattern, others are named by a field."""
    size = field("length", FORMS)
    ready = Frame(
        "READY", (size, field("name", Constant(b"\x05READY", "'READY'")), field("value", Octets(REST)))
    )
    other = Frame("OTHER", (size, field("value", Text(SHORT)), field("more", Octets(REST))))
    greeting = Frame("GREETING", (field("signature", Constant(b"\xff\x7f", "0xff7f")),))
    long = "??" * 8
    return ProtocolLayout(
        "demo", "Demo v1", ((0, 0),),
        (
            MessageLayout("demo", "Demo", (), (other,), ("04", "06")),
            MessageLayout("READY", "Ready", (), (ready,), ("04??055245414459", f"06{long}055245414459")),
            MessageLayout("GREETING", "Greeting", (), (greeting,), ("ff7f",)),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("octets", "kind", "sentence"),
    [
        (b"\x05", "tag", "demo.length at octet 0: expected 0x04, 0x06 or 0xff7f, found 0x0500 [Demo v1 length]"),
        (b"", "length", "demo.length at octet 0: expected 0x04, 0x06 or 0xff7f, found nothing [Demo v1 length]"),
        (b"\xff", "length", "demo.signature at octet 0: expected 0xff7f, found 0xff [Demo v1 signature]"),
        (b"\xff\x7e", "tag", "demo.signature at octet 0: expected 0xff7f, found 0xff7e [Demo v1 signature]"),
        (b"\x04\x09\x05READY", "length", "READY.length at octet 1: expected 6, the number of octets behind it, found 9 [Demo v1 length]"),
        (b"\x04\x09\x05READX", "length", "demo.length at octet 1: expected 6, the number of octets behind it, found 9 [Demo v1 length]"),
    ],
)  # fmt: skip
def test_the_longest_pattern_says_what_it_is(octets: bytes, kind: str, sentence: str) -> None:
    error = explain_decode(patterned(), [octets + b"\0" * (octets == b"\x05")])
    assert (error.kind, str(error)) == (kind, sentence)


def test_no_frame_fits_no_pattern() -> None:
    error = explain_decode(patterned(), [])
    assert (error.kind, error.frame, error.offset) == ("frames", None, None)


def test_a_value_must_not_spell_another_message() -> None:
    error = explain_encode(patterned(), Demo("READY", b""))
    assert (error.kind, str(error)) == (
        "tag", "demo.value: expected what does not make it READY, found 0x055245414459 [Demo v1 value]",
    )  # fmt: skip
    assert explain_encode(patterned(), Demo("READX", b"")).found == AGREED


def test_a_value_must_not_look_like_another_message() -> None:
    """A request names a service where READY has its command; a service of that name cannot be asked for."""
    body = Frame("body", (field("more", Octets(REST)),))
    request = MessageLayout("REQUEST", "Demo", (), (Frame("value", (field("value", Text(REST)),)), body))
    ready = MessageLayout(
        "READY", "Ready", (), (Frame("command", (field("command", Constant(b"\x01", "0x01")),)), body)
    )
    shapes = (
        ("Ready", Shape((("01", True), ("", False)), 2, 2)),
        ("Demo", Shape((("", False), ("", False)), 2, 2)),
    )
    layout = ProtocolLayout("demo", "Demo v1", (), (request, ready), shapes=shapes)
    error = explain_encode(layout, Request("\x01", b""))
    assert (error.kind, str(error)) == (
        "tag", "REQUEST.value: expected what does not make it Ready, found 0x01 [Demo v1 value]",
    )  # fmt: skip
    assert explain_encode(layout, Request("\x01\x01", b"")).found == AGREED
