"""The join of column encoding, with Arrow and compiled: the same as joining the octets of each element in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated.columns import native
from specwire.generated.columns.arrow import starts_of
from specwire.generated.columns.pieces import Block, Component, Numbers, Pieces, joined, pieces_of
from tests.generated.column_agreement import column_build

WAYS = ("numpy", "compiled")


def column(rows: list[bytes], kind: str) -> Component:
    """The octets of all rows as a component of some kind."""
    match kind:
        case "text":
            # The octets before and behind are not of the elements.
            return pieces_of(pa.array([b"before", *rows, b"behind"]).slice(1, len(rows)))
        case "large":
            octets = np.frombuffer(b"..." + b"".join(rows), np.uint8)
            return Pieces(starts_of(np.array([len(row) for row in rows])) + 3, octets)
        case "block":
            return Block(np.array([list(row) for row in rows], np.uint8).reshape(len(rows), -1))
    return Numbers(np.array([int.from_bytes(row, "big") for row in rows], np.uint64), len(rows[0]))


@st.composite
def components(draw: st.DrawFn) -> tuple[list[list[bytes]], list[Component]]:
    """Columns of octets, and the same as components."""
    count = draw(st.integers(1, 40))
    columns: list[list[bytes]] = []
    made: list[Component] = []
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(("text", "large", "block", "number", "constant")))
        width = draw(st.integers(1, 8))
        some = (
            st.binary(max_size=40) if kind in ("text", "large") else st.binary(min_size=width, max_size=width)
        )
        rows = (
            [draw(some)] * count
            if kind == "constant"
            else draw(st.lists(some, min_size=count, max_size=count))
        )
        columns.append(rows)
        made.append(rows[0] if kind == "constant" else column(rows, kind))
    return [list(row) for row in zip(*columns, strict=True)] or [[]] * count, made


@pytest.mark.parametrize("way", WAYS)
@given(drawn=components())
def test_elements_behind_each_other(way: str, drawn: tuple[list[list[bytes]], list[Component]]) -> None:
    rows, made = drawn
    with column_build(way):
        assert joined(made, len(rows)).array().to_pylist() == [b"".join(row) for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_join(way: str) -> None:
    empty = pieces_of(pa.array([], pa.binary()))
    several: list[list[Component]] = [[], [empty], [empty, b"ab", Numbers(np.zeros(0, np.uint8), 3)]]
    with column_build(way):
        for made in several:
            assert joined(made, 0).array().to_pylist() == []


@pytest.mark.parametrize(
    ("offsets", "octets"),
    [([0, 2, 5], b"abcd"), ([-1, 0, 1], b"abcd"), ([0, 3, 2], b"abcd"), ([0, 2, 4], b"abcdef"), ([0, 1], b"a"), ([0, 1, 1], b"")],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("size", [np.int32, np.int64])
def test_the_compiled_join_reads_and_writes_nothing_outside(
    offsets: list[int], octets: bytes, size: Any
) -> None:
    """Offsets that leave their octets, go back, or have more octets than there is room for."""
    if native.KERNELS is None:
        pytest.skip("the column kernels are not compiled here")
    with pytest.raises(ValueError, match="source"):
        native.KERNELS.join(
            [np.array(offsets, size)],
            [np.frombuffer(octets, np.uint8)],
            np.zeros(3, np.int32),
            np.zeros(3, np.uint8),
        )
