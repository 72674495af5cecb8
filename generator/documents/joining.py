"""Joining of the grammar blocks of a document to one grammar, with the places of its lines in the document.

Rules keep their text, order and layout, without the markup and the common indent of a block. Each
block has a separate scope of names and uses the other blocks for names that it does not define. If
two blocks define a name differently, the rule of the later block, and its uses there, get a number
(``group-2``), which is reported. Two definitions of a name in one block are handled by
`specwire.generator.documents.variants`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Reference, Rule, Rulelist, write_element
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source, Span
from specwire.generator.documents.blocks import Block
from specwire.generator.documents.lines import PAGE_BREAK, joined_name
from specwire.generator.documents.variants import find_variants, with_idle_roles
from specwire.generator.passes.grammar import Key, key_of, names_itself, references

_Definition = tuple[str, Span]
"""The definition in a normal form, and the place of the rule."""


@dataclass(slots=True)
class GrammarText:
    """Text of a grammar under construction.

    For each line, its place in the document and its shift to the left.
    """

    lines: list[str] = field(default_factory=list)
    origins: list[Span | None] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)

    def add(self, line: str, origin: Span | None = None, moved: int | None = None) -> None:
        """Add a line; `moved` is None if the line is not text of the document."""
        self.lines.append(line)
        self.origins.append(origin)
        self.moved.append(-1 if moved is None else moved)

    def put_above(self, lines: Sequence[str]) -> None:
        """Put generated lines above all others."""
        self.lines[:0] = lines
        self.origins[:0] = [None] * len(lines)
        self.moved[:0] = [-1] * len(lines)

    @property
    def text(self) -> str:
        """The whole text, ending in a line end."""
        return "\n".join(self.lines) + "\n"

    def in_document(self, found: Iterable[Diagnostic], path: str) -> Iterator[Diagnostic]:
        """Yield the findings about this text, in the file `path`, with their places in the document.

        Findings about notation beyond RFC 5234 (W1xx) in generated lines are skipped.
        """
        for diagnostic in found:
            span = diagnostic.span
            if span.source.path != path:
                yield diagnostic
            elif not diagnostic.code.startswith("W1") or self.is_published(span.line):
                yield replace(diagnostic, span=self._origin(span))

    def is_published(self, line: int) -> bool:
        """Whether a line is text of the document, not generated from a table or a drawing."""
        return not 0 < line <= len(self.lines) or self.moved[line - 1] >= 0

    def _origin(self, span: Span) -> Span:
        if not 0 < span.line <= len(self.lines):
            return span
        origin, moved = self.origins[span.line - 1], self.moved[span.line - 1]
        if origin is None or moved < 0:
            return origin or span
        end_line = self.origins[min(span.end_line, len(self.lines)) - 1] or origin
        first, last = span.column + moved, span.end_column + moved
        return Span(origin.source, origin.line, first, end_line.line, last)


def join_blocks(blocks: Sequence[Block], text: GrammarText, diagnostics: Diagnostics) -> dict[str, str]:
    """Add the grammar blocks to `text`, with an empty line between two blocks.

    Returns:
        The field names of rules that were renamed, by the rule's new name.
    """
    known: dict[Key, _Definition] = {}
    fields: dict[str, str] = {}
    for published in blocks:
        _report_joined_names(published, diagnostics)
        _report_signs(published, diagnostics)
        block = _tell_apart(_without_idle_roles(published, diagnostics), set(known), fields, diagnostics)
        rulelist = _read(block)
        renamed = _conflicts(block, rulelist, known, diagnostics)
        lines = _rename(block, rulelist, renamed)
        for rule in rulelist.rules:
            if key_of(rule) not in renamed and not names_itself(rule):
                known.setdefault(
                    key_of(rule),
                    (write_element(rule.definition).lower(), _in_document(rule.name_span, block)),
                )
        _add(block, lines, text)
    return fields


def _report_joined_names(block: Block, diagnostics: Diagnostics) -> None:
    """Report the rule names that have a space in the document and a hyphen here."""
    published = block.source.text.split("\n")
    for number, line in enumerate(block.lines, start=block.first_line):
        name = re.match(r"[ \t]*([\w:-]+)[ \t]*=", line)
        if name and (was := joined_name(published[number - 1])):
            end = name.start(1) + len(was)
            span = Span(block.source, number, name.start(1) + 1, number, end + 1)
            message = f"rule name '{was}' contains a space"
            diagnostics.warning("W712", span, message, f"it is read as '{name[1]}' wherever it is used")


def _report_signs(block: Block, diagnostics: Diagnostics) -> None:
    """Report the first character of each line that is not ABNF and is replaced."""
    published = block.source.text.split("\n")
    for number, line in enumerate(block.lines, start=block.first_line):
        head = line.find("=") + 1 if joined_name(published[number - 1]) else 0
        signs = list(zip(published[number - 1], line, strict=False))[head:]
        for column, (was, now) in enumerate(signs, start=head + 1):
            if was != now and was not in " \t\f\u00a0":
                span = Span(block.source, number, column, number, column + 1)
                message = f"'{was}' is not ABNF" if was.isascii() else f"'{was}' is not ASCII"
                diagnostics.warning("W716", span, message, f"it is read as '{now}'")
                break


def _without_idle_roles(block: Block, diagnostics: Diagnostics) -> Block:
    """Return the block without the senders in definitions of messages that are used with other senders."""
    idle = with_idle_roles(_read(block))
    if not idle:
        return block
    lines = list(block.lines)
    for rule in idle:
        span = _in_document(rule.name_span, block)
        message = f"'{rule}' is defined with a sender but used without it or with another"
        diagnostics.warning("W713", span, message, f"it is read as '{rule.name}'")
        at, column = rule.name_span.line - 1, rule.name_span.column - 1
        size = rule.name_span.end_column - rule.name_span.column
        lines[at] = lines[at][:column] + rule.name.ljust(size) + lines[at][column + size :]
    return replace(block, lines=tuple(lines))


def _tell_apart(block: Block, taken: set[Key], fields: dict[str, str], diagnostics: Diagnostics) -> Block:
    """Return the block with different names for its rules that share a name."""
    rulelist = _read(block)
    places: dict[tuple[int, int], tuple[str, str]] = {}
    for variants in find_variants(rulelist, taken):
        kept, *others = variants.meanings
        for other in others:
            span = _in_document(other.rules[0].name_span, block)
            line = _in_document(kept.rules[0].name_span, block).line
            message = f"rule '{other.rules[0]}' is defined differently in line {line}"
            help = f"it is renamed to '{other.name}', and so are its uses"
            diagnostics.warning("W707", span, message, help)
            places |= {_place(rule): (rule.name, other.name) for rule in other.rules}
            if other.is_field:
                fields[other.name] = other.rules[0].name
        places |= {_place(use): (use.name, meant.name) for use, meant in variants.uses if meant is not kept}
    return replace(block, lines=tuple(_replaced(block.lines, places))) if places else block


def _read(block: Block) -> Rulelist:
    """Return the rules; their lines count from the first of the block."""
    source = Source(block.source.path, "\n".join(block.lines) + "\n")
    return parse_grammar(source, dialect="zeromq", diagnostics=Diagnostics())


def _in_document(span: Span, block: Block) -> Span:
    above = block.first_line - 1
    return Span(block.source, span.line + above, span.column, span.end_line + above, span.end_column)


def _conflicts(
    block: Block,
    rulelist: Rulelist,
    known: Mapping[Key, _Definition],
    diagnostics: Diagnostics,
) -> dict[Key, str]:
    """Return the new name of each rule that an earlier block defines differently.

    A rule that uses one of these is defined differently, too, even if its text is equal.
    """
    renamed: dict[Key, str] = {}
    taken = {*known, *map(key_of, rulelist.rules)}
    before = -1
    while len(renamed) > before:
        before = len(renamed)
        for rule in rulelist.rules:
            if key_of(rule) in known and key_of(rule) not in renamed and _differs(rule, known, renamed):
                renamed[key_of(rule)] = f"{rule.name}-{_free_number(rule, taken)}"
    for rule in _firsts(rulelist):
        if new := renamed.get(key_of(rule)):
            line = known[key_of(rule)][1].line
            message = f"rule '{rule}' is defined differently in line {line}, in another block"
            help = f"each block has a separate scope of names: this rule is renamed to '{new}'"
            diagnostics.warning("W707", _in_document(rule.name_span, block), message, help)
    return renamed


def _differs(rule: Rule, known: Mapping[Key, _Definition], renamed: Mapping[Key, str]) -> bool:
    if rule.incremental or names_itself(rule):
        return False
    if any(key_of(use) in renamed for use in references(rule.definition)):
        return True
    return known[key_of(rule)][0] != write_element(rule.definition).lower()


def _firsts(rulelist: Rulelist) -> Iterable[Rule]:
    """Return the first definition of each rule."""
    return {key_of(rule): rule for rule in reversed(rulelist.rules)}.values()


def _free_number(rule: Rule, taken: set[Key]) -> int:
    return next(n for n in count(2) if key_of(replace(rule, name=f"{rule.name}-{n}")) not in taken)


def _rename(block: Block, rulelist: Rulelist, renamed: Mapping[Key, str]) -> list[str]:
    uses: list[Reference | Rule] = [*rulelist.rules]
    uses += [use for rule in rulelist.rules for use in references(rule.definition)]
    places: dict[tuple[int, int], tuple[str, str]] = {}
    for use in uses:
        if new := renamed.get(key_of(use)):
            places[_place(use)] = (use.name, new)
    return _replaced(block.lines, places)


def _place(named: Reference | Rule) -> tuple[int, int]:
    """Return line and column, both from 0, of a name without its role."""
    span = named.name_span if isinstance(named, Rule) else named.span
    return span.line - 1, span.end_column - 1 - len(named.name)


def _replaced(published: Sequence[str], places: Mapping[tuple[int, int], tuple[str, str]]) -> list[str]:
    """Return the lines with each old name at its place replaced by the new one."""
    lines = list(published)
    for (number, column), (old, new) in sorted(places.items(), reverse=True):
        line = lines[number]
        if line[column : column + len(old)] == old:
            rest, longer = line[column + len(old) :], len(new) - len(old)
            # The rest of the line keeps its column if there is room, so that findings point at it.
            room = longer > 0 and rest.startswith(" " * (longer + 1))
            lines[number] = line[:column] + new + (rest[longer:] if room else rest)
    return lines


def _add(block: Block, lines: Sequence[str], text: GrammarText) -> None:
    written = [number for number, line in enumerate(lines) if line.strip()]
    if not written:
        return
    if text.lines and text.lines[-1]:
        text.add("")
    for number in range(written[0], written[-1] + 1):
        if lines[number] == PAGE_BREAK:
            continue
        line = lines[number].rstrip()
        at = block.first_line + number
        origin = Span(block.source, at, 1, at, max(len(line), 1) + 1)
        text.add(line[block.indent :] if line.strip() else "", origin, block.indent)
