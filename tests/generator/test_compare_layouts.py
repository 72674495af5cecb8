"""What a comparison says of values with values inside, of sizes, padding, optional fields, patterns and units."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Change, Effect, Verdict
from tests.generator.editions import field, message, protocol, record, text, union

YES, DEPENDS, NO = Verdict.YES, Verdict.DEPENDS, Verdict.NO
U8, U16, U32 = ir.IntegerType(1), ir.IntegerType(2), ir.IntegerType(4)


def changes(old: ir.Type, new: ir.Type) -> list[tuple[str, str, Verdict, Verdict]]:
    """What changed in a protocol with one field: kind, path, how the old reads the new, and the new the old."""
    return [
        (change.kind, change.name, change.old_reads_new.verdict, change.new_reads_old.verdict)
        for change in found(old, new)
    ]


def found(old: ir.Type, new: ir.Type) -> tuple[Change, ...]:
    editions = (protocol(message("demo", 1, field("value", type))) for type in (old, new))
    return compare(*editions).changes


def size(*forms: tuple[str, int]) -> ir.SizeType:
    return ir.SizeType(tuple(ir.SizeForm(tag, octets) for tag, octets in forms))


def padded(octets: int, padding: str | None) -> ir.TextType:
    return ir.TextType(ir.Length("fixed", octets), padding=padding)


SHORT, LONG = ("04", 1), ("06", 8)
CASES: list[tuple[str, ir.Type, ir.Type, list[tuple[str, str, Verdict, Verdict]]]] = [
    ("a field more in a record", record(U8), record(U8, U16), [("added", "value.item_1", NO, NO)]),
    ("a field of a record resized", record(U8, U8), record(U16, U8), [("resized", "value.item_0", NO, NO)]),
    ("inside a list", ir.ListType(1, record(U8)), ir.ListType(1, record(U32)), [("resized", "value[].item_0", NO, NO)]),
    ("inside a list in a record", record(ir.ListType(1, record(U8))), record(ir.ListType(1, record(text(1)))),
     [("retyped", "value.item_0[].item_0", NO, NO)]),
    ("octets become text", record(ir.OctetsType(ir.Length("prefix", 1))), record(text(1)),
     [("retyped", "value.item_0", YES, DEPENDS)]),
    ("an option more", union(U8), union(U8, U16), [("added", "value.option_42", DEPENDS, YES)]),
    ("an option fewer", union(U8, U16), union(U8), [("removed", "value.option_42", YES, DEPENDS)]),
    ("inside an option", union(U8, U16), union(U8, U32), [("resized", "value.option_42.item_1", NO, NO)]),
    ("a list of records at least one", ir.ListType(1, record(U8)), ir.ListType(1, record(U8), 1), [("resized", "value", YES, DEPENDS)]),
    ("a list of numbers at least one", ir.ListType(1, U8), ir.ListType(1, U8, 1), [("resized", "value", YES, DEPENDS)]),
    ("a list that is counted", ir.ListType(0, record(U8)), ir.ListType(1, record(U8)), [("resized", "value", NO, NO)]),
    ("a form of a size more", size(SHORT), size(SHORT, LONG), [("resized", "value", DEPENDS, YES)]),
    ("another size", size(("", 1)), size(("", 2)), [("resized", "value", NO, NO)]),
    ("padding with other octets", ir.PaddingType(4), ir.PaddingType(4, "ff"), [("value", "value", YES, YES)]),
    ("more padding", ir.PaddingType(4), ir.PaddingType(5), [("resized", "value", NO, NO)]),
    ("padding that means something now", ir.PaddingType(4), U32, [("retyped", "value", YES, YES)]),
    ("a text filled with other octets", padded(4, "00"), padded(4, "20"), [("retyped", "value", DEPENDS, DEPENDS)]),
    ("a text that is filled up", padded(4, None), padded(4, "00"), [("retyped", "value", DEPENDS, DEPENDS)]),
    ("a maximum", ir.OctetsType(ir.Length("prefix", 1)), ir.OctetsType(ir.Length("prefix", 1), 0, 9), [("resized", "value", YES, DEPENDS)]),
    ("a value more", ir.IntegerType(1, values=(0, 1)), ir.IntegerType(1, values=(0, 1, 2)), [("value", "value", DEPENDS, YES)]),
    ("pairs of octets", ir.PairsType(1, text(1), text(1)), ir.PairsType(1, text(1), ir.OctetsType(ir.Length("prefix", 1))),
     [("resized", "value", DEPENDS, YES)]),
]  # fmt: skip

LITTLE = ir.IntegerType(2, order="little")
LEB, BIG_ENDIAN_LEB = ir.VarintType(), ir.VarintType(order="big")
NUMBERS: list[tuple[str, ir.Type, ir.Type, list[tuple[str, str, Verdict, Verdict]]]] = [
    ("the order of octets", U16, LITTLE, [("retyped", "value", NO, NO)]),
    ("the order of one octet", U8, ir.IntegerType(1, order="little"), [("retyped", "value", YES, YES)]),
    (
        "the order of the octets of values",
        ir.IntegerType(2, values=(1, 2)),
        ir.IntegerType(2, values=(1, 2), order="little"),
        [("retyped", "value", NO, NO)],
    ),
    ("a sign", U16, ir.IntegerType(2, signed=True), [("retyped", "value", NO, NO)]),
    (
        "a wider number of another order",
        U16,
        ir.IntegerType(4, order="little"),
        [("resized", "value", NO, NO)],
    ),
    ("an integer becomes a float", U32, ir.FloatType(4), [("retyped", "value", NO, NO)]),
    ("a wider float", ir.FloatType(4), ir.FloatType(8), [("resized", "value", NO, NO)]),
    (
        "the order of a float",
        ir.FloatType(8),
        ir.FloatType(8, order="little"),
        [("retyped", "value", NO, NO)],
    ),
    ("an integer becomes a boolean", U8, ir.BooleanType(), [("retyped", "value", YES, DEPENDS)]),
    (
        "values become a boolean",
        ir.IntegerType(1, values=(0, 1)),
        ir.BooleanType(),
        [("retyped", "value", YES, YES)],
    ),
    ("an integer becomes a varint", U8, LEB, [("retyped", "value", NO, NO)]),
    ("the order of a varint", LEB, BIG_ENDIAN_LEB, [("retyped", "value", NO, NO)]),
    ("the sign of a varint", LEB, ir.VarintType(signed="zigzag"), [("retyped", "value", NO, NO)]),
    ("a longer varint", ir.VarintType(maximum=4), LEB, [("retyped", "value", DEPENDS, YES)]),
    ("the base of digits", ir.DigitsType(), ir.DigitsType(16), [("retyped", "value", NO, NO)]),
    ("more digits", ir.DigitsType(maximum=5), ir.DigitsType(maximum=9), [("retyped", "value", DEPENDS, YES)]),
    ("digits with a sign", ir.DigitsType(), ir.DigitsType(signed=True), [("retyped", "value", DEPENDS, YES)]),
    (
        "text becomes digits",
        ir.TextType(ir.Length("fixed", 4)),
        ir.DigitsType(10, 4, 4),
        [("retyped", "value", YES, DEPENDS)],
    ),
    (
        "octets become a UUID",
        ir.OctetsType(ir.Length("fixed", 16)),
        ir.UuidType(),
        [("retyped", "value", YES, YES)],
    ),
    ("the order of a UUID", ir.UuidType(), ir.UuidType("little"), [("retyped", "value", NO, NO)]),
    ("a counter is computed", U16, ir.CounterType(U16, ("body",)), [("retyped", "value", YES, DEPENDS)]),
    (
        "a wider counter",
        ir.CounterType(U8, ("body",)),
        ir.CounterType(U16, ("body",)),
        [("resized", "value", NO, NO)],
    ),
    (
        "the order of a counter",
        ir.CounterType(U16, ("body",)),
        ir.CounterType(LITTLE, ("body",)),
        [("retyped", "value", NO, NO)],
    ),
    (
        "a counter counts more",
        ir.CounterType(U16, ("body",)),
        ir.CounterType(U16, ("body", "tail")),
        [("retyped", "value", NO, NO)],
    ),
    (
        "a counter counts itself",
        ir.CounterType(U16, ("body",)),
        ir.CounterType(U16, ("body",), 2),
        [("retyped", "value", NO, NO)],
    ),
    (
        "a counter of a new name",
        ir.CounterType(U16, ("body",)),
        ir.CounterType(U16, ("load",)),
        [("retyped", "value", DEPENDS, DEPENDS)],
    ),
    (
        "a checksum is checked",
        U32,
        ir.ChecksumType(U32, "crc32", ("body",)),
        [("retyped", "value", YES, DEPENDS)],
    ),
    (
        "another checksum",
        ir.ChecksumType(U32, "crc32", ("body",)),
        ir.ChecksumType(U32, "crc32c", ("body",)),
        [("retyped", "value", NO, NO)],
    ),
    (
        "a counter becomes a checksum",
        ir.CounterType(U16, ("body",)),
        ir.ChecksumType(U16, "internet", ("body",)),
        [("retyped", "value", DEPENDS, DEPENDS)],
    ),
    (
        "a list is counted elsewhere",
        ir.ListType(0, U8),
        ir.ListType(0, U8, counted=True),
        [("resized", "value", NO, NO)],
    ),
    (
        "text is counted elsewhere",
        ir.TextType(ir.Length("prefix", 1)),
        ir.TextType(ir.Length("counted")),
        [("resized", "value", NO, NO)],
    ),
    (
        "octets before a trailer",
        ir.OctetsType(ir.Length("rest", 4)),
        ir.OctetsType(ir.Length("rest", 2)),
        [("resized", "value", NO, NO)],
    ),
    (
        "padding to a multiple",
        ir.PaddingType(4),
        ir.PaddingType(0, multiple=4),
        [("resized", "value", NO, NO)],
    ),
]
CASES += NUMBERS
VARINT_LENGTH = ir.Length("prefix", 1, number=LEB)
OPEN = ir.IntegerType(1, enum="kind", open=True)
CASES += [
    (
        "a length in a varint",
        ir.TextType(ir.Length("prefix", 1)),
        ir.TextType(VARINT_LENGTH),
        [("resized", "value", NO, NO)],
    ),
    (
        "a count in a varint",
        ir.ListType(1, U8),
        ir.ListType(1, U8, number=LEB),
        [("resized", "value", NO, NO)],
    ),
    ("an enumeration is opened", ir.IntegerType(1, enum="kind"), OPEN, [("retyped", "value", DEPENDS, YES)]),
    ("any integer is an open enumeration", U8, OPEN, [("retyped", "value", YES, YES)]),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_inside_values(old: ir.Type, new: ir.Type, expected: list[tuple[str, str, Verdict, Verdict]]) -> None:
    assert changes(old, new) == expected
    assert changes(new, old) == [
        ({"added": "removed", "removed": "added"}.get(kind, kind), name, after, before)
        for kind, name, before, after in expected
    ]


def test_tables_grow_with_their_records() -> None:
    """A struct takes another column; a column of another type is a rewrite; what is implied is in no column."""
    (added,) = found(record(U8), record(U8, U16))
    assert (added.tables.effect, added.tables.why) == (
        Effect.COLUMN,
        "columns inside value, null in old rows",
    )
    (removed,) = found(record(U8, U16), record(U8))
    assert removed.tables.effect is Effect.APPEND
    (resized,) = found(ir.ListType(1, record(U8)), ir.ListType(1, record(U32)))
    assert resized.tables.effect is Effect.REWRITE
    assert "list of struct of (item_0: int16)" in resized.tables.why
    (option,) = found(union(U8), union(U8, U16))
    assert option.tables.effect is Effect.COLUMN
    (padding,) = found(record(U8, ir.PaddingType(1)), record(U8, ir.PaddingType(2)))
    assert padding.tables.effect is Effect.APPEND


def test_what_the_grammar_says_about_a_record_is_no_change() -> None:
    old = record(U8)
    new = msgspec.structs.replace(
        old, doc="Another comment.", rule="other", class_name="Other",
        fields=(msgspec.structs.replace(old.fields[0], doc="Other words.", line=7),),
    )  # fmt: skip
    assert changes(ir.ListType(1, old), ir.ListType(1, new)) == []


def test_an_optional_field_more() -> None:
    plain = protocol(message("demo", 1, field("size", U8)))
    more = protocol(message("demo", 1, field("size", U8), field("rank", U16, optional=True, nullable=True)))
    (added,) = compare(plain, more).changes
    assert (added.old_reads_new.verdict, added.new_reads_old.verdict) == (DEPENDS, YES)
    certain = protocol(message("demo", 1, field("size", U8), field("rank", U16)))
    (demanded,) = compare(more, certain).changes
    assert (demanded.kind, demanded.old, demanded.new) == ("presence", "optional", "always")
    assert (demanded.old_reads_new.verdict, demanded.new_reads_old.verdict) == (YES, DEPENDS)


def test_a_new_name_that_an_old_message_could_have_spelled() -> None:
    """With patterns, a command of a new name was one with its name open before."""
    selectors = (ir.Selector(0, 0, pattern=True),)
    open_name = msgspec.structs.replace(message("command", 1), tags=("04",), shadowed=True)
    ready = msgspec.structs.replace(message("ready", 2, field("size", U8)), tags=("04??41",))
    old, new = (protocol(*messages, selectors=selectors) for messages in ((open_name,), (open_name, ready)))
    (added,) = compare(old, new).changes
    assert (added.old_reads_new.verdict, added.new_reads_old.verdict) == (DEPENDS, DEPENDS)
    assert added.new_reads_old.why == "correct if no message of the old edition has these octets"


def test_units_of_a_stream() -> None:
    short, long = ir.UnitHead("04", size_octets=1), ir.UnitHead("06", size_octets=8)
    old, new = (
        protocol(message("demo", 1), stream=ir.UnitStream(heads)) for heads in ((short,), (short, long))
    )
    (change,) = compare(old, new).changes
    assert (change.kind, change.old_reads_new.verdict, change.new_reads_old.verdict) == (
        "framing",
        DEPENDS,
        YES,
    )
    assert change.old == "messages that begin with 0x04 (size in 1 octet, 0 octets later)"
    other = protocol(message("demo", 1), stream=ir.Stream(("ffee",), 4, 255, 4))
    (change,) = compare(old, other).changes
    assert (change.old_reads_new.verdict, change.new_reads_old.verdict) == (NO, NO)
