"""The Python codec with every kind of value: hand-derived messages and errors, random layouts, depth, types."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from specwire.generator.packages import package_files
from specwire.generator.targets import choose_targets
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generated.type_checker import check
from tests.generator import interpreter, layouts
from tests.generator.interpreter import Refused
from tests.generator.layouts import LETTERS, field, message, protocol
from tests.generator.test_layouts import contents_of, generated, home
from tests.generator.test_values import Values, check_decoding
from tests.generator.value_cases import CASES, Case, Fault, any_message, built, constant, octets, text

__all__ = ("home",)

CODEC = ("codec",)
DEEPEST = 256
"""The largest maximum depth that a profile can set."""
PRINTED = 128
"""Depth of values that can be printed and pickled, too, far from the recursion limit of Python."""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_cases(tmp_path: Path, case: Case) -> None:
    with generated(tmp_path, case.protocol, CODEC) as module:
        for values, frames in case.good:
            assert built(module, values).encode() == list(frames)
        for values, frames in [*case.good, *((values, frames) for frames, values in case.also)]:
            for given_frames in (frames, [memoryview(bytearray(frame)) for frame in frames]):
                assert module.decode(given_frames) == built(module, values)
                assert module.decode(given_frames, copy=False) == built(module, values)
        for frames, fault in case.refused:
            with pytest.raises(DecodeError) as refused:
                module.decode(frames)
            assert Fault.of(refused.value) == fault
        for values, fault in case.unfit:
            with pytest.raises(EncodeError) as unfit:
                built(module, values).encode()
            assert Fault.of(unfit.value) == fault


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(layouts.more, st.data())
def test_the_codec_agrees_with_the_interpreter(home: Path, of: ir.Protocol, data: st.DataObject) -> None:
    with generated(home, of, CODEC) as module:
        values = Values(data.draw, of, module)
        chance = Random(data.draw(st.integers(0, 2**32)))
        for _ in range(4):
            sent = values.message()
            kind = next(one for one in of.messages if one.class_name == type(sent).__name__)
            try:
                frames = interpreter.encode(of, kind, contents_of(of, sent))
            except Refused:
                with pytest.raises(EncodeError) as unfit:
                    sent.encode()
                assert "disagreement" not in unfit.value.found
                continue
            assert sent.encode() == frames
            assert module.decode(frames) == sent
            damaged = [list(short) for short in some_truncations(frames, 30, chance)]
            for bad in [*damaged, *(mutated(frames, chance) for _ in range(40))]:
                check_decoding(of, module, bad)


# Ends of bodies


def one_message(*fields: ir.Field, **more: Any) -> ir.Protocol:
    frame = ir.Frame("all", (constant("mark", b"\1"), *fields))
    return protocol((message(1, (frame,), "01"),), ir.Selector(0, 1), **more)


def counter(*counts: str) -> ir.Field:
    return field("size", ir.CounterType(ir.IntegerType(1), counts))


def test_values_of_records_end_with_their_region(tmp_path: Path) -> None:
    """A run, an option and digits at the end of a record do not extend over what follows the region."""
    option = ir.Option("octets", 1, octets="3a")
    record = ir.RecordType(
        "part",
        "Part",
        (
            field("word", ir.TextType(ir.Length("run", 0, among=LETTERS))),
            field("colon", ir.ConstantType("3a"), option=option),
            field("number", ir.IntegerType(1), option=option),
            field("digits", ir.DigitsType(maximum=5)),
        ),
    )
    of = one_message(counter("parts"), field("parts", ir.ListType(0, record)), field("rest", octets()))
    with generated(tmp_path, of, CODEC) as module:
        parts = (
            module.Part(word="ab", number=None, digits=12),
            module.Part(word="", number=5, digits=7),
        )
        sent = module.Message1(parts=parts, rest=b"345:abc")
        assert sent.encode() == [b"\x01\x07ab12:\x057345:abc"]
        assert module.decode(sent.encode()) == sent
        assert module.decode([b"\x01\x02a1234"]).rest == b"234"


def test_tags_end_with_their_region(tmp_path: Path) -> None:
    """The tag ``$-1`` is not found where only the ``$`` is in the region."""
    short = ir.RecordType("short", "Short", (constant("mark", b"$"),))
    long = ir.RecordType("long", "Long", (constant("mark", b"$-1"),))
    union = ir.UnionType("either", (short, long), ("24", b"$-1".hex()))
    of = one_message(
        counter("value", "pad"), field("value", union), field("pad", octets()), field("rest", octets())
    )
    with generated(tmp_path, of, CODEC) as module:
        assert module.decode([b"\x01\x01$-1"]) == module.Message1(module.Short(), b"", b"-1")
        assert module.decode([b"\x01\x03$-1"]) == module.Message1(module.Long(), b"", b"")


def test_a_region_may_begin_with_an_option(tmp_path: Path) -> None:
    option = ir.Option("octets", 1, octets="3a")
    of = one_message(
        counter("colon", "first", "second"),
        field("colon", ir.ConstantType("3a"), option=option),
        field("first", ir.IntegerType(1), option=option),
        field("second", octets()),
        field("third", ir.IntegerType(1)),
    )
    with generated(tmp_path, of, CODEC) as module:
        both = module.Message1(first=5, second=b"ab", third=9)
        second = module.Message1(first=None, second=b"ab", third=9)
        assert both.encode() == [b"\x01\x04:\x05ab\x09"]
        assert second.encode() == [b"\x01\x02ab\x09"]
        assert [module.decode(one.encode()) for one in (both, second)] == [both, second]


# Bits


@pytest.mark.parametrize("value", [16, -1, 2.0, "a", None, 2**70])
def test_bits_take_unsigned_integers_that_fit(tmp_path: Path, value: Any) -> None:
    of = one_message(field("high", ir.BitType(1, 4, 4)), field("low", ir.BitType(1, 0, 4)))
    with generated(tmp_path, of, CODEC) as module:
        assert module.Message1(high=np.uint8(3), low=1).encode() == [b"\x01\x31"]
        with pytest.raises(EncodeError):
            module.Message1(high=value, low=1).encode()


# Frames


def test_flags_and_optional_frames_between_a_delimiter_and_the_rest(tmp_path: Path) -> None:
    parts = (
        ir.Stack("route", field("route", octets()), delimiter=b"|".hex()),
        ir.Frame(
            "head", (field("flags", ir.IntegerType(1, bitmask=True)), field("number", ir.IntegerType(1)))
        ),
        ir.Frame("topic", (field("topic", text(), nullable=True),), presence=ir.Announced(1, 1)),
        ir.Rest("buffers", field("buffers", octets())),
    )
    flags = (ir.FlagBit("TOPIC", 1, "", "topic"),)
    of = msgspec.structs.replace(any_message(*parts, least=2, most=None), flags=flags)
    with generated(tmp_path, of, CODEC) as module:
        full = module.Message1(route=(b"a", b""), flags=4, number=9, topic="t", buffers=(b"", b"|"))
        assert full.encode() == [b"a", b"", b"|", b"\x05\x09", b"t", b"", b"|"]
        assert full.wire_flags == 5
        bare = module.Message1(route=(), flags=0, number=9, topic=None, buffers=())
        assert bare.encode() == [b"|", b"\x00\x09"]
        for one in (full, bare):
            assert module.decode(one.encode()) == one
        with pytest.raises(DecodeError):
            module.decode([b"|", b"\x01\x09"])
        with pytest.raises(EncodeError):
            module.Message1(route=(b"|",), flags=0, number=9, topic=None, buffers=()).encode()


def test_patterns_in_letters_of_either_case(tmp_path: Path) -> None:
    """What the pattern compares in either case may still be exact."""
    get = ir.Frame(
        "get", (constant("verb", b"get ", folded=True), constant("exact", b"A"), field("key", text()))
    )
    all_ = ir.Frame("all", (constant("verb", b"get all", folded=True), field("key", text())))
    of = protocol(
        (message(1, (get,), b"get ".hex()), message(2, (all_,), b"get all".hex())),
        ir.Selector(0, 0, pattern=True),
        folded=True,
    )
    with generated(tmp_path, of, CODEC) as module:
        assert module.decode([b"GeT Ab"]) == module.Message1("b")
        assert module.decode([b"geT ALLb"]) == module.Message2("b")
        with pytest.raises(DecodeError):
            module.decode([b"get ab"])


# Records that contain themselves


def nested(depth: int = DEEPEST) -> ir.Protocol:
    """``value = "+" / "*" OCTET *value``, at most `depth` deep."""
    leaf = ir.RecordType("leaf", "Leaf", (constant("mark", b"+"),))
    items = field("items", ir.ListType(1, ir.EnclosingType("value")))
    many = ir.RecordType("many", "Many", (constant("mark", b"*"), items))
    value = ir.UnionType("value", (leaf, many), (b"+".hex(), b"*".hex()))
    return one_message(field("value", value), max_depth=depth)


def test_depth(tmp_path: Path) -> None:
    with generated(tmp_path, nested(), CODEC) as module:
        frames = [b"\1" + b"*\1" * (DEEPEST - 1) + b"+"]
        deepest = module.decode(frames)
        assert deepest.encode() == frames
        for deeper in (DEEPEST, 100_000):
            with pytest.raises(DecodeError) as refused:
                module.decode([b"\1" + b"*\1" * deeper + b"+"])
            assert refused.value.kind == "limit"
        with pytest.raises(EncodeError) as unfit:
            module.Message1(module.Many((deepest.value,))).encode()
        assert unfit.value.kind == "limit"


def test_deep_values_print_and_copy(tmp_path: Path) -> None:
    with generated(tmp_path, nested(PRINTED), CODEC) as module:
        deepest = module.decode([b"\1" + b"*\1" * (PRINTED - 1) + b"+"])
        assert repr(deepest).count("Many(") == PRINTED - 1
        same = copy.deepcopy(deepest)
        assert same == deepest == pickle.loads(pickle.dumps(deepest))
        assert hash(same) == hash(deepest)
        plain = deepest.to_dict()["value"]
        for _ in range(PRINTED - 1):
            (plain,) = plain["items"]
        assert plain == {"_type": "leaf"}


PROGRAM = """\
from demo import Leaf, Many, Message1

def depth(value: Leaf | Many) -> int:
    return 1 + max(map(depth, value.items), default=0) if isinstance(value, Many) else 1

message = Message1(Many((Leaf(), Many(()))))
print(depth(message.value), message.replace(value=Leaf()).to_dict())
Many((1,))
"""


@pytest.mark.slow
def test_a_type_checker_knows_records_that_contain_themselves(tmp_path: Path) -> None:
    for path, source in package_files([nested()], choose_targets(CODEC)).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(source, encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    wrong = [line for line in check(program).splitlines() if ": error: " in line]
    assert len(wrong) == 1 and wrong[0].startswith("program.py:8:")
    assert 'expected "tuple[Leaf | Many, ...]"' in wrong[0]
