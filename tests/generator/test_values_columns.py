"""Every kind of value: columns are those of the row codec, in both directions; and of what was derived by hand.

`tests.generator.test_values` compares the row codec with the interpreter of the IR.
"""

from __future__ import annotations

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
        errors = found.column("_error").to_pylist()[len(good) + len(also) :]
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
