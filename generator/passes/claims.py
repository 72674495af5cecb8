"""What a document says about its messages and the generated package would not do.

ABNF says which octets a message may have. What they mean is said in comments and prose. This pass compares
those words (`specwire.generator.statements`) with the layouts, so that no package is wrong in silence:

- an integer that a comment calls little-endian, signed, a float or a varint would be generated as an
  unsigned big-endian integer: E423, W421 where only prose says so;
- quoted strings are compared octet by octet, and RFC 5234 section 2.3 compares them without case: E426 where the
  document insists (``%i``), W417 where it shows other letters, W418 where it does not say;
- a comment demands one value (``must be "FILEMQ"``) and any value would be accepted: W419;
- a comment says that an integer counts a value, and nothing compares them: W422;
- words speak of several frames, and every message would be one frame: W420. Messages that follow each other on a
  byte stream have no frames.

A declaration in the profile settles each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.diagnostics import Span
from specwire.generator.names import fold
from specwire.generator.passes.declared import says_type
from specwire.generator.passes.grammar import EXTERNALS, references
from specwire.generator.passes.layouts import ValueLayout, is_open
from specwire.generator.passes.types import TypeReader
from specwire.generator.statements import (
    BYTE_ORDER,
    NUMBER_WORDS,
    fixed_value,
    frame_words,
    number_kinds,
    quoted,
    says_exact,
    says_folded,
    shown_words,
    size_words,
)
from specwire.generator.syntax import CharVal, Comment, Rule

MAX_STATEMENTS = 10
"""Statements about frames that are reported one by one."""


def check_claims(reader: TypeReader, messages: Sequence[ir.Message]) -> None:
    """Report statements of the document, and of the profile's ``[[prose]]``, that the layouts contradict."""
    claims = _Claims(reader)
    claims.check_numbers()
    claims.check_letters()
    claims.check_fixed_values()
    claims.check_sizes()
    profile = reader.profile.profile
    on_a_stream = profile.stream is not None and bool(profile.stream.units)
    if not profile.single_frame and not on_a_stream and all(map(_is_one_frame, messages)):
        claims.check_frames()


def _is_one_frame(message: ir.Message) -> bool:
    return len(message.parts) == 1 and isinstance(message.parts[0], ir.Frame)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A text of the document with its place: in the grammar, or in the profile for prose."""

    text: str
    span: Span


class _Claims:
    def __init__(self, reader: TypeReader) -> None:
        self.reader = reader
        self.grammar = reader.grammar
        self.diagnostics = reader.diagnostics
        self.shown = reader.profile.source.path

    def _prose(self, about: str) -> Iterator[_Statement]:
        loaded = self.reader.profile
        for number, statement in enumerate(loaded.profile.prose):
            if statement.about == about:
                yield _Statement(statement.text, loaded.place("prose", number, "text"))

    def _comments(self) -> Iterator[Comment]:
        """Yield every comment of the grammar, but for those that define what a frame and a message are in general."""
        yield from self.grammar.loose_comments
        for rule in self.grammar.rules:
            if fold(rule.name) not in EXTERNALS:
                yield from (*rule.leading, *rule.trailing)

    # Numbers

    def check_numbers(self) -> None:
        """Compare what comments call a number with the integers that are generated."""
        widths = {name: width for rule in self.grammar.rules for name, width in self._integer(rule)}
        rules = {str(rule): rule for rule in self.grammar.rules}
        said: set[str] = set()
        for rule in self.grammar.rules:
            text = self.reader.comment(rule)
            for kind, words in number_kinds(text):
                if str(rule) in widths:
                    named = [str(rule)]
                elif kind == BYTE_ORDER or NUMBER_WORDS.search(text):
                    uses = (self.grammar.find(use) for use in references(rule.definition))
                    named = [str(use) for use in uses if use is not None and str(use) in widths]
                else:
                    continue
                self._report_number(kind, words, _place_of(rule, words), named, widths, said)
        for comment in self.grammar.loose_comments:
            for kind, words in number_kinds(comment.text):
                if kind == BYTE_ORDER or NUMBER_WORDS.search(comment.text):
                    self._report_number(kind, words, comment.span, list(widths), widths, said)
        for statement in self._prose("numbers"):
            wide = [name for name in widths if self._is_contradicted(rules[name], widths[name], BYTE_ORDER)]
            if wide:
                self.diagnostics.warning(
                    "W421", statement.span, f"the document says '{quoted(statement.text)}', and {_listed(wide)} would be unsigned big-endian",
                    "declare the type of each under [types] where that is right, and remove this [[prose]]",
                )  # fmt: skip

    def _integer(self, rule: Rule) -> Iterator[tuple[str, int]]:
        """Yield the rule's name and octets where it is an integer, or holds a length."""
        layout = self.reader.layout(rule) if self.reader.seen(rule) else None
        if isinstance(layout, ValueLayout) and isinstance(layout.type, ir.IntegerType):
            yield str(rule), layout.type.octets
        elif isinstance(layout, ValueLayout) and isinstance(layout.type, ir.SizeType):
            yield str(rule), max(form.octets for form in layout.type.forms)
        elif str(rule) in self.reader.lengths:
            yield str(rule), self.reader.lengths[str(rule)]

    def _is_contradicted(self, rule: Rule, octets: int, kind: str) -> bool:
        return not says_type(self.reader.hint(rule)) and (kind != BYTE_ORDER or octets > 1)

    def _report_number(
        self, kind: str, words: str, span: Span, names: list[str], widths: dict[str, int], said: set[str]
    ) -> None:
        rules = {str(rule): rule for rule in self.grammar.rules}
        names = [
            name
            for name in names
            if name not in said and self._is_contradicted(rules[name], widths[name], kind)
        ]
        if not names:
            return
        said.update(names)
        first = names[0]
        octets = f"{widths[first]} octet{'s' if widths[first] > 1 else ''}"
        what = f"'{first}'" if len(names) == 1 else f"'{first}' and of {len(names) - 1} more"
        self.diagnostics.error(
            "E423", span, f"the document says '{quoted(words)}' of {what}, and what is generated is an unsigned big-endian integer of {octets}",
            f"specwire cannot express such a number: type = \"octets\" under [types.{first}] in {self.shown} keeps its octets, and type = \"integer\" insists",
        )  # fmt: skip

    # Letters

    def check_letters(self) -> None:
        """Compare how quoted strings are read with what the document says about letter case."""
        letters = [literal for literal in self.reader.literals.values() if _has_letters(literal)]
        open_case = [literal for literal in letters if not literal.case_sensitive]
        for literal in open_case:
            if literal.case_marked:
                self._report_folded(literal, f'%i"{literal.text}"', literal.span)
        open_case = [literal for literal in open_case if not literal.case_marked]
        if self.reader.profile.profile.case == "exact" or not open_case:
            return
        comments = [_Statement(comment.text, comment.span) for comment in self._comments()]
        named = self._named_differently(open_case, [*comments, *self._prose("letters")])
        folded = self._folded_by_comments(open_case)
        if any(says_exact(comment.text) for comment in self._comments()):
            return
        left = [literal for literal in open_case if literal.span not in named | folded]
        if left:
            first = min(left, key=lambda literal: (literal.span.line, literal.span.column))
            other = first.text.swapcase()
            others = len(left) - 1
            more = (
                f"; so {'are' if others > 1 else 'is'} {others} more string{'s' if others > 1 else ''}"
                if others
                else ""
            )
            self.diagnostics.warning(
                "W418", first.span, f'"{first.text}" is read as exactly these letters, and RFC 5234 accepts "{other}" too{more}',
                f'case = "exact" in {self.shown} says that letters are meant as spelt; specwire cannot express strings without case',
            )  # fmt: skip

    def _named_differently(self, literals: list[CharVal], statements: Iterable[_Statement]) -> set[Span]:
        """Report literals that the document shows in other letters, and return their places."""
        shown: dict[str, dict[str, tuple[str, Span]]] = {}
        for statement in statements:
            for word, how in shown_words(statement.text):
                shown.setdefault(word.lower(), {}).setdefault(word, (how, statement.span))
        places: set[Span] = set()
        for literal in literals:
            spellings = shown.get(literal.text.lower(), {})
            if not spellings or literal.text in spellings:
                continue
            how, span = next(iter(spellings.values()))
            places.add(literal.span)
            self.diagnostics.warning(
                "W417", literal.span, f'"{literal.text}" is read as exactly these letters, and {span.source.path}:{span.line} shows them as {quoted(how)}',
                f'write %s"…" with the right letters in an erratum, or case = "exact" in {self.shown} where the rule is right',
            )  # fmt: skip
        return places

    def _folded_by_comments(self, literals: list[CharVal]) -> set[Span]:
        """Report literals whose rule says that case does not matter, and return their places."""
        found: set[Span] = set()
        for rule in self.grammar.rules:
            words = says_folded(self.reader.comment(rule))
            inside = [literal for literal in literals if _is_within(literal.span, rule.span)] if words else []
            if words and inside:
                self._report_folded(inside[0], f"'{words}'", inside[0].span)
                found.update(literal.span for literal in inside)
        return found

    def _report_folded(self, literal: CharVal, says: str, span: Span) -> None:
        self.diagnostics.error(
            "E426", span, f'{says} accepts letters of either case, and what is generated accepts and writes "{literal.text}" only',
            f'specwire cannot express strings without case: write %s"{literal.text}" in an erratum to insist on these letters',
        )  # fmt: skip

    # Fixed values and frames

    def check_fixed_values(self) -> None:
        """Report values that a comment fixes and that any other value can replace."""
        for rule in self.grammar.rules:
            if not self.reader.seen(rule) or self.reader.hint(rule).constant is not None:
                continue
            layout = self.reader.layout(rule)
            demanded = fixed_value(self.reader.comment(rule))
            if (
                demanded is None
                or not isinstance(layout, ValueLayout)
                or not _is_free(layout.type, demanded.value)
            ):
                continue
            value = f'"{demanded.value}"' if isinstance(demanded.value, str) else demanded.value
            self.diagnostics.warning(
                "W419", _place_of(rule, demanded.words), f"'{demanded.words}' fixes the value of '{rule}', and any value is accepted",
                f"constant = {value} under [types.{rule.name}] in {self.shown} demands it",
            )  # fmt: skip

    def check_sizes(self) -> None:
        """Report values without an end of their own whose size, by their comment, is in an integer elsewhere."""
        integers = {
            name: rule
            for rule in self.grammar.rules
            for name, _ in self._integer(rule)
            if name not in self.reader.lengths and self.reader.hint(rule).scope is None
        }
        for rule in self.grammar.rules:
            layout = self.reader.layout(rule) if self.reader.seen(rule) else None
            text = self.reader.comment(rule)
            if not text or not isinstance(layout, ValueLayout) or not is_open(layout.type):
                continue
            for name, integer in integers.items():
                if integer is not rule and (words := size_words(text, integer.name)):
                    self.diagnostics.warning(
                        "W422", _place_of(rule, words), f"'{words}' makes '{name}' the size of '{rule}', and nothing compares the two",
                        f'specwire can express a size directly in front of what it counts: say scope = "next", "rest" or "none" under [types.{integer.name}] in {self.shown}',
                    )  # fmt: skip

    def check_frames(self) -> None:
        """Report words about frames where every message is generated as one frame."""
        comments = (_Statement(comment.text, comment.span) for comment in self._comments())
        found = [
            (statement, words)
            for statement in (*comments, *self._prose("frames"))
            if (words := frame_words(statement.text))
        ]
        for statement, words in found[:MAX_STATEMENTS]:
            self.diagnostics.warning(
                "W420", statement.span, f"'{words}' speaks of frames, and every message is generated as one frame",
                f"describe the other frames under [[rules]] in {self.shown}, or write single_frame = true there",
            )  # fmt: skip


def _place_of(rule: Rule, words: str) -> Span:
    """Return the place of the comment of a rule that holds words, else of the rule's name."""
    comments = (*rule.trailing, *rule.leading)
    return next((comment.span for comment in comments if words in comment.text), rule.name_span)


def _has_letters(literal: CharVal) -> bool:
    return any(character.isalpha() for character in literal.text)


def _is_within(inner: Span, outer: Span) -> bool:
    return (
        inner.source == outer.source
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def _is_free(type: ir.Type, value: str | int) -> bool:
    """Whether a value of that type can be another than `value`."""
    match type:
        case ir.ConstantType() | ir.PaddingType():
            return False
        case ir.IntegerType(values=values) if values:
            return set(values) != {value}
        case ir.KeywordType(options=options):
            return set(options) != {value}
    return True


def _listed(names: list[str]) -> str:
    return f"'{names[0]}'" if len(names) == 1 else f"'{names[0]}' and {len(names) - 1} more integers"
