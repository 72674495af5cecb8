"""Renaming of different rules with the same name in one block.

An author may write ``delete = C:DELETE ( … )`` and ``DELETE = signature %x08``, although RFC 5234
ignores case in names. A message and its only field may both be called ``credit``. A field may be
defined again, with another size, below each message that has it. One of the rules keeps the name;
the others get a number. Each use refers to one of them:

- a use with a sender (``C:DELETE``) refers to the message, not to a dialog;
- if the definitions are spelled differently, a use refers to the one with its spelling;
- otherwise a use refers to the next definition, because fields are defined below their message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from specwire.generator.abnf.syntax import Concatenation, Reference, Rule, Rulelist, write_element
from specwire.generator.passes.grammar import Key, key_of, names_itself, references

MOST_MEANINGS = 20
"""Maximum definitions of one name that are renamed; if there are more, `check` reports each definition."""


def with_idle_roles(rulelist: Rulelist) -> tuple[Rule, ...]:
    """Return the rules whose sender, ``C:ready``, does not match the senders of their uses.

    Old generators wrote the same sender in front of all messages, regardless of who sends them.
    """
    bare = {key_of(rule)[1] for rule in rulelist.rules if rule.role is None}
    used = {key_of(use) for rule in rulelist.rules for use in references(rule.definition)}
    return tuple(
        rule
        for rule in rulelist.rules
        if rule.role is not None and key_of(rule)[1] not in bare and _is_used_otherwise(rule, used)
    )


def _is_used_otherwise(rule: Rule, used: set[Key]) -> bool:
    role, name = key_of(rule)
    return (role, name) not in used and any(used_name == name for _, used_name in used)


@dataclass(frozen=True, slots=True)
class Variant:
    """One meaning of a name: the rules with this definition, and their new name."""

    rules: tuple[Rule, ...]
    name: str

    @property
    def is_dialog(self) -> bool:
        """Whether it is a dialog rule."""
        return any(use.role for use in references(self.rules[0].definition))

    @property
    def is_field(self) -> bool:
        """Whether it can be a field of a message, that is, neither a dialog nor a sequence."""
        return not self.is_dialog and not isinstance(self.rules[0].definition, Concatenation)


@dataclass(frozen=True, slots=True)
class Variants:
    """The meanings of one name, the one that keeps it first, and the new name of each of its places."""

    meanings: tuple[Variant, ...]
    uses: tuple[tuple[Reference, Variant], ...]


def find_variants(rulelist: Rulelist, taken: set[Key]) -> Iterator[Variants]:
    """Yield the names that `rulelist` defines in different ways; new names are not in `taken`."""
    named: dict[Key, list[Rule]] = {}
    for rule in rulelist.rules:
        if not rule.incremental and not names_itself(rule):
            named.setdefault(key_of(rule), []).append(rule)
    used = {*taken, *named}
    for key, rules in named.items():
        if 1 < len({_meaning(rule) for rule in rules}) <= MOST_MEANINGS:
            meanings = _meanings(rules, used)
            yield Variants(meanings, tuple(_uses(key, meanings, rulelist.rules, set(named))))


def _meaning(rule: Rule) -> str:
    return write_element(rule.definition).lower()


def _meanings(rules: Sequence[Rule], used: set[Key]) -> tuple[Variant, ...]:
    grouped: dict[str, list[Rule]] = {}
    for rule in rules:
        grouped.setdefault(_meaning(rule), []).append(rule)
    variants = [Variant(tuple(same), same[0].name) for same in grouped.values()]
    # False sorts first: a message keeps its name before a dialog does, else the first of the document.
    keeper, *others = sorted(variants, key=lambda variant: variant.is_dialog)
    renamed = [keeper]
    for variant in others:
        rule = variant.rules[0]
        number = next(n for n in count(2) if key_of(replace(rule, name=f"{rule.name}-{n}")) not in used)
        renamed.append(replace(variant, name=f"{rule.name}-{number}"))
        used.add(key_of(replace(rule, name=renamed[-1].name)))
    return tuple(renamed)


def _uses(
    key: Key, meanings: Sequence[Variant], rules: Sequence[Rule], defined: set[Key]
) -> Iterator[tuple[Reference, Variant]]:
    for rule in rules:
        for use in references(rule.definition):
            of_role = key_of(use)
            if of_role == key or (key[0] is None and of_role[1] == key[1] and of_role not in defined):
                yield use, _meant(use, rule, meanings)


def _meant(use: Reference, user: Rule, meanings: Sequence[Variant]) -> Variant:
    sent = [variant for variant in meanings if not variant.is_dialog]
    if use.role and sent:
        return sent[0]
    spelled = [variant for variant in meanings if variant.rules[0].name == use.name]
    if len(spelled) == 1:
        return spelled[0]
    line = user.span.line
    places = [(rule.span.line, variant) for variant in meanings for rule in variant.rules if rule is not user]
    below = [place for place in places if place[0] > line]
    found = min(below, key=lambda place: place[0]) if below else max(places, key=lambda place: place[0])
    return found[1]
