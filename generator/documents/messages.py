"""Search for messages that the dialogs of a grammar omit, so that the profile can list all messages.

A message begins with constants, such as a signature and a number, or is a constant that a dialog
names, and is not part of another rule.
If dialogs define senders, their messages are normally all there are. But authors add messages
without extending the dialog, and a second protocol in the same document may have a dialog without
senders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from specwire.generator.abnf.parser import core_rules
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
    Rule,
    Rulelist,
)
from specwire.generator.passes.grammar import Key, key_of, names_itself, references

DEEPEST = 50
"""Maximum depth to which rules are followed to the constant at the beginning of a message."""


def forgotten_messages(rulelist: Rulelist) -> list[Rule]:
    """Return all messages of a grammar, in order, if its dialogs omit one; otherwise an empty list."""
    rules = [rule for rule in rulelist.rules if not names_itself(rule)]
    if not any(use.role for rule in rules for use in references(rule.definition)):
        return []
    forms = _Forms({key_of(rule): rule for rule in reversed(rules)})
    spoken = {
        forms.key_meant(use) for rule in rules if forms.is_dialog(rule) for use in references(rule.definition)
    }
    inside = {
        forms.key_meant(use)
        for rule in rules
        if not forms.is_dialog(rule)
        for use in references(rule.definition)
    }
    sent = {forms.key_meant(use) for rule in rules for use in references(rule.definition) if use.role}
    formed = {
        key_of(rule): rule
        for rule in rules
        if forms.is_message(rule) or (key_of(rule) in sent and forms.is_constant(rule))
        if key_of(rule) not in inside
    }
    return [] if all(key in spoken & sent for key in formed) else list(formed.values())


@dataclass(frozen=True, slots=True)
class _Forms:
    """Forms of the rules, by their names."""

    rules: Mapping[Key, Rule]
    _speaking: dict[Key, bool] = field(default_factory=dict)
    _constant: dict[Key, bool] = field(default_factory=dict)

    def key_meant(self, use: Reference) -> Key:
        """Return the key of the rule that a reference means: the one with its role, else the one without."""
        role, name = key_of(use)
        return (role, name) if (role, name) in self.rules else (None, name)

    def is_message(self, rule: Rule) -> bool:
        """Whether a rule is a sequence that begins with a constant."""
        definition = rule.definition
        return isinstance(definition, Concatenation) and self._is_constant(definition.items[0], DEEPEST)

    def is_constant(self, rule: Rule) -> bool:
        """Whether a rule has always the same octets."""
        return self._is_constant(rule.definition, DEEPEST)

    def is_dialog(self, rule: Rule) -> bool:
        """Whether a rule consists only of messages, with or without senders."""
        return self._speaks(rule, DEEPEST)

    def _speaks(self, rule: Rule, depth: int) -> bool:
        key = key_of(rule)
        if key not in self._speaking:
            self._speaking[key] = False  # for a rule that contains itself
            leaves = list(_leaves(rule.definition))
            self._speaking[key] = depth > 0 and all(
                isinstance(leaf, Reference) and self._is_spoken(leaf, depth - 1) for leaf in leaves
            )
        return self._speaking[key]

    def _is_spoken(self, use: Reference, depth: int) -> bool:
        meant = self.rules.get(self.key_meant(use))
        if meant is None or use.role:
            return bool(use.role)
        return self.is_message(meant) or self._speaks(meant, depth)

    def _is_constant(self, element: Element, depth: int) -> bool:
        match element:
            case NumVal() | CharVal():
                return True
            case Concatenation():
                return all(self._is_constant(item, depth) for item in element.items)
            case Reference(role=None) if depth and (meant := self.rules.get(self.key_meant(element))):
                key = key_of(meant)
                if key not in self._constant:
                    self._constant[key] = self._is_constant(meant.definition, depth - 1)
                return self._constant[key]
            case Reference(role=None) if core := core_rules().get(element.name.upper()):
                return self._is_constant(core, depth)
        return False


def _leaves(element: Element) -> Iterator[Element]:
    match element:
        case Alternation() | Concatenation():
            for item in element.items:
                yield from _leaves(item)
        case Repetition() | Option():
            yield from _leaves(element.element)
        case _:
            yield element
