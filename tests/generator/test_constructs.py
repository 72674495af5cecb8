"""Construct declarations of values of every kind: they agree with the naive interpreter of the IR."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import construct as cs
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated.construct_runs import flat
from specwire.generator import ir
from specwire.generator.emit.constructs import EMITTER
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generator import interpreter, layouts
from tests.generator.editions import field, message, protocol
from tests.generator.interpreter import Refused
from tests.generator.test_explainer import flagged
from tests.generator.test_layouts import contents_of
from tests.generator.test_values import Values
from tests.generator.value_cases import CASES, Case, built


def declared(of: ir.Protocol) -> Any:
    """Return the constructs module of a protocol."""
    source = EMITTER.emit(of)
    assert isinstance(source, str)
    module = ModuleType("constructs")
    exec(compile(source, "constructs.py", "exec"), module.__dict__)  # noqa: S102
    return module


def classes(of: ir.Protocol) -> Any:
    """Return classes for messages and records that take any attributes."""

    class Classes(dict[str, Any]):
        def __getattr__(self, name: str) -> Any:
            return self.setdefault(name, type(name, (SimpleNamespace,), {}))

    return Classes()


def plain(of: ir.Protocol, type: ir.Type, value: Any) -> Any:
    """Return a value as the declarations have it."""
    match type:
        case _ if value is None:
            return None
        case ir.EnclosingType(name=name):
            return plain(of, interpreter.named_type(of, name), value)
        case ir.ListType(element=element):
            return [plain(of, element, item) for item in value]
        case ir.PairsType():
            return list(value)
        case ir.RecordType(fields=fields):
            return {f.name: plain(of, f.type, getattr(value, f.attribute)) for f in fields if not f.implied}
        case ir.UnionType(options=options):
            name = value.__class__.__name__
            return {name: plain(of, next(one for one in options if one.class_name == name), value)}
    return value


def plain_message(of: ir.Protocol, layout: ir.Message, message: Any) -> dict[str, Any]:
    """Return the values of a message as the declarations have them."""
    found: dict[str, Any] = {}
    for part in layout.parts:
        for one in part.fields if isinstance(part, ir.Frame) else (part.field,):
            if not one.implied:
                type = one.type if isinstance(part, ir.Frame) else ir.ListType(0, element_of(one))
                found[one.name] = plain(of, type, getattr(message, one.attribute))
    return found


def element_of(one: ir.Field) -> ir.Element:
    """Return the type of each frame of many, which is one that a list may have, too."""
    assert isinstance(one.type, ir.TextType | ir.OctetsType)
    return one.type


def read_message(of: ir.Protocol, layout: ir.Message, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a declaration of a message read without what follows from the rest."""
    return {f.name: without_implied(of, f.type, found[f.name]) for f in layout.fields if not f.implied}


def without_implied(of: ir.Protocol, type: ir.Type, value: Any) -> Any:
    """Return what a declaration read without what follows from the rest."""
    match type, value:
        case ir.EnclosingType(name=name), Mapping():
            return without_implied(of, interpreter.named_type(of, name), value)
        case ir.ListType(element=element), list():
            return [without_implied(of, element, item) for item in value]
        case ir.PairsType(), list():
            return [tuple(pair) for pair in value]
        case ir.RecordType(fields=fields), Mapping():
            return {f.name: without_implied(of, f.type, value[f.name]) for f in fields if not f.implied}
        case ir.UnionType(options=options), Mapping():
            ((name, inside),) = value.items()
            return {name: without_implied(of, next(o for o in options if o.class_name == name), inside)}
    return value


RANDOM = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@RANDOM
@given(layouts.valued(), st.data())
def test_the_declarations_agree_with_the_interpreter(of: ir.Protocol, data: st.DataObject) -> None:
    check_agreement(of, data)


@RANDOM
@given(layouts.more, st.data())
def test_the_declarations_of_more_values_agree_with_the_interpreter(
    of: ir.Protocol, data: st.DataObject
) -> None:
    check_agreement(of, data)


def check_agreement(of: ir.Protocol, data: st.DataObject) -> None:
    """Construct builds and parses what the interpreter writes and reads."""
    constructs = declared(of)
    values = Values(data.draw, of, classes(of))
    chance = Random(data.draw(st.integers(0, 2**32)))
    for _ in range(4):
        one = values.message()
        layout = next(m for m in of.messages if m.class_name == type(one).__name__)
        expected = plain_message(of, layout, one)
        try:
            frames = interpreter.encode(of, layout, contents_of(of, one))
        except Refused:
            # Construct fills a text that is too short for its field.
            continue
        assert constructs.build(layout.class_name, expected) == frames
        class_name, found = constructs.parse(frames)
        assert class_name == layout.class_name
        assert read_message(of, layout, found) == expected
        assert constructs.build(class_name, found) == frames
        damaged = [list(short) for short in some_truncations(frames, 40, chance)]
        for octets in damaged + [mutated(frames, chance) for _ in range(30)]:
            assert reads(constructs.parse, octets) == reads(lambda o: interpreter.decode(of, o), octets), (
                octets
            )


def reads(read: Any, frames: list[bytes]) -> bool:
    """Return whether frames are not refused."""
    try:
        read(frames)
    except (cs.ConstructError, Refused):
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_declarations_know_the_cases(case: Case) -> None:
    """The octets of good messages are those of the case, and bad frames are refused."""
    of, made = case.protocol, classes(case.protocol)
    constructs = declared(of)
    for values, frames in case.good:
        layout = next(m for m in of.messages if m.class_name == values.class_name)
        expected = plain_message(of, layout, built(made, values))
        assert constructs.build(values.class_name, expected) == list(frames)
        _, found = constructs.parse(frames)
        assert read_message(of, layout, found) == expected
        assert constructs.build(values.class_name, found) == list(frames)
    for octets, values in case.also:
        layout = next(m for m in of.messages if m.class_name == values.class_name)
        _, found = constructs.parse(octets)
        assert read_message(of, layout, found) == plain_message(of, layout, built(made, values))
    for octets, _ in case.refused:
        with pytest.raises(cs.ConstructError):
            constructs.parse(octets)


def test_depth_is_an_error_of_construct() -> None:
    """Construct needs Python's stack for values inside each other; too many are refused."""
    (reply,) = (case for case in CASES if case.name == "reply")
    constructs = declared(msgspec.structs.replace(reply.protocol, max_depth=256))
    assert constructs.parse([b"*1\r\n" * 20 + b"*0\r\n"])[0] == "Message1"
    with pytest.raises(cs.ConstructError, match="too many values"):
        constructs.parse([b"*1\r\n" * 250 + b"*0\r\n"])


def test_a_rule_contains_what_encloses_it() -> None:
    """The rule of an array has the values of its items, although they contain it in the message."""

    def array(element: ir.Element) -> tuple[ir.Field, ...]:
        items = ir.ListType(0, element, counted=True)
        return (
            field("star", ir.ConstantType("2a")),
            field("count", ir.CounterType(ir.IntegerType(1), ("items",))),
            field("items", items),
        )

    again = array(ir.EnclosingType("value"))
    simple = (field("plus", ir.ConstantType("2b")), field("octet", ir.IntegerType(1)))
    options = ir.RecordType("simple", "Simple", simple), ir.RecordType("array", "Array", again)
    value = ir.UnionType("value", options, ("2b", "2a"))
    of = protocol(message("demo", 1, field("value", value)), rules=(ir.NamedRule("array", 1, fields=again),))
    constructs = declared(msgspec.structs.replace(of, max_depth=8))
    inside = {"Array": {"star": b"*", "count": 0, "items": []}}
    items = [{"Simple": {"plus": b"+", "octet": 97}}, inside]
    assert flat(constructs.array.parse(b"*\2+a*\0")) == {"star": b"*", "count": 2, "items": items}


def test_flags_behind_a_value_of_any_size() -> None:
    """They are found by the declaration of their frame."""
    constructs = declared(flagged())
    for name in ("", "a", "\1\1\1"):
        octets = bytes((len(name),)) + name.encode()
        header = {"mark": b"\x8e\1", "name": name, "number": 7}
        assert constructs.parse([b"topic", b"\x8e\1" + octets + b"\3\7"]) == (
            "Message1", {"topic": b"topic", **header, "flags": 3},
        )  # fmt: skip
        assert constructs.parse([b"\x8e\1" + octets + b"\2\7"])[1] == {"topic": None, **header, "flags": 2}


UUID_OCTETS = bytes(range(16))


@pytest.mark.parametrize(
    ("type", "declaration", "value", "octets"),
    [
        (ir.IntegerType(2, order="little", signed=True), "cs.Int16sl", -2, b"\xfe\xff"),
        (ir.IntegerType(5, order="little"), "cs.BytesInteger(5, swapped=True)", 1, b"\1\0\0\0\0"),
        (ir.IntegerType(1, values=(-1, 1), signed=True), "cs.OneOf(cs.Int8sb, (-1, 1))", -1, b"\xff"),
        (ir.FloatType(4), "cs.Float32b", 1.5, b"\x3f\xc0\0\0"),
        (ir.FloatType(8, "little"), "cs.Float64l", -2.5, b"\0\0\0\0\0\0\x04\xc0"),
        (ir.BooleanType(2), "cs.Mapping(cs.Int16ub, {False: 0, True: 1})", True, b"\0\1"),
        (ir.VarintType(), "Varint(10)", 624485, b"\xe5\x8e\x26"),
        (ir.VarintType("big", 4), "Varint(4, big=True)", 2**21, b"\x81\x80\x80\0"),
        (ir.VarintType(signed="zigzag"), "Varint(10, signed='zigzag')", -2, b"\3"),
        (ir.VarintType(signed="complement"), "Varint(10, signed='complement')", -123456, b"\xc0\xbb\x78"),
        (ir.DigitsType(16, 4, 8), "Digits(16, 4, 8)", 255, b"00ff"),
        (ir.DigitsType(signed=True), "Digits(10, 1, 20, signed=True)", -12, b"-12"),
        (ir.UuidType(), "Uuid()", UUID(bytes=UUID_OCTETS), UUID_OCTETS),
        (ir.UuidType("little"), "Uuid(little=True)", UUID(bytes_le=UUID_OCTETS), UUID_OCTETS),
    ],
)
def test_numbers(type: ir.Type, declaration: str, value: object, octets: bytes) -> None:
    """Octets by hand, and from the documentation of LEB128 and of Protocol Buffers."""
    of = protocol(message("demo", 1, field("value", type)))
    source = EMITTER.emit(of)
    assert f'"value" / {declaration})' in source
    constructs = declared(of)
    assert constructs.parse([b"\xaa\xa3\1" + octets]) == (
        "Demo",
        {"signature": b"\xaa\xa3", "id": b"\1", "value": value},
    )
    assert constructs.build("Demo", {"value": value}) == [b"\xaa\xa3\1" + octets]


def test_rules_keep_their_names() -> None:
    """A rule of a counted text declares the text; its field counts."""
    number, text = ir.IntegerType(1), ir.TextType(ir.Length("counted"))
    fields = (
        field("size", ir.CounterType(number, ("text",)), rule="size"),
        field("text", text, rule="text"),
        field("rest", ir.OctetsType(ir.Length("rest", 2)), rule="rest"),
        field("check", ir.ChecksumType(ir.IntegerType(2), "internet", ("size", "text")), rule="check"),
    )  # fmt: skip
    rules = (
        *(ir.NamedRule(one.name, 1, one.type) for one in fields),
        ir.NamedRule("head", 1, fields=fields[:1]),
        ir.NamedRule("body", 1, fields=fields),
    )
    constructs = declared(protocol(message("demo", 1, *fields), rules=rules))
    assert (constructs.size.parse(b"\7"), constructs.text.parse(b"abc")) == (7, "abc")
    assert (constructs.rest.parse(b"abc"), constructs.check.parse(b"\0\7")) == (b"abc", 7)
    assert constructs.head.parse(b"\7").size == 7
    # RFC 1071: the complement of 0x0261 + 0x6200.
    octets = b"\2ab" + b"load" + b"\x9b\x9e"
    assert constructs.body.parse(octets).rest == b"load"
    assert constructs.body.build({"text": "ab", "rest": b"load"}) == octets
    assert constructs.build("Demo", {"text": "ab", "rest": b"load"}) == [b"\xaa\xa3\1" + octets]
    with pytest.raises(cs.ChecksumError):
        constructs.body.parse(octets[:-1] + b"\0")
