"""Which patterns of octets may be the beginning of one frame: found without comparing each pattern with each other.

Patterns are divided by their octets, one place after another: two that have different constants in a place are never
compared. Those with any octet in it go with each other, and with each of the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from specwire.generator.passes.heads import ANY

LOOKED_AT = 32
"""Octets of a pattern that are looked at."""
FEW = 8
"""Patterns that are not worth dividing."""


def overlapping(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, Iterable[int]]]:
    """Yield, for a row of patterns, others that may be alike, by their places in `rows`: each pair once.

    Rows may be alike where their patterns are, frame by frame; one that ends before another's has any octets behind
    its end. Only the first `LOOKED_AT` octets are looked at, and not even these where few patterns are left.
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
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(texts[row][at : at + 2], []).append(row)
    return groups


def _texts(rows: Sequence[Sequence[str]]) -> list[str]:
    """One text for each row, all of the same length: the patterns of its frames, filled up with any octets."""
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
