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

STATE = -1
"""The symbol of a row that is a conversation's state."""
SEPARATOR = "\0"
"""Between tap, conversation, peer and one more thing: the sender who is no role, or the state as JSON."""
TEXTS = 4

NUMBERS = ("place", "seq", "ts", "mono", "symbol", "key")
NOTHING = pa.RecordBatch.from_pydict(
    {name: pa.array([], pa.int16() if name == "symbol" else pa.int64()) for name in NUMBERS}
    | {"text": pa.array([], pa.string())}
)
"""A batch without rows: what comes after the last one. `place` is a hash of tap and conversation, `ts` in microseconds."""


class Carry(NamedTuple):
    """The conversation at the end of a batch, which the next may continue."""

    place: int
    text: str
    opened: Opened
    tokens: Tokens | None
    """Its tokens as they are; then `opened` has none."""


class Batch(NamedTuple):
    """Rows as columns; `begins` marks the first row of each conversation, `opened` has the states by row.

    `firsts` are these rows by conversation, `conversation` is the number of each row's.
    """

    text: Text
    place: Longs
    seq: Longs
    ts: Longs
    mono: Longs
    symbol: Longs
    key: Longs
    is_message: Flags
    begins: Flags
    firsts: Longs
    conversation: Longs
    opened: Mapping[int, Opened]
    tokens: Tokens | None
    """Of the state in row 0, where it has them as they are."""

    def names(self, rows: Longs) -> list[Text]:
        """Return tap, conversation and peer of rows."""
        parts = pc.split_pattern(self.text.take(rows), SEPARATOR, max_splits=TEXTS - 1)
        tap, conversation, peer = (pc.list_element(parts, place) for place in range(TEXTS - 1))
        return [
            tap,
            conversation,
            pc.if_else(pc.equal(peer, pa.scalar("")), pa.scalar(None, pa.string()), peer),
        ]

    def name(self, row: int) -> str:
        """Return tap, conversation and peer of a row as one text."""
        return SEPARATOR.join(self.text[row].as_py().split(SEPARATOR, TEXTS - 1)[: TEXTS - 1])

    def more(self, row: int) -> str | None:
        """Return the text of a row that only some have."""
        return more_of(self.text[row].as_py())


def more_of(text: str) -> str | None:
    """Return the last of the texts in one, None where it is not there."""
    parts = text.split(SEPARATOR, TEXTS - 1)
    return parts[-1] if len(parts) == TEXTS else None


def read_batch(rows: pa.RecordBatch, carry: Carry | None, idle_ns: int) -> Batch:
    """Return the rows with the carried conversation before them; a gap above `idle_ns` ends a conversation."""
    text = rows.column("text")
    first = {} if carry is None else {"place": carry.place, "symbol": STATE}
    numbers = {name: _column(rows, name, None if carry is None else first.get(name, 0)) for name in NUMBERS}
    if carry is not None:
        text = pa.concat_arrays([pa.array([carry.text], pa.string()), text])
    is_message = numbers["symbol"] != STATE
    states: list[int] = np.flatnonzero(~is_message).tolist()
    opened = {
        row: carry.opened if carry is not None and row == 0 else from_text(more_of(text[row].as_py()) or "")
        for row in states
    }
    numbers["symbol"][states] = 0
    for row, state in opened.items():
        numbers["seq"][row], numbers["ts"][row] = state.last_seq, state.last_ts
        numbers["mono"][row] = state.last_mono
    begins = np.ones(len(text), np.bool_)
    begins[1:] = (np.diff(numbers["place"]) != 0) | (np.diff(numbers["mono"]) > idle_ns)
    tokens = carry.tokens if carry is not None else None
    return Batch(
        text=text,
        place=numbers["place"],
        seq=numbers["seq"],
        ts=numbers["ts"],
        mono=numbers["mono"],
        symbol=numbers["symbol"],
        key=numbers["key"],
        is_message=is_message,
        begins=begins,
        firsts=np.flatnonzero(begins),
        conversation=np.cumsum(begins, dtype=np.int64) - 1,
        opened=opened,
        tokens=tokens,
    )


def _column(rows: pa.RecordBatch, name: str, first: int | None) -> Longs:
    """Return a column that can be changed, with a value before it where one is given."""
    column = rows.column(name).to_numpy(zero_copy_only=False)
    ahead = 0 if first is None else 1
    found = np.empty(len(column) + ahead, np.int64)
    found[ahead:] = column
    if first is not None:
        found[0] = first
    return found
