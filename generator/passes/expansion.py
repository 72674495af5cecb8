"""How many fields the rules of messages expand to: a bound on what a short grammar can ask for (E424).

A rule that is used twice is laid out twice: a message has its fields at both places, and so have the generated
class, codec and schema. Thirty rules that double each other would come to a thousand million fields. They are
counted before any layout is read, by a walk that counts each rule once. The walk may count some fields too many,
never too few: an alternative counts although a message may take another, and a length although it is no field.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.names import fold
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
MAX_ALL_FIELDS = 50_000
"""Fields of all messages of a protocol, and of all rules that these are made of."""
OPAQUE = ("octets", "padding")
"""Types of the profile that make one field of a run of a fixed size."""
_HELP = "specwire has this bound because a rule that is used twice is expanded twice"


def check_expansion(
    grammar: Grammar, messages: Sequence[Rule], loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    """Report each message that has more than `MAX_FIELDS`, and a protocol that has more than `MAX_ALL_FIELDS`."""
    counter = _Counter(grammar, loaded)
    found = [counter.of_message(message) for message in messages]
    for message, fields in zip(messages, found, strict=True):
        if fields > MAX_FIELDS:
            diagnostics.error(
                "E424", message.name_span, f"message '{message}' expands to more than {MAX_FIELDS:,} fields",
                f"{_HELP}: use fewer rules more than once, or write what repeats with '*'",
            )  # fmt: skip
    if max(found, default=0) <= MAX_FIELDS and sum(found) + counter.in_rules() > MAX_ALL_FIELDS:
        diagnostics.error(
            "E424", loaded.place("name"), f"the messages of the protocol expand to more than {MAX_ALL_FIELDS:,} fields together",
            f"{_HELP}: let fewer messages use the large rules, or write what repeats with '*'",
        )  # fmt: skip


class _Counter:
    """Counts the fields of rules, each rule once. Counts stop a little above `MAX_FIELDS`."""

    def __init__(self, grammar: Grammar, loaded: LoadedProfile) -> None:
        self._grammar = grammar
        self._octets = Octets(grammar)
        self._types = {fold(name): hint.type for name, hint in loaded.profile.types.items()}
        self._rules: dict[str, int] = {}

    def of_message(self, message: Rule) -> int:
        """Return the fields of a message: of a choice among messages, the one that it is named as."""
        definition = message.definition
        items = definition.items if isinstance(definition, Concatenation) else (definition,)
        return _capped(sum(self._count(self._chosen(item, message)) for item in items))

    def in_rules(self) -> int:
        """Return the fields of all rules that were counted so far, each rule once."""
        return sum(self._rules.values())

    def _chosen(self, item: Element, message: Rule) -> Element:
        rule = self._grammar.find(item) if isinstance(item, Reference) else None
        choices = rule.definition.items if rule and isinstance(rule.definition, Alternation) else ()
        named = (choice for choice in choices if isinstance(choice, Reference))
        return next((choice for choice in named if fold(choice.name) == fold(message.name)), item)

    def _count(self, element: Element) -> int:
        if self._is_value(element):
            return 1
        match element:
            case Reference():
                rule = self._grammar.find(element)
                return self._of_rule(rule) if rule else 1
            case Concatenation(items=items) | Alternation(items=items):
                return _capped(sum(map(self._count, items)))
            case Repetition(element=inner) | Option(element=inner):
                return self._count(inner)
        return 1

    def _of_rule(self, rule: Rule) -> int:
        name = str(rule)
        if name not in self._rules:
            opaque = self._types.get(fold(rule.name)) in OPAQUE
            one = opaque and self._octets.extent(rule.definition) is not None
            self._rules[name] = 1 if one else self._count(rule.definition)
        return self._rules[name]

    def _is_value(self, element: Element) -> bool:
        """Whether an element is one field whatever it is made of: a constant, octets, text, or one of these behind its length."""
        if self._octets.constant(element) is not None or self._octets.is_textual(element):
            return True
        match element:
            case Concatenation(items=(head, Repetition(element=body))):
                return self._octets.count(head) is not None and self._octets.is_class(body)
        return self._octets.count(element) is not None or self._octets.is_class(element)


def _capped(fields: int) -> int:
    return min(fields, MAX_FIELDS + 1)
