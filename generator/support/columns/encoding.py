"""Encoder from columns of messages to arrays of frames: the inverse of ``columns.decode``.

A batch is written a few thousand rows at a time. Each message column with values in these rows is
written as a whole (see `specwire.generated.columns.assembly`). Raw frames of rows that did not
decode are copied, and one ``take`` puts all rows in order. Rows that the column writers doubt go
through the row codec one by one, which writes them or raises its own error. So checks here may be
stricter than those of the row codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specwire.generated.columns.arrow import either, starts_of
from specwire.generated.columns.assembly import (
    FRAMES,
    Rows,
    as_lists,
    frames_of,
    one_array,
    raw_frames,
    write_messages,
)
from specwire.generated.columns.intake import TypeCheck, plain, there
from specwire.generated.columns.pieces import MOST_OCTETS, Pieces
from specwire.generated.columns.rows import encode_row, refuse
from specwire.generated.columns.selection import doubtful_looks
from specwire.generated.columns.slots import Value, fields_of, records_of
from specwire.generated.columns.writer import Scope
from specwire.generated.errors import EncodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.named_plan import NamedMessage, NamedPlan, named_plan
from specwire.generated.plan import ITEM, Extent, Loop, TakeOctets, TakeText

MOST_ROWS = 65_536
"""Number of rows written at once, so that their arrays fit the processor's cache."""
MOST_BEFORE = 2**24
"""Number of octets of column data written at once, which bounds intermediate arrays."""

_REST = Extent("rest")
_COMMON: dict[str, Value] = {
    "_message": TakeText("_message", _REST),
    "_frames": Loop("_frames", (TakeOctets(ITEM, _REST),)),
}
"""Columns other than messages that the encoder reads, with their types."""


@overload
def encode_columns(
    batch: pa.RecordBatch, layout: ProtocolLayout, home: ModuleType, *, strict: bool = False
) -> pa.ListArray[Any]: ...
@overload
def encode_columns(
    batch: pa.Table, layout: ProtocolLayout, home: ModuleType, *, strict: bool = False
) -> pa.ChunkedArray[Any]: ...
def encode_columns(
    batch: pa.RecordBatch | pa.Table, layout: ProtocolLayout, home: ModuleType, *, strict: bool = False
) -> pa.ListArray[Any] | pa.ChunkedArray[Any]:
    """Return the frames of the messages in `batch`, one row for each row; chunked for a table.

    Args:
        batch: columns of decoded messages.
        layout: layout of the protocol.
        home: module with the classes of messages and records.
        strict: follow the specification to the letter.

    Raises:
        EncodeError: a row cannot be encoded, or all rows together exceed the size of one array.
        TypeError: `batch` is neither a record batch nor a table, or a column has the wrong type.
        ValueError: a column is unknown or occurs twice.
    """
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise TypeError(f"a RecordBatch or Table wanted, not {type(batch).__name__}")
    plan = named_plan(layout)
    fields, records = fields_of(plan), records_of(plan)
    options = {name: vars(home)[name].NAME for name in records.bodies}
    _check_columns(batch.schema, plan, TypeCheck(records, fields, options))
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    encoder = _Encoder(layout, plan, home, Scope(plan, records, fields, options, strict))
    chunks: list[pa.ListArray[Any]] = []
    total = first = 0
    for rows in _slices(table):
        for chunk, octets in encoder.chunks(rows, first):
            chunks.append(chunk)
            total += octets
        first += rows.num_rows
    if isinstance(batch, pa.Table):
        return pa.chunked_array(chunks, FRAMES)
    if total > MOST_OCTETS:
        expected = f"at most {MOST_OCTETS} octets in one array; a Table is encoded in chunks"
        refuse(layout, None, None, "limit", expected, str(total))
    return one_array(chunks)


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Writer for rows of one protocol."""

    layout: ProtocolLayout
    plan: NamedPlan
    home: ModuleType
    scope: Scope

    @property
    def messages(self) -> list[NamedMessage]:
        """Messages by their numbers."""
        return list(self.plan.messages.values())

    def chunks(self, batch: pa.RecordBatch, first: int) -> Iterator[tuple[pa.ListArray[Any], int]]:
        """Yield the frames of rows and their number of octets; `first` is the number of the first row.

        Yields one array if it can hold all frames.
        """
        frames, known = self._rows(batch, first).in_order()
        total = int(frames.bounds[-1])
        if total <= MOST_OCTETS:
            yield as_lists(frames, known), total
        elif batch.num_rows == 1:
            refuse(self.layout, None, None, "limit", f"at most {MOST_OCTETS} octets", str(total), row=first)
        else:
            half = batch.num_rows // 2
            yield from self.chunks(batch.slice(0, half), first)
            yield from self.chunks(batch.slice(half), first + half)

    def _rows(self, batch: pa.RecordBatch, first: int) -> Rows:
        rows = Rows(
            which=np.full(batch.num_rows, -1),
            order=np.full(batch.num_rows, -1),
            doubtful=np.zeros(batch.num_rows, np.bool_),
        )
        for number, entry in enumerate(self.messages):
            if entry.layout.class_name in batch.schema.names:
                self._messages(rows, number, entry, plain(batch.column(entry.layout.class_name)))
        self._raw(rows, batch)
        self._said(rows, batch)
        if rows.doubtful.any():
            self._one_by_one(rows, batch, first)
        return rows

    def _said(self, rows: Rows, batch: pa.RecordBatch) -> None:
        """Mark as doubtful the rows whose ``_message`` names another message."""
        said = plain(batch.column("_message")) if "_message" in batch.schema.names else None
        if said is None or said.null_count == len(said):
            return
        names = pa.array(list(self.plan.messages), said.type)
        other = pc.index_in(said, value_set=names).fill_null(-1).to_numpy(zero_copy_only=False)
        rows.doubtful |= there(said) & (other != rows.which)

    def _messages(self, rows: Rows, number: int, entry: NamedMessage, column: pa.Array[Any]) -> None:
        """Write the rows of one message type."""
        if column.null_count == len(column):
            return
        now = there(column)
        rows.doubtful |= now & (rows.which >= 0)
        rows.which[now] = number
        column = column.drop_null() if column.null_count else column
        frames, wrong = write_messages(entry, self.layout.announcing, column, self.scope)
        places = np.flatnonzero(now)
        rows.add(frames, places)
        wrong = either(wrong, doubtful_looks(self.layout, entry.layout.class_name, frames))
        if wrong is not None:
            rows.doubtful[places[wrong]] = True

    def _raw(self, rows: Rows, batch: pa.RecordBatch) -> None:
        """Copy the frames of rows that did not decode."""
        if "_frames" not in batch.schema.names:
            if "_error" in batch.schema.names:
                rows.doubtful |= there(plain(batch.column("_error"))) & (rows.which < 0)
            return
        column = plain(batch.column("_frames"))
        now = there(column)
        if now.any():
            rows.doubtful |= now & (rows.which >= 0)
            rows.add(raw_frames(column.drop_null()), np.flatnonzero(now))

    def _one_by_one(self, rows: Rows, batch: pa.RecordBatch, first: int) -> None:
        """Write the doubtful rows with the row codec.

        Raises:
            EncodeError: a row cannot be encoded; the first such row is reported.
        """
        places = np.flatnonzero(rows.doubtful)
        found: list[list[bytes]] = []
        for place in places.tolist():
            self._check_one(batch, place, first)
            entry = self.messages[rows.which[place]]
            row = plain(batch.column(entry.layout.class_name).slice(place, 1))
            try:
                found.append(encode_row(self.layout, entry, self.home, row, self.scope))
            except EncodeError as error:
                error.row = first + place
                raise
        sizes = np.array([len(frame) for frames in found for frame in frames], np.int64)
        counts = np.array([len(frames) for frames in found], np.int64)
        octets = np.frombuffer(b"".join(frame for frames in found for frame in frames), np.uint8)
        rows.add(frames_of(Pieces(starts_of(sizes)[starts_of(counts)], octets), counts, sizes), places)

    def _check_one(self, batch: pa.RecordBatch, place: int, first: int) -> None:
        """Raise if a row is not exactly one message, or names another one."""
        names = [*self.plan.messages, "_frames"]
        held = [name for name in names if name in batch.schema.names and batch.column(name)[place].is_valid]
        if len(held) > 1:
            both = " and ".join(held)
            refuse(self.layout, None, held[1], "tag", "one message, or raw frames", both, row=first + place)
        said = batch.column("_message")[place].as_py() if "_message" in batch.schema.names else None
        if said is not None and held != [said]:
            refuse(self.layout, None, "_message", "tag", held[0] if held else "null", said, row=first + place)
        if not held:
            refuse(self.layout, None, "_frames", "frames", "the raw frames", "no column", row=first + place)


def _check_columns(schema: pa.Schema, plan: NamedPlan, check: TypeCheck) -> None:
    messages = plan.messages
    for column in schema:
        if len(schema.get_all_field_indices(column.name)) > 1:
            raise ValueError(f"there are two columns {column.name}")
        if column.name in _COMMON:
            check.value(_COMMON[column.name], column.type, column.name)
        elif column.name in messages:
            check.message(messages[column.name], column.type)
        elif not column.name.startswith("_"):
            raise ValueError(
                f"there is no message {column.name} in {plan.layout.edition}: {', '.join(messages)}"
            )


def _slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in batches of suitable size."""
    for batch in table.to_batches(max_chunksize=MOST_ROWS):
        step = max(1, batch.num_rows * MOST_BEFORE // max(batch.nbytes, MOST_BEFORE))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)
