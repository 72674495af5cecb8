"""A grammar with resolved names.

Names are not case-sensitive (RFC 5234 section 2.1), and ``-`` and ``_`` are equal, as ZeroMQ
specifications use them. A name with a role differs from the name without it: CMB1's ``C:request``
is a multipart message and ``request`` is its header. A reference ``C:X`` means the rule ``C:X`` if
there is one, else ``X``.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from specwire.generator.abnf.parser import core_rules
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Comment,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)

External = Literal["frame", "messages", "json"]
"""Meanings of undefined names: one ZeroMQ frame, all the following frames, JSON text."""

EXTERNALS: Mapping[str, External] = MappingProxyType({"frame": "frame", "msg": "messages", "json": "json"})

Key = tuple[str | None, str]
"""Role and name of a rule in the form in which they are compared."""


def key_of(named: Rule | Reference) -> Key:
    """Return the role and name of a rule or reference in the form in which they are compared."""
    return _key(named.name, named.role)


def references(element: Element) -> Iterator[Reference]:
    """Yield every reference in `element`, in the order of the text."""
    match element:
        case Reference():
            yield element
        case Alternation() | Concatenation():
            for item in element.items:
                yield from references(item)
        case Repetition() | Option():
            yield from references(element.element)
        case _:
            return


def strings(element: Element) -> Iterator[CharVal]:
    """Yield every quoted string in `element`, in the order of the text."""
    match element:
        case CharVal():
            yield element
        case Alternation() | Concatenation():
            for item in element.items:
                yield from strings(item)
        case Repetition() | Option():
            yield from strings(element.element)


def is_made_of_names(element: Element) -> bool:
    """Whether an element consists of references only."""
    match element:
        case Reference():
            return True
        case Alternation(items=items) | Concatenation(items=items):
            return all(map(is_made_of_names, items))
        case Repetition() | Option():
            return is_made_of_names(element.element)
    return False


def names_itself(rule: Rule) -> bool:
    """Whether the rule is defined only by its own name, as ``json = JSON`` is: an external type."""
    return isinstance(rule.definition, Reference) and key_of(rule.definition) == key_of(rule)


def dialog_parts(grammar: Grammar, messages: Container[str] = ()) -> dict[str, Rule]:
    """Return the rules of dialogs, by name: those that name senders, and those that refer to such rules.

    `messages` are the names of the message rules, which are skipped.
    """
    others = {str(rule): rule for rule in grammar.rules if str(rule) not in messages}
    found = {name for name, rule in others.items() if any(use.role for use in references(rule.definition))}
    users: dict[str, list[str]] = {}
    for name, rule in others.items():
        if is_made_of_names(rule.definition):
            for use in references(rule.definition):
                users.setdefault(str(grammar.find(use)), []).append(name)
    for name in (pending := list(found)):  # grows during the walk
        new = [user for user in users.get(name, ()) if user not in found]
        found.update(new)
        pending += new
    return {name: rule for name, rule in others.items() if name in found}


@dataclass(frozen=True)
class Grammar:
    """The rules in order, each name once, with repeated definitions merged and ``=/`` applied."""

    rules: tuple[Rule, ...]
    loose_comments: tuple[Comment, ...] = ()
    """Comments that belong to a section rather than a rule."""

    def find(self, reference: Reference) -> Rule | None:
        """Return the rule that `reference` means; None for core rules and external types."""
        found = (self.rule(reference.name, reference.role) if reference.role else None) or self.rule(
            reference.name
        )
        # `json = JSON` is the rule `json`; the JSON in it is not that rule again.
        if found and names_itself(found) and found.definition.span == reference.span:
            return None
        return found

    def below(self, reference: Reference) -> tuple[Rule, ...]:
        """Return the rule that `reference` means and those that it refers to, directly or through others."""
        found: dict[Key, Rule] = {}
        waiting = [reference]
        while waiting:
            rule = self.find(waiting.pop())
            if rule is not None and key_of(rule) not in found:
                found[key_of(rule)] = rule
                waiting += references(rule.definition)
        return tuple(found.values())

    def rule(self, name: str, role: str | None = None) -> Rule | None:
        """Return the rule defined under exactly this name and role."""
        return self._by_key.get(_key(name, role))

    def external(self, reference: Reference) -> External | None:
        """Return the external type that `reference` names, None where the grammar or RFC 5234 defines it."""
        return None if self.find(reference) else EXTERNALS.get(_key(reference.name, None)[1])

    def core(self, reference: Reference) -> Element | None:
        """Return the definition of the core rule that `reference` names, unless the grammar redefines it."""
        return None if self.find(reference) else core_rules().get(reference.name.upper())

    @cached_property
    def _by_key(self) -> Mapping[Key, Rule]:
        return {key_of(rule): rule for rule in self.rules}


def _key(name: str, role: str | None) -> Key:
    return (role.upper() if role else None), name.lower().replace("_", "-")
