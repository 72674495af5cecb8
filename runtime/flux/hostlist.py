"""Lists of host names as Flux writes them, by rank: ``vm,vm`` or, with what they have in common, ``node[0-3,07-09]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MAX_DIGITS = 10
"""Of a number in brackets: there are fewer ranks than have more."""

_ITEM = re.compile(r"([^,\[\]]*)(?:\[([^\[\]]*)\]([^,\[\]]*))?(?:,|$)")
_NUMBER = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}$")
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


def compress(names: Iterable[str]) -> str:
    """Return names as a list, in their order; those that count on from one another are written as a range."""
    parts: list[tuple[str, list[list[str]]]] = []
    for name in names:
        before, number = _split(name)
        if not number or not parts or parts[-1][0] != before or not parts[-1][1]:
            parts.append((before, [[number]] if number else []))
        elif _follows(parts[-1][1][-1][-1], number):
            parts[-1][1][-1].append(number)
        else:
            parts[-1][1].append([number])
    return ",".join(_write(before, runs) for before, runs in parts)


def _split(name: str) -> tuple[str, str]:
    """Return a name without the number at its end, and the number."""
    found = _NUMBER.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _follows(number: str, later: str) -> bool:
    return later == f"{int(number) + 1:0{len(number)}}"


def _write(before: str, runs: list[list[str]]) -> str:
    if not runs:
        return before
    ranges = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"{before}{ranges[0]}" if ranges == [runs[0][0]] else f"{before}[{','.join(ranges)}]"


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
