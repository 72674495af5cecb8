"""Lists of host names as Flux writes them, by rank: ``vm,vm`` or, with what they have in common, ``node[0-3,07-09]``."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_DIGITS = 10
"""Of a number in brackets: there are fewer ranks than have more."""

_ITEM = re.compile(r"([^,\[\]]*)(?:\[([^\[\]]*)\]([^,\[\]]*))?(?:,|$)")
_RANGE = re.compile(rf"(\d{{1,{MAX_DIGITS}}})(?:-(\d{{1,{MAX_DIGITS}}}))?")


def expand(text: str, limit: int) -> list[str]:
    """Return the names in their order.

    Args:
        text: the list.
        limit: how many names there can be, which is the size of the instance.

    Raises:
        ValueError: `text` is no such list, or has more names.
    """
    names: list[str] = []
    for name in _names(text):
        if len(names) == limit:
            raise ValueError(f"there are more than {limit} host names")
        names.append(name)
    return names


def _names(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise ValueError(f"{text!r} is no list of hosts, from character {at} on")
        before, ranges, after = item.groups()
        if ranges is None:
            yield before
        else:
            yield from (f"{before}{number}{after}" for number in _numbers(ranges))
        at = item.end()


def _numbers(ranges: str) -> Iterator[str]:
    """Yield the numbers of what is in brackets, each as wide as the first of its range."""
    for word in ranges.split(","):
        found = _RANGE.fullmatch(word)
        if found is None:
            raise ValueError(f"{word!r} is no range of numbers")
        first, last = found[1], found[2] or found[1]
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"
