"""Every kind of value on random layouts: columns are those of the row codec, in both directions.

`tests.generator.test_values` compares the row codec with the interpreter of the IR.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.columns import encoding as columns_encoding
from specwire.generated.errors import EncodeError
from specwire.generator import ir
from tests.examples import examples
from tests.generated.agreement import mutated, some_truncations
from tests.generated.column_agreement import assert_same_columns, column_build
from tests.generated.column_rows import batch_of
from tests.generator import layouts
from tests.generator.test_layouts import generated, home
from tests.generator.test_values import Values

__all__ = ("home",)


@pytest.mark.parametrize("build", ["numpy", "compiled"])
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(protocol=layouts.valued(), data=st.data())
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
