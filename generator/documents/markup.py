"""Search for marked-up blocks: RST, Markdown, AsciiDoc and wikidot.

Documents do not state their markup language, and some mix two. A line that looks like the start of
a block in any of the languages is tried as such; the rest of the document is plain text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specwire.generator.documents.kinds import tell_kind

_DIRECTIVE = re.compile(
    r"([ \t]*)\.\.[ \t]+(?:code-block|sourcecode|code|productionlist|parsed-literal)::[ \t]*(\S*)"
)
_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?:\{?\.?(?P<language>[\w+#.-]*))[^`]*$")
_WIKIDOT = re.compile(r"[ \t]*\[\[code\b([^\]]*)\]\](.*)", re.IGNORECASE)
_WIKIDOT_END = re.compile(r"(.*)\[\[/code\]\]", re.IGNORECASE)
_DELIMITER = re.compile(r"(?:-{4,}|\.{4,})[ \t]*$")
_ATTRIBUTES = re.compile(r"\[(?:source|listing|,)?[^\]]*\][ \t]*$")
_ASCIIDOC_LANGUAGE = re.compile(r"\[(?:source)?[^,\]]*,[ \t]*([\w+-]+)")
_WIKIDOT_LANGUAGE = re.compile(r"type=\"?([\w+-]+)")


@dataclass(frozen=True, slots=True)
class Region:
    """A marked block by line numbers from 0: its markup starts at `start`, content is `first` to `last`.

    `last` and `next`, the line at which the document continues, are exclusive.
    """

    start: int
    first: int
    last: int
    next: int
    markup: str
    language: str
    closed: bool = True


def find_regions(lines: Sequence[str]) -> list[Region]:
    """Return the marked blocks in order, without nested ones."""
    return list(_Finder(lines).run())


class _Finder:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._delimiters: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            if _DELIMITER.match(line):
                self._delimiters.setdefault(line.rstrip(), []).append(number)

    def run(self) -> Iterator[Region]:
        at = self._front_matter()
        while at < len(self._lines):
            region = self._region(at)
            if region is None:
                at += 1
            else:
                yield region
                at = max(region.next, at + 1)

    def _front_matter(self) -> int:
        """Return the line after a YAML head between two ``---``, or 0 if there is none."""
        if self._lines and self._lines[0].rstrip() == "---":
            end = next(
                (n for n in range(1, min(len(self._lines), 100)) if self._lines[n].rstrip() == "---"), -1
            )
            return end + 1
        return 0

    def _region(self, at: int) -> Region | None:
        line = self._lines[at]
        if "::" in line and (directive := _DIRECTIVE.match(line)):
            return self._directive(at, len(directive[1].expandtabs(8)), directive[2])
        if (fence := _FENCE.match(line)) and not self._underlines(at):
            return self._fence(at, fence["mark"], fence["language"])
        if "[[" in line and (code := _WIKIDOT.match(line)):
            return self._wikidot(at, code)
        if line[:4] in ("----", "...."):
            return self._delimited(at)
        return None

    def _underlines(self, at: int) -> bool:
        """Whether line `at`, all tildes, underlines the heading above it, as RST has it."""
        line = self._lines[at].rstrip()
        above = self._lines[at - 1].rstrip() if at else ""
        below_text = not (at > 1 and self._lines[at - 2].strip())
        return bool(above) and below_text and not line.strip("~") and abs(len(line) - len(above)) <= 2

    def _directive(self, at: int, indent: int, language: str) -> Region:
        first = at + 1
        while first < len(self._lines) and re.match(r"[ \t]+:[\w-]+:", self._lines[first]):
            first += 1
        last = end = first
        while end < len(self._lines):
            line = self._lines[end].expandtabs(8)
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            end += 1
            last = end if line.strip() else last
        while first < last and not self._lines[first].strip():
            first += 1
        return Region(at, first, last, max(last, at + 1), "directive", language.lower())

    def _fence(self, at: int, mark: str, language: str) -> Region:
        end = re.compile(rf"[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
        for number in range(at + 1, len(self._lines)):
            if end.match(self._lines[number]):
                return Region(at, at + 1, number, number + 1, "fence", language.lower())
        return Region(at, at + 1, len(self._lines), len(self._lines), "fence", language.lower(), closed=False)

    def _wikidot(self, at: int, opening: re.Match[str]) -> Region:
        named = _WIKIDOT_LANGUAGE.search(opening[1])
        language = named[1].lower() if named else ""
        if _WIKIDOT_END.match(opening[2]):
            return Region(at, at + 1, at + 1, at + 1, "wikidot", language)
        for number in range(at + 1, len(self._lines)):
            if "[[/" in self._lines[number] and (end := _WIKIDOT_END.match(self._lines[number])):
                last = number if not end[1].strip() else number + 1
                return Region(at, at + 1, last, number + 1, "wikidot", language)
        return Region(at, at + 1, len(self._lines), len(self._lines), "wikidot", language, closed=False)

    def _delimited(self, at: int) -> Region | None:
        """Return an AsciiDoc block; None if the line underlines a heading or separates paragraphs."""
        mark = self._lines[at].rstrip()
        if not _DELIMITER.match(mark):
            return None
        above = self._lines[at - 1].rstrip() if at else ""
        attributes = bool(_ATTRIBUTES.match(above))
        if above and above != "+" and not attributes and not re.match(r"\.\S", above):
            return None
        same = self._delimiters[mark]
        position = bisect_left(same, at) + 1
        named = _ASCIIDOC_LANGUAGE.match(above)
        language = named[1].lower() if named else ""
        if position == len(same):
            unclosed = Region(
                at, at + 1, len(self._lines), len(self._lines), "delimiters", language, closed=False
            )
            return unclosed if attributes else None
        end = same[position]
        if not attributes and tell_kind(self._lines[at + 1 : end], language, marked=True) == "other":
            return None
        return Region(at, at + 1, end, end + 1, "delimiters", language)
