"""How much the rules of messages expand to: a bound on what a short grammar can ask for (E424).

A rule that is used twice is laid out twice: a message has its fields at both places, and so have the generated
class, codec and schema. Thirty rules that double each other would come to a thousand million fields. They are
counted before any layout is read, by a walk that counts each rule once. The walk may count some fields too many,
never too few: an alternative counts although a message may take another, and a length although it is no field.

Beside the fields it counts the characters of what is written out at each use: octets of constants, alternatives
that are one value, patterns of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.names import fold
from specwire.generator.passes.alternations import LARGEST_INTEGER
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets
from specwire.generator.profile import LoadedProfile
from specwire.generator.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)

MAX_FIELDS = 1_000
"""Fields of one message; the largest of the protocols that we know has 24."""
MAX_ALL_FIELDS = 10_000
"""Fields of all messages of a protocol, and of all rules that these are made of, however short its grammar is."""
MAX_OF_ONE = 10
"""Fields for each element that the grammar writes, where that makes more."""
MAX_CHARACTERS = 1_000_000
"""Characters of all constants, alternatives and patterns, written out wherever they are used."""
OPAQUE = ("octets", "padding")
"""Types of the profile that make one field of a run of a fixed size."""
_HELP = "specwire has this bound because a rule that is used twice is expanded twice"


def check_expansion(
    grammar: Grammar, messages: Sequence[Rule], loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    """Report each message that has more than `MAX_FIELDS`; else a protocol that has too many, or too many characters."""
    counter = _Counter(grammar, loaded)
    found = [counter.of_message(message) for message in messages]
    for message, size in zip(messages, found, strict=True):
        if size.fields > MAX_FIELDS:
            _report(
                f"message '{message}' expands to more than {MAX_FIELDS:,} fields",
                message.name_span,
                diagnostics,
            )
    if any(size.fields > MAX_FIELDS for size in found):
        return
    written = sum(_written(rule.definition) for rule in grammar.rules)
    most, whole = max(MAX_ALL_FIELDS, MAX_OF_ONE * written), _sum([*found, counter.in_rules()])
    if whole.fields > most:
        _report(
            f"the messages of the protocol expand to more than {most:,} fields together",
            loaded.place("name"),
            diagnostics,
        )
    elif whole.characters > MAX_CHARACTERS:
        _report(
            f"the constants and patterns of the protocol expand to more than {MAX_CHARACTERS:,} characters",
            loaded.place("name"), diagnostics,
        )  # fmt: skip


def _report(sentence: str, span: Span, diagnostics: Diagnostics) -> None:
    help = f"{_HELP}: use fewer rules more than once, or write what repeats with '*'"
    diagnostics.error("E424", span, sentence, help)


class _Size(NamedTuple):
    """What an element expands to."""

    fields: int
    characters: int = 0


def _sum(sizes: Iterable[_Size]) -> _Size:
    found = list(sizes)
    return _Size(sum(size.fields for size in found), sum(size.characters for size in found))


class _Counter:
    """Counts what rules expand to, each rule once. The counts of one rule stop a little above the bounds."""

    def __init__(self, grammar: Grammar, loaded: LoadedProfile) -> None:
        self._grammar = grammar
        self._octets = Octets(grammar)
        self._types = {fold(name): hint.type for name, hint in loaded.profile.types.items()}
        self._rules: dict[str, _Size] = {}

    def of_message(self, message: Rule) -> _Size:
        """Return the size of a message: of a choice among messages, the one that it is named as."""
        definition = message.definition
        items = definition.items if isinstance(definition, Concatenation) else (definition,)
        return _capped(_sum(self._count(self._chosen(item, message)) for item in items))

    def in_rules(self) -> _Size:
        """Return the size of all rules that were counted so far, each rule once."""
        return _sum(self._rules.values())

    def _chosen(self, item: Element, message: Rule) -> Element:
        rule = self._grammar.find(item) if isinstance(item, Reference) else None
        choices = rule.definition.items if rule and isinstance(rule.definition, Alternation) else ()
        named = (choice for choice in choices if isinstance(choice, Reference))
        return next((choice for choice in named if fold(choice.name) == fold(message.name)), item)

    def _count(self, element: Element) -> _Size:
        value = self._value(element)
        if value is not None:
            return value
        match element:
            case Reference():
                rule = self._grammar.find(element)
                return self._of_rule(rule) if rule else _Size(1)
            case Concatenation(items=items) | Alternation(items=items):
                return _capped(_sum(map(self._count, items)))
            case Repetition(element=inner) | Option(element=inner):
                return self._count(inner)
        return _Size(1)

    def _of_rule(self, rule: Rule) -> _Size:
        name = str(rule)
        if name not in self._rules:
            opaque = self._types.get(fold(rule.name)) in OPAQUE
            one = opaque and self._octets.extent(rule.definition) is not None
            self._rules[name] = _Size(1) if one else self._count(rule.definition)
        return self._rules[name]

    def _value(self, element: Element) -> _Size | None:
        """Return the size of a value: a constant, octets, a number, text, or one of these behind its length; else None."""
        constant = self._octets.constant(element)
        if constant is not None:
            return _Size(1, len(constant))
        if self._octets.count(element) is not None:
            return _Size(1)
        if self._octets.is_textual(element) or self._octets.is_class(element):
            return _Size(1, len(self._octets.pattern(element) or ""))
        match element:
            case Concatenation(items=(head, Repetition(element=body))):
                counted = self._octets.count(head) is not None and self._octets.is_class(body)
                return _Size(1, len(self._octets.pattern(body) or "")) if counted else None
            case Alternation(items=items) if self._is_number(items):
                return _Size(1, len(items))
        return None

    def _is_number(self, items: Sequence[Element]) -> bool:
        """Whether alternatives are the values of one number, or octets with special values among them."""
        constants = [self._octets.constant(item) for item in items]
        if any(constant is None for constant in constants[1:]):
            return False
        first = constants[0]
        sizes = {self._octets.count(items[0]) if first is None else len(first)}
        sizes |= {len(constant) for constant in constants[1:] if constant is not None}
        return len(sizes) == 1 and (first is None or len(first) <= LARGEST_INTEGER)


def _written(element: Element) -> int:
    """The elements that a definition writes, those in groups too."""
    match element:
        case Concatenation(items=items) | Alternation(items=items):
            return sum(map(_written, items))
        case Repetition(element=inner) | Option(element=inner):
            return _written(inner)
    return 1


def _capped(size: _Size) -> _Size:
    return _Size(min(size.fields, MAX_FIELDS + 1), min(size.characters, MAX_CHARACTERS + 1))
