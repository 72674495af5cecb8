"""Small numbers of a row side by side in columns of 64 bits.

A column takes a row through Arrow, a row of Spark and the query above it, at each of which it costs as much whatever
it holds; to shift a number out of a word costs next to nothing. A number has the same place in every row of a message,
and numbers of different messages share places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

Arrays: TypeAlias = "pa.Array[Any]"
Word = NDArray[np.uint64]

WIDTH = 64


@dataclass(frozen=True)
class Bits:
    """A place for an unsigned number: so many bits (`width`) of a word, `shift` above its lowest."""

    word: int
    shift: int
    width: int

    def put(self, words: Mapping[int, Word], numbers: Arrays) -> None:
        """Write numbers that fit, a row each, where no row has one yet; null leaves the word as it is."""
        known: Any = numbers.fill_null(0) if numbers.null_count else numbers
        values = cast("NDArray[Any]", known.to_numpy(zero_copy_only=False)).astype(np.uint64)
        words[self.word] |= values << np.uint64(self.shift)

    def take(self, word: Column) -> Column:
        """Return the number, a BIGINT, of its word."""
        shifted = F.shiftrightunsigned(word, self.shift) if self.shift else word
        return shifted if self.shift + self.width == WIDTH else shifted.bitwiseAND((1 << self.width) - 1)


def share_words(taken: int, widths: Mapping[str, int]) -> dict[str, Bits]:
    """Return places for numbers of at most 63 bits; of the first word so many bits are taken already."""
    used = [taken]
    places: dict[str, Bits] = {}
    for name, width in widths.items():
        word = next((number for number, bits in enumerate(used) if bits + width <= WIDTH), len(used))
        if word == len(used):
            used.append(0)
        places[name] = Bits(word, used[word], width)
        used[word] += width
    return places
