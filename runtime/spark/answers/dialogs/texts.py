"""The names of a conversation and one text more, in one text; their lengths and a row's symbol, in one number.

What costs is sending columns to Python, texts above all. To set the names apart by a sign takes as long as hashing
them, for each has to be searched for it, so their octets are counted instead.

    said: symbol, 16 bits | octets of tap, conversation, peer, 12 bits each | whether there is one text more
"""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from specwire.generated.columns.arrow import numbers_in

Longs = npt.NDArray[np.int64]
Text: TypeAlias = "pa.Array[Any]"

LONGEST = 512
"""Characters of a name: twice the octets that an identity may have, for they may be shown in hex. What is longer is
cut, so that a row is small whatever a capture holds, and four octets for each character can be counted."""

NAMES = 3
"""Tap, conversation and peer."""

_SYMBOL, _LENGTH = 16, 12
_PLACES = tuple(_SYMBOL + number * _LENGTH for number in range(NAMES))
_HAS_MORE = 1 << (_SYMBOL + NAMES * _LENGTH)


def name(text: Column) -> Column:
    """Return a text that can be a name: empty for null, and cut."""
    there = F.coalesce(text, F.lit(""))
    return F.when(F.octet_length(there) > LONGEST, F.substring(there, 1, LONGEST)).otherwise(there)


def join(symbol: Column, names: tuple[Column, ...], more: Column) -> tuple[Column, Column]:
    """Return the number and the text of rows; `names` are as `name` gives them, `more` is null where there is nothing."""
    lengths = (
        F.shiftleft(F.octet_length(each).cast("long"), at) for each, at in zip(names, _PLACES, strict=True)
    )
    said = reduce(Column.bitwiseOR, lengths, symbol.cast("long").bitwiseAND((1 << _SYMBOL) - 1))
    has_more = F.when(more.isNotNull(), F.lit(_HAS_MORE)).otherwise(F.lit(0).cast("long"))
    return said.bitwiseOR(has_more), F.concat(*names, F.coalesce(more, F.lit("")))


def join_one(symbol: int, names: tuple[str, ...], more: str | None = None) -> tuple[int, str]:
    """Return the same for one row."""
    said = symbol & (1 << _SYMBOL) - 1 | (0 if more is None else _HAS_MORE)
    for each, at in zip(names, _PLACES, strict=True):
        said |= len(each.encode()) << at
    return said, "".join(names) + (more or "")


def symbols_of(said: Longs) -> Longs:
    """Return the symbols of rows."""
    return said.astype(np.int16).astype(np.int64)  # the lowest 16 bits, with their sign


def names_of(said: Longs, text: Text) -> list[Text]:
    """Return tap, conversation and peer of rows; a peer without a name is null."""
    offsets = numbers_in(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
    bounds = np.empty((len(text), NAMES + 1), np.int32)
    bounds[:, 0] = offsets[:-1]
    for number, at in enumerate(_PLACES):
        bounds[:, number + 1] = bounds[:, number] + (said >> at & (1 << _LENGTH) - 1)
    ends = pa.py_buffer(np.append(bounds.ravel(), offsets[-1:]).data)
    parts = pa.Array.from_buffers(pa.string(), bounds.size, [None, ends, text.buffers()[2]])
    places = (np.arange(number, bounds.size, NAMES + 1) for number in range(NAMES))
    tap, conversation, peer = (parts.take(pa.array(place, pa.int64())) for place in places)
    return [tap, conversation, pc.if_else(pc.equal(peer, pa.scalar("")), pa.scalar(None, pa.string()), peer)]


def names_of_one(said: int, text: str) -> tuple[str, ...]:
    """Return tap, conversation and peer of a row, the peer empty where it has no name."""
    octets, begin, names = text.encode(), 0, []
    for at in _PLACES:
        end = begin + (said >> at & (1 << _LENGTH) - 1)
        names.append(octets[begin:end].decode())
        begin = end
    return tuple(names)


def more_of(said: int, text: str) -> str | None:
    """Return the text beside the names, None where there is none."""
    names = sum(len(each) for each in names_of_one(said, text))
    return text[names:] if said & _HAS_MORE else None
