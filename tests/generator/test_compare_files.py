"""Editions in files: older versions of the IR, and values that cannot be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare.ir_file import IrFileError, read_ir
from specwire.generator.pipeline import compile_protocol
from tests.generator.editions import field, message, protocol
from tests.house.repository import ROOT

ADDED = {"order", "signed", "open", "number", "counted", "multiple"}
"""Keys of types that version 4 added; constants have had a number before."""


def as_version_3(value: Any) -> Any:
    """Return a part of the IR without what version 3 lacks."""
    if isinstance(value, dict):
        constant = value.get("type") == "constant"
        return {key: as_version_3(inner) for key, inner in value.items() if constant or key not in ADDED}
    return [as_version_3(item) for item in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", ["zre", "flux"])
def test_version_3(name: str) -> None:
    current = compile_protocol(ROOT / "grammars" / name).protocol
    old = {**as_version_3(msgspec.to_builtins(current)), "ir_version": 3}
    assert read_ir(msgspec.json.encode(old)) == current


@pytest.mark.parametrize(
    ("type", "fault"),
    [
        (ir.IntegerType(1, values=(128,), signed=True), "a value that does not fit"),
        (ir.BooleanType(9), "a boolean of 9 octets"),
        (ir.VarintType(maximum=11), "an integer of up to 11 octets with 7 bits in each"),
        (ir.DigitsType(minimum=3, maximum=2), "a number of 3 to 2 digits"),
        (ir.CounterType(ir.IntegerType(1), ()), "a number that counts nothing"),
        (ir.ChecksumType(ir.IntegerType(9), "crc32", ("body",)), "an integer of 9 octets"),
        (ir.PaddingType(4, multiple=4), "padding that cannot be written"),
    ],
)
def test_values_that_cannot_be(type: ir.Type, fault: str) -> None:
    broken = protocol(message("demo", 1, field("value", type)))
    with pytest.raises(IrFileError, match=f"demo.value: {fault}"):
        read_ir(msgspec.json.encode(broken))
