"""Numbers of every coding, counters, regions, alignment and checksums, as tshark shows them.

The octets are written by hand: floats by `struct`, varints from the documentation of Protocol Buffers,
checksums from the catalogue of cyclic redundancy checks (those of ``123456789``).
"""

from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import pytest

from specwire.generator import ir
from tests.generator.editions import field, message, protocol, record
from tests.wireshark.traffic import Connection, write_pcap
from tests.wireshark.traffic import message as on_the_stream
from tests.wireshark.tshark import NEEDS_TSHARK, Shown, dissect, write_dissectors

pytestmark = NEEDS_TSHARK

UUID_TEXT = "12345678-9abc-def0-1122-334455667788"
VARINT, ZIGZAG, SLEB = ir.VarintType(), ir.VarintType(signed="zigzag"), ir.VarintType(signed="complement")
BIG_GROUPS = ir.VarintType("big", 4)
DIGITS, HEX = ir.DigitsType(maximum=20), ir.DigitsType(16, 2, 16)
SIGNED_DIGITS = ir.DigitsType(signed=True)

NUMBERS: list[tuple[ir.Type, bytes, str]] = [
    (ir.IntegerType(2, order="little"), b"\x01\x02", "513"),
    (ir.IntegerType(3, order="little"), b"\x01\x02\x03", "197121"),
    (ir.IntegerType(7, order="little"), b"\x01\0\0\0\0\0\x01", "281474976710657"),
    (ir.IntegerType(1, signed=True), b"\xff", "-1"),
    (ir.IntegerType(3, signed=True), b"\x80\0\0", "-8388608"),
    (ir.IntegerType(5, signed=True), b"\xff\xff\xff\xff\xfe", "-2"),
    (ir.IntegerType(8, order="little", signed=True), bytes(7) + b"\x80", "-9223372036854775808"),
    (ir.FloatType(4), struct.pack(">f", -1.5), "-1.5"),
    (ir.FloatType(8, "little"), struct.pack("<d", 0.15625), "0.15625"),
    (ir.BooleanType(), b"\x01", "1"),
    (ir.BooleanType(2, "little"), b"\0\0", "0"),
    (VARINT, b"\x96\x01", "150"),
    (VARINT, b"\xff" * 9 + b"\x01", "18446744073709551615"),
    (VARINT, b"\x80\0", "0"),
    (ir.VarintType("big", 4), b"\x81\0", "128"),
    (ZIGZAG, b"\x03", "-2"),
    (ZIGZAG, b"\xff" * 9 + b"\x01", "-9223372036854775808"),
    (ZIGZAG, b"\xfe" + b"\xff" * 8 + b"\x01", "9223372036854775807"),
    (SLEB, b"\x7e", "-2"),
    (SLEB, b"\x80\x7f", "-128"),
    (SLEB, b"\xff\0", "127"),
    (DIGITS, b"0042", "42"),
    (DIGITS, b"18446744073709551615", "18446744073709551615"),
    (HEX, b"Ff", "255"),
    (HEX, b"ffffffffffffffff", "18446744073709551615"),
    (SIGNED_DIGITS, b"-9223372036854775808", "-9223372036854775808"),
    (ir.UuidType(), UUID(UUID_TEXT).bytes, UUID_TEXT),
    (ir.UuidType("little"), UUID(UUID_TEXT).bytes_le, UUID_TEXT),
]

FAULTS: list[tuple[ir.Type, bytes, str]] = [
    (ir.IntegerType(2, values=(1, 2), order="little"), b"\0\x01", "expected 1 or 2, found 256"),
    (ir.IntegerType(1, values=(-1, 2), signed=True), b"\xfe", "expected -1 or 2, found -2"),
    (ir.BooleanType(), b"\x02", "expected 0 or 1, found 2"),
    (VARINT, b"\x96", "expected 2 octets, found 1"),
    (VARINT, b"", "expected 1 octet, found 0"),
    (BIG_GROUPS, b"\x81\x82\x83\x84\0", "expected a number of at most 4 octets, found 0x81828384"),
    (VARINT, b"\xff" * 9 + b"\x02", "expected a number of at most 64 bits, found 0x" + "ff" * 9 + "02"),
    (SLEB, b"\x80" * 9 + b"\x7e", "expected a number of at most 64 bits, found 0x" + "80" * 9 + "7e"),
    (DIGITS, b"x", "expected at least 1 digit, found 0x78"),
    (DIGITS, b"", "expected at least 1 digit, found nothing"),
    (DIGITS, b"18446744073709551616", "expected a number of at most 64 bits, found '18446744073709551616'"),
    (SIGNED_DIGITS, b"-0", "expected 0 without a sign, found 0x2d30"),
    (
        SIGNED_DIGITS,
        b"9223372036854775808",
        "expected a number of at most 64 bits, found '9223372036854775808'",
    ),
]


class Case:
    """What tshark shows of one message of the protocol ``demo``."""

    def __init__(self, number: int, packet: Shown) -> None:
        self.packet = packet
        self.faults = packet.faults
        self.name = f"demo{number}"

    def field(self, path: str) -> str:
        """Return the name of a field; where other messages have another type, it has the message's name."""
        own = f"demo.{self.name}.{path}"
        return own if self.packet.octets(own) else f"demo.{path}"

    def values(self, path: str) -> list[str]:
        return self.packet.values(self.field(path))

    def octets(self, path: str) -> list[str]:
        return self.packet.octets(self.field(path))


def shown(folder: Path, *cases: tuple[tuple[ir.Field, ...], bytes]) -> list[Case]:
    """Return what tshark shows of frames, each of a message with these fields after three octets."""
    messages = [message(f"demo{number}", number, *fields) for number, (fields, _) in enumerate(cases)]
    connection = Connection(server=6000)
    for number, (_, octets) in enumerate(cases):
        connection.send(on_the_stream([bytes((0xAA, 0xA3, number)) + octets]), sizes=(65000,))
    write_pcap(folder / "all.pcap", [connection])
    scripts = write_dissectors(folder, [protocol(*messages)])
    packets = dissect(folder / "all.pcap", scripts, "-o", "demo.ports:6000")
    return [Case(number, packet) for number, packet in enumerate(packets)]


def test_numbers(tmp_path: Path) -> None:
    cases = shown(tmp_path, *(((field("value", type),), octets) for type, octets, _ in NUMBERS))
    for (type, octets, text), case in zip(NUMBERS, cases, strict=True):
        assert case.faults == [], (type, octets)
        assert case.values("value") == [text], (type, octets)
        assert case.octets("value") == [octets.hex()]


def test_faults(tmp_path: Path) -> None:
    cases = shown(tmp_path, *(((field("value", type),), octets) for type, octets, _ in FAULTS))
    for (type, octets, fault), case in zip(FAULTS, cases, strict=True):
        assert case.faults[0] == f"{case.name}.value at octet 3: {fault} [Demo v1 {case.name}]", (
            type,
            octets,
        )


def test_enumerations_and_flags_keep_their_names_in_either_order(tmp_path: Path) -> None:
    kind = field("kind", ir.IntegerType(2, enum="kind", order="little"), unit="pieces")
    (case,) = shown(tmp_path, ((kind,), b"\x03\0"))
    assert case.packet.labels("demo.kind") == ["kind: kind_3 (3) [pieces]"]


COUNTED = (
    field("number", ir.CounterType(VARINT, ("items",), 1)),
    field("size", ir.CounterType(ir.IntegerType(2, order="little"), ("name", "filler", "rest"), 2)),
    field("items", ir.ListType(0, ir.IntegerType(2, order="little"), counted=True)),
    field("name", ir.TextType(ir.Length("prefix", 1))),
    field("filler", ir.PaddingType(0, multiple=4)),
    field("rest", ir.OctetsType(ir.Length("rest"))),
    field("tail", ir.IntegerType(1)),
)
"""A counter of items, one of the octets of three fields, the last of which is open, and a field."""


def test_counters_and_regions(tmp_path: Path) -> None:
    # The name begins at octet 10 with its length and ends before octet 13, so three octets of padding follow.
    items, region = b"\x01\0\x02\0", b"\x02ab" + b"\xee" * 3 + b"xyz"
    rest = items + region + b"\x09"
    cases = shown(
        tmp_path,
        (COUNTED, b"\x03\x0b\0" + rest),
        (COUNTED, b"\x7f\x0b\0" + rest),
        (COUNTED, b"\x00\x0b\0" + rest),
        (COUNTED, b"\x03\x30\0" + rest),
        (COUNTED, b"\x03\x01\0" + rest),
        (COUNTED, b"\x03\x03\0" + rest),
    )
    assert cases[0].faults == []
    assert cases[0].values("items.item") == ["1", "2"]
    assert [cases[0].values(name) for name in ("number", "size", "name", "tail")] == [
        ["3"],
        ["11"],
        ["ab"],
        ["9"],
    ]
    assert [cases[0].octets(name) for name in ("filler", "rest")] == [["eeeeee"], [b"xyz".hex()]]
    assert [case.faults[0] for case in cases[1:]] == [
        "demo1.number at octet 3: expected at most 14 entries in 14 octets, found 126 [Demo v1 demo1]",
        "demo2.number at octet 3: expected at least 1, found 0 [Demo v1 demo2]",
        "demo3.size at octet 4: expected at most 12, the number of octets left, found 48 [Demo v1 demo3]",
        "demo4.size at octet 4: expected at least 2, found 1 [Demo v1 demo4]",
        "demo5.name at octet 11: expected 2 octets, found 0 [Demo v1 demo5]",
    ]


def test_what_a_region_does_not_read(tmp_path: Path) -> None:
    """The fault names the counter, and what follows the region is read."""
    fields = (
        field("size", ir.CounterType(ir.IntegerType(1), ("first", "second"))),
        field("first", ir.IntegerType(1)),
        field("second", ir.IntegerType(1)),
        field("tail", ir.IntegerType(1)),
    )
    (case,) = shown(tmp_path, (fields, b"\x04\x01\x02\xee\xee\x09"))
    expected = "the end of the octets that size counts, found 2 more octets"
    assert case.faults == [f"demo0.size at octet 6: expected {expected} [Demo v1 demo0]"]
    assert case.values("tail") == ["9"]
    assert case.octets("surplus") == ["eeee"]


def test_alignment_is_that_of_the_frame_or_the_record(tmp_path: Path) -> None:
    """One octet is missing to a multiple in the frame, and three in a record that begins at octet 4."""
    pad = ir.PaddingType(0, multiple=4)
    inner = record(ir.IntegerType(1), pad, ir.IntegerType(1))
    fields = (field("filler", pad), field("inner", inner))
    (case,) = shown(tmp_path, (fields, b"\xee" + b"\x01\xee\xee\xee\x02"))
    assert case.faults == []
    assert case.octets("filler") == ["ee"]
    assert case.octets("inner.item_1") == ["eeeeee"]
    assert case.values("inner.item_2") == ["2"]


def test_lengths_and_counts_of_any_coding(tmp_path: Path) -> None:
    """A varint before a text and before items; two digits before octets."""
    fields = (
        field("text", ir.TextType(ir.Length("prefix", 1, number=VARINT))),
        field("items", ir.ListType(1, ir.IntegerType(1), number=VARINT)),
        field("load", ir.OctetsType(ir.Length("prefix", 2, number=ir.DigitsType(10, 2, 2)))),
    )
    (case,) = shown(tmp_path, (fields, b"\x82\0ab" + b"\x03\x07\x08\x09" + b"04load"))
    assert case.faults == []
    assert case.values("text") == ["ab"]
    assert (case.values("items.count"), case.values("items.item")) == (["3"], ["7", "8", "9"])
    assert case.octets("load") == [b"load".hex()]


CHECKSUMS = {
    "crc32": (4, 0xCBF43926),
    "crc32c": (4, 0xE3069283),
    "crc16-ccitt": (2, 0x29B1),
    "crc16-modbus": (2, 0x4B37),
    "crc16-xmodem": (2, 0x31C3),
    "adler32": (4, 0x091E01DE),
    "internet": (2, 0xF62A),  # ~(0x3132 + 0x3334 + 0x3536 + 0x3738 + 0x3900), with the carry added
    "sum8": (1, 0xDD),
    "xor8": (1, 0x31),
}
"""Of ``123456789``: the catalogue of cyclic redundancy checks, RFC 1950, RFC 1071 by hand."""


@pytest.mark.parametrize("order", ["big", "little"])
def test_checksums(order: ir.Order, tmp_path: Path) -> None:
    """Of two ranges around a field that is not covered, before a trailer at the end of the frame."""
    cases, wanted = [], []
    for name, (octets, value) in CHECKSUMS.items():
        fields = (
            field("start", ir.OctetsType(ir.Length("fixed", 4))),
            field("other", ir.IntegerType(1)),
            field("end", ir.OctetsType(ir.Length("rest", octets))),
            field("sum", ir.ChecksumType(ir.IntegerType(octets, order=order), name, ("start", "end"))),
        )
        right = value.to_bytes(octets, order)
        wrong = (value ^ 1).to_bytes(octets, order)
        cases += [(fields, b"1234\xee56789" + right), (fields, b"1234\xee56789" + wrong)]
        expected = f"expected 0x{value:0{2 * octets}x}, found 0x{value ^ 1:0{2 * octets}x}"
        wanted += [[], [f"sum at octet 13: {expected}"]]
    for case, faults in zip(shown(tmp_path, *cases), wanted, strict=True):
        assert case.faults == [f"{case.name}.{fault} [Demo v1 {case.name}]" for fault in faults]
        assert case.octets("end") == [b"56789".hex()]


def test_a_function_of_the_user_is_not_checked_and_a_trailer_needs_its_octets(tmp_path: Path) -> None:
    fields = (
        field("body", ir.OctetsType(ir.Length("rest", 2))),
        field("sum", ir.ChecksumType(ir.IntegerType(2), "my.module:checksum", ("body",))),
    )
    unchecked, short = shown(tmp_path, (fields, b"abc\x12\x34"), (fields, b"\x12"))
    assert unchecked.faults == []
    assert unchecked.values("sum") == [str(0x1234)]
    assert short.faults == ["demo1.body at octet 3: expected at least 2 octets, found 1 [Demo v1 demo1]"]
