"""Values of every kind in the compiled codec: read and written in C as by the pure codec.

`test_values` compares the pure codec with a naive interpreter.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from binascii import crc32, crc_hqx
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE
from specwire.generated.errors import CodecError
from specwire.generator import ir
from specwire.generator.packages import package_files
from specwire.generator.targets import choose_targets
from tests.examples import PERCENT, examples
from tests.generated.agreement import mutated, some_truncations
from tests.generator import layouts
from tests.generator.layouts import Layouts, field, message, protocol
from tests.generator.test_native_compile import compiled, told, twin
from tests.generator.test_values import Values
from tests.house.repository import has_compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python"),
    pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python"),
]
SPACE = ir.ConstantType("20")
COUNTED, REST = ir.Length("counted"), ir.Length("rest")
NUMBERS: dict[str, ir.Type] = {
    "little": ir.IntegerType(3, order="little"),
    "signed": ir.IntegerType(2, signed=True),
    "long": ir.IntegerType(8, order="little", signed=True),
    "member": ir.IntegerType(1, signed=True, values=(-1, 5)),
    "single": ir.FloatType(4),
    "double": ir.FloatType(8, "little"),
    "flag": ir.BooleanType(2, "little"),
    "leb128": ir.VarintType(),
    "zigzag": ir.VarintType("big", 10, "zigzag"),
    "complement": ir.VarintType("little", 10, "complement"),
    "short": ir.VarintType("big", 2),
    "decimal": ir.DigitsType(10, 1, 20),
    "space": SPACE,
    "hexadecimal": ir.DigitsType(16, 4, 4),
    "negative": ir.DigitsType(10, 2, 19, True),
    "space_2": SPACE,
    "uuid": ir.UuidType(),
    "guid": ir.UuidType("little"),
    "items": ir.ListType(1, ir.VarintType("little", 10, "zigzag")),
    "flags": ir.ListType(1, ir.BooleanType(1)),
}
DERIVED: dict[str, ir.Type] = {
    "check": ir.ChecksumType(
        ir.IntegerType(2, order="little"), "crc16-ccitt", ("number", "text", "gap", "also", "words", "sum")
    ),
    "number": ir.CounterType(ir.VarintType("little", 4), ("text",), 3),
    "kind": ir.IntegerType(1),
    "text": ir.TextType(COUNTED),
    "gap": ir.PaddingType(0, "2d", 4),
    "digits": ir.CounterType(ir.DigitsType(16, 1, 3), ("also", "words")),
    "space": SPACE,
    "also": ir.OctetsType(ir.Length("fixed", 2)),
    "words": ir.ListType(0, ir.TextType(ir.Length("prefix", number=ir.VarintType("big", 2)))),
    "sum": ir.ChecksumType(ir.IntegerType(4), "crc32", ("also", "words")),
    "count": ir.CounterType(ir.IntegerType(2, order="little"), ("pairs",), 1),
    "between": ir.UuidType(),
    "pairs": ir.PairsType(0, ir.TextType(ir.Length("prefix", 1)), ir.OctetsType(ir.Length("fixed", 1)), counted=True),
    "body": ir.TextType(ir.Length("rest", 3)),
    "trailer": ir.OctetsType(ir.Length("fixed", 3)),
}  # fmt: skip
UNKNOWN: dict[str, ir.Type] = {
    "count": ir.CounterType(ir.VarintType(), ("text",)),
    "gap": ir.PaddingType(0, "2d", 4),
    "text": ir.TextType(COUNTED),
    "less": ir.CounterType(ir.IntegerType(1), ("octets", "rest"), -1),
    "octets": ir.OctetsType(ir.Length("prefix", 1)),
    "rest": ir.OctetsType(REST),
}
"""Padding whose position is not known before the number, which the pure codec writes."""


def layout() -> ir.Protocol:
    """Return a protocol with a message of numbers, and two of numbers that are computed from other
    values."""

    def run(tag: str, types: dict[str, ir.Type]) -> ir.Frame:
        fields = [field(name, type) for name, type in types.items()]
        return ir.Frame("all", (field("head", ir.ConstantType(tag)), *fields))

    runs = {"a1": NUMBERS, "a2": DERIVED, "a3": UNKNOWN}
    messages = [message(n, (run(tag, types),), tag) for n, (tag, types) in enumerate(runs.items(), 1)]
    return protocol(tuple(messages), ir.Selector(0, 1))


@st.composite
def random_layouts(draw: st.DrawFn) -> ir.Protocol:
    """Ten messages of one frame with values of every kind."""
    drawn = Layouts(draw, values=True, more=True)
    tags = [f"aaa1{number:02x}" for number in range(1, 11)]
    messages = [message(n, (ir.Frame("all", drawn.run(0, tag)),), tag) for n, tag in enumerate(tags, 1)]
    return protocol(tuple(messages), ir.Selector(0, 3))


RUNS = count()


@contextmanager
def built(source: ir.Protocol, name: str) -> Iterator[ModuleType]:
    """The compiled package of a protocol."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for path, text in package_files([source], choose_targets(["native"])).items():
            file = Path(folder, name, Path(path).name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        compiled(Path(folder, name, "_native.pyx"), name)
        patch.syspath_prepend(folder)
        package = importlib.import_module(name)
        assert package.ACCELERATED
        yield package
        for loaded in [one for one in sys.modules if one.split(".")[0] == name]:
            del sys.modules[loaded]


@pytest.fixture(scope="module")
def package() -> Iterator[ModuleType]:
    with built(layout(), "every_value") as module:
        yield module


def numbers(package: ModuleType, **changes: Any) -> Any:
    """Return the message of numbers with the values of `test_numbers_by_hand`."""
    values: dict[str, Any] = {
        "little": 0x010203, "signed": -2, "long": -(2**63), "member": -1, "single": 1.5, "double": -2.0,
        "flag": True, "leb128": 300, "zigzag": -65, "complement": -129, "short": 0x3FFF,
        "decimal": 2**64 - 1, "hexadecimal": 0xBEEF, "negative": -7,
        "uuid": UUID(int=0x00112233445566778899AABBCCDDEEFF), "guid": UUID(int=0x00112233445566778899AABBCCDDEEFF),
        "items": (0, -1, 64), "flags": (True, False),
    }  # fmt: skip
    return package.Message1(**{attribute(package, name): value for name, value in (values | changes).items()})


def attribute(package: ModuleType, name: str) -> str:
    return name if name in package.Message1.__match_args__ else f"{name}_"


NUMBERS_BY_HAND = bytes.fromhex(
    "a1 030201 fffe 0000000000000080 ff 3fc00000 00000000000000c0 0100 ac02 8101 ff7e ff7f"
    + b"18446744073709551615 beef-07 ".hex()
    + "00112233445566778899aabbccddeeff 33221100554477668899aabbccddeeff 03 00 01 8001 02 01 00"
)
"""The values as octets: 300 is 0b10_0101100; -65 in zigzag is 129; -129 ends in the groups 1111111
and 1111110."""


def test_numbers_by_hand(package: ModuleType) -> None:
    message = numbers(package)
    assert [octets.hex(" ") for octets in message.encode()] == [NUMBERS_BY_HAND.hex(" ")]
    with without(package):
        assert package.decode([NUMBERS_BY_HAND]) == message
        assert message.encode() == [NUMBERS_BY_HAND]


DERIVED_BY_HAND = bytes.fromhex(
    # Checksum; 2 octets of text + 3; kind; text; padding to 8 octets.
    "a2 0000 05 09 c3a9 2d"
    # 9 octets of `also` and two words of 1 and 4 octets, and their checksum.
    "39 20 0102 01 61 04 62636465 00000000"
    # 1 pair + 1; UUID; pair; body; trailer.
    "0200 00000000000000000000000000000001 01 6b 76 7a7a 010203"
)


def test_computed_numbers_by_hand(package: ModuleType) -> None:
    wanted = bytearray(DERIVED_BY_HAND)
    wanted[19:23] = crc32(wanted[10:19]).to_bytes(4, "big")
    covered = wanted[3:4] + wanted[5:8] + wanted[10:23]
    wanted[1:3] = crc_hqx(covered, 0xFFFF).to_bytes(2, "little")
    values = {"kind": 9, "text": "\u00e9", "also": b"\1\2", "words": ("a", "bcde"), "between": UUID(int=1)}
    message = package.Message2(**values, pairs=(("k", b"v"),), body="zz", trailer=b"\1\2\3")
    with without(package):
        assert [octets.hex(" ") for octets in message.encode()] == [wanted.hex(" ")]
        assert package.decode([bytes(wanted)]) == message
    wanted[1] ^= 1
    with pytest.raises(CodecError):
        package.decode([bytes(wanted)])


@contextmanager
def without(package: ModuleType) -> Iterator[None]:
    """Whatever is left to the pure codec fails."""
    with mock.patch.object(package.codec, "decode", None):
        patches = [mock.patch.object(class_, "encode", None) for class_ in package.codec.MESSAGES.values()]
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("little", 2**24 - 1, True), ("little", 2**24, False), ("little", -1, False), ("little", True, True),
        ("signed", -(2**15), True), ("signed", -(2**15) - 1, False), ("signed", 2**15, False),
        ("long", 2**63 - 1, True), ("long", 2**63, False), ("member", 5, True), ("member", 4, False),
        ("single", 2.0**128, False), ("single", 3, True), ("double", float("inf"), True), ("single", "1", False),
        ("flag", 1, False), ("flag", None, False), ("leb128", 2**64 - 1, True), ("leb128", 2**64, False),
        ("zigzag", -(2**63), True), ("zigzag", 2**63, False), ("complement", -(2**63), True),
        ("complement", 2**63 - 1, True), ("short", 2**14 - 1, True), ("short", 2**14, False),
        ("decimal", 0, True), ("decimal", -1, False), ("hexadecimal", 0, True), ("hexadecimal", 2**16, False),
        ("negative", -(2**63), True), ("negative", 2**63, False), ("uuid", "1", False), ("items", (2**63,), False),
        ("flags", (1,), False),
    ],
)  # fmt: skip
def test_values_at_the_limits(package: ModuleType, name: str, value: Any, fits: bool) -> None:
    message = numbers(package, **{name: value})
    pure = twin(package, message)
    if not fits:
        for refused in (message, pure):
            with pytest.raises(CodecError):
                refused.encode()
        return
    frames = pure.encode()
    assert message.encode() == frames
    assert package.decode(frames) == package.codec.decode(frames) == message


@pytest.mark.parametrize(
    ("octets", "number"),
    [
        ("00", 0), ("80 00", 0), ("ff ff ff ff ff ff ff ff ff 01", 2**64 - 1), ("ff ff ff ff ff ff ff ff ff 02", None),
        ("80 80 80 80 80 80 80 80 80 80 00", None),
    ],
)  # fmt: skip
def test_varints_that_are_longer_than_needed(package: ModuleType, octets: str, number: int | None) -> None:
    at = NUMBERS_BY_HAND.index(b"\xac\x02")
    frames = [NUMBERS_BY_HAND[:at] + bytes.fromhex(octets) + NUMBERS_BY_HAND[at + 2 :]]
    if number is None:
        with pytest.raises(CodecError):
            package.decode(frames)
    else:
        assert package.decode(frames).leb128 == number
    assert told(package.codec.decode, frames) == told(package.decode, frames)


@settings(max_examples=examples(240), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_both_builds_agree(package: ModuleType, data: st.DataObject) -> None:
    check_builds(package, layout(), data)


@pytest.mark.skipif(PERCENT < 100, reason="compiles for minutes: make fuzz")
@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_layouts() | layouts.more, st.data())
def test_both_builds_agree_on_random_layouts(source: ir.Protocol, data: st.DataObject) -> None:
    # Each needs another name: an extension module is never unloaded.
    with built(source, f"random_values_{next(RUNS)}") as package:
        for _ in range(40):
            check_builds(package, source, data)


def check_builds(package: ModuleType, source: ir.Protocol, data: st.DataObject) -> None:
    """Encode a random message, decode it, and decode its octets with random changes, by both
    builds."""
    message = Values(data.draw, source, package).message()
    frames = told(message.encode)
    assert frames == told(twin(package, message).encode)
    if isinstance(frames, tuple):
        return
    chance = Random(data.draw(st.integers(0, 2**32)))
    damaged = [list(short) for short in some_truncations(frames, 20, chance)]
    for given_frames in [frames, *damaged, *(mutated(frames, chance) for _ in range(20))]:
        native, pure = told(package.decode, given_frames), told(package.codec.decode, given_frames)
        assert repr(native) == repr(pure) and (native == pure or "=nan" in repr(pure))
        if not isinstance(native, tuple):
            assert native.encode() == native.replace().encode() == pure.encode()
