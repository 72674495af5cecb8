"""The octet drawings of reference pages: offsets counted by hand from the specifications."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import (
    Box,
    Group,
    boxes_of,
    condition_text,
    fixed_octets,
    hex_text,
    run_of,
)
from specwire.generator.emit.reference.octets import draw_frame, plan_frame
from specwire.generator.emit.reference.wording import octets_words, type_words
from tests.generator.reference_pages import compilation, drawings, page_of

# FILEMQ v2: signature AA A3, one octet of id, then the fields in the order of the grammar; sizes in octets.
# Flux v1: the header is magic, version, type and flags of an octet each, then four integers of four.
# ZRE v2: signature AA A1, id, version of one octet, sequence of two. ZMTP 3.1: a greeting of 64 octets, the
# signature of ten (FF, eight of padding, 7F), two of version, 20 of mechanism, as-server, 31 zeros.
DERIVED = [
    ("filemq", "Nom", "NOM", [("signature", 0, 2), ("id", 2, 1), ("credit", 3, 8)]),
    ("filemq", "Ohai", "OHAI", [("signature", 0, 2), ("id", 2, 1), ("protocol", 3, 7), ("version", 10, 1)]),
    (
        "filemq",
        "Cheezburger",
        "CHEEZBURGER",
        [("signature", 0, 2), ("id", 2, 1), ("sequence", 3, 8), ("operation", 11, 1)],
    ),
    (
        "flux",
        "Request",
        "PROTO",
        [
            *[("magic", 0, 1), ("version", 1, 1), ("id", 2, 1), ("flags", 3, 1)],
            *[("userid", 4, 4), ("rolemask", 8, 4), ("nodeid", 12, 4), ("matchtag", 16, 4)],
        ],
    ),
    (
        "zmtp",
        "Greeting",
        "greeting",
        [
            *[("id", 0, 1), ("padding", 1, 8), ("id_2", 9, 1), ("version", 10, 2), ("mechanism", 12, 20)],
            *[("as_server", 32, 1), ("filler", 33, 31)],
        ],
    ),
    ("zre", "Join", "join", [("signature", 0, 2), ("id", 2, 1), ("version", 3, 1), ("sequence", 4, 2)]),
]


def fields_of(protocol: str, message: str, part: str) -> tuple[ir.Field, ...]:
    """Return the fields of a frame."""
    (found,) = (m for m in compilation(protocol).protocol.messages if m.class_name == message)
    (frame,) = (p for p in found.parts if p.name == part and isinstance(p, ir.Frame))
    return frame.fields


def field(name: str, type: ir.Type, *, optional: bool = False) -> ir.Field:
    """Return a field of a made-up frame."""
    return ir.Field(name, name, type, None, 1, "", optional=optional)


@pytest.mark.parametrize(("protocol", "message", "part", "expected"), DERIVED)
def test_offsets_are_those_of_the_specification(
    protocol: str, message: str, part: str, expected: list[tuple[str, int, int]]
) -> None:
    """Every fixed field stands where the specification has it, in the plan and in the drawing."""
    fields = fields_of(protocol, message, part)
    drawn = [
        (group.get("data-field", "").partition(" = ")[0], group.get("data-offset"), group.get("data-octets"))
        for group in fromstring(draw_frame(fields, "test")).iter("g")
    ]
    assert drawn == [(name, str(offset), str(octets)) for name, offset, octets in expected]


def test_a_value_that_crosses_rows_is_cut_into_rows() -> None:
    """NOM's credit begins at octet 3: one octet in the first row, four in the second, three in the third."""
    pieces = plan_frame(fields_of("filemq", "Nom", "NOM")).pieces
    assert [(p.offset, p.octets) for p in pieces if p.box.label == "credit"] == [(3, 1), (4, 4), (8, 3)]


def test_offsets_end_at_the_first_variable_value() -> None:
    """CHEEZBURGER's filename begins at octet 12; where offset and headers begin depends on it."""
    rows = plan_frame(fields_of("filemq", "Cheezburger", "CHEEZBURGER")).rows
    assert [offset for offset, _ in rows] == [12, None, None]


def test_many_octets_take_one_row() -> None:
    """1000 octets at offset 2 are drawn as two octets, one row for 996, and two octets."""
    fields = (field("a", ir.IntegerType(2)), field("filler", ir.OctetsType(ir.Length("fixed", 1000))))
    pieces = plan_frame(fields).pieces[1:]
    assert [(p.offset, p.octets, p.squeezed) for p in pieces] == [
        (2, 2, False),
        (4, 996, True),
        (1000, 2, False),
    ]
    assert plan_frame(fields).rows == ()


def test_empty_frames_are_drawn_as_such() -> None:
    """A frame without fields, or with an empty constant only, has no octets."""
    for fields in ((), (field("empty", ir.ConstantType("")),)):
        texts = [text.text for text in fromstring(draw_frame(fields, "test")).iter("text")]
        assert "no octets" in texts


TEXT = ir.TextType(ir.Length("prefix", 1))
LONG = ir.TextType(ir.Length("prefix", 4))
POINT = ir.RecordType("point", "Point", (field("x", ir.IntegerType(2)), field("y", ir.IntegerType(2))))
NOTE = ir.RecordType("note", "Note", (field("tag", ir.ConstantType("4e")), field("body", TEXT)))
TYPES: list[tuple[ir.Type, int | None, str]] = [
    (ir.ConstantType("aaa3"), 2, "2"),
    (ir.KeywordType(("yes", "noo")), 3, "3"),
    (ir.KeywordType(("yes", "no")), None, "yes or no"),
    (ir.IntegerType(3), 3, "3"),
    (TEXT, None, "1 + length"),
    (ir.TextType(ir.Length("rest")), None, "to the end"),
    (ir.OctetsType(ir.Length("fixed", 16)), 16, "16"),
    (ir.JsonType(), None, "to the end"),
    (ir.PaddingType(5), 5, "5"),
    (ir.SizeType((ir.SizeForm("", 8),)), 8, "8"),
    (ir.SizeType((ir.SizeForm("00", 1), ir.SizeForm("01", 8))), None, "(2 or 9)"),
    (ir.ListType(2, ir.IntegerType(4)), None, "2 + count · (4)"),
    (ir.ListType(0, POINT), None, "many · (4)"),
    (ir.PairsType(4, TEXT, LONG), None, "4 + count · (5 + length + length)"),
    (ir.PairsType(1, TEXT, None, "first"), None, "1 + count · (1 + length)"),
    (POINT, 4, "4"),
    (ir.UnionType("either", (POINT, NOTE), ("", "4e")), None, "(4 or (2 + length))"),
    (ir.BitType(2, 11, 4), 2, "4 bits"),
    (ir.CounterType(ir.BitType(1, 0, 1), ("body",)), 1, "1 bit"),
    (ir.EnclosingType("either"), None, "either again"),
    (ir.TextType(ir.Length("run", 1, among="6162")), None, "1 or more allowed characters"),
    (ir.ListType(0, ir.IntegerType(1), until="ff", before="01", after="fe"), None, "many · (3)"),
    (ir.PairsType(1, TEXT, TEXT, between="3d"), None, "1 + count · (3 + length + length)"),
    (ir.KeywordType(("yes", "noo"), folded=True), 3, "3"),
]


@pytest.mark.parametrize(("type", "octets", "words"), TYPES, ids=lambda value: str(value)[:40])
def test_every_type_has_its_size_and_can_be_drawn(type: ir.Type, octets: int | None, words: str) -> None:
    """Sizes are added up by hand: a record of two integers of two octets has four."""
    items = boxes_of("value", type)
    assert fixed_octets(items) == octets
    assert octets_words("value", type) == words
    assert type_words(type)
    drawn = fromstring(draw_frame((field("first", ir.IntegerType(1)), field("value", type)), "test"))
    assert drawn.get("aria-label") == "test"


def test_optional_fields_have_no_fixed_size() -> None:
    """A field that the frame may end before is drawn apart, and leaves the offset behind it open."""
    run = (field("a", ir.IntegerType(1)), field("b", ir.IntegerType(1), optional=True))
    assert fixed_octets(run_of(run)) is None
    plan = plan_frame(run)
    assert [piece.box.label for piece in plan.pieces] == ["a"]
    assert [offset for offset, _ in plan.rows] == [1]


def test_bits_share_the_octets_of_their_integer() -> None:
    """DNS: after two octets of id, the bits of two more, 20 pixels each; the last octet begins a row."""
    run = (
        field("first", ir.IntegerType(1)), field("id", ir.IntegerType(2)),
        field("qr", ir.BitType(2, 15, 1, boolean=True)), field("opcode", ir.BitType(2, 11, 4)),
        field("middle", ir.BitType(2, 4, 7, spare=True)), field("rcode", ir.BitType(2, 0, 4)),
        field("last", ir.IntegerType(1)),
    )  # fmt: skip
    assert fixed_octets(run_of(run)) == 6
    assert [(piece.offset, piece.octets) for piece in plan_frame(run).pieces][-3:] == [(3, 1), (4, 1), (5, 1)]
    cells = [
        rect for rect in fromstring(draw_frame(run, "test")).iter("rect") if "box" in rect.get("class", "")
    ]
    assert [(cell.get("class"), cell.get("width")) for cell in cells] == [
        ("box value", "20"), ("box value", "80"), ("box padding", "60"),
        ("box padding", "80"), ("box value", "80"),
    ]  # fmt: skip


def test_fields_of_an_option_are_drawn_together_under_their_condition() -> None:
    option = ir.Option("number", 1, field="flags", mask=0x80, values=(0x80,))
    inside = tuple(
        msgspec.structs.replace(field(name, ir.IntegerType(2)), option=option) for name in ("one", "two")
    )
    plan = plan_frame((field("flags", ir.IntegerType(1)), *inside, field("rest", ir.JsonType())))
    boxes = (Box("one", 2), Box("two", 2))
    assert plan.rows[0] == (1, (Group("", boxes, "(if flags & 0x80 is 0x80)"),))
    assert [offset for offset, _ in plan.rows] == [1, None]
    colon = ir.Option("octets", octets="3a", folded=True)
    assert condition_text(colon) == "if the next octets are “:”, in either case"
    assert condition_text(ir.Option("left", left=2)) == "if more than 2 octets are left"


def test_records_of_fixed_size_stay_in_the_grid() -> None:
    """The fields of a record are named with it and have offsets of their own."""
    pieces = plan_frame((field("id", ir.IntegerType(1)), field("at", POINT))).pieces
    assert [(piece.box.label, piece.offset) for piece in pieces] == [
        ("id", 0),
        ("at.x", 1),
        ("at.y", 3),
        ("at.y", 4),
    ]


def test_deep_nesting_takes_no_time() -> None:
    """Lists in lists in lists: each level is measured once, not once for each level above."""
    type: ir.ListType = ir.ListType(1, ir.IntegerType(1))
    for _ in range(60):
        type = ir.ListType(1, type)
    assert draw_frame((field("deep", type),), "test")


def test_long_constants_are_cut() -> None:
    """Of what is longer than eight octets, the first four stand for all."""
    assert hex_text(bytes(31)) == "00 00 00 00 …"
    assert hex_text(bytes(8)) == "00 00 00 00 00 00 00 00"
    assert hex_text(b"\xaa\xa3") == "AA A3"


@pytest.mark.parametrize("name", ["filemq", "flux", "norfab", "zre"])
def test_no_text_leaves_its_box(name: str) -> None:
    """In every drawing, a label is no wider than the box around it: 7.25 pixels for each character."""
    for drawing in drawings(page_of(name), "octets"):
        width = float(drawing.get("width", "0"))
        for rect in drawing.iter("rect"):
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= width
        for text in drawing.iter("text"):
            said = text.text or ""
            middle = float(text.get("x", "0"))
            if "offset" not in text.get("class", "") and "caption" not in text.get("class", ""):
                assert middle - len(said) * 3.7 >= -1 and middle + len(said) * 3.7 <= width + 1, said


def test_boxes_and_groups_are_values() -> None:
    """Two descriptions of one type are equal, so that they can be compared."""
    assert boxes_of("a", TEXT) == (Box("length", 1, "size"), Box("a", None, note="length octets"))
    assert boxes_of("a", ir.ListType(2, ir.IntegerType(1))) == (
        Box("count", 2, "size"),
        Group("a", (Box("a[…]", 1),), "(count times)"),
    )


def test_numbers_that_count_and_check() -> None:
    """A counter is named in the box of what it counts; numbers of variable size have their limits."""
    number = ir.IntegerType(2, order="little")
    fields = (
        field("size", ir.CounterType(number, ("body",))),
        field("number", ir.CounterType(ir.VarintType(maximum=3), ("items",), 1)),
        field("items", ir.ListType(0, ir.FloatType(8), counted=True)),
        field("body", ir.OctetsType(ir.Length("counted"))),
        field("filler", ir.PaddingType(0, multiple=4)),
        field("crc", ir.ChecksumType(ir.IntegerType(4), "crc32c", ("body", "items"))),
    )
    assert run_of(fields) == (
        Box("size", 2, "size"),
        Box("number", None, "size", "1 to 3 octets"),
        Group("items", (Box("items[…]", 8),), "(number-1 times)"),
        Box("body", None, note="size octets"),
        Box("filler", None, "padding", "to a multiple of 4 octets"),
        Box("crc", 4, "size"),
    )
    varint = ir.VarintType(maximum=2)
    text = ir.TextType(ir.Length("prefix", 1, number=varint))
    assert boxes_of("text", text) == (
        Box("length", None, "size", "1 to 2 octets"),
        Box("text", None, note="length octets"),
    )
    items = ir.ListType(1, ir.IntegerType(1), number=varint)
    assert boxes_of("items", items)[0] == Box("count", None, "size", "1 to 2 octets")
    assert [type_words(one.type) for one in fields] == [
        "unsigned integer, little-endian: number of octets or items of body",
        (
            "unsigned integer, groups of 7 bits, last group most significant: "
            "number of octets or items of items, plus 1"
        ),
        "list of floating-point number of 64 bits",
        "octets",
        "padding, written as 0x00",
        "unsigned integer: crc32c checksum of body, items",
    ]


@pytest.mark.parametrize(
    ("type", "octets", "words"),
    [
        (ir.IntegerType(4, signed=True), "4", "signed integer"),
        (ir.FloatType(4, "little"), "4", "floating-point number of 32 bits, little-endian"),
        (ir.BooleanType(), "1", "boolean: 0 or 1"),
        (
            ir.VarintType(signed="zigzag"),
            "1 to 10 octets",
            "signed integer (zigzag), groups of 7 bits, last group most significant",
        ),
        (ir.DigitsType(16, 8, 8), "8", "unsigned integer in hexadecimal digits"),
        (ir.DigitsType(signed=True), "1 to 20 digits", "signed integer in decimal digits"),
        (ir.UuidType("little"), "16", "UUID, little-endian"),
        (ir.OctetsType(ir.Length("rest", 4)), "to the last 4 octets", "octets"),
    ],
)
def test_numbers_in_words(type: ir.Type, octets: str, words: str) -> None:
    assert octets_words("value", type) == octets
    assert type_words(type) == words
