"""Comparison of a document's statements in words with the layouts that are generated.

ABNF defines which octets a message may have; comments and prose define their meaning. This pass compares
those words (`specwire.generator.abnf.statements`) with the layouts, so that a contradiction is always reported:

- E423, W421: a comment (prose for W421) calls an integer little-endian, signed, a float or a varint, but it
  is generated as another kind of number. Comments of the integer's own rule are read, those of others are not.
- W417: a quoted string is written in the letters of the grammar, but the document shows others.
- W419: a comment requires one value (``must be "FILEMQ"``), but any value is accepted.
- W422: a comment declares an integer to be the size of a value, but the two are not compared.
- W420: the text mentions several frames, but every message is one frame. Messages that follow each other
  on a byte stream have no frames and are not checked.

A declaration in the profile settles each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.statements import (
    BYTE_ORDER,
    NUMBER_WORDS,
    SIGNED,
    fixed_value,
    frame_words,
    number_kinds,
    quoted,
    shown_words,
    size_words,
)
from specwire.generator.abnf.syntax import CharVal, Rule
from specwire.generator.diagnostics import Span
from specwire.generator.ir.names import fold
from specwire.generator.passes.declared import constant_of, says_type
from specwire.generator.passes.grammar import EXTERNALS, references
from specwire.generator.passes.layouts import ValueLayout, is_open
from specwire.generator.passes.types import TypeReader
from specwire.generator.profile.tables import TypeHint

MAX_STATEMENTS = 10
"""Maximum number of statements about frames that are reported."""


def check_claims(reader: TypeReader, messages: Sequence[ir.Message]) -> None:
    """Report statements of the document, and of the profile's ``[[prose]]``, that the layouts contradict."""
    claims = _Claims(reader)
    claims.check_numbers()
    claims.check_prose_about_numbers()
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
    """Text of the document with its place: in the grammar, or in the profile for prose."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class _Integer:
    """Rule that is generated as an integer, a size or a count, and its number of octets."""

    rule: Rule
    octets: int
    type: ir.Type | None = None

    def is_kind(self, kind: str) -> bool:
        """Whether the integer is generated as a number of that kind."""
        if not isinstance(self.type, ir.IntegerType):
            return False
        return self.type.order == "little" if kind == BYTE_ORDER else kind == SIGNED and self.type.signed


def _states(hint: TypeHint, kind: str) -> bool:
    """Whether the profile says if a number is of that kind."""
    if kind == BYTE_ORDER:
        return hint.order is not None
    return hint.signed is not None if kind == SIGNED else says_type(hint)


class _Claims:
    """Statements of one document, compared with the layouts of its rules."""

    def __init__(self, reader: TypeReader) -> None:
        self.reader = reader
        self.grammar = reader.grammar
        self.diagnostics = reader.diagnostics
        self.profile_path = reader.profile.source.path
        self.integers = {
            str(rule): _Integer(rule, octets, self._type(rule))
            for rule in self.grammar.rules
            if (octets := self._integer_octets(rule)) is not None
        }
        self.reported: set[str] = set()
        """The integers that an E423 names."""
        self._by_kind: dict[str, dict[str, _Integer]] = {}

    def _integer_octets(self, rule: Rule) -> int | None:
        layout = self.reader.layout(rule) if self.reader.seen(rule) else None
        match layout:
            case ValueLayout(type=ir.IntegerType(octets=octets)):
                return octets
            case ValueLayout(type=ir.SizeType(forms=forms)):
                return max(form.octets for form in forms)
        return self.reader.lengths.get(str(rule))

    def _type(self, rule: Rule) -> ir.Type | None:
        layout = self.reader.layout(rule)
        type = layout.type if isinstance(layout, ValueLayout) else None
        if isinstance(type, ir.IntegerType) and str(rule) in self.reader.lengths:
            # Lengths and counts are unsigned.
            return structs.replace(type, signed=False)
        return type

    def _prose(self, about: str) -> Iterator[_Statement]:
        loaded = self.reader.profile
        for number, statement in enumerate(loaded.profile.prose):
            if statement.about == about:
                yield _Statement(statement.text, loaded.place("prose", number, "text"))

    def _comments(self) -> Iterator[_Statement]:
        """Yield the comments of the grammar, except those of the rules that define frames and messages."""
        for comment in self.grammar.loose_comments:
            yield _Statement(comment.text, comment.span)
        for rule in self.grammar.rules:
            if fold(rule.name) not in EXTERNALS:
                for comment in (*rule.leading, *rule.trailing):
                    yield _Statement(comment.text, comment.span)

    # Numbers

    def check_numbers(self) -> None:
        """Report comments that describe integers as another kind of number (E423)."""
        for rule in self.grammar.rules:
            text = self.reader.comment(rule)
            for kind, words in number_kinds(text):
                described = self._integers_described_at(rule, kind, text)
                names = [name for name in described if name in self._contradicted(kind)]
                self._report_number(words, _place_of(rule, words), names)
        seen: set[str] = set()
        for comment in self.grammar.loose_comments:
            for kind, words in number_kinds(comment.text):
                if kind not in seen and _is_about_numbers(kind, comment.text):
                    seen.add(kind)  # later comments of the kind describe the same integers
                    self._report_number(words, comment.span, self._contradicted(kind))

    def _integers_described_at(self, rule: Rule, kind: str, text: str) -> list[str]:
        """Return the integers that a rule's comment describes: the rule, or the integers that it uses."""
        if str(rule) in self.integers:
            return [str(rule)]
        if not _is_about_numbers(kind, text):
            return []
        uses = (self.grammar.find(use) for use in references(rule.definition))
        return [str(use) for use in uses if use is not None and str(use) in self.integers]

    def check_prose_about_numbers(self) -> None:
        """Report prose about numbers while integers that it contradicts have no declared type (W421)."""
        for statement in self._prose("numbers"):
            kinds = [kind for kind, _ in number_kinds(statement.text)] or [BYTE_ORDER]
            names = max(map(self._contradicted, kinds), key=len)
            if names:
                self.diagnostics.warning(
                    "W421",
                    statement.span,
                    f"the document says '{quoted(statement.text)}', but {_listed(list(names))} would be "
                    "unsigned big-endian",
                    "declare the type of each integer under [types], then remove this [[prose]] table",
                )

    def _contradicted(self, kind: str) -> dict[str, _Integer]:
        """Return the integers that are no numbers of that kind and whose type the profile does not declare."""
        if kind not in self._by_kind:
            self._by_kind[kind] = {
                name: integer
                for name, integer in self.integers.items()
                if not _states(self.reader.hint(integer.rule), kind)
                and not integer.is_kind(kind)
                and (kind != BYTE_ORDER or integer.octets > 1)
            }
        return self._by_kind[kind]

    def _report_number(self, words: str, span: Span, names: Iterable[str]) -> None:
        """Report words about integers that no other E423 names."""
        new = [name for name in names if name not in self.reported]
        if not new:
            return
        self.reported.update(new)
        width = self.integers[new[0]].octets
        octets = f"{width} octet{'s' if width > 1 else ''}"
        self.diagnostics.error(
            "E423",
            span,
            f"the document says '{quoted(words)}' about {_listed(new)}, but '{new[0]}' would be an "
            f"unsigned big-endian integer of {octets}",
            f"say what it is under [types.{new[0]}] in {self.profile_path}: `order`, `signed`, or a `type` "
            'such as "float" or "varint"',
        )

    # Letters

    def check_letters(self) -> None:
        """Report quoted strings that the document shows only in other letters (W417)."""
        literals = [
            literal
            for literal in self.reader.literals.values()
            if not literal.case_sensitive and _has_letters(literal)
        ]
        if self.reader.profile.profile.case != "exact" and literals:
            self._report_other_spellings(literals, [*self._comments(), *self._prose("letters")])

    def _report_other_spellings(self, literals: list[CharVal], statements: Iterable[_Statement]) -> None:
        shown: dict[str, dict[str, tuple[str, Span]]] = {}
        for statement in statements:
            for word, form in shown_words(statement.text):
                shown.setdefault(word.lower(), {}).setdefault(word, (form, statement.span))
        for literal in literals:
            spellings = shown.get(literal.text.lower(), {})
            if not spellings or literal.text in spellings:
                continue
            form, span = next(iter(spellings.values()))
            self.diagnostics.warning(
                "W417",
                literal.span,
                f'"{literal.text}" is written so, but {span.source.path}:{span.line} shows it as '
                f"{quoted(form)}",
                'write %s"…" with the right letters in an erratum, or case = "exact" in '
                f"{self.profile_path} if the rule is right",
            )

    # Fixed values, sizes and frames

    def check_fixed_values(self) -> None:
        """Report rules that accept any value although a comment requires one (W419)."""
        for rule in self.grammar.rules:
            if not self.reader.seen(rule) or self.reader.hint(rule).constant is not None:
                continue
            layout = self.reader.layout(rule)
            required = fixed_value(self.reader.comment(rule))
            if required is None or not isinstance(layout, ValueLayout):
                continue
            if _accepts_others(layout.type, required.value):
                if isinstance(constant_of(required.value, layout.type), ir.ConstantType):
                    value = _toml(required.value)
                    help = (
                        f"write constant = {value} under [types.{rule.name}] in {self.profile_path} to "
                        "require it"
                    )
                else:
                    help = "specwire cannot require this value of a rule of that type"
                self.diagnostics.warning(
                    "W419",
                    _place_of(rule, required.words),
                    f"'{required.words}' fixes the value of '{rule}', but any value is accepted",
                    help,
                )

    def check_sizes(self) -> None:
        """Report values to the end of a frame that a comment gives a size in another integer (W422)."""
        sizes = {
            fold(integer.rule.name): integer.rule
            for name, integer in self.integers.items()
            if name not in self.reader.lengths and self.reader.hint(integer.rule).scope is None
        }
        for rule in self.grammar.rules:
            layout = self.reader.layout(rule) if self.reader.seen(rule) else None
            if not isinstance(layout, ValueLayout) or not is_open(layout.type):
                continue
            for name, words in size_words(self.reader.comment(rule)):
                size = sizes.get(fold(name))
                if size is not None and size is not rule:
                    self.diagnostics.warning(
                        "W422",
                        _place_of(rule, words),
                        f"'{words}' declares '{size}' to be the size of '{rule}', but the two are not "
                        "compared",
                        "specwire can express a size only directly before what it counts: write scope = "
                        f'"next", "rest" or "none" under [types.{size.name}] in {self.profile_path}',
                    )

    def check_frames(self) -> None:
        """Report words about frames in a protocol whose messages are all one frame (W420)."""
        found = [
            (statement, words)
            for statement in (*self._comments(), *self._prose("frames"))
            if (words := frame_words(statement.text))
        ]
        for statement, words in found[:MAX_STATEMENTS]:
            self.diagnostics.warning(
                "W420",
                statement.span,
                f"the document says '{words}', but every message is generated as one frame",
                f"describe the other frames under [[rules]] in {self.profile_path}, or write single_frame "
                "= true there",
            )


def _is_about_numbers(kind: str, text: str) -> bool:
    return kind == BYTE_ORDER or NUMBER_WORDS.search(text) is not None


def _place_of(rule: Rule, words: str) -> Span:
    """Return the place of the comment with the words, or of the rule's name if they span comments."""
    comments = (*rule.trailing, *rule.leading)
    return next((comment.span for comment in comments if words in comment.text), rule.name_span)


def _has_letters(literal: CharVal) -> bool:
    return any(character.isalpha() for character in literal.text)


def _accepts_others(type: ir.Type, value: str | int) -> bool:
    """Whether the type accepts values other than `value`."""
    match type:
        case ir.ConstantType() | ir.PaddingType():
            return False
        case ir.IntegerType(values=values) if values:
            return set(values) != {value}
        case ir.KeywordType(options=options):
            return set(options) != {value}
    return True


def _listed(names: Sequence[str]) -> str:
    """Return the first of the names, and how many integers follow it."""
    more = len(names) - 1
    return f"'{names[0]}'" + (f" and {more} more integer{'s' if more > 1 else ''}" if more else "")


def _toml(value: str | int) -> str:
    """Return a value as TOML; a text has no double quotes here."""
    if isinstance(value, int):
        return str(value)
    return f"'{value}'" if "\\" in value else f'"{value}"'
