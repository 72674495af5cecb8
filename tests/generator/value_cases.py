"""Messages with every kind of value, and their octets as the specification of the kind says: derived by hand.

Each `Case` is a protocol with messages that can be sent, frames that are no message, and messages that cannot be
sent; of the last two, the whole error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from specwire.generator import ir
from tests.generator.layouts import LETTERS, PRINTABLE, field, message, protocol


@dataclass(frozen=True)
class Made:
    """Instance of a class of the package: a message or a record."""

    class_name: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """Attributes of an error; those of EncodeError have no frame and no offset."""

    field: str | None
    kind: str
    expected: str
    found: str
    offset: int | None = None
    frame: int | None = None

    @classmethod
    def of(cls, error: Any) -> Fault:
        """Return the attributes of an error."""
        return cls(error.field, error.kind, error.expected, error.found, error.offset, error.frame)


@dataclass(frozen=True)
class Case:
    """Protocol with its good and bad messages."""

    name: str
    protocol: ir.Protocol
    good: tuple[tuple[Made, tuple[bytes, ...]], ...]
    """Messages and their frames."""
    also: tuple[tuple[tuple[bytes, ...], Made], ...] = ()
    """Frames that are read, and written in another way."""
    refused: tuple[tuple[tuple[bytes, ...], Fault], ...] = ()
    unfit: tuple[tuple[Made, Fault], ...] = ()


def built(module: ModuleType, value: Any) -> Any:
    """Return a value with the classes of a package."""
    if isinstance(value, Made):
        values = {name: built(module, one) for name, one in value.values.items()}
        return getattr(module, value.class_name)(**values)
    return tuple(built(module, one) for one in value) if isinstance(value, tuple) else value


def made(class_name: str, **values: Any) -> Made:
    return Made(class_name, values)


def first(**values: Any) -> Made:
    return Made("Message1", values)


def text(kind: Any = "rest", **more: Any) -> ir.TextType:
    return ir.TextType(ir.Length(kind, **more))


def octets(kind: Any = "rest", **more: Any) -> ir.OctetsType:
    return ir.OctetsType(ir.Length(kind, **more))


def constant(name: str, value: bytes, *, folded: bool = False, option: ir.Option | None = None) -> ir.Field:
    text_ = value.decode() if value.isascii() and value.decode().isprintable() else None
    return field(name, ir.ConstantType(value.hex(), text=text_, folded=folded), option=option)


def one_message(*fields: ir.Field, **more: Any) -> ir.Protocol:
    """One message of one frame, told from nothing by its first octet."""
    assert isinstance(fields[0].type, ir.ConstantType)
    parts = (ir.Frame("MESSAGE-1", fields),)
    return protocol((message(1, parts, fields[0].type.hex),), ir.Selector(0, 1), **more)


def any_message(*parts: ir.Part, least: int = 1, most: int | None = 1, **more: Any) -> ir.Protocol:
    """One message, which all frames are."""
    return protocol((message(1, parts, "", (ir.Shape((), least, most),)),), None, **more)


# Bits


def _header() -> Case:
    """A header like that of DNS: id 0x1234, then 1 0010 0 1 1 | 0 000 0011."""
    values = {
        "id_": 0x1234, "qr": True, "opcode": 2, "aa": False, "tc": True, "rd": True, "ra": False, "rcode": 3,
        "rest": b"x",
    }  # fmt: skip
    return Case(
        "header",
        one_message(
            constant("mark", b"\xaa"),
            field("id", ir.IntegerType(2)),
            field("qr", ir.BitType(2, 15, 1, boolean=True)),
            field("opcode", ir.BitType(2, 11, 4)),
            field("aa", ir.BitType(2, 10, 1, boolean=True)),
            field("tc", ir.BitType(2, 9, 1, boolean=True)),
            field("rd", ir.BitType(2, 8, 1, boolean=True)),
            field("ra", ir.BitType(2, 7, 1, boolean=True)),
            field("z", ir.BitType(2, 4, 3, constant=0)),
            field("rcode", ir.BitType(2, 0, 4, values=(0, 1, 2, 3))),
            field("rest", octets()),
        ),
        good=((Made("Message1", values), (bytes.fromhex("aa1234930378"),)),),
        refused=(
            ((bytes.fromhex("aa1234931300"),), Fault("z", "constant", "0", "1", 3, 0)),
            ((bytes.fromhex("aa12349309"),), Fault("rcode", "range", "0, 1, 2 or 3", "9", 3, 0)),
            ((bytes.fromhex("aa123493"),), Fault("qr", "length", "2 octets", "1", 3, 0)),
        ),
        unfit=(
            (Made("Message1", values | {"opcode": 16}), Fault("opcode", "range", "0 to 15", "16")),
            (Made("Message1", values | {"opcode": -1}), Fault("opcode", "range", "0 to 15", "-1")),
            (Made("Message1", values | {"opcode": None}), Fault("opcode", "range", "an integer", "None")),
            (Made("Message1", values | {"rcode": 4}), Fault("rcode", "range", "0, 1, 2 or 3", "4")),
            (Made("Message1", values | {"qr": 1}), Fault("qr", "range", "False or True", "int 1")),
        ),
    )  # fmt: skip


def _packet() -> Case:
    """A packet like that of RTP, but little-endian: 10 0 1 0010 00000101 is 0x9205, sent as 05 92."""
    there = ir.Option("number", 1, field="x", values=(1,))
    again = ir.Option("number", 2, field="x", values=(1,))
    values = {"kind": 5, "sources": (1, 258), "profile": 7, "extension": b"ab", "more": 3, "body": b"z"}
    plain = {"kind": 6, "sources": (), "profile": None, "extension": None, "more": None, "body": b""}
    return Case(
        "packet",
        one_message(
            constant("mark", b"\xbb"),
            field("version", ir.BitType(2, 14, 2, "little", constant=2)),
            field("spare", ir.BitType(2, 13, 1, "little", spare=True)),
            field("x", ir.BitType(2, 12, 1, "little", announces=True)),
            field("cc", ir.CounterType(ir.BitType(2, 8, 4, "little"), ("sources",))),
            field("kind", ir.BitType(2, 0, 8, "little")),
            field("sources", ir.ListType(0, ir.IntegerType(4), counted=True)),
            field("profile", ir.IntegerType(2), option=there),
            field("size", ir.CounterType(ir.IntegerType(1), ("extension",)), option=there),
            field("extension", octets("counted"), option=there),
            constant("bar", b"|"),
            field("more", ir.IntegerType(1), option=again),
            field("body", octets()),
        ),
        good=(
            (
                Made("Message1", values),
                (bytes.fromhex("bb 0592 00000001 00000102 0007 02 6162 7c 03 7a"),),
            ),
            (Made("Message1", plain), (bytes.fromhex("bb 0680 7c"),)),
        ),
        also=(((bytes.fromhex("bb 06a0 7c"),), Made("Message1", plain)),),
        refused=(
            ((bytes.fromhex("bb 0640"),), Fault("version", "constant", "2", "1", 1, 0)),
            ((bytes.fromhex("bb 0681"),), Fault("cc", "count", "at most 0 entries in 0 octets", "1", 1, 0)),
            ((bytes.fromhex("bb 0690 0007 03 6162"),), Fault("extension", "length", "3 octets", "2", 6, 0)),
        ),
        unfit=(
            (
                Made("Message1", values | {"sources": (0,) * 16}),
                Fault("sources", "count", "at most 15 entries", "16"),
            ),
            (
                Made("Message1", values | {"extension": None}),
                Fault("extension", "text", "octets", "None"),
            ),
            (
                Made("Message1", plain | {"extension": b""}),
                Fault("extension", "length", "None, as the field before it", "bytes b''"),
            ),
            (
                Made("Message1", plain | {"more": 3}),
                Fault("more", "range", "no value, because x is 0", "int 3"),
            ),
            (
                Made("Message1", values | {"more": None}),
                Fault("more", "range", "a value, because x is 1", "None"),
            ),
        ),
    )  # fmt: skip


def _lengths() -> Case:
    """Bits of three octets, little-endian, that count a region and a text: 16 | 5 3 bits are 0x00031a."""
    return Case(
        "lengths",
        one_message(
            constant("mark", b"\xab"),
            field("all", ir.CounterType(ir.BitType(3, 8, 16, "little"), ("number", "name"))),
            field("size", ir.CounterType(ir.BitType(3, 3, 5, "little"), ("name",), 1)),
            field("kind", ir.BitType(3, 0, 3, "little")),
            field("number", ir.IntegerType(1)),
            field("name", text("counted")),
            field("rest", octets()),
        ),
        good=((first(kind=2, number=9, name="ab", rest=b"c"), (bytes.fromhex("ab 1a0300 09 6162 63"),)),),
        refused=(
            (
                (bytes.fromhex("ab 020300 09 6162 63"),),
                Fault("size", "range", "at least 1", "0", 1, 0),
            ),
            (
                (bytes.fromhex("ab 1a0400 09 6162 63"),),
                Fault("all", "trailing", "the end of the octets that all counts", "1 more octet", 7, 0),
            ),
            (
                (bytes.fromhex("ab 1a0500 09 6162 63"),),
                Fault("all", "length", "at most 4, the number of octets left", "5", 1, 0),
            ),
        ),
        unfit=(
            (
                first(kind=2, number=9, name="a" * 31, rest=b""),
                Fault("name", "length", "at most 30 octets", "31"),
            ),
        ),
    )  # fmt: skip


# Options


def _options() -> Case:
    """Values that a number, the next octets, or the number of octets left decides."""
    flagged = ir.Option("number", 1, field="flags", mask=0x80, values=(0x80,))
    prefixed = ir.Option("octets", 2, octets="3a")
    silent = ir.Option("octets", 3, octets=b" now".hex(), folded=True)
    left = ir.Option("left", 4, left=2)
    values = {
        "flags": 0x81, "extra": 5, "prefix": "me", "word": "hello", "noreply": True, "more": 9, "crc": b"\1\2",
    }  # fmt: skip
    plain = {
        "flags": 1, "extra": None, "prefix": None, "word": "a", "noreply": False, "more": None, "crc": b"\1\2",
    }  # fmt: skip
    letters = "characters that the rule MESSAGE-1 allows"
    return Case(
        "options",
        one_message(
            constant("mark", b"\xcc"),
            field("flags", ir.IntegerType(1)),
            field("extra", ir.IntegerType(2), option=flagged),
            constant("colon", b":", option=prefixed),
            field("prefix", text("until", until="20"), option=prefixed),
            constant("space", b" ", option=prefixed),
            field("word", text("run", octets=1, among=LETTERS)),
            constant("literal", b" now", folded=True, option=silent),
            field("noreply", ir.PresentType(), option=silent),
            constant("end", b"\r\n"),
            field("more", ir.IntegerType(1), option=left),
            field("crc", octets("fixed", octets=2)),
        ),
        good=(
            (Made("Message1", values), (b"\xcc\x81\x00\x05:me hello now\r\n\x09\x01\x02",)),
            (Made("Message1", plain), (b"\xcc\x01a\r\n\x01\x02",)),
            (Made("Message1", plain | {"prefix": ""}), (b"\xcc\x01: a\r\n\x01\x02",)),
        ),
        also=(
            ((b"\xcc\x81\x00\x05:me hello NoW\r\n\x09\x01\x02",), Made("Message1", values)),
        ),
        refused=(
            ((b"\xcc\x01\r\n\1\2",), Fault("word", "text", letters, "0x0d", 2, 0)),
            ((b"\xcc\x01",), Fault("word", "text", letters, "nothing", 2, 0)),
            ((b"\xcc\x01:a",), Fault("prefix", "text", "0x20 behind it", "0x61", 3, 0)),
            ((b"\xcc\x01a no\r\n",), Fault("end", "constant", "0x0d0a", "0x206e", 3, 0)),
            ((b"\xcc\x01a\r\n\1",), Fault("crc", "length", "2 octets", "1", 5, 0)),
            ((b"\xcc\x01a\r\n\1\2\3\4",), Fault(None, "trailing", "the end of the frame", "1 more octet", 8, 0)),
            ((b"\xcc\x80\1",), Fault("extra", "length", "2 octets", "1", 2, 0)),
        ),
        unfit=(
            (
                Made("Message1", values | {"extra": None}),
                Fault("extra", "range", "a value, because flags is 129", "None"),
            ),
            (
                Made("Message1", plain | {"extra": 5}),
                Fault("extra", "range", "no value, because flags is 1", "int 5"),
            ),
            (Made("Message1", plain | {"word": "aB"}), Fault("word", "text", letters, "0x42")),
            (Made("Message1", plain | {"word": ""}), Fault("word", "length", "at least 1 octet", "0")),
            (Made("Message1", plain | {"noreply": None}), Fault("noreply", "range", "False or True", "None")),
            (Made("Message1", plain | {"noreply": 1}), Fault("noreply", "range", "False or True", "int 1")),
            (Made("Message1", plain | {"prefix": "a b"}), Fault("prefix", "text", "text without 0x20", "'a b'")),
        ),
    )  # fmt: skip


def _numbers() -> Case:
    """Options that follow from digits, a varint, a signed integer and some bits."""
    return Case(
        "numbers",
        one_message(
            constant("mark", b"\xcd"),
            field("digits", ir.DigitsType()),
            constant("space", b" "),
            field("varint", ir.VarintType()),
            field("signed", ir.IntegerType(1, signed=True)),
            field("high", ir.BitType(1, 4, 4)),
            field("low", ir.BitType(1, 0, 4, boolean=False)),
            field("a", ir.IntegerType(1), option=ir.Option("number", 1, field="digits", values=(10, 12))),
            field("b", ir.IntegerType(1), option=ir.Option("number", 2, field="varint", mask=0x180, values=(0x100,))),
            field("c", ir.IntegerType(1), option=ir.Option("number", 3, field="signed", values=(-1,))),
            field("d", ir.IntegerType(1), option=ir.Option("number", 4, field="signed", mask=3, values=(2, 3))),
            field("e", ir.IntegerType(1), option=ir.Option("number", 5, field="high", values=(0, 15))),
        ),
        good=(
            (
                first(digits=12, varint=0x100, signed=-1, high=15, low=1, a=1, b=2, c=3, d=4, e=5),
                (bytes.fromhex("cd 3132 20 8002 ff f1 01 02 03 04 05"),),
            ),
            (
                first(digits=11, varint=0, signed=-3, high=1, low=0, a=None, b=None, c=None, d=None, e=None),
                (bytes.fromhex("cd 3131 20 00 fd 10"),),
            ),
            (
                first(digits=1, varint=0x180, signed=-2, high=0, low=0, a=None, b=None, c=None, d=4, e=5),
                (bytes.fromhex("cd 31 20 8003 fe 00 04 05"),),
            ),
        ),
        unfit=(
            (
                first(digits=1, varint=0x180, signed=-2, high=0, low=0, a=None, b=None, c=1, d=4, e=5),
                Fault("c", "range", "no value, because signed is -2", "int 1"),
            ),
        ),
    )  # fmt: skip


def _trailing() -> Case:
    """Two values that may be left out before a trailer of one octet."""
    return Case(
        "trailing",
        one_message(
            constant("mark", b"\xce"),
            field("a", octets("prefix", octets=1), option=ir.Option("left", 1, left=1)),
            field("b", octets("prefix", octets=1), option=ir.Option("left", 2, left=1)),
            field("trailer", ir.IntegerType(1)),
        ),
        good=(
            (first(a=b"x", b=b"", trailer=7), (bytes.fromhex("ce 0178 00 07"),)),
            (first(a=b"x", b=None, trailer=7), (bytes.fromhex("ce 0178 07"),)),
            (first(a=None, b=None, trailer=7), (bytes.fromhex("ce 07"),)),
        ),
        refused=(
            ((b"\xce",), Fault("trailer", "length", "1 octet", "0", 1, 0)),
            ((bytes.fromhex("ce 0107"),), Fault("trailer", "length", "1 octet", "0", 3, 0)),
        ),
        unfit=(
            (
                first(a=None, b=b"x", trailer=7),
                Fault("b", "length", "None, as the field before it", "bytes b'x'"),
            ),
        ),
    )  # fmt: skip


# Text


def _commands() -> Case:
    """Commands with words up to the end of the line, or with headers up to an empty line."""
    word = text("run", octets=1, among=PRINTABLE)
    letters = "characters that the rule MESSAGE-1 allows"
    get = (
        constant("verb", b"Get ", folded=True),
        field("first", word),
        field("others", ir.ListType(0, word, before="20", until="0d0a")),
        constant("crlf", b"\r\n"),
    )
    pairs = ir.PairsType(
        0,
        text("until", until="3a20"),
        text("until", until="0d0a"),
        between="3a20",
        after="0d0a",
        until="0d0a",
    )
    put = (
        constant("verb", b"put ", folded=True),
        field("size", ir.CounterType(ir.DigitsType(), ("data",))),
        constant("crlf", b"\r\n"),
        field("headers", pairs),
        constant("crlf_2", b"\r\n"),
        field("data", octets("counted")),
        constant("crlf_3", b"\r\n"),
    )
    messages = tuple(
        message(number, (ir.Frame("request", fields),), fields[0].type.octets.lower().hex())
        for number, fields in ((1, get), (2, put))
        if isinstance(fields[0].type, ir.ConstantType)
    )
    return Case(
        "commands",
        protocol(messages, ir.Selector(0, 4), folded=True),
        good=(
            (first(first="a", others=("b", "cd")), (b"Get a b cd\r\n",)),
            (first(first="a", others=()), (b"Get a\r\n",)),
            (
                made("Message2", headers=(("k", "v: w"), ("n", "")), data=b"12\r\n"),
                (b"put 4\r\nk: v: w\r\nn: \r\n\r\n12\r\n\r\n",),
            ),
            (made("Message2", headers=(), data=b""), (b"put 0\r\n\r\n\r\n",)),
        ),
        also=(((b"gEt A\r\n",), first(first="A", others=())),),
        refused=(
            ((b"get  a\r\n",), Fault("first", "text", letters, "0x20", 4, 0)),
            ((b"get a b  c\r\n",), Fault("others[1]", "text", letters, "0x20", 8, 0)),
            ((b"get a",), Fault("crlf", "length", "2 octets", "0", 5, 0)),
            ((b"get a\t",), Fault("others[0]", "constant", "0x20", "0x09", 5, 0)),
            ((b"put 4\r\nk: v\r\n",), Fault("crlf_2", "length", "2 octets", "0", 13, 0)),
            ((b"put 4\r\nk:v\r\n",), Fault("headers[0].name", "text", "0x3a20 behind it", "0x6b3a760d0a", 7, 0)),
            ((b"xyz a\r\n",), Fault("verb", "tag", "'Get ' or 'put '", "'xyz '", 0, 0)),
        ),
        unfit=(
            (first(first="a", others=("b", "c d")), Fault("others[1]", "text", letters, "0x20")),
            (first(first="a", others=("",)), Fault("others[0]", "length", "at least 1 octet", "0")),
            (
                made("Message2", headers=(("\r\nk", "v"),), data=b""),
                Fault("headers[0]", "text", "an item that does not begin with 0x0d0a", "0x0d0a6b3a20760d0a"),
            ),
        ),
    )  # fmt: skip


def _choices() -> Case:
    """A keyword, and records that are told apart by words, in letters of either case; one word begins another."""

    def option(number: int, tag: bytes, *fields: ir.Field) -> ir.RecordType:
        name = f"option_{number}"
        return ir.RecordType(name, f"Option{number}", (constant("mark", tag, folded=True), *fields), name)

    options = (
        option(1, b"in:", field("number", ir.IntegerType(1))),
        option(2, b"in:all;"),
        option(3, b"Out:", field("text", text("prefix", octets=1))),
    )
    tags = b"in:".hex(), b"in:all;".hex(), b"out:".hex()
    frames = (
        ir.Frame("chosen", (field("chosen", ir.UnionType("chosen", options, tags, folded=True)),)),
        ir.Frame("answer", (field("answer", ir.KeywordType(("Yes", "NO"), folded=True)),)),
    )
    return Case(
        "choices",
        any_message(*frames, least=2, most=2),
        good=(
            (first(chosen=made("Option1", number=5), answer="Yes"), (b"in:\x05", b"Yes")),
            (first(chosen=made("Option2"), answer="NO"), (b"in:all;", b"NO")),
            (first(chosen=made("Option3", text="Hi"), answer="NO"), (b"Out:\x02Hi", b"NO")),
        ),
        also=(
            ((b"IN:ALL;", b"no"), first(chosen=made("Option2"), answer="NO")),
            ((b"oUT:\x02Hi", b"yES"), first(chosen=made("Option3", text="Hi"), answer="Yes")),
        ),
        refused=(
            ((b"on:", b"NO"), Fault("chosen", "tag", "'in:all;', 'in:' or 'out:'", "'on:'", 0, 0)),
            ((b"In:", b"NO"), Fault("chosen.number", "length", "1 octet", "0", 3, 0)),
            ((b"In:\x05", b"noo"), Fault("answer", "constant", "'Yes' or 0x4e4f", "'noo'", 0, 1)),
        ),
        unfit=(
            (
                first(chosen=made("Option1", number=5), answer="no"),
                Fault("answer", "constant", "Yes or NO", "str 'no'"),
            ),
        ),
    )  # fmt: skip


def _wrapped() -> Case:
    """Items with constants around them: up to a constant, and counted."""
    options = ir.ListType(0, octets("prefix", octets=1), before="01", after="fe", until="ff")
    names = ir.PairsType(
        1, text("prefix", octets=1), octets("prefix", octets=1), before="5b", between="3d", after="5d"
    )
    return Case(
        "wrapped",
        one_message(
            constant("mark", b"\xdd"), field("options", options), constant("end", b"\xff"), field("names", names)
        ),
        good=(
            (
                first(options=(b"ab", b""), names=(("k", b"v"),)),
                (bytes.fromhex("dd 01026162fe 0100fe ff 01 5b 016b 3d 0176 5d"),),
            ),
            (first(options=(), names=()), (bytes.fromhex("dd ff 00"),)),
        ),
        refused=(
            ((bytes.fromhex("dd 01026162ff"),), Fault("options[0]", "constant", "0xfe", "0xff", 5, 0)),
            ((bytes.fromhex("dd 01026162fe"),), Fault("end", "length", "1 octet", "0", 6, 0)),
            (
                (bytes.fromhex("dd ff 01 5b 016b 3e 0176 5d"),),
                Fault("names[0].value", "constant", "0x3d", "0x3e", 6, 0),
            ),
        ),
    )  # fmt: skip


# Frames


def _delimited() -> Case:
    """Frames up to a delimiter, two frames, and all that are left."""
    return Case(
        "delimited",
        any_message(
            ir.Stack("identities", field("identities", octets()), delimiter=b"<IDS|MSG>".hex()),
            ir.Frame("signature", (field("signature", text()),)),
            ir.Frame("header", (field("header", ir.JsonType()),)),
            ir.Rest("buffers", field("buffers", octets())),
            least=3,
            most=None,
        ),
        good=(
            (
                first(identities=(b"a", b""), signature="", header="{}", buffers=(b"x", b"")),
                (b"a", b"", b"<IDS|MSG>", b"", b"{}", b"x", b""),
            ),
            (
                first(identities=(), signature="s", header="{}", buffers=(b"<IDS|MSG>",)),
                (b"<IDS|MSG>", b"s", b"{}", b"<IDS|MSG>"),
            ),
        ),
        refused=(
            (
                (b"a", b"s", b"{}"),
                Fault("identities", "frames", "a frame '<IDS|MSG>' that ends identities", "3 frames", None, 3),
            ),
            (
                (b"a", b"<IDS|MSG>", b"{}"),
                Fault("header", "frames", "a frame with header", "3 frames", None, 3),
            ),
        ),
        unfit=(
            (
                first(identities=(b"a", b"<IDS|MSG>"), signature="", header="{}", buffers=()),
                Fault("identities[1]", "text", "octets other than '<IDS|MSG>', which end the stack", "'<IDS|MSG>'"),
            ),
        ),
    )  # fmt: skip


# Values inside themselves


def _reply() -> Case:
    """Values like those of RESP 2."""

    def option(name: str, *fields: ir.Field) -> ir.RecordType:
        return ir.RecordType(name.lower(), name, fields, name.lower())

    value = ir.UnionType(
        "value",
        (
            option("Simple", constant("mark", b"+"), field("text", text("until", until="0d0a")), constant("end", b"\r\n")),
            option("Whole", constant("mark", b":"), field("number", ir.DigitsType(signed=True)), constant("end", b"\r\n")),
            option("Nil", constant("mark", b"$-1\r\n")),
            option(
                "Bulk",
                constant("mark", b"$"), field("size", ir.CounterType(ir.DigitsType(), ("data",))), constant("end", b"\r\n"),
                field("data", octets("counted")), constant("end_2", b"\r\n"),
            ),
            option(
                "Array",
                constant("mark", b"*"), field("count", ir.CounterType(ir.DigitsType(), ("items",))), constant("end", b"\r\n"),
                field("items", ir.ListType(0, ir.EnclosingType("value"), counted=True)),
            ),
        ),
        (b"+".hex(), b":".hex(), b"$-1".hex(), b"$".hex(), b"*".hex()),
    )  # fmt: skip
    items = (
        made("Simple", text="OK"), made("Nil"), made("Bulk", data=b"a\r\nb"), made("Array", items=()),
        made("Whole", number=-7),
    )  # fmt: skip
    deep = made("Simple", text="a")
    deepest = made("Array", items=())
    for _ in range(7):
        deep, deepest = made("Array", items=(deep,)), made("Array", items=(deepest,))
    too_deep = made("Array", items=(deepest,))
    tags = "'$-1', 0x2b, 0x3a, 0x24 or 0x2a"
    limit = "value" + ".items[0]" * 8, "limit", "at most 8 values inside each other", "more"
    return Case(
        "reply",
        any_message(ir.Frame("reply", (field("value", value),)), max_depth=8),
        good=(
            (
                first(value=made("Array", items=items)),
                (b"*5\r\n+OK\r\n$-1\r\n$4\r\na\r\nb\r\n*0\r\n:-7\r\n",),
            ),
            (first(value=deep), (b"*1\r\n" * 7 + b"+a\r\n",)),
            (first(value=deepest), (b"*1\r\n" * 7 + b"*0\r\n",)),
        ),
        refused=(
            ((b"*1\r\n" * 8 + b"+a\r\n",), Fault(*limit, 32, 0)),
            ((b"*1\r\n" * 100_000,), Fault(*limit, 32, 0)),
            ((b"*2\r\n+a\r\n",), Fault("value.items[1]", "length", tags, "nothing", 8, 0)),
            ((b"*2\r\n*1\r\n?\r\n",), Fault("value.items[0].items[0]", "tag", tags, "0x3f0d0a", 8, 0)),
            ((b"+a\r\n+b\r\n",), Fault(None, "trailing", "the end of the frame", "4 more octets", 4, 0)),
        ),
        unfit=((first(value=too_deep), Fault(*limit)),),
    )


def _chain() -> Case:
    """A record that may contain another of its kind."""
    number = ir.BitType(1, 0, 7)
    following = ir.Option("number", 1, field="more", values=(1,))
    link = ir.RecordType(
        "link", "Link",
        (
            field("more", ir.BitType(1, 7, 1, announces=True)), field("number", number),
            field("following", ir.EnclosingType("Link"), option=following),
        ),
        "link",
    )  # fmt: skip
    last = made("Link", number=3, following=None)
    second = made("Link", number=2, following=last)
    third = made("Link", number=1, following=second)
    return Case(
        "chain",
        one_message(constant("mark", b"\xee"), field("link", link), max_depth=2),
        good=((first(link=second), (bytes.fromhex("ee 82 03"),)), (first(link=last), (bytes.fromhex("ee 03"),))),
        refused=(
            (
                (bytes.fromhex("ee 81 82 03"),),
                Fault("link.following.following", "limit", "at most 2 values inside each other", "more", 3, 0),
            ),
            (
                (bytes.fromhex("ee 81"),),
                Fault("link.following.more", "length", "1 octet", "0", 2, 0),
            ),
        ),
        unfit=(
            (
                first(link=third),
                Fault("link.following.following", "limit", "at most 2 values inside each other", "more"),
            ),
        ),
    )  # fmt: skip


def _open_choice() -> Case:
    """Alternatives at the end of a frame: one goes on to the end, another has a fixed size, one is a list to the end."""

    def option(number: int, name: str, *fields: ir.Field) -> ir.RecordType:
        return ir.RecordType(name.lower(), name, (constant("mark", bytes([number])), *fields), name.lower())

    body = ir.UnionType(
        "body",
        (
            option(3, "Note", field("data", octets())), option(4, "Keep"), option(5, "Words", field("text", text())),
            option(6, "Pairs", field("pairs", ir.ListType(0, ir.IntegerType(2)))),
            option(7, "Tail", field("start", octets("rest", octets=1)), field("end", ir.IntegerType(1))),
        ),
        ("03", "04", "05", "06", "07"),
    )  # fmt: skip
    return Case(
        "open-choice",
        one_message(constant("mark", b"\x09"), field("body", body)),
        good=(
            (first(body=made("Note", data=b"ab")), (b"\x09\x03ab",)),
            (first(body=made("Note", data=b"")), (b"\x09\x03",)),
            (first(body=made("Keep")), (b"\x09\x04",)),
            (first(body=made("Words", text="a")), (b"\x09\x05a",)),
            (first(body=made("Pairs", pairs=(1, 258))), (b"\x09\x06\x00\x01\x01\x02",)),
            (first(body=made("Tail", start=b"ab", end=7)), (b"\x09\x07ab\x07",)),
        ),
        refused=(
            ((b"\x09\x04a",), Fault(None, "trailing", "the end of the frame", "1 more octet", 2, 0)),
            ((b"\x09\x07",), Fault("body.start", "length", "at least 1 octet", "0", 2, 0)),
        ),
    )


CASES = (
    _header(), _packet(), _lengths(), _options(), _numbers(), _trailing(), _commands(), _choices(), _wrapped(),
    _delimited(), _reply(), _chain(), _open_choice(),
)  # fmt: skip
