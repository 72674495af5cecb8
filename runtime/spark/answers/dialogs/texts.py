"""The names of a conversation and one text more, in one text; their lengths and a row's symbol, in one number.

What costs is sending columns to Python, texts above all. To set the names apart by a sign takes as long as hashing
them, for each has to be searched for it, so their octets are counted instead. Taps often call a conversation by its
peer with something before it: then the peer's name is not said again.

    said: symbol, 16 bits | octets of tap, conversation, peer, 12 bits each | whether there is one text more |
        whether the conversation's name ends with the peer's
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
_OCTETS = (1 << _LENGTH) - 1
_HAS_MORE = 1 << (_SYMBOL + NAMES * _LENGTH)
_ENDS = _HAS_MORE << 1


def name(text: Column) -> Column:
    """Return a text that can be a name: empty for null, and cut."""
    there = F.coalesce(text, F.lit(""))
    return F.when(F.octet_length(there) > LONGEST, F.substring(there, 1, LONGEST)).otherwise(there)


def join(symbol: Column, names: tuple[Column, ...], more: Column) -> tuple[Column, Column]:
    """Return the number and the text of rows; `names` are as `name` gives them, `more` is null where there is nothing."""
    tap, conversation, peer = names
    lengths = (
        F.shiftleft(F.octet_length(each).cast("long"), at) for each, at in zip(names, _PLACES, strict=True)
    )
    said = reduce(Column.bitwiseOR, lengths, symbol.cast("long").bitwiseAND((1 << _SYMBOL) - 1))
    ends = F.endswith(conversation, peer)
    for flag, is_so in ((_HAS_MORE, more.isNotNull()), (_ENDS, ends)):
        said = said.bitwiseOR(F.when(is_so, F.lit(flag)).otherwise(F.lit(0).cast("long")))
    text = F.concat(tap, conversation, F.when(ends, F.lit("")).otherwise(peer), F.coalesce(more, F.lit("")))
    return said, text


def join_one(symbol: int, names: tuple[str, ...], more: str | None = None) -> tuple[int, str]:
    """Return the same for one row."""
    tap, conversation, peer = names
    ends = conversation.endswith(peer)
    said = symbol & (1 << _SYMBOL) - 1 | (0 if more is None else _HAS_MORE) | ends * _ENDS
    for each, at in zip(names, _PLACES, strict=True):
        said |= len(each.encode()) << at
    return said, "".join((tap, conversation, "" if ends else peer, more or ""))


def symbols_of(said: Longs) -> Longs:
    """Return the symbols of rows."""
    return said.astype(np.int16).astype(np.int64)  # the lowest 16 bits, with their sign


def names_of(said: Longs, text: Text) -> list[Text]:
    """Return tap, conversation and peer of rows, one at least; a peer without a name is null."""
    offsets = numbers_in(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
    begin, octets = offsets[:-1].astype(np.int64), text.buffers()[2]
    names = []
    for length, is_said in zip(*_lengths(said), strict=True):
        end = begin + length * is_said
        names.append(_slices(end - length, end, octets))
        begin = end
    tap, conversation, peer = names
    return [tap, conversation, pc.if_else(pc.equal(peer, pa.scalar("")), pa.scalar(None, pa.string()), peer)]


def _lengths(said: Any) -> tuple[list[Any], list[Any]]:
    """Return the octets of tap, conversation and peer, and whether each stands in the text by itself."""
    lengths = [said >> at & _OCTETS for at in _PLACES]
    return lengths, [True, True, (said & _ENDS) == 0]


def _slices(begins: Longs, ends: Longs, octets: Any) -> Text:
    """Return texts out of one buffer; none begins before the one before it has ended."""
    bounds = np.column_stack((begins, ends)).astype(np.int32).ravel()
    with_gaps: Text = pa.Array.from_buffers(
        pa.string(), len(bounds) - 1, [None, pa.py_buffer(bounds.data), octets]
    )
    return with_gaps.take(pa.array(np.arange(0, len(bounds), 2), pa.int64()))


def names_of_one(said: int, text: str) -> tuple[str, ...]:
    """Return tap, conversation and peer of a row, the peer empty where it has no name."""
    octets, end, names = text.encode(), 0, []
    for length, is_said in zip(*_lengths(said), strict=True):
        end += length * is_said
        names.append(octets[end - length : end].decode())
    return tuple(names)


def more_of(said: int, text: str) -> str | None:
    """Return the text beside the names, None where there is none."""
    names = sum(length * is_said for length, is_said in zip(*_lengths(said), strict=True))
    return text.encode()[names:].decode() if said & _HAS_MORE else None
