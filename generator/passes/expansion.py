"""Bounds on the fields that the rules of messages expand to (E424).

A rule that is used twice is laid out twice: a message has its fields in both places, and so have
the generated class, codec and schema. Thirty rules, each of which uses the next one twice, would
expand to a thousand million fields. This pass counts the fields before any layout is read, and
visits each rule once. The count is an upper bound: it includes all alternatives, although a message
has one of them, and lengths, although they are no fields.

It also counts the characters that are written out at each use: octets of constants, alternatives that are one
value, patterns of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.layouts import LARGEST_INTEGER
from specwire.generator.passes.octets import Octets
from specwire.generator.profile.tables import LoadedProfile

MAX_FIELDS = 1_000
"""Most fields of one message. The largest message of the known protocols has 24."""
MAX_ALL_FIELDS = 10_000
"""Most fields of all messages of a protocol and the rules in them, unless the grammar is long."""
MAX_OF_ONE = 10
"""Most fields for each element of a long grammar, in place of `MAX_ALL_FIELDS`."""
MAX_CHARACTERS = 1_000_000
"""Most characters of constants, alternatives and patterns, counted at each use."""
OPAQUE = ("octets", "padding")
"""Types of the profile that make a run of a fixed size one field."""
_HELP = (
    "specwire has this bound because each use of a rule is expanded: "
    "use fewer rules more than once, or write repeated elements with '*'"
)


def check_expansion(
    grammar: Grammar, messages: Sequence[Rule], loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    """Report each message with more than `MAX_FIELDS`, else a protocol beyond the bounds of all messages."""
    counter = _Counter(grammar, loaded)
    sizes = [counter.of_message(message) for message in messages]
    too_large = [message for message, size in zip(messages, sizes, strict=True) if size.fields > MAX_FIELDS]
    for message in too_large:
        sentence = f"message '{message}' expands to more than {MAX_FIELDS:,} fields"
        diagnostics.error("E424", message.name_span, sentence, _HELP)
    if too_large:
        return
    elements = sum(_count_elements(rule.definition) for rule in grammar.rules)
    most = max(MAX_ALL_FIELDS, MAX_OF_ONE * elements)
    total = _sum([*sizes, counter.of_rules()])
    if total.fields > most:
        sentence = f"the messages of the protocol expand to more than {most:,} fields together"
    elif total.characters > MAX_CHARACTERS:
        sentence = (
            f"the constants and patterns of the protocol expand to more than {MAX_CHARACTERS:,} characters"
        )
    else:
        return
    diagnostics.error("E424", loaded.place("name"), sentence, _HELP)


class _Size(NamedTuple):
    """Upper bounds on the fields and characters that an element expands to."""

    fields: int
    characters: int = 0


def _sum(sizes: Iterable[_Size]) -> _Size:
    found = list(sizes)
    return _Size(sum(size.fields for size in found), sum(size.characters for size in found))


class _Counter:
    """Counter of fields and characters that visits each rule once.

    The counts of a rule are capped above the bounds.
    """

    def __init__(self, grammar: Grammar, loaded: LoadedProfile) -> None:
        self._grammar = grammar
        self._octets = Octets(grammar)
        self._types = {fold(name): hint.type for name, hint in loaded.profile.types.items()}
        self._rules: dict[str, _Size] = {}

    def of_message(self, message: Rule) -> _Size:
        """Return the size of a message. Of a choice among messages, only the one with its name counts."""
        definition = message.definition
        items = definition.items if isinstance(definition, Concatenation) else (definition,)
        return _capped(_sum(self._count(self._chosen(item, message)) for item in items))

    def of_rules(self) -> _Size:
        """Return the size of the rules that the messages use, each rule once."""
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
            self._rules[name] = _Size(1)  # for a rule that contains itself
            opaque = self._types.get(fold(rule.name)) in OPAQUE
            one = opaque and self._octets.extent(rule.definition) is not None
            self._rules[name] = _Size(1) if one else self._count(rule.definition)
        return self._rules[name]

    def _value(self, element: Element) -> _Size | None:
        """Return the size of a constant, octets, a number or text, also after its length.

        None for other elements.
        """
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
        """Whether alternatives are values of one number, or octets followed by special values of them."""
        constants = [self._octets.constant(item) for item in items]
        if any(constant is None for constant in constants[1:]):
            return False
        first = constants[0]
        sizes = {self._octets.count(items[0]) if first is None else len(first)}
        sizes |= {len(constant) for constant in constants[1:] if constant is not None}
        return len(sizes) == 1 and (first is None or len(first) <= LARGEST_INTEGER)


def _count_elements(element: Element) -> int:
    """Return the number of elements in a definition, those in groups included."""
    match element:
        case Concatenation(items=items) | Alternation(items=items):
            return sum(map(_count_elements, items))
        case Repetition(element=inner) | Option(element=inner):
            return _count_elements(inner)
    return 1


def _capped(size: _Size) -> _Size:
    return _Size(min(size.fields, MAX_FIELDS + 1), min(size.characters, MAX_CHARACTERS + 1))
