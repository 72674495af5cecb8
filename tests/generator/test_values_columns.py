"""Every kind of value: columns are those of the row codec, in both directions; and of what was derived by hand.

`tests.generator.test_values` compares the row codec with the interpreter of the IR.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.columns import encoding as columns_encoding
from specwire.generated.errors import EncodeError
from specwire.generated.refusal import explain_decode
from specwire.generator import ir
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generated.column_agreement import assert_same_columns, column_build
from tests.generated.column_rows import batch_of
from tests.generator import layouts, value_cases
from tests.generator.compiling import compiled
from tests.generator.test_layouts import generated, home
from tests.generator.test_values import Values
from tests.generator.value_cases import Case, Fault, built

__all__ = ("home",)


@pytest.mark.parametrize("build", ["numpy", "compiled"])
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(protocol=layouts.valued() | layouts.more, data=st.data())
def test_columns_are_those_of_the_row_codec(
    home: Path, build: str, protocol: ir.Protocol, data: st.DataObject
) -> None:
    with (
        generated(home, protocol, ["columns"]) as module,
        column_build(build),
        pytest.MonkeyPatch.context() as patch,
    ):
        values = Values(cast(Any, data.draw), protocol, module)
        chance = Random(data.draw(st.integers(0, 2**32)))
        good: list[tuple[Any, list[bytes]]] = []
        for message in [values.message() for _ in range(8)]:
            try:
                good.append((message, message.encode()))
            except EncodeError:
                with pytest.raises(EncodeError):
                    module.columns.encode(batch_of(module, [message]))
        frames = [octets for _, octets in good]
        damaged = [list(short) for octets in frames for short in some_truncations(octets, 20, chance)]
        damaged += [mutated(octets, chance) for octets in frames for _ in range(10)]
        assert_same_columns(module, [*frames, *damaged])
        patch.setattr(columns_encoding, "encode_row", None)
        assert module.columns.encode(batch_of(module, [message for message, _ in good])).to_pylist() == frames


@pytest.mark.parametrize("build", ["numpy", "compiled"])
@pytest.mark.parametrize("case", value_cases.CASES, ids=lambda case: case.name)
def test_columns_of_cases(home: Path, case: Case, build: str) -> None:
    with generated(home, case.protocol, ["columns"]) as module, column_build(build):
        good, also = ([list(frames) for _, frames in case.good], [list(frames) for frames, _ in case.also])
        bad = [list(frames) for frames, _ in case.refused]
        found = assert_same_columns(module, [*good, *also, *bad])
        faults = [Fault.of(explain_decode(module.layout.LAYOUT, frames)) for frames in bad]
        assert faults == [fault for _, fault in case.refused]
        errors: list[Any] = found.column("_error").to_pylist()[len(good) + len(also) :]
        assert [(error["field"], error["kind"], error["offset"]) for error in errors] == [
            (fault.field, fault.kind, fault.offset) for fault in faults
        ]
        messages = [built(module, message) for message, _ in case.good]
        assert module.columns.encode(batch_of(module, messages)).to_pylist() == good
        written = [built(module, message).encode() for _, message in case.also]
        assert module.columns.encode(found).to_pylist() == [*good, *written, *bad]


@pytest.mark.parametrize("case", value_cases.CASES, ids=lambda case: case.name)
def test_columns_that_cannot_be_sent(home: Path, case: Case) -> None:
    with generated(home, case.protocol, ["columns"]) as module:
        for message, fault in case.unfit:
            try:
                batch = batch_of(module, [built(module, message)])
            except (TypeError, ValueError, OverflowError, EncodeError, pa.ArrowException):
                continue
            with pytest.raises(EncodeError) as refused:
                module.columns.encode(batch)
            assert Fault.of(refused.value) == fault


ARRAY = ir.RecordType(
    "array",
    "Array",
    (
        layouts.field("mark", ir.ConstantType("2a")),
        layouts.field("items", ir.ListType(1, ir.EnclosingType("value"))),
    ),
)
WHOLE = ir.RecordType(
    "whole",
    "Whole",
    (
        layouts.field("mark", ir.ConstantType("3a")),
        layouts.field("number", ir.DigitsType(maximum=3)),
        layouts.field("end", ir.ConstantType("0a")),
    ),
)
VALUE = ir.UnionType("value", (ARRAY, WHOLE), ("2a", "3a"))
TREE = layouts.protocol(
    (
        layouts.message(
            1,
            (
                ir.Frame(
                    "frame",
                    (
                        layouts.field("mark", ir.ConstantType("00")),
                        layouts.field("kind", ir.IntegerType(1, values=(1, 2))),
                        layouts.field("value", VALUE),
                    ),
                ),
            ),
            "00",
        ),
    ),
    ir.Selector(0, 1),
    max_depth=3,
)


def test_octets_of_enclosed_values(home: Path) -> None:
    """Columns hold them as on the wire, and are written so."""
    with generated(home, TREE, ["columns"]) as module:
        rows = [[b"\0\1*\2:007\n*\1:1\n"], [b"\0\2:007\n"], [b"\0\1*\1*\1*\0"], [b"\0\1*\1*\1:8\n"]]
        found = assert_same_columns(module, rows)
        assert found.column("Message1").to_pylist() == [
            {"kind": 1, "value": {"array": {"items": [b":007\n", b"*\1:1\n"]}, "whole": None}},
            {"kind": 2, "value": {"array": None, "whole": {"number": 7}}},
            {"kind": 1, "value": {"array": {"items": [b"*\1*\0"]}, "whole": None}},
            {"kind": 1, "value": {"array": {"items": [b"*\1:8\n"]}, "whole": None}},
        ]
        again = [rows[0], [b"\0\2:7\n"], rows[2], rows[3]]
        assert module.columns.encode(found).to_pylist() == again


@pytest.mark.parametrize(
    ("octets", "field", "kind", "found"),
    [
        (b":1\n:2\n", "value.items[1]", "trailing", "3 more octets"),
        (b"", "value.items[1]", "length", "nothing"),
        (b"*\2:1\n", "value.items[1].items[1]", "length", "nothing"),
        (b":x\n", "value.items[1].number", "text", "0x780a"),
        (b"*\1*\1:1\n", "value.items[1].items[0].items[0]", "limit", "more"),
    ],
)
def test_octets_that_are_not_exactly_one_value(
    home: Path, octets: bytes, field: str, kind: str, found: str
) -> None:
    with generated(home, TREE, ["columns"]) as module:
        row = {"kind": 1, "value": {"array": {"items": [b":1\n", octets]}, "whole": None}}
        batch = pa.record_batch({"Message1": pa.array([row], module.columns.SCHEMA.field("Message1").type)})
        with pytest.raises(EncodeError) as refused:
            module.columns.encode(batch)
        error = refused.value
        assert (error.row, error.field, error.kind, error.found) == (0, field, kind, found)


def test_other_faults_beside_octets_of_values(home: Path) -> None:
    with generated(home, TREE, ["columns"]) as module:
        row = {"kind": 3, "value": {"array": {"items": [b":1\n", b"*\0"]}, "whole": None}}
        batch = pa.record_batch({"Message1": pa.array([row], module.columns.SCHEMA.field("Message1").type)})
        with pytest.raises(EncodeError) as refused:
            module.columns.encode(batch)
        assert (refused.value.field, refused.value.kind) == ("kind", "range")


def test_flags_behind_a_delimiter(home: Path) -> None:
    flags = (ir.FlagBit("MORE", 1, ""), ir.FlagBit("MINE", 2, ""))
    parts = (
        ir.Stack("route", layouts.field("route", ir.OctetsType(ir.Length("rest"))), delimiter="2d"),
        ir.Frame(
            "head",
            (
                layouts.field("mark", ir.ConstantType("01")),
                layouts.field("flags", ir.IntegerType(1, bitmask=True)),
            ),
        ),
        ir.Frame(
            "more",
            (layouts.field("more", ir.OctetsType(ir.Length("rest")), nullable=True),),
            ir.Announced(1, 1),
        ),
        ir.Rest("buffers", layouts.field("buffers", ir.OctetsType(ir.Length("rest")))),
    )
    shape = ir.Shape((), 2, None)
    demo = layouts.protocol((layouts.message(1, parts, "", (shape,)),), None, flags)
    with generated(home, demo, ["columns"]) as module:
        rows = [
            [b"a", b"", b"-", b"\1\1", b"more", b"-"],
            [b"-", b"\1\2", b"x", b"y"],
            [b"-", b"\1\1"],
            [b"a", b"\1\0"],
        ]
        found = assert_same_columns(module, rows)
        assert found.column("Message1").to_pylist() == [
            {"route": [b"a", b""], "flags": 1, "more": b"more", "buffers": [b"-"]},
            {"route": [], "flags": 2, "more": None, "buffers": [b"x", b"y"]},
            None,
            None,
        ]
        assert module.columns.encode(found).to_pylist() == rows


def test_the_number_of_an_absent_field(home: Path) -> None:
    option = ir.Option("number", 1, field="kind", values=(1,))
    fields = (
        layouts.field("kind", ir.IntegerType(1)),
        layouts.field("size", ir.CounterType(ir.BitType(1, 0, 8), ("data",), 1)),
        layouts.field("data", ir.OctetsType(ir.Length("counted")), option=option),
    )
    demo = layouts.protocol(
        (layouts.message(1, (ir.Frame("frame", fields),), "", (ir.Shape((), 1, 1),)),), None
    )
    with generated(home, demo, ["columns"]) as module:
        rows = [[b"\1\3ab"], [b"\0\1"], [b"\1\1"]]
        found = assert_same_columns(module, rows)
        assert found.column("Message1").to_pylist() == [
            {"kind": 1, "data": b"ab"},
            {"kind": 0, "data": None},
            {"kind": 1, "data": b""},
        ]
        assert module.columns.encode(found).to_pylist() == rows


MUTUAL = """\
list = A / B / C
A = %x01 {} ; ZeroMQ frame
B = %x02 {} ; ZeroMQ frame
C = %x03 {} ; ZeroMQ frame
array = "*" count items
count = OCTET
items = *value
value = array / whole
whole = ":" number
number = OCTET
pair = "&" value value
"""
COUNTED = """
name = "demo"
[types.count]
type = "integer"
counts = "items"
"""


@pytest.mark.parametrize("order", list(permutations(("value", "array", "pair"))))
def test_messages_that_begin_at_any_rule_of_a_circle(home: Path, order: tuple[str, ...]) -> None:
    """Whichever rule the grammar mentions first."""
    values = {"value": (b"*\2:a*\1:b", b":a"), "array": (b"*\2:a*\1:b",), "pair": (b"&:a*\1*\1:c",)}
    demo = compiled(home / "-".join(order), MUTUAL.format(*order), COUNTED).protocol
    with generated(home, demo, ["columns"]) as module:
        rows = [[bytes([tag]) + value] for tag, name in enumerate(order, 1) for value in values[name]]
        found = assert_same_columns(module, rows)
        assert found.column("_error").null_count == len(rows)
        assert module.columns.encode(found).to_pylist() == rows
