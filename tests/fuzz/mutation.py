"""How libFuzzer's inputs change where they are lists of pieces, and lists of lists of them.

libFuzzer changes octets without knowing where a frame begins: an octet put in moves every length behind it, and
the message is another one altogether. So most changes are made inside one piece, by libFuzzer itself, and the
others put pieces in, leave them out, double or swap them. Two inputs are crossed at the border of pieces.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.pieces import LONGEST, join, split

Change = Callable[[bytes, int], bytes]
"""libFuzzer's own change of octets: octets and the greatest length in, other octets out."""

STRUCTURAL = 0.2
"""The share of changes that move whole pieces."""
FILLINGS = (b"", b"\0", b"\xff", b"\x00\x00\x00\x01")
"""New pieces."""


def changed(octets: bytes, longest: int, chance: random.Random, depth: int, change: Change) -> bytes:
    """Return other octets, of `longest` at most; `depth` is how often they are to be split into pieces."""
    if not depth:
        return change(octets, longest)
    pieces = split(octets)
    if not pieces or chance.random() < STRUCTURAL:
        _move(pieces, chance)
    else:
        index = chance.randrange(len(pieces))
        room = min(LONGEST, max(1, longest - len(octets) + len(pieces[index])))
        pieces[index] = changed(pieces[index], room, chance, depth - 1, change)
    return join(pieces)[:longest]


def crossed(one: bytes, other: bytes, longest: int, chance: random.Random) -> bytes:
    """Return the first pieces of one input and the last ones of another."""
    first, last = split(one), split(other)
    return join(first[: chance.randint(0, len(first))] + last[chance.randint(0, len(last)) :])[:longest]


def _move(pieces: list[bytes], chance: random.Random) -> None:
    index = chance.randint(0, len(pieces))
    kind = chance.randrange(4) if pieces else 0
    if kind == 0:
        pieces.insert(index, chance.choice(FILLINGS))
    elif kind == 1:
        del pieces[index : index + 1]
    elif kind == 2:
        pieces.insert(index, chance.choice(pieces))
    else:
        other = chance.randrange(len(pieces))
        pieces[other], pieces[index - 1] = pieces[index - 1], pieces[other]
