"""What a Python worker gives back for messages: what it alone knows, and nothing that Java has already.

A row is one message, so of the structs of a protocol all but one are null in it, and Arrow spends as much on a field
that is null as on one that is there. So the fields of different messages share places: the first text of each message
is in one column, and so on, and Java makes the struct of the row's message of them. Integers of up to four octets are
side by side in words (`specwire.runtime.spark.decoding.words`), of which the first tells the message and the octets
of all frames as well: the worker reads these off Arrow's positions, Java would join the frames to know them. Frames
that are a field as they are (`specwire.runtime.spark.decoding.opaque`) and the raw frames of faulty rows stay in Java.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import LongType, StructField, StructType

from specwire.generated.columns.arrow import nulls_of, numbers_in
from specwire.generated.layout import Frame, Integer, MessageLayout, ProtocolLayout
from specwire.runtime.spark.decoding.noted import FRAMES
from specwire.runtime.spark.decoding.opaque import flags_of, opaque_fields, take_opaque
from specwire.runtime.spark.decoding.words import Bits, share_words

Arrays: TypeAlias = "pa.Array[Any]"

OCTETS = Bits(0, 0, 32)
"""The octets of all frames of a row: an Arrow batch has no more."""
MESSAGE = Bits(0, 32, 16)
"""The number of a row's message among those of the protocol, from 1; 0 where it does not decode."""
HEAD = 48
"""Bits of the first word that every row has."""
SHORT = 4
"""Octets of an integer that goes into a word."""

MOST_FIELDS = 40
"""A protocol with more fields keeps its structs: HotSpot compiles no method of more than 8000 octets, and the one that
makes the structs grows with each field."""


@dataclass(frozen=True)
class Shared:
    """Where the fields of a message are: some in words, some in columns; the others are frames."""

    layout: MessageLayout
    bits: Mapping[str, Bits]
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Returned:
    """What is given back for rows of `decoded`, the package's columns.

    Attributes:
        type: the struct that a row is: words, the error, and columns or structs.
        words: how many words there are.
        shared: the messages whose fields share places.
    """

    decoded: StructType
    type: StructType
    words: int
    shared: Mapping[str, Shared]

    @property
    def messages(self) -> list[StructField]:
        """The columns that are messages."""
        return _messages(self.decoded)

    def pack(self, batch: pa.RecordBatch, frames: Arrays) -> Arrays:
        """Return decoded rows and the octets of their `frames`."""
        words = {number: np.zeros(len(batch), np.uint64) for number in range(self.words)}
        OCTETS.put(words, count_octets(frames))
        names: Any = batch.column("_message")
        known = pa.array([message.name for message in self.messages], pa.string())
        MESSAGE.put(words, pc.add(pc.index_in(names, known), 1))
        found: dict[str, list[Arrays]] = {"_error": [batch.column("_error")]}
        for message in self.messages:
            column: Any = batch.column(message.name)
            shared = self.shared.get(message.name)
            if shared is None:
                found[message.name] = [column]
            elif column.null_count < len(column):
                for name, values in zip(_fields(message).names, column.flatten(), strict=True):
                    if name in shared.bits:
                        shared.bits[name].put(words, values)
                    elif name in shared.columns:
                        found.setdefault(shared.columns[name], []).append(values)
        found |= {_word(number): [pa.array(word.view(np.int64))] for number, word in words.items()}
        marked: Any = to_arrow_type(self.type, timezone="UTC")
        # The casts move no octet: they say what each field means in the way that Spark reads it.
        columns = [_one(found.get(field.name, []), field.type, len(batch)) for field in marked]
        return pa.StructArray.from_arrays(columns, fields=list(marked))

    def octets(self, found: Column) -> Column:
        """Return the octets of all frames from what was given back, never null, and said to be so."""
        return F.coalesce(_take(found, OCTETS), F.lit(0).cast("long"))

    def unpack(self, found: Column) -> Iterator[Column]:
        """Yield the columns of `decoded` from what was given back, beside the column of raw frames."""
        number = _take(found, MESSAGE).cast("int")
        numbers = {message.name: number for number, message in enumerate(self.messages, 1)}
        for field in self.decoded:
            if field.name == FRAMES:
                column = F.when(found["_error"].isNotNull(), F.col(FRAMES))
            elif field.name == "_message":
                column = F.get(F.array(*map(F.lit, numbers)), number - 1)
            elif field.name in self.shared:
                struct = F.struct(*_struct(found, field, self.shared[field.name]))
                column = F.when(number == numbers[field.name], struct)
            else:
                column = found[field.name]
            yield column.alias(field.name, metadata=field.metadata)


def returned_for(decoded: StructType, layout: ProtocolLayout) -> Returned:
    """Return what a worker gives back for rows of `decoded`, which has the raw frames as well."""
    messages = _messages(decoded)
    layouts = {message.class_name: message for message in layout.messages}
    columns: dict[str, StructField] = {message.name: message for message in messages}
    shared: dict[str, Shared] = {}
    if sum(len(_fields(message)) for message in messages) <= MOST_FIELDS:
        columns = {}
        for message in messages:
            shared[message.name] = _share(_fields(message), layouts[message.name], columns)
    words = 1 + max((bits.word for one in shared.values() for bits in one.bits.values()), default=0)
    own = [*(StructField(_word(number), LongType()) for number in range(words)), decoded["_error"]]
    return Returned(decoded, StructType([*own, *columns.values()]), words, shared)


def count_octets(frames: Arrays) -> Arrays:
    """Return the octets of all frames of each row, of lists as Spark sends them: what is null has no octets."""
    lists: Any = frames
    values = lists.values
    if not len(values):
        return pa.array(np.zeros(len(frames), np.int64))
    octets = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = numbers_in(values.buffers()[1], octets)[values.offset :]
    found: Arrays = pa.array(np.diff(ends[lists.offsets.to_numpy()]).astype(np.int64))
    return found


def _share(fields: StructType, layout: MessageLayout, columns: dict[str, StructField]) -> Shared:
    """Give the fields of a message their places, and `columns` those that are not there yet."""
    frames = opaque_fields(layout)
    bits = share_words(HEAD, _short_integers(layout))
    counts: Counter[str] = Counter()
    places: dict[str, str] = {}
    for field in fields:
        if field.name in bits or field.name in frames:
            continue
        kind = field.dataType.json()
        counts[kind] += 1
        place = columns.setdefault(
            f"{kind} {counts[kind]}", StructField(f"_column_{len(columns)}", field.dataType)
        )
        places[field.name] = place.name
    return Shared(layout, bits, places)


def _short_integers(layout: MessageLayout) -> dict[str, int]:
    """The integers of a message that go into words, each with its bits: none of them is ever missing."""
    return {
        field.name: 8 * field.type.octets
        for part in layout.parts
        if isinstance(part, Frame) and part.presence.kind == "always"
        for field in part.fields
        if isinstance(field.type, Integer) and field.type.octets <= SHORT and not field.optional
    }


def _struct(found: Column, message: StructField, shared: Shared) -> Iterator[Column]:
    """The fields of a row that is this message."""
    flags = flags_of(shared.layout)
    taken = {name: _take(found, bits) for name, bits in shared.bits.items()}
    frames = take_opaque(shared.layout, F.col(FRAMES), None if flags is None else taken[flags.name])
    for field in _fields(message):
        if field.name in taken:
            column = taken[field.name].cast(field.dataType)
        elif field.name in frames:
            column = frames[field.name]
        else:
            column = found[shared.columns[field.name]]
        yield column.alias(field.name, metadata=field.metadata)


def _take(found: Column, bits: Bits) -> Column:
    return bits.take(found[_word(bits.word)])


def _word(number: int) -> str:
    return f"_word_{number}"


def _messages(decoded: StructType) -> list[StructField]:
    return [field for field in decoded if not field.name.startswith("_")]


def _fields(message: StructField) -> StructType:
    assert isinstance(message.dataType, StructType)
    return message.dataType


def _one(columns: Sequence[Arrays], type: Any, count: int) -> Arrays:
    """Columns of which at most one has a value in a row, as one."""
    if not columns:
        return nulls_of(type, count)
    coalesce: Any = pc.coalesce
    found: Arrays = coalesce(*columns) if len(columns) > 1 else columns[0]
    return found.cast(type)
