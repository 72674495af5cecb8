"""Every kind of value on random layouts: the codec agrees with the naive interpreter of the IR.

Numbers of every coding, counters that stand apart from what they count, trailers, padding and checksums; bits,
options, items up to octets, letters of either case, delimiters, and values that contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generator import interpreter, layouts
from tests.generator.interpreter import Refused
from tests.generator.test_layouts import contents_of, generated, home, without_implied
from tests.generator.value_cases import CASES, Case, Fault, built

__all__ = ("home",)

TARGETS = ("codec", "layout", "package", "strategies")
"""The parts of a package that these tests use."""


class Values:
    """Draws values of the types of a protocol, as the attributes of its classes hold them."""

    def __init__(
        self, draw: Callable[[st.SearchStrategy[Any]], Any], protocol: ir.Protocol, module: ModuleType
    ) -> None:
        self.draw = draw
        self.protocol = protocol
        self.module = module
        self.depth = 0
        """Number of records that contain each other here."""

    def message(self) -> Any:
        message = self.draw(st.sampled_from(self.protocol.messages))
        found: dict[str, Any] = {}
        ended = False
        for part in message.parts:
            if isinstance(part, ir.Frame):
                ended = ended or (isinstance(part.presence, ir.Counted) and self.draw(st.booleans()))
                found |= self.attributes(part.fields, omitted=ended)
            else:
                size = self.draw(st.integers(0, 3))
                found[part.field.attribute] = tuple(self.value(part.field.type) for _ in range(size))
        return getattr(self.module, message.class_name)(**found)

    def attributes(self, fields: Sequence[ir.Field], *, omitted: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        announced: dict[str, int] = {}
        there: dict[ir.Option, bool] = {}
        ended = False
        for field in fields:
            if field.option is not None and field.option not in there:
                there[field.option] = not ended and self.is_there(fields, field.option, found | announced)
                number = self.announcing(fields, field.option)
                if number:
                    announced.setdefault(number, int(there[field.option]))
                ended = ended or (field.option.kind == "left" and not there[field.option])
            if field.implied:
                continue
            omitted = omitted or (field.optional and self.draw(st.booleans()))
            if isinstance(field.type, ir.PresentType):
                assert field.option is not None
                found[field.attribute] = there[field.option]
            elif omitted or not (field.option is None or there[field.option]):
                found[field.attribute] = None
            else:
                found[field.attribute] = self.value(field.type)
        return found

    def is_there(self, fields: Sequence[ir.Field], option: ir.Option, found: dict[str, Any]) -> bool:
        """Whether the fields of an option are there; nearly always as a number before them says."""
        numbers = [field for field in fields if field.name == option.field]
        if not numbers or self.draw(st.integers(0, 30)) == 0:
            return bool(self.draw(st.booleans()))
        number = found.get(numbers[0].attribute)
        if number is None and self.announcing(fields, option):
            return bool(self.draw(st.booleans())) and not 0 < self.protocol.max_depth <= self.depth
        return number is not None and interpreter.number_fits(option, number)

    def announcing(self, fields: Sequence[ir.Field], option: ir.Option) -> str:
        """The attribute of the bits that announce an option; empty if none do."""
        numbers = [field for field in fields if field.name == option.field]
        bits = [field for field in numbers if isinstance(field.type, ir.BitType) and field.type.announces]
        return bits[0].attribute if bits else ""

    def value(self, type: ir.Type) -> Any:
        match type:
            case ir.BitType(boolean=True) | ir.PresentType():
                return self.draw(st.booleans())
            case ir.BitType(values=values) if values:
                return self.draw(st.sampled_from(values))
            case ir.BitType(width=width):
                return self.draw(st.sampled_from((0, 1, 2**width - 1)) | st.integers(0, 2**width - 1))
            case ir.EnclosingType(name=name):
                return self.value(interpreter.named_type(self.protocol, name))
            case ir.KeywordType(options=options):
                return self.draw(st.sampled_from(options))
            case ir.JsonType():
                return "{}"
            case ir.IntegerType(values=values, enum=enum) if values or enum:
                members = [
                    value for one in self.protocol.enums if one.name == enum for _, value in one.members
                ]
                return self.draw(st.sampled_from(members or list(values)))
            case ir.IntegerType(octets=octets, signed=signed):
                half = 256**octets // 2
                return self.draw(st.integers(-half, half - 1) if signed else st.integers(0, 2 * half - 1))
            case ir.FloatType(octets=octets):
                return self.draw(st.floats(width=32 if octets == 4 else 64, allow_nan=False))
            case ir.BooleanType():
                return self.draw(st.booleans())
            case ir.VarintType(signed=signed):
                return self.draw(st.integers(-(2**63), 2**63 - 1) if signed else st.integers(0, 2**64 - 1))
            case ir.DigitsType(base=base, maximum=maximum, signed=signed):
                most = min(base**maximum - 1, 2**63 - 1)
                return self.draw(st.integers(-most if signed else 0, most))
            case ir.UuidType():
                return self.draw(st.uuids())
            case ir.ListType(element=element, minimum=minimum):
                deep = isinstance(element, ir.EnclosingType) and self.depth >= self.protocol.max_depth
                size = 0 if deep else self.draw(st.integers(minimum, minimum + 2))
                return tuple(self.value(element) for _ in range(size))
            case ir.PairsType(name=name, value=value):
                size = self.draw(st.integers(type.minimum, type.minimum + 2))
                return tuple((self.value(name), self.value(value or name)) for _ in range(size))
            case ir.RecordType(class_name=class_name, fields=fields):
                self.depth += 1
                found = self.attributes(fields)
                self.depth -= 1
                return getattr(self.module, class_name)(**found)
            case ir.UnionType(options=options):
                deep = 0 < self.protocol.max_depth <= self.depth + 1
                return self.value(options[0] if deep else self.draw(st.sampled_from(options)))
            case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
                if length.kind == "fixed":
                    minimum = maximum = length.octets
                return self.draw(st.binary(min_size=minimum, max_size=min(maximum or 9, 9)))
            case ir.TextType(length=length) if length.kind == "run":
                letters = bytes.fromhex(length.among).decode()
                return self.draw(st.text(letters, min_size=length.octets, max_size=length.octets + 3))
            case ir.TextType(length=length):
                size = length.octets if length.kind == "fixed" else 9
                return self.draw(st.text("abc\u00e9", min_size=0, max_size=size))
        raise NotImplementedError(type)


RANDOM = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@settings(RANDOM, max_examples=examples(120))
@given(layouts.valued(), st.data())
def test_the_codec_agrees_with_the_interpreter(
    home: Path, protocol: ir.Protocol, data: st.DataObject
) -> None:
    check_agreement(home, protocol, data)


@settings(RANDOM, max_examples=examples(120))
@given(layouts.more, st.data())
def test_the_codec_agrees_with_the_interpreter_on_more(
    home: Path, protocol: ir.Protocol, data: st.DataObject
) -> None:
    check_agreement(home, protocol, data)


def check_agreement(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    """Codec and interpreter write and read the same, or both refuse."""
    with generated(home, protocol, TARGETS) as module:
        values = Values(data.draw, protocol, module)
        chance = Random(data.draw(st.integers(0, 2**32)))
        for _ in range(6):
            message = values.message()
            layout = next(one for one in protocol.messages if one.class_name == type(message).__name__)
            try:
                frames = interpreter.encode(protocol, layout, contents_of(protocol, message))
            except Refused:
                with pytest.raises(EncodeError) as unfit:
                    message.encode()
                assert "disagreement" not in unfit.value.found
                continue
            assert message.encode() == frames
            assert module.decode(frames) == message
            damaged = [list(short) for short in some_truncations(frames, 60, chance)]
            damaged += [mutated(frames, chance) for _ in range(40)]
            for octets in damaged:
                check_decoding(protocol, module, octets)


@settings(RANDOM, max_examples=examples(30))
@given(st.one_of(layouts.valued(), layouts.more), st.booleans(), st.data())
def test_the_strategies_draw_what_can_be_sent(
    home: Path, protocol: ir.Protocol, strict: bool, data: st.DataObject
) -> None:
    with generated(home, protocol, TARGETS) as module:
        for _ in range(4):
            message = data.draw(module.strategies.messages(strict=strict))
            frames = message.encode(strict=strict)
            assert module.decode(frames, strict=strict) == message


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_codec_knows_the_cases(home: Path, case: Case) -> None:
    """The octets of good messages, and the errors of bad ones, are those derived by hand."""
    with generated(home, case.protocol, TARGETS) as module:
        for values, frames in case.good:
            message = built(module, values)
            assert message.encode() == list(frames)
            assert module.decode(frames) == message
        for frames, values in case.also:
            assert module.decode(frames) == built(module, values)
        for frames, fault in case.refused:
            with pytest.raises(DecodeError) as refused:
                module.decode(frames)
            assert Fault.of(refused.value) == fault
        for values, fault in case.unfit:
            with pytest.raises(EncodeError) as unfit:
                built(module, values).encode()
            assert Fault.of(unfit.value) == fault


def check_decoding(protocol: ir.Protocol, module: ModuleType, frames: list[bytes]) -> None:
    """Both read the same, or both refuse."""
    try:
        layout, contents = interpreter.decode(protocol, frames)
    except Refused:
        with pytest.raises(DecodeError) as refused:
            module.decode(frames)
        assert "disagreement" not in refused.value.found
        return
    message = module.decode(frames)
    assert contents_of(protocol, message) == without_implied(protocol, layout, contents)
    views = [memoryview(bytearray(frame)) for frame in frames]
    assert repr(module.decode(views)) == repr(message)
