"""Splitter of an ABNF grammar into rules, before any rule is parsed.

In RFC 5234 the layout ends a rule: every rule begins in the same column, and continuation lines are indented
deeper. Splitting therefore needs no parser, and a fault in one rule never hides a fault in the next.

Output: the text of each rule, with its comments replaced by blanks so that offsets stay correct, and the
comments with the rule to which they belong:

- *leading*: comment lines directly above a rule, without an empty line in between;
- *trailing*: comments on the rule's lines, and comment lines that are indented deeper than rules.

A comment between empty lines describes a section rather than a rule: it is *loose*. Lines end in LF or CRLF,
which the last line may omit. Indents are compared with tab stops every 8 columns.

The size of a grammar is limited, so that every file is read or rejected within about a second. The limits are
ten times the largest published grammars. The IETF grammars that were measured have 1,009 rules and 57,000
characters together, and their longest rule has 5,000 characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from specwire.generator.abnf.dialect import Dialect, Extension, report_extension
from specwire.generator.abnf.syntax import Comment
from specwire.generator.diagnostics import Diagnostics, Source, Span

MAX_CHARACTERS = 2_000_000
MAX_LINES = 100_000
MAX_RULES = 10_000
MAX_RULE_CHARACTERS = 100_000
"""Characters of one rule, without its comments."""
_MAX_OCTETS = 4 * MAX_CHARACTERS
"""A longer file also has too many characters: a character of UTF-8 has at most four octets."""

# Quoted text first: a ';' inside it does not begin a comment. None of the three spans lines.
_PIECE = re.compile(r"""\"[^"]*"?|<[^>]*>?|%[bdx]'[^']*'?|;.*|[^"<%;]+|%""", re.IGNORECASE | re.DOTALL)
RULE_START = re.compile(
    r"^[ \t]*((?:[A-Za-z]:)?[A-Za-z][A-Za-z0-9_-]*)[ \t]*(?:\r?\n[ \t]+)*:{0,2}=", re.MULTILINE
)


class Places:
    """Converter from offsets in the parsed text to places in the source.

    The text begins at line `first_line` of the source. Both have the same lines and columns.
    """

    def __init__(self, source: Source, text: str, first_line: int = 1) -> None:
        self.source = source
        self.first_line = first_line
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` to `end` (exclusive)."""
        index = bisect_right(self._starts, start)
        if index < len(self._starts) and end < self._starts[index]:
            line, column = index - 1 + self.first_line, start - self._starts[index - 1] + 1
            return Span(self.source, line, column, line, column + end - start)
        line, column = self._place(start)
        return Span(self.source, line, column, *self._place(end))

    def line(self, offset: int) -> int:
        """Return the number of the line in the source that holds `offset`."""
        return self._place(offset)[0]

    def _place(self, offset: int) -> tuple[int, int]:
        index = bisect_right(self._starts, offset) - 1
        return index + self.first_line, offset - self._starts[index] + 1


@dataclass(slots=True)
class RuleText:
    """The text of one rule, with blanks for comments; it begins at offset `start` of the grammar."""

    start: int
    text: str
    leading: tuple[Comment, ...]
    trailing: list[Comment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CutGrammar:
    """The texts of a grammar's rules, in order, and the comments that belong to no rule."""

    rules: list[RuleText]
    loose: tuple[Comment, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the grammar, from offset `start` to `end` (exclusive), with code and comment separated."""

    start: int
    end: int
    code: str
    indent: int
    comment: Comment | None
    empty: bool
    """Without even white space. In RFC 5234 a rule continues after a line of blanks, but not after this."""


def cut_rules(text: str, places: Places, *, dialect: Dialect, diagnostics: Diagnostics) -> CutGrammar:
    """Return the rules and the loose comments of `text`; report other lines outside rules as E102."""
    lines = list(_read_lines(text, places))
    blanked = "".join(line.code for line in lines)
    starts = {places.line(m.start(1)): m.group(1) for m in RULE_START.finditer(blanked)}
    cutter = _Cutter(starts, lines, dialect, diagnostics, places)
    for number, line in enumerate(lines, start=places.first_line):
        cutter.take(number, line)
    for rule, end in cutter.found:
        rule.text = blanked[rule.start : end].rstrip()
    return CutGrammar([rule for rule, _ in cutter.found], cutter.loose())


def _read_lines(text: str, places: Places) -> Iterator[_Line]:
    start = 0
    for raw in text.split("\n"):
        end = start + len(raw)
        body = raw.removesuffix("\r")
        code, comment = _split_comment(body, start, places)
        indent = len(code) - len(code.lstrip(" \t")) if code.strip() else body.find(";")
        yield _Line(
            start=start,
            end=end,
            code=code + " " * (len(raw) - len(code)) + ("\n" if end < len(text) else ""),
            indent=len(body[: max(indent, 0)].expandtabs(8)),
            comment=comment,
            empty=not body,
        )
        start = end + 1


def _split_comment(body: str, start: int, places: Places) -> tuple[str, Comment | None]:
    for piece in _PIECE.finditer(body):
        if piece.group().startswith(";"):
            span = places.span(start + piece.start(), start + len(body.rstrip()))
            return body[: piece.start()], Comment(piece.group()[1:].strip(), span)
    return body, None


class _Cutter:
    """State of the splitter; `found` holds each rule and the offset at which its last line of code ends."""

    def __init__(
        self,
        starts: dict[int, str],
        lines: list[_Line],
        dialect: Dialect,
        diagnostics: Diagnostics,
        places: Places,
    ) -> None:
        self.found: list[tuple[RuleText, int]] = []
        self._starts = starts
        self._margin = min((lines[n - places.first_line].indent for n in starts), default=0)
        self._dialect = dialect
        self._diagnostics = diagnostics
        self._places = places
        self._open = False
        self._gap = False
        self._apart = False
        self._stray = False
        self._pending: list[Comment] = []
        self._loose: list[Comment] = []

    def loose(self) -> tuple[Comment, ...]:
        """Return the comments that belong to no rule, including those at the end."""
        return (*self._loose, *self._pending)

    def take(self, number: int, line: _Line) -> None:
        code = line.code.strip()
        if code:
            self._take_code(number, line, code)
        elif line.comment:
            self._take_comment(line, line.comment)
        else:
            self._apart = True
            self._gap = self._gap or line.empty
            self._drop_pending()

    def _take_comment(self, line: _Line, comment: Comment) -> None:
        if self._open and not self._apart and line.indent > self._margin:
            self.found[-1][0].trailing.append(comment)
        else:
            self._pending.append(comment)
            self._apart = True
            self._gap = self._gap or line.indent <= self._margin

    def _take_code(self, number: int, line: _Line, code: str) -> None:
        span = self._code_span(line, code)
        if number in self._starts:
            self._begin(number, line, span)
        elif self._open and line.indent > self._margin:
            if self._gap:
                self._report(Extension.GAP, span)
            self._continue(line)
        elif self._open and code[0] in "/|":
            self._report(Extension.MARGIN_ALTERNATIVE, _beginning(span, 1), code[0])
            self._continue(line)
        else:
            self._refuse(span)

    def _begin(self, number: int, line: _Line, span: Span) -> None:
        name = self._starts[number]
        if line.indent != self._margin:
            self._report(Extension.UNEVEN_RULE, _beginning(span, len(name)), name)
        start = line.start + span.column - 1
        rule = RuleText(start, "", tuple(self._pending), [line.comment] if line.comment else [])
        self.found.append((rule, line.end))
        self._pending.clear()
        self._open, self._gap, self._apart, self._stray = True, False, False, False

    def _continue(self, line: _Line) -> None:
        rule, _ = self.found[-1]
        rule.trailing += [*self._pending, *([line.comment] if line.comment else [])]
        self.found[-1] = (rule, line.end)
        self._pending.clear()
        self._gap, self._apart = False, False

    def _refuse(self, span: Span) -> None:
        if not self._stray:
            self._diagnostics.error(
                "E102",
                span,
                "this line is neither a rule nor part of one",
                "write a rule as 'name = …', and indent the lines that continue it",
            )
        self._open, self._stray = False, True
        self._drop_pending()

    def _drop_pending(self) -> None:
        """Make the pending comments loose, because no rule follows them directly."""
        self._loose += self._pending
        self._pending.clear()

    def _code_span(self, line: _Line, code: str) -> Span:
        start = line.start + line.code.index(code[0])
        return self._places.span(start, start + len(code))

    def _report(self, extension: Extension, span: Span, written: str = "") -> None:
        report_extension(
            extension, span, dialect=self._dialect, diagnostics=self._diagnostics, written=written
        )


def _beginning(span: Span, length: int) -> Span:
    return Span(span.source, span.line, span.column, span.line, span.column + length)


def read_grammar(stream: BinaryIO) -> str:
    """Return the text of a grammar, or the beginning of a text that is too large.

    Octets that are not UTF-8 are kept (``surrogateescape``), so that the parser can report their place.
    """
    return stream.read(_MAX_OCTETS + 1).decode("utf-8", "surrogateescape")


def report_large_text(text: str, places: Places, diagnostics: Diagnostics) -> bool:
    """Return whether a text is too large to be split into rules, and report it (E139)."""
    lines = text.count("\n") + 1
    if len(text) > MAX_CHARACTERS:
        _report("too many characters", f"{MAX_CHARACTERS:,}", 0, places, diagnostics)
        return True
    if lines > MAX_LINES:
        _report(f"{lines:,} lines", f"{MAX_LINES:,}", 0, places, diagnostics)
        return True
    starts = [match.start(1) for match in RULE_START.finditer(text)]
    if len(starts) > MAX_RULES:
        _report(f"{len(starts):,} rules", f"{MAX_RULES:,}", starts[MAX_RULES], places, diagnostics)
    return len(starts) > MAX_RULES


def report_long_rules(rules: Sequence[RuleText], places: Places, diagnostics: Diagnostics) -> bool:
    """Report (E139) each rule that is too long; return whether there is one."""
    long = [rule for rule in rules if len(rule.text) > MAX_RULE_CHARACTERS]
    for rule in long:
        much = f"a rule of {len(rule.text):,} characters"
        _report(much, f"{MAX_RULE_CHARACTERS:,}", rule.start, places, diagnostics)
    return bool(long)


def _report(much: str, bound: str, offset: int, places: Places, diagnostics: Diagnostics) -> None:
    diagnostics.error(
        "E139",
        places.span(offset, offset + 1),
        f"the grammar has {much}; at most {bound} are allowed",
        "split it into protocols that extend each other with `base`, or remove text that is not a rule",
    )
