"""Numbers as people and tables see them: range, column, annotation and documentation."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.emit.codec import field_doc
from specwire.generator.emit.columns import ARROW
from specwire.generator.emit.python import annotation, fixed_size
from specwire.generator.emit.schema import SPARK
from specwire.generator.emit.tables import Scalar, columns
from tests.generator.editions import field, message, protocol

UNSIGNED: tuple[Scalar, ...] = ("int16", "int32", "int32", "int64", "int64", "int64", "int64", "uint64")
SIGNED: tuple[Scalar, ...] = ("int8", "int16", "int32", "int32", "int64", "int64", "int64", "int64")

WIDTHS: list[tuple[ir.Type, Scalar]] = [
    *[(ir.IntegerType(octets), kind) for octets, kind in enumerate(UNSIGNED, 1)],
    *[(ir.IntegerType(octets, signed=True), kind) for octets, kind in enumerate(SIGNED, 1)],
    (ir.FloatType(4), "float32"),
    (ir.FloatType(8, "little"), "float64"),
    (ir.BooleanType(2), "bool"),
    (ir.VarintType(), "uint64"),
    (ir.VarintType(signed="zigzag"), "int64"),
    (ir.DigitsType(), "uint64"),
    (ir.DigitsType(maximum=19), "uint64"),  # 10**19 - 1 is above 2**63
    (ir.DigitsType(maximum=18), "int64"),
    (ir.DigitsType(signed=True), "int64"),
    (ir.DigitsType(16, maximum=15), "int64"),
    (ir.DigitsType(16, maximum=16), "uint64"),
    (ir.UuidType(), "string"),
]


@pytest.mark.parametrize(("type", "kind"), WIDTHS)
def test_columns(type: ir.Type, kind: Scalar) -> None:
    demo = message("demo", 1, field("value", type))
    (column,) = columns(demo, protocol(demo))
    assert column.kind == kind
    assert set(ARROW) == set(SPARK) and kind in ARROW


def test_computed_numbers_have_no_column() -> None:
    number = ir.IntegerType(2)
    demo = message(
        "demo", 1, field("size", ir.CounterType(number, ("body",))),
        field("crc", ir.ChecksumType(number, "internet", ("body",))),
        field("body", ir.OctetsType(ir.Length("counted"))),
    )  # fmt: skip
    assert [column.name for column in columns(demo, protocol(demo))] == ["body"]


BOUNDS = [
    (ir.IntegerType(1), 0, 255),
    (ir.IntegerType(3, signed=True), -8388608, 8388607),
    (ir.BooleanType(4), 0, 1),
    (ir.VarintType(maximum=2), 0, 16383),
    (ir.VarintType(), 0, 2**64 - 1),
    (ir.VarintType(maximum=1, signed="complement"), -64, 63),
    (ir.VarintType(signed="zigzag"), -(2**63), 2**63 - 1),
    (ir.DigitsType(maximum=3), 0, 999),
    (ir.DigitsType(16, maximum=2, signed=True), -255, 255),
    (ir.DigitsType(maximum=20), 0, 2**64 - 1),
    (ir.DigitsType(maximum=20, signed=True), -(2**63), 2**63 - 1),
]


@pytest.mark.parametrize(("type", "least", "most"), BOUNDS)
def test_bounds(
    type: ir.IntegerType | ir.BooleanType | ir.VarintType | ir.DigitsType, least: int, most: int
) -> None:
    assert ir.bounds(type) == (least, most)


@pytest.mark.parametrize(
    ("type", "python", "octets", "doc"),
    [
        (ir.IntegerType(2, signed=True), "int", 2, "The value. -32768 to 32767."),
        (ir.IntegerType(8, signed=True), "int", 8, "The value. -2**63 to 2**63 - 1."),
        (ir.FloatType(4), "float", 4, "The value. In single precision."),
        (ir.BooleanType(), "bool", 1, "The value."),
        (ir.VarintType(), "int", None, "The value. 0 to 2**64 - 1."),
        (ir.DigitsType(maximum=4), "int", None, "The value. 0 to 9999."),
        (ir.DigitsType(16, 4, 4), "int", 4, "The value. 0 to 65535."),
        (ir.UuidType(), "UUID", 16, "The value."),
        (ir.BitType(2, 3, 4), "int", None, "The value. 0 to 15."),
        (ir.BitType(2, 3, 4, values=(0, 9)), "int", None, "The value. 0 or 9."),
        (ir.BitType(1, 7, 1, boolean=True), "bool", None, "The value."),
        (ir.PresentType(), "bool", None, "The value. Whether the optional octets are present."),
        (ir.TextType(ir.Length("run", 1, among="6162")), "str", None, "The value. At least 1 octet."),
    ],
)
def test_python(type: ir.Type, python: str, octets: int | None, doc: str) -> None:
    assert annotation(field("value", type)) == python
    assert fixed_size(type) == octets
    assert field_doc(field("value", type), False, 0) == doc


@pytest.mark.parametrize(
    ("option", "doc"),
    [
        (ir.Option("left"), "None unless octets are left."),
        (ir.Option("left", left=2), "None unless more than 2 octets are left."),
        (ir.Option("octets", octets="3a"), "None unless the octets 0x3a are there."),
        (ir.Option("number", field="kind", values=(1, 2)), "None unless `kind` is 1 or 2."),
        (ir.Option("number", field="kind", mask=128, values=(128,)), "None unless `kind` & 0x80 is 128."),
    ],
)
def test_conditions(option: ir.Option, doc: str) -> None:
    optional = msgspec.structs.replace(field("value", ir.UuidType()), option=option, nullable=True)
    assert annotation(optional) == "UUID | None"
    assert field_doc(optional, False, 0) == f"The value. {doc}"
