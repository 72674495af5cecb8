"""Join the grammar blocks of a document to the text of one grammar, with the way back to the document.

Rules keep their text, order and layout; the indent that a whole block shares goes, and with it the markup. Each
block has names of its own, and finds what it does not define in the others. One file cannot hold that
where two blocks define a name differently: then the rule of the later block, and its uses there, get a
number (``group-2``), which is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from specwire.generator.abnf import parse_grammar
from specwire.generator.abnf_text import write_element
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source, Span
from specwire.generator.documents.blocks import Block
from specwire.generator.passes.grammar import Key, key_of, names_itself, references
from specwire.generator.syntax import Reference, Rule, Rulelist

_Definition = tuple[str, Span]
"""The right-hand side in one spelling, and where the rule stands."""


@dataclass(slots=True)
class GrammarText:
    """The growing text of a grammar; for each line, where it comes from and how far it was moved left."""

    lines: list[str] = field(default_factory=list)
    origins: list[Span | None] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)

    def add(self, line: str, origin: Span | None = None, moved: int | None = None) -> None:
        """Add a line; `moved` is None where it is not the document's own text."""
        self.lines.append(line)
        self.origins.append(origin)
        self.moved.append(-1 if moved is None else moved)

    def put_above(self, lines: Sequence[str]) -> None:
        """Put lines of our own above all others."""
        self.lines[:0] = lines
        self.origins[:0] = [None] * len(lines)
        self.moved[:0] = [-1] * len(lines)

    @property
    def text(self) -> str:
        """The whole text, ending in a line end."""
        return "\n".join(self.lines) + "\n"

    def in_document(self, found: Iterable[Diagnostic], path: str) -> Iterator[Diagnostic]:
        """Yield the findings about this text, in the file `path`, with their places in the document.

        What converted lines write beyond RFC 5234 (W1xx) is our way of writing, and left out.
        """
        for diagnostic in found:
            span = diagnostic.span
            if span.source.path != path:
                yield diagnostic
            elif not (diagnostic.code.startswith("W1") and self._is_ours(span.line)):
                yield replace(diagnostic, span=self._origin(span))

    def _is_ours(self, line: int) -> bool:
        return 0 < line <= len(self.lines) and self.moved[line - 1] < 0

    def _origin(self, span: Span) -> Span:
        if not 0 < span.line <= len(self.lines):
            return span
        origin, moved = self.origins[span.line - 1], self.moved[span.line - 1]
        if origin is None or moved < 0:
            return origin or span
        end_line = self.origins[min(span.end_line, len(self.lines)) - 1] or origin
        first, last = span.column + moved, span.end_column + moved
        return Span(origin.source, origin.line, first, end_line.line, last)


def join_blocks(blocks: Sequence[Block], text: GrammarText, diagnostics: Diagnostics) -> None:
    """Add the grammar blocks to `text`, an empty line between two."""
    known: dict[Key, _Definition] = {}
    for block in blocks:
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


def _read(block: Block) -> Rulelist:
    """Return the rules; their lines count from the first of the block."""
    source = Source(block.source.path, "\n".join(block.lines) + "\n")
    return parse_grammar(source, dialect="zeromq", diagnostics=Diagnostics())


def _in_document(span: Span, block: Block) -> Span:
    above = block.first_line - 1
    return replace(span, source=block.source, line=span.line + above, end_line=span.end_line + above)


def _conflicts(
    block: Block,
    rulelist: Rulelist,
    known: Mapping[Key, _Definition],
    diagnostics: Diagnostics,
) -> dict[Key, str]:
    """Return the new name of each rule that an earlier block defines differently."""
    renamed: dict[Key, str] = {}
    for rule in rulelist.rules:
        earlier = known.get(key_of(rule))
        if (
            earlier is None
            or rule.incremental
            or names_itself(rule)
            or earlier[0] == write_element(rule.definition).lower()
        ):
            continue
        if key_of(rule) not in renamed:
            number = _free_number(rule, {*known, *map(key_of, rulelist.rules)})
            renamed[key_of(rule)] = f"{rule.name}-{number}"
            message = f"rule '{rule}' is defined differently in line {earlier[1].line}, in another block"
            help = f"each block has names of its own: this one is written as '{rule.name}-{number}'"
            diagnostics.warning("W707", _in_document(rule.name_span, block), message, help)
    return renamed


def _free_number(rule: Rule, taken: set[Key]) -> int:
    return next(n for n in count(2) if key_of(replace(rule, name=f"{rule.name}-{n}")) not in taken)


def _rename(block: Block, rulelist: Rulelist, renamed: Mapping[Key, str]) -> list[str]:
    lines = list(block.lines)
    if not renamed:
        return lines
    uses: list[Reference | Rule] = [*rulelist.rules]
    uses += [use for rule in rulelist.rules for use in references(rule.definition)]
    places: dict[tuple[int, int], tuple[str, str]] = {}
    for use in uses:
        if new := renamed.get(key_of(use)):
            span = use.name_span if isinstance(use, Rule) else use.span
            places[span.line - 1, span.end_column - 1 - len(use.name)] = (use.name, new)
    for (number, column), (old, new) in sorted(places.items(), reverse=True):
        line = lines[number]
        if line[column : column + len(old)] == old:
            lines[number] = line[:column] + new + line[column + len(old) :]
    return lines


def _add(block: Block, lines: Sequence[str], text: GrammarText) -> None:
    written = [number for number, line in enumerate(lines) if line.strip()]
    if not written:
        return
    if text.lines and text.lines[-1]:
        text.add("")
    for number in range(written[0], written[-1] + 1):
        line = lines[number].rstrip()
        at = block.first_line + number
        origin = Span(block.source, at, 1, at, max(len(line), 1) + 1)
        text.add(line[block.indent :] if line.strip() else "", origin, block.indent)
