"""Places of the keys and texts in a TOML file, which Python's TOML reader does not report.

`find_places` scans a text that `tomllib` accepts. It records the line and column of each key, table and array
element, and the start of the content of each string. `content_lines` returns the lines of such a string, each
with its place in the file, so that diagnostics about a grammar inside a profile point into the profile.

A path leads to a value: ``("errata", 0, "now")``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

Path = tuple[str | int, ...]

_KEY = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRINGS = (
    re.compile(r'"""(?P<text>(?:\\.|[^\\])*?)"""(?!")', re.DOTALL),
    re.compile(r"'''(?P<text>.*?)'''(?!')", re.DOTALL),
    re.compile(r'"(?P<text>(?:[^"\\\n]|\\.)*)"'),
    re.compile(r"'(?P<text>[^'\n]*)'"),
)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


@dataclass(frozen=True, slots=True)
class Place:
    """A key or an element: offsets of what names it, and of a string's content where the value is one."""

    start: int
    end: int
    content: tuple[int, int] | None = None
    escapes: bool = False
    """The string is a basic one: a backslash in it has a meaning."""


def find_places(text: str) -> dict[Path, Place]:
    """Return the places of all keys, tables and elements of a TOML text that is without fault."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, Place] = {}
        self.tables: dict[Path, int] = {}
        """For an array of tables, the number of the last one."""

    def run(self) -> None:
        """Note every place up to the end of the text."""
        table: Path = ()
        while self._skip():
            if self._take("[["):
                table = self._header(array=True)
            elif self._take("["):
                table = self._header(array=False)
            elif not self._entry(table):
                return

    def _header(self, *, array: bool) -> Path:
        start = self.at
        *parents, last = self._keys() or [""]
        path: Path = ()
        for key in parents:
            path = self._current((*path, key))
        path = (*path, last)
        if array:
            self.tables[path] = self.tables.get(path, -1) + 1
            self.found.setdefault(path, Place(start, self.at))
        path = self._current(path)
        self.found[path] = Place(start, self.at)
        self._skip()
        self._take("]]" if array else "]")
        return path

    def _current(self, path: Path) -> Path:
        return (*path, self.tables[path]) if path in self.tables else path

    def _entry(self, table: Path) -> bool:
        """Read ``key = value``; False where there is none."""
        start = self.at
        keys = self._keys()
        end = self.at
        self._skip()
        if not keys or not self._take("="):
            return False
        self._skip()
        path: Path = (*table, *keys)
        for length in range(len(table) + 1, len(path)):
            self.found.setdefault(path[:length], Place(start, end))
        self.found[path] = Place(start, end)
        self._value(path)
        return True

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while self._skip() and (match := _KEY.match(self.text, self.at)):
            self.at = match.end()
            written = match.group()
            keys.append(tomllib.loads(f"key = {written}")["key"] if written[0] in "\"'" else written)
            self._skip()
            if not self._take("."):
                break
        return keys

    def _value(self, path: Path) -> None:
        if self._take("["):
            self._elements(path)
        elif self._take("{"):
            while self._skip() and not self._take("}") and self._entry(path):
                self._skip()
                self._take(",")
        elif string := self._string():
            named = self.found[path]
            self.found[path] = Place(named.start, named.end, string.span("text"), string.group()[0] == '"')
        elif scalar := _SCALAR.match(self.text, self.at):
            self.at = scalar.end()

    def _elements(self, path: Path) -> None:
        number = 0
        while self._skip() and not self._take("]"):
            start = self.at
            self.found[*path, number] = Place(start, start + 1)
            self._value((*path, number))
            if self.at == start:
                return
            place = self.found[*path, number]
            self.found[*path, number] = Place(start, self.at, place.content, place.escapes)
            number += 1
            self._skip()
            self._take(",")

    def _string(self) -> re.Match[str] | None:
        for pattern in _STRINGS:
            if match := pattern.match(self.text, self.at):
                self.at = match.end()
                return match
        return None

    def _skip(self) -> bool:
        """Go past white space and comments; False at the end of the text."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.at < len(self.text)

    def _take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True


@dataclass(frozen=True, slots=True)
class ContentLine:
    """One line of a string's content: its line and column in the file (from 1), and the text as it reads.

    `joined`: a backslash before it made it a part of the line above.
    """

    line: int
    column: int
    text: str
    joined: bool


def content_lines(text: str, place: Place) -> Iterator[ContentLine]:
    """Yield the lines of the string at `place` in the TOML file `text`.

    Columns count in the file; behind an escape sequence the line as it reads is shorter.
    """
    if place.content is None:
        return
    start, end = place.content
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    joined = False
    for raw in text[start:end].split("\n"):
        raw = raw.removesuffix("\r")
        joins = place.escapes and re.search(r"(?<!\\)(?:\\\\)*(\\)[ \t]*$", raw)
        body = raw[: joins.start(1)] if joins else raw
        shown = body.lstrip(" \t") if joined else body
        read = _ESCAPE.sub(_unescape, shown) if place.escapes else shown
        yield ContentLine(line, column + len(body) - len(shown), read, joined)
        joined = bool(joins) or (joined and not body.strip())
        line, column = line + 1, 1


def _unescape(match: re.Match[str]) -> str:
    written = match[1]
    if len(written) > 1:
        return chr(int(written[1:], 16))
    return _ESCAPES.get(written, written)
