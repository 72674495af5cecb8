"""Splitter of a document into blocks with formal content, each with its lines in the document.

A block is either marked up (RST directives, Markdown fences, AsciiDoc delimiters, wikidot's
``[[code]]``) or a run of plain lines that look like rules, indented or not. The content of a block,
and the language that its markup names, determine whether it is a grammar, a frame table, a dialog
or something else: `specwire.generator.documents.kinds`.

Surprises in published documents: a line of dashes may be AsciiDoc's delimiter or the underline of a
heading. A fence may never be closed. Copies of web pages have lost their fences, so page headers
precede the grammar and prose follows it directly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from specwire.generator.diagnostics import Source, Span
from specwire.generator.documents.kinds import Kind, is_rules_only, tell_kind
from specwire.generator.documents.lines import as_code, as_marked_code, read_lines
from specwire.generator.documents.markup import Region, find_regions
from specwire.generator.documents.runs import find_runs

_GRAMMAR_FILES = (".abnf", ".bnf", ".ebnf")
_END = re.compile(r"\[\[/code\]\].*$", re.IGNORECASE)
"""The end of a block that may be at the end of its last line."""


@dataclass(frozen=True)
class Block:
    """Lines of a document without markup, from `first_line` to `last_line` (from 1, both included)."""

    source: Source
    kind: Kind
    markup: str
    """How the block is marked: ``directive``, ``fence``, ``delimiters``, ``wikidot``, or ``plain``."""
    language: str
    first_line: int
    lines: tuple[str, ...]
    closed: bool = True
    """False if the markup is never closed."""

    @property
    def last_line(self) -> int:
        """The last line of the content."""
        return self.first_line + len(self.lines) - 1

    @cached_property
    def indent(self) -> int:
        """The number of leading characters of every line that are not part of the content."""
        written = [line for line in self.lines if line.strip()]
        if not written:
            return 0
        first, last = min(written), max(written)
        # The common prefix of the least and the greatest line is common to all lines.
        size = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        return len(first[:size]) - len(first[:size].lstrip(" \t"))

    @property
    def text(self) -> str:
        """The content at its lines and columns in the document, with blanks for everything else."""
        return "\n" * (self.first_line - 1) + "\n".join(self.lines) + "\n"

    @property
    def span(self) -> Span:
        """The first line that is not empty."""
        number = next((n for n, line in enumerate(self.lines) if line.strip()), 0)
        width = len(self.lines[number].rstrip()) if self.lines else 0
        line = self.first_line + number
        return Span(self.source, line, min(self.indent, width) + 1, line, max(width, 1) + 1)


def cut_blocks(source: Source) -> tuple[Block, ...]:
    """Return the blocks of a document in the order of their lines, examples and other text included."""
    lines = read_lines(source.text)
    regions = find_regions(lines)
    blocks: list[Block] = []
    after = 0
    for region in regions:
        blocks += _plain(source, lines, after, region.start)
        blocks += _marked(source, lines, region)
        after = region.next
    blocks += _plain(source, lines, after, len(lines))
    return tuple(blocks)


def whole_grammar(source: Source) -> Block | None:
    """Return a document of rules only as one block, even if the rules have faults.

    None for other documents.
    """
    lines = read_lines(source.text)
    if not source.path.endswith(_GRAMMAR_FILES) and not is_rules_only(lines):
        return None
    return Block(source, "grammar", "plain", "", 1, tuple(map(as_code, lines)))


def line_above(lines: list[str], line: int, blocks: tuple[Block, ...]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of prose above `line`, nearest first, without lines of blocks."""
    firsts = [block.first_line for block in blocks]
    for number in range(line - 1, 0, -1):
        at = bisect_right(firsts, number) - 1
        if at >= 0 and number <= blocks[at].last_line:
            continue
        yield number, lines[number - 1].removesuffix("\r")


def _marked(source: Source, lines: list[str], region: Region) -> Iterator[Block]:
    content = [_END.sub("", line) for line in lines[region.first : region.last]]
    code = [as_marked_code(line) for line in content]
    kind = tell_kind(code, region.language, marked=True) if region.closed else "other"
    if kind == "other":
        # Prose inside the block, or a block without end: find the grammar in it by its content.
        found = list(
            _plain(source, lines, region.first, region.last, region.markup, region.closed, region.language)
        )
        if found:
            yield from found
            return
    shown = tuple(code if kind == "grammar" else content)
    yield Block(source, kind, region.markup, region.language, region.first + 1, shown, region.closed)


def _plain(
    source: Source,
    lines: list[str],
    first: int,
    last: int,
    markup: str = "plain",
    closed: bool = True,
    language: str = "",
) -> Iterator[Block]:
    """Yield the blocks without markup in the lines from `first` (from 0) to `last` (exclusive)."""
    code = [as_code(line) for line in lines[first:last]]
    for kind, start, end in find_runs(code, 0, len(code), language):
        shown = code[start:end] if kind == "grammar" else lines[first + start : first + end]
        yield Block(source, kind, markup, language, first + start + 1, tuple(shown), closed)
