"""Rules as text, their files, and the compiler's remarks: the page's input besides the IR.

Everything is plain text with its position, so another program can print, compare or read it.
Positions name a file by its folder and name, never by its path on a machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from specwire.generator.abnf.syntax import Rule, write_rule
from specwire.generator.diagnostics import Diagnostic, Source, Span
from specwire.generator.profile.toml_places import content_lines, find_places

if TYPE_CHECKING:
    from specwire.generator.pipeline import Compilation


class GrammarRule(msgspec.Struct, frozen=True):
    """Rule as read, in one line of ABNF; `published` is its original text if it was corrected."""

    name: str
    role: str | None
    text: str
    comments: tuple[str, ...]
    file: str
    line: int
    published: str | None = None
    mended_at: str = ""
    """File and line of the erratum."""
    reason: str = ""
    """Why the profile corrects or adds the rule; empty for a rule as published."""


class Remark(msgspec.Struct, frozen=True):
    """Warning or assumption of the compiler, with its position."""

    code: str
    file: str
    line: int
    message: str
    help: str | None = None


class File(msgspec.Struct, frozen=True):
    """Published grammar, unchanged."""

    name: str
    text: str


class Book(msgspec.Struct, frozen=True):
    """Rules of a protocol in order, the files that contain them, and the compiler's remarks."""

    rules: tuple[GrammarRule, ...]
    files: tuple[File, ...]
    remarks: tuple[Remark, ...]


def book_of(compilation: Compilation) -> Book:
    """Return what a compilation contains besides its IR."""
    rules = compilation.grammar.rules
    return Book(
        tuple(_rule(rule) for rule in rules),
        tuple(_files(rule.span.source for rule in rules)),
        tuple(_remark(diagnostic) for diagnostic in compilation.warnings),
    )


def _rule(rule: Rule) -> GrammarRule:
    span, read = rule.span, rule.definition.span
    mended = read.source != span.source
    return GrammarRule(
        name=rule.name,
        role=rule.role,
        text=write_rule(rule),
        comments=tuple(comment.text for comment in (*rule.leading, *rule.trailing) if comment.text),
        file=_short(span.source),
        line=span.line,
        published=_text(span) if mended else None,
        mended_at=f"{_short(read.source)}, line {read.line}" if mended else "",
        reason=_reasons(read.source).get(read.line, ""),
    )


@lru_cache(maxsize=8)
def _reasons(source: Source) -> Mapping[int, str]:
    """Return the reason for each line of a profile that corrects or adds a rule."""
    if not source.path.endswith(".toml"):
        return {}
    profile = tomllib.loads(source.text)
    reasons: dict[int, str] = {}
    for path, place in find_places(source.text).items():
        match path:
            case ("errata" | "rules" as table, int(number), "now" | "text"):
                for line in content_lines(source.text, place):
                    reasons[line.line] = " ".join(profile[table][number]["why"].split())
    return reasons


def _text(span: Span) -> str:
    """Return the lines of a rule without its comments."""
    lines = [span.source.line(number) for number in range(span.line, span.end_line + 1)]
    return "\n".join(lines).strip()


def _files(sources: Iterable[Source]) -> Iterable[File]:
    for source in dict.fromkeys(sources):
        if source.path.endswith(".abnf"):
            yield File(_short(source), source.text)


def _remark(diagnostic: Diagnostic) -> Remark:
    span = diagnostic.span
    return Remark(diagnostic.code, _short(span.source), span.line, diagnostic.message, diagnostic.help)


def _short(source: Source) -> str:
    return "/".join(PurePath(source.path).parts[-2:])
