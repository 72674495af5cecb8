"""What a comparison says of bits, conditions inside a frame, ends of lists and texts, letter case and recursion."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Change, Verdict
from tests.examples import examples
from tests.generator.editions import field, message, protocol, record

YES, DEPENDS, NO = Verdict.YES, Verdict.DEPENDS, Verdict.NO
Found = list[tuple[str, str, Verdict, Verdict]]
U8 = ir.IntegerType(1)
WORD = ir.OctetsType(ir.Length("prefix", 1))


def bits(shift: int, width: int, **settings: object) -> ir.BitType:
    """Return some bits of an octet."""
    return msgspec.structs.replace(ir.BitType(1, shift, width), **settings)


def among(letters: str, least: int = 1) -> ir.TextType:
    return ir.TextType(ir.Length("run", least, among=letters.encode().hex()))


def octet(**parts: ir.Type) -> tuple[ir.Field, ...]:
    """Return the fields of one octet."""
    return tuple(field(name, type) for name, type in parts.items())


def judged(changes: tuple[Change, ...]) -> Found:
    """Return kind and name of changes, how the old edition reads the new one, and the new the old one."""
    return [(c.kind, c.name, c.old_reads_new.verdict, c.new_reads_old.verdict) for c in changes]


def between(old: tuple[ir.Field, ...], new: tuple[ir.Field, ...]) -> Found:
    """Return the changes between protocols of one message with these fields."""
    return judged(compare(*(protocol(message("demo", 1, *fields)) for fields in (old, new))).changes)


ONE: dict[str, tuple[ir.Type, ir.Type, Found]] = {
    "bits of another width": (bits(0, 4), bits(0, 3), [("resized", "value", NO, NO)]),
    "bits at another place": (bits(0, 4), bits(4, 4), [("resized", "value", NO, NO)]),
    "bits of a wider integer": (bits(0, 4), bits(0, 4, octets=2), [("retyped", "value", NO, NO)]),
    "bits become an octet": (bits(0, 8), U8, [("retyped", "value", NO, NO)]),
    "a value more": (bits(0, 2, values=(0, 1)), bits(0, 2, values=(0, 1, 2)), [("value", "value", DEPENDS, YES)]),
    "another constant": (bits(0, 2, constant=1), bits(0, 2, constant=2), [("value", "value", NO, NO)]),
    "a constant that varies": (bits(0, 2, constant=1), bits(0, 2), [("value", "value", DEPENDS, YES)]),
    "spare bits that must be 0": (bits(0, 2, spare=True), bits(0, 2, constant=0), [("value", "value", YES, YES)]),
    "spare bits that must be 1": (bits(0, 2, spare=True), bits(0, 2, constant=1), [("value", "value", YES, NO)]),
    "a boolean": (bits(0, 1), bits(0, 1, boolean=True), [("value", "value", YES, YES)]),
    "a bit that announces": (bits(0, 1), bits(0, 1, announces=True), [("value", "value", YES, DEPENDS)]),
    "bits that count": (
        bits(0, 4), ir.CounterType(bits(0, 4), ("body",)), [("retyped", "value", YES, DEPENDS)],
    ),
    "fewer bits that count": (
        ir.CounterType(bits(0, 4), ("body",)), ir.CounterType(bits(0, 3), ("body",)),
        [("resized", "value", NO, NO)],
    ),
    "more characters": (among("ab"), among("abc"), [("resized", "value", DEPENDS, DEPENDS)]),
    "at least two characters": (among("ab"), among("ab", 2), [("resized", "value", YES, DEPENDS)]),
    "characters up to a blank": (
        among("ab"), ir.TextType(ir.Length("until", until="20")), [("resized", "value", DEPENDS, DEPENDS)],
    ),
    "a rest becomes a run": (
        ir.TextType(ir.Length("rest")), among("ab"), [("resized", "value", NO, NO)],
    ),
    "a list that ends elsewhere": (
        ir.ListType(0, U8, until="ff"), ir.ListType(0, U8, until="fe"), [("resized", "value", NO, NO)],
    ),
    "a list of records that ends elsewhere": (
        ir.ListType(0, record(U8)), ir.ListType(0, record(U8), until="fe"), [("resized", "value", NO, NO)],
    ),
    "a mark before each item": (
        ir.ListType(1, U8), ir.ListType(1, U8, before="01"), [("resized", "value", NO, NO)],
    ),
    "another octet between name and value": (
        ir.PairsType(1, among("ab"), WORD, between="3d"), ir.PairsType(1, among("ab"), WORD, between="3a"),
        [("resized", "value", NO, NO)],
    ),
    "a constant in either case": (
        ir.ConstantType("6162", text="ab"), ir.ConstantType("6162", text="ab", folded=True),
        [("value", "value", DEPENDS, YES)],
    ),
    "a constant with another letter in either case": (
        ir.ConstantType("4142", text="AB", folded=True), ir.ConstantType("6162", text="ab", folded=True),
        [("value", "value", YES, YES)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE)
def test_one_value(case: str) -> None:
    old, new, expected = ONE[case]
    assert between((field("value", old),), (field("value", new),)) == expected
    backward = [(kind, name, after, before) for kind, name, before, after in expected]
    assert between((field("value", new),), (field("value", old),)) == backward


def test_a_spare_bit_gets_a_meaning() -> None:
    """As in DNS: the old reader ignores the bit, and old writers have written 0."""
    old = octet(code=bits(2, 6), spare=bits(0, 2, spare=True))
    new = octet(code=bits(2, 6), secure=bits(1, 1, boolean=True), spare=bits(0, 1, spare=True))
    assert between(old, new) == [("resized", "spare", YES, YES), ("added", "secure", YES, YES)]
    strict = octet(code=bits(2, 6), secure=bits(1, 1, constant=1), spare=bits(0, 1, spare=True))
    assert ("added", "secure", YES, NO) in between(old, strict)


def test_bits_that_another_field_had() -> None:
    old = octet(code=bits(4, 4), kind=bits(0, 4))
    new = octet(code=bits(4, 4), kind=bits(1, 3), more=bits(0, 1))
    assert between(old, new) == [("resized", "kind", NO, NO), ("added", "more", NO, NO)]


@st.composite
def octets_of_bits(draw: st.DrawFn) -> tuple[ir.Field, ...]:
    """An octet of one to four fields with different names."""
    cuts = sorted(draw(st.sets(st.integers(1, 7), max_size=3)), reverse=True)
    names = draw(st.permutations(("alpha", "beta", "gamma", "delta")))
    fields: list[ir.Field] = []
    for name, above, shift in zip(names, (8, *cuts), (*cuts, 0), strict=False):
        top = 2 ** (above - shift) - 1
        plain = bits(shift, above - shift)
        fixed = msgspec.structs.replace(plain, constant=draw(st.sampled_from((0, top))))
        listed = msgspec.structs.replace(plain, values=draw(st.sampled_from(((0,), (0, top), (top,)))))
        spare = msgspec.structs.replace(plain, spare=True)
        fields.append(field(name, draw(st.sampled_from((plain, fixed, listed, spare)))))
    return tuple(fields)


def part_of(octet: int, type: ir.Type) -> int:
    assert isinstance(type, ir.BitType)
    return (octet >> type.shift) % (1 << type.width)


def is_allowed(octet: int, fields: tuple[ir.Field, ...], *, written: bool) -> bool:
    """Return whether an octet has allowed values of all fields; a writer writes 0 into spare bits."""
    for one in fields:
        assert isinstance(one.type, ir.BitType)
        value, type = part_of(octet, one.type), one.type
        allowed = (type.constant,) if type.constant is not None else type.values
        if (allowed and value not in allowed) or (written and type.spare and value):
            return False
    return True


@settings(max_examples=examples(400), deadline=None)
@given(octets_of_bits(), octets_of_bits())
def test_verdicts_hold_for_every_octet(writer: tuple[ir.Field, ...], reader: tuple[ir.Field, ...]) -> None:
    """What can be read is read with the same values of the same names, and what never can be is never read."""
    old, new = (protocol(message("demo", 1, *fields)) for fields in (reader, writer))
    verdict = compare(old, new).old_reads_new
    written = [octet for octet in range(256) if is_allowed(octet, writer, written=True)]
    types = {one.name: one.type for one in reader}
    shared = [(one.type, types[one.name]) for one in writer if one.name in types and not is_spare(one, types)]
    fine = [
        is_allowed(octet, reader, written=False)
        and all(part_of(octet, one) == part_of(octet, other) for one, other in shared)
        for octet in written
    ]
    assert verdict is not YES or all(fine)
    assert verdict is not DEPENDS or any(fine)


def is_spare(field: ir.Field, types: dict[str, ir.Type]) -> bool:
    """Return whether the field has no value in one of the editions."""
    return any(isinstance(type, ir.BitType) and type.spare for type in (field.type, types[field.name]))


def optional(name: str, condition: ir.Option | None, type: ir.Type = U8) -> ir.Field:
    return field(name, type, option=condition)


IF_SET = ir.Option("number", 1, field="flags", mask=0x80, values=(0x80,))
IF_COLON = ir.Option("octets", 1, octets="3a")


def test_a_condition_that_differs() -> None:
    flags, tail = field("flags", U8), field("tail", U8)
    always, marked, listed = (
        (flags, optional("extra", condition), tail)
        for condition in (None, IF_SET, msgspec.structs.replace(IF_SET, mask=0x40, values=(0x40,)))
    )
    assert between(marked, listed) == [("presence", "extra", DEPENDS, DEPENDS)]
    assert between(always, marked) == [("presence", "extra", DEPENDS, DEPENDS)]
    assert between((flags, tail), marked) == [("added", "extra", DEPENDS, DEPENDS)]
    renumbered = (flags, optional("extra", msgspec.structs.replace(IF_SET, number=7)), tail)
    assert between(marked, renumbered) == []
    assert between((field("value", record(U8)),), (field("value", inner(IF_COLON)),)) == [
        ("presence", "value.item_0", DEPENDS, DEPENDS)
    ]


def inner(condition: ir.Option) -> ir.RecordType:
    """Return a record with an optional field."""
    plain = record(U8)
    return msgspec.structs.replace(plain, fields=(optional("item_0", condition),))


def test_a_word_that_may_be_there() -> None:
    """The boolean has no octets; its constant has."""
    word = ir.ConstantType("3a6e6f", text=":no")
    old = (field("size", U8),)
    new = (*old, optional("word", IF_COLON, word), optional("quiet", IF_COLON, ir.PresentType()))
    assert between(old, new) == [("added", "word", DEPENDS, DEPENDS), ("added", "quiet", YES, YES)]


def test_another_frame_ends_a_stack() -> None:
    def stacked(delimiter: str) -> ir.Protocol:
        part = ir.Stack("routes", field("routes", ir.OctetsType(ir.Length("rest"))), delimiter=delimiter)
        found = message("demo", 1)
        parts = (*found.parts, part)
        return protocol(msgspec.structs.replace(found, parts=parts))

    (change,) = compare(stacked(""), stacked("3c3e")).changes
    assert (change.old, change.new) == ("an empty one", "one of 0x3c3e")
    assert judged((change,)) == [("value", "routes", NO, NO)]


def tree(*, name: str = "value", folded: bool = False, leaf: ir.Type = U8) -> ir.UnionType:
    """Return a union of a leaf and of a list of the union itself."""
    items = ir.ListType(1, ir.EnclosingType(name))
    options = (
        ir.RecordType("leaf", "Leaf", (field("mark", ir.ConstantType("61")), field("number", leaf))),
        ir.RecordType("node", "Node", (field("mark", ir.ConstantType("62")), field("items", items))),
    )
    return ir.UnionType(name, options, ("61", "62"), folded)


def test_values_inside_each_other() -> None:
    def of(depth: int, value: ir.UnionType) -> ir.Protocol:
        return protocol(message("demo", 1, field("value", value)), max_depth=depth)

    assert compare(of(8, tree()), of(8, tree(name="other"))).changes == ()
    assert judged(compare(of(8, tree()), of(16, tree())).changes) == [
        ("value", "values inside each other", DEPENDS, YES)
    ]
    assert judged(compare(of(8, tree()), of(8, tree(folded=True))).changes) == [
        ("value", "value", DEPENDS, YES)
    ]
    assert judged(compare(of(8, tree()), of(8, tree(name="other", leaf=ir.IntegerType(2)))).changes) == [
        ("resized", "value.leaf.number", NO, NO)
    ]


def test_letters_of_tags() -> None:
    old = protocol(message("demo", 1, field("value", U8)))
    new = msgspec.structs.replace(old, folded=True)
    assert judged(compare(old, new).changes) == [("value", "letters of the tag", DEPENDS, YES)]
    assert judged(compare(new, old).changes) == [("value", "letters of the tag", YES, DEPENDS)]
