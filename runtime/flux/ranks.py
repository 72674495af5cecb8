"""Sets of ranks as Flux writes them, in order and with ranges: ``0,2-3``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


def parse_ranks(text: str, limit: int) -> list[int]:
    """Return the ranks of a set, in order.

    Args:
        text: the set.
        limit: the rank after the highest that there can be.

    Raises:
        ValueError: `text` is no such set, or has a rank that cannot be.
    """
    found: set[int] = set()
    for word in text.split(","):
        match = _RANGE.fullmatch(word)
        if match is None:
            raise ValueError(f"{text!r} is no set of ranks such as 0,2-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{text!r}: {word} goes backwards")
        if last >= limit:
            raise ValueError(f"{last} is no rank of an instance of {limit}")
        found.update(range(first, last + 1))
    return sorted(found)


def format_ranks(ranks: Iterable[int]) -> str:
    """Return a set as it is written; nothing for no rank."""
    runs = []
    for _, run in groupby(enumerate(sorted({*ranks})), key=lambda each: each[1] - each[0]):
        numbers = [rank for _, rank in run]
        runs.append(f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(runs)
