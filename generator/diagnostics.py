"""Errors and warnings about a specification: the place, the message, and how to correct it.

A pass that finds a fault adds a `Diagnostic` to a `Diagnostics` collection and continues, so that one run
reports every fault of a grammar. The pipeline calls `Diagnostics.raise_errors` between passes: a pass may
assume that the passes before it found no errors.

Each diagnostic points into the file the user wrote and renders with the line and a caret::

    grammars/filemq/grammar.abnf:39:26: error[E103]: '|' is not an ABNF operator
      39 | operation       = create | delete
                                    ^
         = help: write alternatives with '/' (RFC 5234 section 3.2); record the correction in profile.toml

Every code has a row in `specwire.generator.codes`, with its meaning and an example. ``specwire explain`` and
docs/reference/diagnostics.md are generated from these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from specwire.generator.codes import CODES

SHOWN_CHARACTERS = 160
"""Maximum number of characters shown of a line.

A longer line begins `SHOWN_BEFORE` characters before the place.
"""
SHOWN_BEFORE = 60
TOLD_ONCE = ("W1", "W201")
"""Codes that usually occur many times in a grammar: the first place is shown, the others are listed."""
MAX_ALIKE = 100
"""Findings of one code shown for one file; further findings are only counted."""
MAX_RUNS = 12
"""Maximum number of line ranges in the list of further places."""
LONGEST_SENTENCE = 1_000


class Severity(StrEnum):
    """Severity of a diagnostic: an error stops generation, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Source:
    """A text that diagnostics point into: its path as the user would type it, and the whole text."""

    path: str
    text: str

    def line(self, number: int) -> str:
        """Return line `number` (from 1) without its line end, or an empty string if there is no such line."""
        lines = _split(self.text)
        return lines[number - 1].removesuffix("\r") if 0 < number <= len(lines) else ""


@lru_cache(maxsize=4)
def _split(text: str) -> list[str]:
    # Not splitlines(): editors and parsers do not count form feeds and U+2028 as line ends.
    return text.split("\n")


class Span(NamedTuple):
    """A place in a source. Lines and columns count from 1, the end is exclusive, columns count characters."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of `other`."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    def holds(self, other: Span) -> bool:
        """Whether `other` begins in this span."""
        start, end = (self.line, self.column), (self.end_line, self.end_column)
        return self.source == other.source and start <= (other.line, other.column) < end

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: its code (such as ``E201``), place, message, and how to correct it."""

    severity: Severity
    code: str
    span: Span
    message: str
    help: str | None = None

    def render(self, note: str | None = None) -> str:
        """Return the finding as text, with the source line and carets under the place.

        Octets of the file that are not UTF-8 are shown as ``?``, so that the text can be printed anywhere.

        Args:
            note: one more line at the end.
        """
        span = self.span
        lines = [f"{span}: {self.severity}[{self.code}]: {self.message}"]
        gutter = f"{span.line:>4}"
        if excerpt := _excerpt(span):
            lines += [f"{gutter} | {excerpt[0]}", f"{' ' * len(gutter)}   {excerpt[1]}"]
        for word, text in (("help", self.help), ("note", note)):
            if text:
                lines.append(f"{' ' * len(gutter)} = {word}: {text}")
        return "\n".join(lines).encode("utf-8", "replace").decode("utf-8")


def _excerpt(span: Span) -> tuple[str, str] | None:
    """Return the line in which the place begins, shortened around the place if it is long, and the carets."""
    line = span.source.line(span.line).rstrip()
    if not line:
        return None
    end = span.end_column if span.end_line == span.line else len(line) + 1
    width = max(1, min(end, len(line) + 1) - span.column)
    first = max(0, span.column - 1 - SHOWN_BEFORE) if len(line) > SHOWN_CHARACTERS else 0
    shown = line[first : first + SHOWN_CHARACTERS]
    head = "…" if first else ""
    tail = "…" if len(line) > first + SHOWN_CHARACTERS else ""
    # Tabs are kept in the line of carets, so that a caret is below its character.
    pad = "".join("\t" if c == "\t" else " " for c in head + shown[: span.column - 1 - first])
    return head + shown + tail, pad + "^" * min(width, first + SHOWN_CHARACTERS - span.column + 1)


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the findings as one text, each rendered, in the order given.

    A ZeroMQ specification often uses the same notation, or repeats the same rule, dozens of times.
    Such a warning (`TOLD_ONCE`) is shown once for each file, with the lines of the other places.
    Findings of any other code are shown up to `MAX_ALIKE` times for each file.
    """
    found = list(diagnostics)
    places: dict[tuple[str, str], list[int]] = {}
    for diagnostic in found:
        places.setdefault(_kind(diagnostic), []).append(diagnostic.span.line)
    shown: dict[tuple[str, str], int] = {}
    texts: list[str] = []
    for diagnostic in found:
        kind = _kind(diagnostic)
        shown[kind] = shown.get(kind, 0) + 1
        most = 1 if diagnostic.code.startswith(TOLD_ONCE) else MAX_ALIKE
        if shown[kind] <= most:
            more = places[kind][most:] if shown[kind] == most else []
            texts.append(diagnostic.render(_more_places(more)))
    return "\n".join(texts)


def _kind(diagnostic: Diagnostic) -> tuple[str, str]:
    return diagnostic.span.source.path, diagnostic.code


def _more_places(lines: list[int]) -> str | None:
    """Return ``and 3 more places, in lines 7 and 9-10``, or None if there are none."""
    if not lines:
        return None
    numbered = enumerate(dict.fromkeys(sorted(lines)))
    runs = [[line for _, line in run] for _, run in groupby(numbered, lambda pair: pair[1] - pair[0])]
    spans = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs[:MAX_RUNS]]
    if len(runs) > MAX_RUNS:
        spans.append("others")
    listed = " and ".join([", ".join(spans[:-1]), spans[-1]] if len(spans) > 1 else spans)
    word = "line" if len(spans) == 1 and "-" not in spans[0] else "lines"
    return f"and {len(lines):,} more place{'s' if len(lines) > 1 else ''}, in {word} {listed}"


class SpecError(Exception):
    """Raised if a specification or its profile cannot be compiled.

    `diagnostics` holds errors and warnings.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(render_all(diagnostics))
        self.diagnostics = diagnostics


class Diagnostics:
    """A growing collection of findings about one protocol."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}
        self._made = 0
        self.faults = 0
        """Number of different errors."""

    def error(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        """Add an error: generation will stop."""
        self._add(Severity.ERROR, code, span, message, help)

    def warning(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        """Add a warning: generation continues."""
        self._add(Severity.WARNING, code, span, message, help)

    def _add(self, severity: Severity, code: str, span: Span, message: str, help: str | None) -> None:
        """Add a finding.

        Raises:
            KeyError: there is no such code, or it has another severity. This is a bug in the caller.
        """
        if CODES[code].severity != severity:
            raise KeyError(code)
        self.extend([Diagnostic(severity, code, span, _clip(message), help and _clip(help))])

    def extend(self, found: Iterable[Diagnostic]) -> None:
        """Add findings of another collection; equal findings are kept once."""
        for diagnostic in found:
            self._made += 1
            if diagnostic not in self._found:
                self._found[diagnostic] = None
                self.faults += diagnostic.severity is Severity.ERROR

    def __len__(self) -> int:
        """Return the number of findings added, duplicates included."""
        return self._made

    def __iter__(self) -> Iterator[Diagnostic]:
        """Yield each finding once, in the order of their places."""
        return iter(
            sorted(self._found, key=lambda d: (d.span.source.path, d.span.line, d.span.column, d.code))
        )

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop generation, in the order of their places."""
        return tuple(d for d in self if d.severity is Severity.ERROR)

    def raise_errors(self) -> None:
        """Raise `SpecError` with all findings if any of them is an error."""
        if self.faults:
            raise SpecError(tuple(self))


def _clip(sentence: str) -> str:
    """Shorten a long sentence; it may quote a megabyte of the document."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    return f"{sentence[: LONGEST_SENTENCE // 2]} … {sentence[-LONGEST_SENTENCE // 4 :]}"
