"""Columns against the row codec: the same values and errors, and which rows were not read together.

The oracle is the row codec and pyarrow's own conversion of Python values; it is what the column decoder uses
for rows that are no messages, so it matters that good rows do not go that way: they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from specwire.generated.columns import decoding as columns_decoding
from specwire.generated.columns import loops as columns_loops
from specwire.generated.columns import native as columns_native
from specwire.generated.columns.rows import decode_rows

FRAMES = pa.list_(pa.binary())
Rows = Sequence[Sequence[bytes | None] | None]


@contextmanager
def counted_rows() -> Iterator[list[Any]]:
    """Give a list of the rows that are decoded one by one meanwhile."""
    seen: list[Any] = []

    def decode(rows: Rows, *arguments: Any) -> pa.RecordBatch:
        seen.extend(rows)
        return decode_rows(rows, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_decoding, "decode_rows", decode)
        yield seen


@contextmanager
def column_build(name: str) -> Iterator[None]:
    """Decode columns by numpy alone meanwhile, or with the compiled kernels; skip the test without these."""
    if name == "compiled" and columns_native.KERNELS is None:
        pytest.skip("the column kernels are not compiled here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_native, "KERNELS", columns_native.KERNELS if name == "compiled" else None)
        yield


@contextmanager
def patient_columns() -> Iterator[None]:
    """Read lists in step to their ends meanwhile, however few rows go on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_loops, "FEW", 0)
        yield


def row_by_row(module: ModuleType, rows: Rows, senders: Sequence[str | None] | None = None) -> pa.RecordBatch:
    """Return what the row codec says of each row."""
    columns = module.columns
    layout = module.layout.LAYOUT
    return decode_rows(rows, columns.SCHEMA, module.codec.decode, columns.ATTRIBUTES, layout, senders)


def assert_same_columns(
    module: ModuleType, rows: Rows, senders: Sequence[str | None] | None = None
) -> pa.RecordBatch:
    """Check that columns are what the row codec says, and that only bad rows were decoded one by one."""
    wanted = row_by_row(module, rows, senders)
    with counted_rows() as seen, patient_columns():
        sent = None if senders is None else pa.array(senders, pa.string())
        found = module.columns.decode(pa.array(rows, FRAMES), sent)
    found.validate(full=True)
    assert found.schema.equals(module.columns.SCHEMA, check_metadata=True)
    for name in found.schema.names:
        if not found.column(name).equals(wanted.column(name)):
            one, other = (repr(batch.column(name).to_pylist()) for batch in (found, wanted))
            assert one == other, name
            assert "nan" in one, f"{name} is the same in Python only"
    assert isinstance(found, pa.RecordBatch)
    good = [frames for frames in seen if frames is not None and _is_message(module, frames, senders)]
    if not module.layout.LAYOUT.max_depth:
        # Values of one kind inside each other are decoded one by one if they are deep.
        assert not good, "messages decoded one by one"
    return found


def _is_message(module: ModuleType, frames: Sequence[bytes | None], senders: object) -> bool:
    if senders is not None or None in frames:
        return False
    return explained(module, frames) is None


def explained(module: ModuleType, frames: Any) -> str | None:
    """Return the error of frames, None where they are a message."""
    error = row_by_row(module, [frames]).column("_error").to_pylist()[0]
    return None if error is None else str(error["text"])
