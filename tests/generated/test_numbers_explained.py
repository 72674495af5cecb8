"""Numbers of every coding, counters and checksums: what the slow paths say of them, with octets written by hand.

The layouts have one message of one frame: the octet 0x01, then the fields.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from specwire.generated.errors import EncodeError
from specwire.generated.layout import (
    Boolean,
    Checksum,
    Constant,
    Counter,
    Digits,
    Field,
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
from specwire.generated.marks import mark_fields
from specwire.generated.named_plan import named_plan
from specwire.generated.refusal import explain_decode
from specwire.generated.writer import Writer

Types = dict[str, Type]

COUNTED, REST = Span("counted"), Span("rest")
DEMO_UUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def layout(**types: Type) -> ProtocolLayout:
    fields = [Field("id", "id_", "id", Constant(b"\x01", "0x01"))]
    fields += [Field(name, name, name, type) for name, type in types.items()]
    message = MessageLayout("DEMO", "Demo", ((b"\x01",),), (Frame("DEMO", tuple(fields)),))
    return ProtocolLayout("demo", "Demo v1", ((0, 1),), (message,))


def written(demo: ProtocolLayout, **values: Any) -> bytes:
    plan = named_plan(demo)
    message = plan.messages["Demo"]
    pieces = Writer(plan, message, __name__, strict=False).run(
        message.parts[0].body, SimpleNamespace(**values)
    )
    return b"".join(octets for _, octets in pieces)


COUNTER: Types = {"size": Counter(Integer(1), ("body",), 2), "kind": Integer(1), "body": Octets(COUNTED)}
REGION: Types = {
    "size": Counter(Integer(2, order="little"), ("kind", "body")),
    "kind": Integer(1),
    "body": Text(REST),
}
COUNT: Types = {
    "count": Counter(Varint(), ("items",)),
    "kind": Integer(1),
    "items": ListOf(0, Integer(2), counted=True),
}
TRAILER: Types = {"body": Text(Span("rest", 2)), "last": Integer(2)}
SUM: Types = {"body": Octets(Span("fixed", 2)), "gap": Octets(Span("fixed", 1)), "end": Octets(Span("fixed", 1)),
       "sum": Checksum(Integer(2, order="little"), "sum8", ("body", "end"))}  # fmt: skip
ALIGNED: Types = {"body": Text(Span("prefix", 1)), "filler": Padding(0, b"-", 4), "last": Integer(1)}

GOOD: list[tuple[Types, dict[str, Any], str]] = [
    ({"n": Integer(3, order="little", signed=True)}, {"n": -2}, "feffff"),
    ({"n": Integer(2, order="little")}, {"n": 258}, "0201"),
    ({"n": Float(4)}, {"n": 1.0}, "3f800000"),
    ({"n": Float(8, "little")}, {"n": -2.0}, "00000000000000c0"),
    ({"n": Boolean(2)}, {"n": True}, "0001"),
    ({"n": Varint()}, {"n": 300}, "ac02"),
    ({"n": Varint("big", 4)}, {"n": 300}, "822c"),
    ({"n": Varint(signed="zigzag")}, {"n": -3}, "05"),
    ({"n": Varint(signed="complement")}, {"n": -1}, "7f"),
    ({"n": Digits(10, 3, 5), "end": Constant(b" ", "' '")}, {"n": 42}, "30343220"),
    ({"n": Digits(16, 1, 4, True)}, {"n": -255}, "2d6666"),
    ({"u": Uuid()}, {"u": DEMO_UUID}, "00112233445566778899aabbccddeeff"),
    ({"u": Uuid("little")}, {"u": DEMO_UUID}, "33221100554477668899aabbccddeeff"),
    (COUNTER, {"kind": 9, "body": b"abc"}, "0509616263"),
    (REGION, {"kind": 9, "body": "ab"}, "0300096162"),
    (COUNT, {"kind": 9, "items": (1, 2)}, "020900010002"),
    (TRAILER, {"body": "ab", "last": 7}, "61620007"),
    (SUM, {"body": b"\x01\x02", "gap": b"\xff", "end": b"\x04"}, "0102ff040700"),
    (ALIGNED, {"body": "a", "last": 7}, "01612d07"),
]  # fmt: skip


@pytest.mark.parametrize(("types", "values", "octets"), GOOD, ids=range(len(GOOD)))
def test_values_and_their_octets(types: Types, values: dict[str, Any], octets: str) -> None:
    demo = layout(**types)
    frame = b"\x01" + bytes.fromhex(octets)
    assert written(demo, **values) == frame
    marks, fault = mark_fields(demo, [frame])
    assert fault is None
    assert list(dict.fromkeys(mark.field.partition("[")[0] for mark in marks)) == ["id", *types]


BAD: list[tuple[Types, str, tuple[str | None, int, str, str, str]]] = [
    ({"n": Integer(2, (1, 2), "little")}, "0300", ("n", 1, "range", "1 or 2", "3")),
    ({"n": Float(4)}, "0000", ("n", 1, "length", "4 octets", "2")),
    ({"n": Boolean()}, "02", ("n", 1, "range", "0 or 1", "2")),
    ({"n": Varint()}, "80", ("n", 1, "length", "2 octets", "1")),
    ({"n": Varint(maximum=2)}, "8080", ("n", 1, "range", "a number of at most 2 octets", "0x8080")),
    ({"n": Varint()}, "80" * 9 + "02", ("n", 1, "range", "a number of at most 64 bits", "0x80808080808080808002")),
    ({"n": Digits(10, 2, 4)}, "31", ("n", 1, "length", "at least 2 digits", "0x31")),
    ({"n": Digits(10, 2, 4)}, "316120", ("n", 1, "text", "at least 2 digits", "'1a '")),
    ({"n": Digits(10, 1, 3, True)}, "2d30", ("n", 1, "range", "0 without a sign", "0x2d30")),
    ({"n": Digits(16, 1, 20)}, "31" + "30" * 16,
     ("n", 1, "range", "a number of at most 64 bits", "'10000000000000000'")),
    ({"u": Uuid()}, "0011", ("u", 1, "length", "16 octets", "2")),
    (COUNTER, "0109", ("size", 1, "range", "at least 2", "1")),
    (COUNTER, "050961", ("body", 3, "length", "3 octets", "1")),
    (REGION, "05000961", ("size", 1, "length", "at most 2, the number of octets left", "5")),
    (REGION | {"body": Text(Span("fixed", 1))}, "0300096162",
     ("size", 5, "trailing", "the end of the octets that size counts", "1 more octet")),
    (COUNT, "03090001", ("count", 1, "count", "at most 2 entries in 2 octets", "3")),
    (TRAILER, "07", ("body", 1, "length", "at least 2 octets", "1")),
    (SUM, "0102ff040800", ("sum", 5, "checksum", "0x0007", "0x0008")),
    (ALIGNED, "0161", ("filler", 3, "length", "1 octet", "0")),
]  # fmt: skip


@pytest.mark.parametrize(("types", "octets", "fault"), BAD, ids=range(len(BAD)))
def test_faulty_octets(types: Types, octets: str, fault: tuple[str | None, int, str, str, str]) -> None:
    error = explain_decode(layout(**types), [b"\x01" + bytes.fromhex(octets)])
    assert (error.field, error.offset, error.kind, error.expected, error.found) == fault


UNFIT: list[tuple[Types, dict[str, Any], tuple[str, str, str, str]]] = [
    ({"n": Integer(2, signed=True)}, {"n": 2**15}, ("n", "range", "-32768 to 32767", "32768")),
    ({"n": Float(4)}, {"n": 1e39}, ("n", "range", "a floating-point number of 4 octets", "float 1e+39")),
    ({"n": Boolean()}, {"n": 1}, ("n", "range", "False or True", "int 1")),
    ({"n": Varint(maximum=1)}, {"n": 128}, ("n", "range", "0 to 127", "128")),
    ({"n": Varint(maximum=1, signed="zigzag")}, {"n": -65}, ("n", "range", "-64 to 63", "-65")),
    ({"n": Digits(10, 1, 3)}, {"n": 1000}, ("n", "range", "0 to 999", "1000")),
    ({"u": Uuid()}, {"u": b"x"}, ("u", "range", "a UUID", "bytes b'x'")),
    (COUNTER, {"kind": 9, "body": b"x" * 254}, ("body", "length", "at most 253 octets", "254")),
    (COUNT | {"count": Counter(Varint(maximum=1), ("items",))}, {"kind": 9, "items": (1,) * 128},
     ("items", "count", "at most 127 entries", "128")),
    (REGION | {"size": Counter(Integer(1), ("kind", "body"))}, {"kind": 9, "body": "x" * 255},
     ("size", "length", "at most 255 octets", "256")),
]  # fmt: skip


@pytest.mark.parametrize(("types", "values", "fault"), UNFIT, ids=range(len(UNFIT)))
def test_values_that_have_no_octets(
    types: Types, values: dict[str, Any], fault: tuple[str, str, str, str]
) -> None:
    with pytest.raises(EncodeError) as refused:
        written(layout(**types), **values)
    error = refused.value
    assert (error.field, error.kind, error.expected, error.found) == fault
