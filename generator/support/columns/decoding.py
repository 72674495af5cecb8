"""Decoder from arrays of messages to columns.

Works on a few thousand rows at a time. First it determines each row's message type, then finds the
position of every value in all rows of that type at once. Rows that do not fit are removed and the
rest are read again, so a column is built from good rows only. This repeats a few times at most,
however many rows are bad. Rows that are no message, and single rows that are cheaper alone, are
decoded by the row codec at the end and inserted at their positions.

No Python code runs for each row on this path. Memory is never allocated from a number that a peer
sent: positions are recorded for octets that exist, not for octets that are announced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns.arrow import Mask, Positions, nulls, repeated, taken
from specwire.generated.columns.building import spread
from specwire.generated.columns.frames import Frames, Messages, as_lists, open_source
from specwire.generated.columns.gathering import GatheredMessage, concatenated, merged
from specwire.generated.columns.messages import MessageReader
from specwire.generated.columns.rows import Attributes, decode_rows
from specwire.generated.columns.selection import Choice, Numbers, Senders, letters
from specwire.generated.columns.slots import records_of
from specwire.generated.layout import Frame, ProtocolLayout
from specwire.generated.messages import Message
from specwire.generated.named_plan import named_plan

BLOCK = 1 << 12
"""Number of rows that the row codec decodes before they are converted to Arrow arrays."""


class ColumnDecoder:
    """Decoder for the arrays of one protocol."""

    def __init__(
        self,
        schema: pa.Schema,
        layout: ProtocolLayout,
        decode: Callable[..., Message],
        attributes: Attributes,
        *,
        by_sender: bool = False,
    ) -> None:
        """Create the readers.

        `decode` is the row codec. It accepts `sender` if messages are told apart `by_sender`.
        """
        self.schema = schema
        self.row_codec = decode
        self.attributes = attributes
        self.layout = layout
        self.by_sender = by_sender
        self.single = all(len(m.parts) == 1 and isinstance(m.parts[0], Frame) for m in layout.messages)
        self.choice = Choice(layout)
        self.names = [message.class_name for message in layout.messages]
        self.types = [schema.field(name).type for name in self.names]
        plan = named_plan(layout)
        records = records_of(plan)
        self.readers = [MessageReader(layout, message, records) for message in plan.messages.values()]

    def decode(self, array: Messages, senders: Messages | None = None) -> pa.RecordBatch:
        """Return the messages in `array` as a batch of the schema.

        Raises:
            TypeError: `array` holds no messages.
            ValueError: `senders` and `array` differ in length, or a column exceeds the size of an
                Arrow array.
        """
        if senders is not None and len(senders) != len(array):
            raise ValueError(f"{len(senders)} senders of {len(array)} messages")
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        lists = [as_lists(chunk, single=self.single) for chunk in chunks]
        decoding = Decoding(self, len(array), letters(senders) if self.by_sender else None)
        begin = 0
        for chunk in lists:
            decoding.read_together(chunk, begin)
            begin += len(chunk)
        return decoding.finish(lists)


class Decoding:
    """State of decoding one array. `chosen` holds each row's message number, -1 while unknown."""

    def __init__(self, decoder: ColumnDecoder, count: int, senders: Senders | None) -> None:
        self.decoder = decoder
        self.count = count
        self.senders = senders
        self.chosen: Numbers = np.full(count, -1, np.int16)
        self.gathered: dict[int, GatheredMessage] = {}

    def read_together(self, lists: pa.Array[Any], begin: int) -> None:
        """Decode `lists`, whose first row is row `begin`, one message type at a time."""
        source = open_source(lists)
        low = 0
        while low < len(source):
            frames, unsure = source.cut(low)
            self._read_some(frames, unsure, begin + low)
            low += len(frames)

    def _read_some(self, frames: Frames, unsure: Mask | None, low: int) -> None:
        decoder, place = self.decoder, slice(low, low + len(frames))
        numbers = decoder.choice.choose(frames, None if self.senders is None else self.senders[place])
        if unsure is not None:
            numbers[unsure] = -1
        alone = len(numbers) > 0 and bool((numbers == numbers[0]).all())
        for number in [int(numbers[0])] if alone else np.unique(numbers).tolist():
            if number < 0:
                continue
            rows = None if alone else np.flatnonzero(numbers == number)
            read = self._read_message(frames, rows, number, low)
            self.chosen[place if read is None else low + read] = number

    def _read_message(
        self, frames: Frames, rows: Positions | None, number: int, low: int
    ) -> Positions | None:
        """Read the rows of a message (None: all rows); return the good ones."""
        if number not in self.gathered:
            self.gathered[number] = GatheredMessage(self.decoder.types[number], self.count)
        while rows is None or len(rows):
            ok, columns = self.decoder.readers[number].read(frames, rows)
            if not ok.all():
                rows = np.flatnonzero(ok) if rows is None else rows[ok]
                continue
            if rows is not None:
                columns = [spread(column, rows, len(frames)) for column in columns]
            doubt = self.gathered[number].put(low, columns)
            if doubt is None:
                break
            rows = np.flatnonzero(~doubt) if rows is None else rows[~doubt[rows]]
        return rows

    def finish(self, lists: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
        """Decode the remaining rows one by one and return the batch."""
        left = np.flatnonzero(self.chosen < 0)
        single = self._read_singly(lists, left) if len(left) else None
        there = {number: self.chosen == number for number in self.gathered}
        if single is not None:
            known = {name: number for number, name in enumerate(self.decoder.names)}
            self.chosen[left] = [known.get(name or "", -1) for name in single.column(0).to_pylist()]
        columns: dict[str, pa.Array[Any]] = {"_message": self._names()}
        for number, name in enumerate(self.decoder.names):
            if number in self.gathered and there[number].any():
                columns[name] = self.gathered.pop(number).array(there[number])
        for name in self.decoder.schema.names if single is not None else ():
            some = single.column(name) if single is not None else None
            if name != "_message" and some is not None and some.null_count < len(some):
                columns[name] = merged(columns.get(name), some, left, self.count)
        return self._batch(columns)

    def _read_singly(self, lists: Sequence[pa.Array[Any]], left: Positions) -> pa.RecordBatch:
        """Decode the remaining rows one by one, in blocks."""
        decoder, blocks = self.decoder, []
        starts = np.cumsum([0, *map(len, lists)])
        for low in range(0, len(left), BLOCK):
            rows = left[low : low + BLOCK]
            chunks = np.searchsorted(starts, rows, "right") - 1
            frames = [lists[c][int(row - starts[c])].as_py() for c, row in zip(chunks, rows, strict=True)]
            senders = None
            if decoder.by_sender:
                senders = (
                    [None] * len(rows)
                    if self.senders is None
                    else [s or None for s in self.senders[rows].tolist()]
                )
            blocks.append(
                decode_rows(
                    frames, decoder.schema, decoder.row_codec, decoder.attributes, decoder.layout, senders
                )
            )
        columns = [concatenated([block.column(name) for block in blocks]) for name in decoder.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=decoder.schema)

    def _names(self) -> pa.Array[Any]:
        """Return the class name of each row's message."""
        names, chosen = self.decoder.names, self.chosen
        first = int(chosen[0]) if self.count else -1
        if first >= 0 and bool((chosen == first).all()):
            return repeated(names[first], self.count)
        return taken(pa.array(names, pa.string()), chosen, chosen < 0)

    def _batch(self, columns: dict[str, pa.Array[Any]]) -> pa.RecordBatch:
        """Return the batch with these columns; all other columns are null and share one buffer."""
        schema = self.decoder.schema
        absent = [field for field in schema if field.name not in columns]
        columns |= {
            field.name: null
            for field, null in zip(absent, nulls([f.type for f in absent], self.count), strict=True)
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
