"""Unsigned integers of four octets in Spark SQL, without a conversion to text.

Spark has no function from octets to an integer. `conv(hex(…), 16, 10)` converts through two texts,
and for four integers takes as long as the rest of the decoding of a message. `hash` maps octets to
an integer by 32-bit Murmur3 with seed 42. For four octets it is a bijection, because every step can
be inverted: multiplication by an odd number, addition, exclusive or, rotation. Inverting the steps
from last to first yields the four octets as a little-endian integer.

    k = rotated(n * FIRST, 15) * SECOND                                         n: the four octets
    h = rotated(42 ^ k, 13) * 5 + ADDED
    h = h ^ 4;  h = (h ^ h >> 16) * THIRD;  h = (h ^ h >> 13) * FOURTH          4: number of octets
    hash = h ^ h >> 16

All numbers are BIGINT from 0 to 2^32 - 1. Factors are signed 32-bit numbers, so no product exceeds
a BIGINT.
"""

from __future__ import annotations

from specwire.generator.emit.sql_text import Lets, Sum, cut
from specwire.generator.emit.tables import INTEGERS, Scalar

TYPES: dict[Scalar, str] = {
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
}
WORD = 4
"""Largest number of octets that are read together."""
SEED = 42
FIRST, SECOND, FIVE, ADDED, THIRD, FOURTH = 0xCC9E2D51, 0x1B873593, 5, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35
_ALL = 0xFFFFFFFF


def integer(lets: Lets, octets: str, start: Sum, size: int) -> str:
    """Return an unsigned integer in the type of its column."""
    return integers(lets, octets, start, [size])[0]


def integers(lets: Lets, octets: str, start: Sum, sizes: list[int]) -> list[str]:
    """Return adjacent integers of `WORD` octets in total, or one of any size, in their columns' types."""
    end = start.fixed + sum(sizes)
    if start.terms or end < WORD or sum(sizes) > WORD:
        whole, name = sum(sizes), by_text(octets, start, sum(sizes))
        if len(sizes) == 1:
            return [f"cast({name} AS {TYPES[INTEGERS[whole]]})"]
        name = lets.let(f"word_{start}", f"cast({name} AS BIGINT)")
    else:
        whole, name = WORD, number(lets, octets, end - WORD)
    behind = sum(sizes)
    found = []
    for size in sizes:
        behind -= size
        found.append(_part(name, behind, size, whole))
    return found


def by_text(octets: str, start: Sum, size: int) -> str:
    """Return an unsigned integer of any size, converted through text."""
    return f"conv(hex({cut(octets, start, size)}), 16, 10)"


def _part(name: str, behind: int, size: int, whole: int) -> str:
    """Return the integer of `size` octets that has `behind` octets after it in a word of `whole` octets."""
    found = f"shiftrightunsigned({name}, {8 * behind})" if behind else name
    if size + behind < whole:
        found = f"{found} & {256**size - 1}"
    type = TYPES[INTEGERS[size]]
    return found if type == "BIGINT" else f"cast({found} AS {type})"


def number(lets: Lets, octets: str, start: int) -> str:
    """Return the name of the integer in the four octets at `start`; undefined if there are fewer."""
    there = f"coalesce({cut(octets, Sum(start), WORD)}, X'')"  # an expression that is never NULL compiles to less code
    found = lets.let(f"hash_{start}", f"cast(hash({there}) AS BIGINT) & {_ALL}")
    found = lets.let(f"hash_{start}", _times(f"({found} ^ shiftright({found}, 16))", FOURTH))
    found = lets.let(
        f"hash_{start}", _times(f"({found} ^ shiftright({found}, 13) ^ shiftright({found}, 26))", THIRD)
    )
    found = lets.let(
        f"hash_{start}", _times(f"(({found} ^ shiftright({found}, 16) ^ {WORD}) - {ADDED})", FIVE)
    )
    found = lets.let(f"hash_{start}", _times(f"({_rotated(found, 13)} ^ {SEED})", SECOND))
    found = lets.let(f"hash_{start}", _times(_rotated(found, 15), FIRST))
    pieces = (
        f"shiftleft({found} & 255, 24)",
        f"shiftleft({found} & 65280, 8)",
        f"(shiftright({found}, 8) & 65280)",
        f"shiftright({found}, 24)",
    )
    return lets.let(f"number_{start}", " | ".join(pieces))


def _times(value: str, factor: int) -> str:
    """Invert a multiplication by an odd number: multiply by its inverse."""
    inverse = pow(factor, -1, _ALL + 1)
    return f"{value} * {inverse if inverse <= _ALL // 2 else inverse - _ALL - 1} & {_ALL}"


def _rotated(value: str, bits: int) -> str:
    """Invert a rotation to the left."""
    return f"((shiftright({value}, {bits}) | shiftleft({value}, {32 - bits})) & {_ALL})"
