"""Sorted rows as arrays: where conversations begin, and which of them go on from before.

A row is a message, or the state of a conversation, which precedes its messages. What the last batch left open is such a
state too, put before the first row. A message that comes long after the one before it begins another conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specwire.runtime.spark.answers.dialogs.opened import Opened, from_text
from specwire.runtime.spark.answers.dialogs.texts import (
    Longs,
    Text,
    join_one,
    more_of,
    names_of,
    names_of_one,
    symbols_of,
)
from specwire.runtime.spark.answers.dialogs.tokens import Tokens

Flags = npt.NDArray[np.bool_]

STATE = -1
"""The symbol of a row that is a conversation's state."""

NUMBERS = ("place", "seq", "ts", "mono", "said", "key")
NOTHING = pa.RecordBatch.from_pydict(
    {name: pa.array([], pa.int64()) for name in NUMBERS} | {"text": pa.array([], pa.string())}
)
"""A batch without rows: what comes after the last one. `place` is a hash of tap and conversation, `ts` in
microseconds; `said` and `text` have the symbol, the names, and of some the sender who is no role, or the state as JSON
(`specwire.runtime.spark.answers.dialogs.texts`). What comes may lack `key`: then no message has one."""


class Carry(NamedTuple):
    """The conversation at the end of a batch, which the next may continue."""

    place: int
    said: int
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
    said: Longs
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
        return names_of(self.said[rows], self.text.take(rows))

    def carry(self, row: int, opened: Opened, tokens: Tokens | None) -> Carry:
        """Return the conversation of a row, to be continued."""
        names = names_of_one(int(self.said[row]), self.text[row].as_py())
        return Carry(int(self.place[row]), *join_one(STATE, names), opened, tokens)

    def more(self, row: int) -> str | None:
        """Return the text of a row that only some have."""
        return more_of(int(self.said[row]), self.text[row].as_py())


def read_batch(rows: pa.RecordBatch, carry: Carry | None, idle_ns: int) -> Batch:
    """Return the rows with the carried conversation before them; a gap above `idle_ns` ends a conversation."""
    text = rows.column("text")
    first = {} if carry is None else {"place": carry.place, "said": carry.said}
    numbers = {name: _column(rows, name, None if carry is None else first.get(name, 0)) for name in NUMBERS}
    if carry is not None:
        text = pa.concat_arrays([pa.array([carry.text], pa.string()), text])
    symbol = symbols_of(numbers["said"])
    is_message = symbol != STATE
    states: list[int] = np.flatnonzero(~is_message).tolist()
    opened = {
        row: carry.opened
        if carry is not None and row == 0
        else from_text(more_of(int(numbers["said"][row]), text[row].as_py()) or "")
        for row in states
    }
    symbol[states] = 0
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
        said=numbers["said"],
        symbol=symbol,
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
    ahead = 0 if first is None else 1
    found = np.zeros(rows.num_rows + ahead, np.int64)
    if name in rows.schema.names:
        found[ahead:] = rows.column(name).to_numpy(zero_copy_only=False)
    if first is not None:
        found[0] = first
    return found
