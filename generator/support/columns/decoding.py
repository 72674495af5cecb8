"""Arrays of messages to columns: all rows of a message together, what is left one by one.

Some thousand rows at a time: which message each is, then for each message where every value stands, in all of
its rows at once. A row that does not fit is taken out and the others are read again, so that a column is made
of good rows only; this happens a few times at most, however many rows are bad. Rows that are no message, and
the odd one that is cheaper by itself, are decoded by the row codec at the end and put in their places.

There is no Python work for a row on this way, and no memory is taken by a number that a peer wrote: positions
are noted for what has been found in the octets, not for what they announce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns.arrow import taken
from specwire.generated.columns.building import spread
from specwire.generated.columns.filling import nulls, repeated
from specwire.generated.columns.frames import Frames, Mask, Messages, Positions, as_lists, open_source
from specwire.generated.columns.gathering import GatheredMessage, concatenated, merged
from specwire.generated.columns.messages import make_message
from specwire.generated.columns.rows import Attributes, decode_rows
from specwire.generated.columns.selection import Numbers, Senders, letters, make_choice
from specwire.generated.layout import Frame, ProtocolLayout
from specwire.generated.messages import Message

BLOCK = 1 << 12
"""Rows that the row codec decodes before they become Arrow arrays."""


class ColumnDecoder:
    """The decoder of one protocol's arrays."""

    def __init__(
        self,
        schema: pa.Schema,
        layout: ProtocolLayout,
        decode: Callable[..., Message],
        attributes: Attributes,
        *,
        by_sender: bool = False,
    ) -> None:
        """Make the readers; `decode` is the row codec, which takes a `sender` where messages differ `by_sender`."""
        self.schema = schema
        self.row_codec = decode
        self.attributes = attributes
        self.by_sender = by_sender
        self.single = all(len(m.parts) == 1 and isinstance(m.parts[0], Frame) for m in layout.messages)
        self.choice = make_choice(layout)
        self.names = [message.class_name for message in layout.messages]
        self.types = [schema.field(name).type for name in self.names]
        self.readers = [
            make_message(layout, message, type)
            for message, type in zip(layout.messages, self.types, strict=True)
        ]

    def decode(self, array: Messages, senders: Messages | None = None) -> pa.RecordBatch:
        """Return the messages in `array` as a batch of the schema.

        Raises:
            TypeError: `array` holds no messages.
            ValueError: there are `senders`, and not as many as messages; or a column is larger than an Arrow
                array can be.
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
    """The decoding of one array: `chosen` is the number of each row's message, -1 where that is not known yet."""

    def __init__(self, decoder: ColumnDecoder, count: int, senders: Senders | None) -> None:
        self.decoder = decoder
        self.count = count
        self.senders = senders
        self.chosen: Numbers = np.full(count, -1, np.int16)
        self.gathered: dict[int, GatheredMessage] = {}

    def read_together(self, lists: pa.Array[Any], begin: int) -> None:
        """Read the messages of an array whose first row is row `begin`, all rows of a message at once."""
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
        """Read the rows of a message, None for all; return those that are good."""
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
        """Return the batch, once the rows that are left are decoded one by one."""
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
        """Decode the rows that are left one by one, some thousand at a time."""
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
            blocks.append(decode_rows(frames, decoder.schema, decoder.row_codec, decoder.attributes, senders))
        columns = [concatenated([block.column(name) for block in blocks]) for name in decoder.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=decoder.schema)

    def _names(self) -> pa.Array[Any]:
        """The class of each row's message."""
        names, chosen = self.decoder.names, self.chosen
        first = int(chosen[0]) if self.count else -1
        if first >= 0 and bool((chosen == first).all()):
            return repeated(names[first], self.count)
        return taken(pa.array(names, pa.string()), chosen, chosen < 0)

    def _batch(self, columns: dict[str, pa.Array[Any]]) -> pa.RecordBatch:
        """The batch with these columns; all others are null, and share what that takes."""
        schema = self.decoder.schema
        absent = [field for field in schema if field.name not in columns]
        columns |= {
            field.name: null
            for field, null in zip(absent, nulls([f.type for f in absent], self.count), strict=True)
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
