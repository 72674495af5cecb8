"""Explanations of frames and messages of every kind of value, without a package's codec.

The explainer finds the fault that a case says, and agrees with the naive interpreter of the IR on random layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generated.marks import Mark, mark_fields
from specwire.generated.named_plan import named_plan
from specwire.generated.refusal import check_letter, explain_decode
from specwire.generated.unfit import explain_encode
from specwire.generated.writer import Writer
from specwire.generator import ir
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generator import interpreter, layouts
from tests.generator.compiling import compiled
from tests.generator.interpreter import Refused
from tests.generator.stand_ins import laid_out, named, stand_ins
from tests.generator.test_layouts import contents_of, generated, without_implied
from tests.generator.test_values import Values
from tests.generator.value_cases import CASES, Case, Fault, built, first, made

DISAGREEMENT = "a disagreement between them; please report it"
"""What the explainer finds where there is no fault."""


cases = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@cases
def test_the_interpreter_knows_the_cases(case: Case) -> None:
    """What is derived by hand is what the docstrings of the IR say."""
    classes = stand_ins(case.protocol)
    for values, frames in case.good:
        message, contents = named(case.protocol, values.class_name), built(classes, values)
        assert interpreter.encode(case.protocol, message, contents_of(case.protocol, contents)) == list(
            frames
        )
    for values, frames in [*case.good, *((values, frames) for frames, values in case.also)]:
        message, contents = interpreter.decode(case.protocol, frames)
        expected = contents_of(case.protocol, built(classes, values))
        assert without_implied(case.protocol, message, contents) == expected
    for frames, _ in case.refused:
        with pytest.raises(Refused):
            interpreter.decode(case.protocol, frames)


@cases
def test_the_explainer_knows_the_cases(case: Case) -> None:
    """Every good message has no fault, and every bad one exactly the fault that the case says."""
    classes, layout = stand_ins(case.protocol), laid_out(case.protocol)
    for values, frames in case.good:
        assert explain_decode(layout, frames).found == DISAGREEMENT
        assert explain_encode(layout, built(classes, values)).found == DISAGREEMENT
    for frames, _ in case.also:
        assert explain_decode(layout, frames).found == DISAGREEMENT
    for frames, fault in case.refused:
        assert Fault.of(explain_decode(layout, frames)) == fault
    for values, fault in case.unfit:
        assert Fault.of(explain_encode(layout, built(classes, values))) == fault


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(layouts.more, st.data())
def test_the_explainer_agrees_with_the_interpreter(of: ir.Protocol, data: st.DataObject) -> None:
    layout = laid_out(of)
    values = Values(data.draw, of, stand_ins(of))
    chance = Random(data.draw(st.integers(0, 2**32)))
    for _ in range(4):
        message = values.message()
        unfit = explain_encode(layout, message)
        try:
            frames = interpreter.encode(of, named(of, type(message).__name__), contents_of(of, message))
        except Refused:
            assert unfit.found != DISAGREEMENT
            continue
        assert unfit.found == DISAGREEMENT, unfit
        damaged = [list(short) for short in some_truncations(frames, 30, chance)]
        for octets in [frames, *damaged, *(mutated(frames, chance) for _ in range(40))]:
            found = explain_decode(layout, octets)
            assert (found.found == DISAGREEMENT) == is_read(of, octets), (octets, found)


def is_read(of: ir.Protocol, frames: Sequence[bytes]) -> bool:
    try:
        interpreter.decode(of, frames)
    except Refused:
        return False
    return True


def test_depth_needs_no_stack() -> None:
    """As many values inside each other as are ever allowed, and far more, are read and written."""
    (reply,) = (case for case in CASES if case.name == "reply")
    of = msgspec.structs.replace(reply.protocol, max_depth=256)
    layout, classes = laid_out(of), stand_ins(of)
    value = built(classes, made("Array", items=()))
    for _ in range(255):
        value = classes.Array(items=(value,))
    assert explain_encode(layout, built(classes, first(value=value))).found == DISAGREEMENT
    assert explain_decode(layout, [b"*1\r\n" * 255 + b"*0\r\n"]).found == DISAGREEMENT
    for _ in range(20_000):
        value = classes.Array(items=(value,))
    unfit = explain_encode(layout, built(classes, first(value=value)))
    assert (unfit.kind, unfit.expected) == ("limit", "at most 256 values inside each other")
    foreign = explain_encode(layout, built(classes, first(value=classes.Foreign(items=(value,)))))
    assert (foreign.kind, foreign.field) == ("tag", "value")
    refused = explain_decode(layout, [b"*1\r\n" * 100_000])
    assert (refused.kind, refused.offset) == ("limit", 1024)
    # Objects inside each other are freed one after the other only if nothing else holds them.
    while value.items:
        (value,) = value.items


def test_marks_of_bits_and_options() -> None:
    """An integer of bits is marked with the name of its first bits; an omitted option is not marked."""
    by_name: Mapping[str, Case] = {case.name: case for case in CASES}
    header, options = by_name["header"], by_name["options"]
    assert mark_fields(laid_out(header.protocol), [bytes.fromhex("aa1234930378")]) == (
        [Mark(0, 0, 1, "mark"), Mark(0, 1, 2, "id"), Mark(0, 3, 2, "qr"), Mark(0, 5, 1, "rest")],
        None,
    )
    marks, fault = mark_fields(laid_out(options.protocol), [b"\xcc\x01a\r\n\x01\x02"])
    assert [mark.field for mark in marks] == ["mark", "flags", "word", "end", "crc"]
    assert fault is None


def flagged() -> ir.Protocol:
    """A topic that flags announce; the flags are behind a text."""
    flags = layouts.field("flags", ir.IntegerType(1, bitmask=True))
    rest = ir.OctetsType(ir.Length("rest"))
    header = (
        layouts.field("mark", ir.ConstantType("8e01")),
        layouts.field("name", ir.TextType(ir.Length("prefix", 1))),
        flags,
        layouts.field("number", ir.IntegerType(1)),
    )
    parts = (
        ir.Frame("topic", (layouts.field("topic", rest, nullable=True),), ir.Announced(1, 1)),
        ir.Frame("header", header),
    )
    bits = (ir.FlagBit("TOPIC", 1, "", "topic"), ir.FlagBit("OTHER", 2, ""))
    return layouts.protocol((layouts.message(1, parts, "8e01"),), ir.Selector(-1, 2), bits)


def test_flags_behind_a_value_of_any_size() -> None:
    """The flags are read where they are, not where they would be if the value before them were empty."""
    layout = laid_out(flagged())
    for name in (b"", b"a", b"\1\1\1"):
        text = bytes((len(name),)) + name
        check_letter(layout, [b"topic", b"\x8e\1" + text + b"\3\7"])
        check_letter(layout, [b"\x8e\1" + text + b"\2\7"])
        with pytest.raises(DecodeError) as missing:
            check_letter(layout, [b"\x8e\1" + text + b"\1\7"])
        assert (missing.value.field, missing.value.expected) == ("topic", "a frame with topic")
    with pytest.raises(DecodeError) as short:
        check_letter(layout, [b"topic", b"\x8e\1\4abc"])
    assert (short.value.field, short.value.frame, short.value.offset) == ("name", 1, 3)


@pytest.mark.parametrize(
    "profile", ['type = "integer"\ncounts = "x"\nplus = 4', "bits.n = { width = 8, counts = 'x', plus = 4 }"]
)
def test_the_count_of_an_omitted_value(profile: str, tmp_path: Path) -> None:
    """The writer that explains writes what the codec writes: `plus` if there is nothing to count."""
    grammar = "A = %xA1 size [x]\nsize = OCTET\nx = *OCTET\n"
    source = compiled(
        tmp_path, grammar, f'name = "demo"\nmessages = ["A"]\n[types.size]\n{profile}\n'
    ).protocol
    with generated(tmp_path, source) as module:
        plan = named_plan(module.layout.LAYOUT)
        for x, octets in ((None, b"\xa1\x04"), (b"abc", b"\xa1\x07abc")):
            message = module.A(x=x)
            assert message.encode() == [octets]
            pieces = Writer(plan, plan.messages["A"], module.A.__module__, False).run(
                plan.messages["A"].parts[0].body, message
            )
            assert b"".join(piece for _, piece in pieces) == octets
