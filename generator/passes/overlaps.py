"""Search for patterns of octets that the same frame can match, without comparing all pairs.

Patterns are divided by their octets, one position after another. Two patterns with different
constants in a position are never compared. Those without a constant in it are compared with each
other, and with those of each constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from specwire.generator.passes.heads import ANY

LOOKED_AT = 32
"""Octets of a pattern by which it is divided."""
FEW = 8
"""Number of patterns up to which dividing is slower than comparing."""


def overlapping(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, Iterable[int]]]:
    """Yield the index of a row with the indices of others that may overlap it; each pair once.

    A row has one pattern for each frame. Two rows overlap if the patterns of each frame do; any
    octets can follow the end of a pattern. Pairs are candidates: only the first `LOOKED_AT` octets
    count, and few rows are not divided.
    """
    texts = _texts(rows)
    width = len(texts[0]) if texts else 0
    pending: list[tuple[list[int], list[int] | None, int]] = [(list(range(len(texts))), None, 0)]
    while pending:
        ones, others, at = pending.pop()
        if at >= width or len(ones) + len(others or ()) <= FEW:
            for place, one in enumerate(ones):
                yield one, islice(ones, place + 1, None) if others is None else others
            continue
        groups = _divided(texts, ones, at)
        if others is None:
            pending += [(group, None, at + 2) for group in groups.values()]
            open_ = groups.pop(ANY, [])
            pending += [(open_, group, at + 2) for group in groups.values() if open_]
            continue
        against = _divided(texts, others, at)
        for octet, group in groups.items():
            alike = against if octet == ANY else dict.fromkeys((octet, ANY))
            pending += [(group, against[other], at + 2) for other in alike if other in against]


def _divided(texts: Sequence[str], rows: Sequence[int], at: int) -> dict[str, list[int]]:
    """Return the rows by their octet at a position."""
    groups: dict[str, list[int]] = {}
    for row in rows:
        octet = texts[row][at : at + 2]
        groups.setdefault(ANY if "?" in octet else octet, []).append(row)
    return groups


def _texts(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one text for each row, all of the same length: its patterns, padded with any octets, joined."""
    cut = [[pattern[: 2 * LOOKED_AT] for pattern in row] for row in rows]
    frames = zip_longest(*cut, fillvalue="") if cut else ()
    widths = [max(map(len, column)) for column in frames]
    texts: list[str] = []
    for row in cut:
        filled = [*row, *[""] * (len(widths) - len(row))]
        texts.append(
            "".join(one + ANY * ((width - len(one)) // 2) for one, width in zip(filled, widths, strict=True))
        )
    return texts
