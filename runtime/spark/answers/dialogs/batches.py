"""Sorted rows as arrays: where conversations begin, and which of them go on from before.

A row is a message, or the state of a conversation, which precedes its messages. What the last batch left open is such a
state too, put before the first row. A message that comes long after the one before it begins another conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from specwire.runtime.spark.answers.dialogs.opened import Opened, from_text
from specwire.runtime.spark.answers.dialogs.tokens import Tokens

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Text: TypeAlias = "pa.Array[Any]"

TEXTS = ("tap", "conversation", "peer", "odd")
NUMBERS = ("seq", "ts", "mono", "symbol", "key")

NOBODY_OPEN = pa.RecordBatch.from_pydict(
    {
        name: pa.array([], kind)
        for name, kind in {
            "tap": pa.string(),
            "conversation": pa.string(),
            "peer": pa.string(),
            "seq": pa.int64(),
            "ts": pa.int64(),
            "mono": pa.int64(),
            "symbol": pa.int16(),
            "key": pa.int64(),
            "odd": pa.string(),
            "carried": pa.string(),
        }.items()
    }
)
"""A batch without rows: what comes after the last one."""


class Carry(NamedTuple):
    """The conversation at the end of a batch, which the next may continue."""

    tap: str
    conversation: str
    peer: str | None
    opened: Opened
    tokens: Tokens | None
    """Its tokens as they are; then `opened` has none."""


class Batch(NamedTuple):
    """Rows as columns; `begins` marks the first row of each conversation, `opened` has the states by row."""

    tap: Text
    conversation: Text
    peer: Text
    odd: Text
    seq: Longs
    ts: Longs
    mono: Longs
    symbol: Longs
    key: Longs
    is_message: Flags
    begins: Flags
    opened: Mapping[int, Opened]
    tokens: Tokens | None
    """Of the state in row 0, where it has them as they are."""


def read_batch(rows: pa.RecordBatch, carry: Carry | None, idle_ns: int) -> Batch:
    """Return the rows with the carried conversation before them; a gap above `idle_ns` ends a conversation."""
    carried = rows.column("carried")
    states = carried.is_valid().to_numpy(zero_copy_only=False)
    opened = {row: from_text(carried[row].as_py()) for row in np.flatnonzero(states).tolist()}
    text = {name: rows.column(name) for name in TEXTS}
    numbers = {
        name: rows.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in NUMBERS
    }
    if carry is not None:
        first = {"tap": carry.tap, "conversation": carry.conversation, "peer": carry.peer, "odd": None}
        text = {
            name: pa.concat_arrays([pa.array([first[name]], column.type), column])
            for name, column in text.items()
        }
        numbers = {name: np.concatenate([np.zeros(1, np.int64), column]) for name, column in numbers.items()}
        states = np.concatenate([np.ones(1, np.bool_), states])
        opened = {0: carry.opened} | {row + 1: state for row, state in opened.items()}
    for row, state in opened.items():
        numbers["seq"][row], numbers["ts"][row] = state.last_seq, state.last_ts
        numbers["mono"][row] = state.last_mono
    begins = _changes(text["tap"]) | _changes(text["conversation"])
    begins[1:] |= np.diff(numbers["mono"]) > idle_ns
    tokens = carry.tokens if carry is not None else None
    return Batch(
        tap=text["tap"],
        conversation=text["conversation"],
        peer=text["peer"],
        odd=text["odd"],
        seq=numbers["seq"],
        ts=numbers["ts"],
        mono=numbers["mono"],
        symbol=numbers["symbol"],
        key=numbers["key"],
        is_message=~states,
        begins=begins,
        opened=opened,
        tokens=tokens,
    )


def _changes(column: Text) -> Flags:
    """Return where a value differs from the one before; the first always does."""
    changes = np.ones(len(column), np.bool_)
    if len(column) > 1:
        different = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        changes[1:] = different.to_numpy(zero_copy_only=False)
    return changes
