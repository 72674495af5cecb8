"""What is wrong with a specification, where, and what to do about it.

A pass that finds a fault adds a `Diagnostic` to a `Diagnostics` collection and goes on, so that a user
sees every fault of a grammar at once. Whoever runs the passes calls `Diagnostics.raise_errors` between
them: later passes may then assume that the earlier ones found nothing wrong.

Each diagnostic points into the file the user wrote and renders with the line and a caret::

    grammars/filemq/grammar.abnf:39:26: error[E103]: '|' is not an ABNF operator
      39 | operation       = create | delete
                                    ^
         = help: RFC 5234 section 3.2 writes alternatives with '/'; record it in profile.toml

Codes: E1xx syntax, E2xx names, E3xx dialog, E4xx layout, E5xx profile, E6xx rules that describe text,
E7xx documents; W1xx dialect, W2xx names, W3xx dialog, W4xx assumptions of the layout, W7xx documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby


class Severity(StrEnum):
    """How much a diagnostic matters: an error stops generation, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Source:
    """A text that diagnostics point into: the path as the user would type it, and the whole text."""

    path: str
    text: str

    def line(self, number: int) -> str:
        """Return line `number` (from 1) without its end, or an empty string where there is none."""
        lines = _split(self.text)
        return lines[number - 1].removesuffix("\r") if 0 < number <= len(lines) else ""


@lru_cache(maxsize=4)
def _split(text: str) -> list[str]:
    # Not splitlines(): editors and parsers do not count form feeds and U+2028 as line ends.
    return text.split("\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source: line and column from 1, the end exclusive, columns counted in characters."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of `other`."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: its code (such as ``E201``), place, sentence, and what to do."""

    severity: Severity
    code: str
    span: Span
    message: str
    help: str | None = None

    def render(self, note: str | None = None) -> str:
        """Return the finding as text, with the line it is about and carets under the place.

        `note` is one more line at the end.

        What was not UTF-8 in the file shows as ``?``, so that the text can be printed anywhere.
        """
        span = self.span
        line = span.source.line(span.line).rstrip()
        lines = [f"{span}: {self.severity}[{self.code}]: {self.message}"]
        gutter = f"{span.line:>4}"
        if line:
            end = span.end_column if span.end_line == span.line else len(line) + 1
            width = max(1, min(end, len(line) + 1) - span.column)
            # Tabs stay tabs under the line, so that the caret stands where the eye expects it.
            pad = "".join("\t" if c == "\t" else " " for c in line[: span.column - 1])
            lines.append(f"{gutter} | {line}")
            lines.append(f"{' ' * len(gutter)}   {pad}{'^' * width}")
        for word, text in (("help", self.help), ("note", note)):
            if text:
                lines.append(f"{' ' * len(gutter)} = {word}: {text}")
        return "\n".join(lines).encode("utf-8", "replace").decode("utf-8")


def render_all(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the findings as one text, each rendered, in the order given.

    A grammar of the ZeroMQ family uses the same notation dozens of times. A warning about the dialect (W1xx)
    is shown where it is met first in a file, with the lines of the other places.
    """
    found = list(diagnostics)
    places: dict[tuple[str, str], list[int]] = {}
    for diagnostic in found:
        if _is_about_dialect(diagnostic):
            places.setdefault(_kind(diagnostic), []).append(diagnostic.span.line)
    texts: list[str] = []
    for diagnostic in found:
        if not _is_about_dialect(diagnostic):
            texts.append(diagnostic.render())
        elif lines := places.pop(_kind(diagnostic), None):
            texts.append(diagnostic.render(_more_places(lines[1:])))
    return "\n".join(texts)


def _is_about_dialect(diagnostic: Diagnostic) -> bool:
    return diagnostic.code.startswith("W1")


def _kind(diagnostic: Diagnostic) -> tuple[str, str]:
    return diagnostic.span.source.path, diagnostic.code


def _more_places(lines: list[int]) -> str | None:
    """``and 3 more places, in lines 7 and 9-10``; None where there are none."""
    if not lines:
        return None
    numbered = enumerate(dict.fromkeys(sorted(lines)))
    runs = [[line for _, line in run] for _, run in groupby(numbered, lambda pair: pair[1] - pair[0])]
    spans = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    listed = " and ".join([", ".join(spans[:-1]), spans[-1]] if len(spans) > 1 else spans)
    word = "line" if len(spans) == 1 and "-" not in spans[0] else "lines"
    return f"and {len(lines)} more place{'s' if len(lines) > 1 else ''}, in {word} {listed}"


class SpecError(Exception):
    """A specification or its profile cannot be compiled; `diagnostics` says why, errors and warnings."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(render_all(diagnostics))
        self.diagnostics = diagnostics


class Diagnostics:
    """A growing collection of findings about one protocol."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def error(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        """Add an error: generation will stop."""
        self._found.append(Diagnostic(Severity.ERROR, code, span, message, help))

    def warning(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        """Add a warning: generation goes on."""
        self._found.append(Diagnostic(Severity.WARNING, code, span, message, help))

    def extend(self, found: Iterable[Diagnostic]) -> None:
        """Add findings made elsewhere."""
        self._found.extend(found)

    def __iter__(self) -> Iterator[Diagnostic]:
        """Yield the findings in the order of their places, each once."""
        unique = dict.fromkeys(self._found)
        return iter(sorted(unique, key=lambda d: (d.span.source.path, d.span.line, d.span.column, d.code)))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop generation, in the order of their places."""
        return tuple(d for d in self if d.severity is Severity.ERROR)

    def raise_errors(self) -> None:
        """Raise `SpecError` with everything found so far if any of it is an error."""
        if self.errors:
            raise SpecError(tuple(self))
