"""Which rules of a grammar are messages.

The profile may list them. Else the grammar says it, in one of three ways: rules that a role sends in a
dialog (``C:OHAI``); the rules that a rule which nothing uses comes down to by names alone (``zre = greeting
*traffic`` with ``traffic = whisper / shout``), or its alternatives (``msg = *( OHAI / NOM )``); or, where
neither is there, the rules that nothing uses: those with a constant near their beginning, else all that
hold octets. What is used by nothing and taken for a message is an assumption (W405).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, is_made_of_names, references
from specwire.generator.passes.octets import MAX_DEPTH, Octets
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


def find_messages(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> Sequence[Rule]:
    """Return the rules of messages in the order of the profile, else of the grammar."""
    if loaded.profile.messages:
        return _listed(grammar, loaded, diagnostics)
    rules = {str(rule): rule for rule in grammar.rules}
    sent = _sent(grammar, rules)
    if sent:
        return [rule for name, rule in rules.items() if name in sent]
    roots = Roots(grammar)
    reached = roots.reached()
    found = reached | (roots.marked(reached) if reached else set()) or _choices(grammar)
    assumed = found - reached
    if not found:
        found = assumed = roots.marked(reached) or roots.holding_octets()
    if reached or not _choices(grammar):
        for rule in (rules[name] for name in rules if name in assumed):
            diagnostics.warning(
                "W405", rule.name_span, f"rule '{rule}' is taken for a message: nothing uses it",
                f"list the messages under `messages` in {loaded.source.path}",
            )  # fmt: skip
    if not found:
        diagnostics.error(
            "E508", loaded.place("name"), "the grammar does not say which of its rules are messages",
            "list them under `messages` in the profile",
        )  # fmt: skip
    return [rule for name, rule in rules.items() if name in found]


def _listed(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> Sequence[Rule]:
    found: dict[str, Rule] = {}
    for number, name in enumerate(loaded.profile.messages):
        role, _, bare = name.rpartition(":")
        rule = grammar.rule(bare, role or None)
        if rule is None:
            place = loaded.place("messages", number)
            diagnostics.error(
                "E507", place, f"there is no rule '{name}' to be a message", "take it out, or define it"
            )
        elif str(rule) in found:
            place = loaded.place("messages", number)
            diagnostics.error("E507", place, f"message '{name}' is listed twice", "take one of them out")
        else:
            found[str(rule)] = rule
    return tuple(found.values())


def _sent(grammar: Grammar, rules: dict[str, Rule]) -> set[str]:
    """The rules that dialog rules name and that are no dialog rules themselves."""
    speaking = {name for name, rule in rules.items() if _speaks(rule)}
    sent = {str(target) for name in speaking for target in _targets(grammar, rules[name])} - speaking
    return {name for name in sent if not _is_dialog(grammar, rules[name], speaking)}


def _speaks(rule: Rule) -> bool:
    """Whether the rule says who sends something: a rule of a dialog."""
    return any(reference.role for reference in references(rule.definition))


def _is_dialog(grammar: Grammar, rule: Rule, speaking: set[str]) -> bool:
    """Whether a rule is made of dialog rules only (``filemq-protocol`` itself names no role)."""
    targets = _targets(grammar, rule)
    whole = len(targets) == sum(1 for _ in references(rule.definition))
    return bool(targets) and whole and all(str(target) in speaking for target in targets)


def _targets(grammar: Grammar, rule: Rule) -> list[Rule]:
    found = [grammar.find(reference) for reference in references(rule.definition)]
    return [target for target in found if target is not None]


def _choices(grammar: Grammar) -> set[str]:
    """The alternatives of a first rule such as ``msg = *( OHAI | NOM )``."""
    if not grammar.rules:
        return set()
    definition = grammar.rules[0].definition
    while isinstance(definition, Repetition):
        definition = definition.element
    if not isinstance(definition, Alternation):
        return set()
    found = [grammar.find(item) if isinstance(item, Reference) else None for item in definition.items]
    return {str(rule) for rule in found if rule} if all(found) else set()


class Roots:
    """The rules that nothing uses, and what they come down to."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.octets = Octets(grammar)
        used = {
            str(target) for rule in grammar.rules for target in _targets(grammar, rule) if target is not rule
        }
        self.rules = [rule for rule in grammar.rules if str(rule) not in used]
        self._sequences: dict[str, bool] = {}
        self._marks: dict[str, bool | None] = {}

    def reached(self) -> set[str]:
        """The messages below roots that are sequences of messages."""
        waiting = [rule for rule in self.rules if self._is_sequence(rule)]
        seen = {str(rule) for rule in waiting}
        found: set[str] = set()
        while waiting:
            rule = waiting.pop()
            for target in _targets(self.grammar, rule):
                if str(target) in seen:
                    continue
                seen.add(str(target))
                if isinstance(target.definition, Reference) or self._is_sequence(target):
                    waiting.append(target)
                else:
                    found.add(str(target))
        return found

    def marked(self, messages: Collection[str]) -> set[str]:
        """The roots with a constant near their beginning that are not made of `messages` themselves."""
        return {
            str(rule)
            for rule in self.rules
            if self._is_marked(rule)
            and not self._is_sequence(rule)
            and not any(str(self._meant(target)) in messages for target in _targets(self.grammar, rule))
        }

    def _meant(self, rule: Rule) -> Rule:
        """The rule that a name stands for, through rules that are no more than another's name."""
        for _ in self.grammar.rules:
            target = self.grammar.find(rule.definition) if isinstance(rule.definition, Reference) else None
            if target is None:
                break
            rule = target
        return rule

    def holding_octets(self) -> set[str]:
        """The roots that are made of other rules and are no text."""
        return {
            str(rule)
            for rule in self.rules
            if any(True for _ in _targets(self.grammar, rule)) and not self.octets.is_textual(rule.definition)
        }

    def _is_sequence(self, rule: Rule, depth: int = 0) -> bool:
        """Whether a rule is messages one after another: names of messages alone, some repeated or one of several."""
        if str(rule) not in self._sequences:
            self._sequences[str(rule)] = False  # what a rule inside itself finds
            self._sequences[str(rule)] = depth <= MAX_DEPTH and self._says_sequence(rule, depth)
        return self._sequences[str(rule)]

    def _says_sequence(self, rule: Rule, depth: int) -> bool:
        if not is_made_of_names(rule.definition):
            return False
        targets = [self._meant(target) for target in _targets(self.grammar, rule)]
        sequences = [target for target in targets if self._is_sequence(target, depth + 1)]
        if not all(target in sequences or self._is_marked(target) for target in targets):
            return False
        return bool(sequences) or any(self._is_marked(target) for target in self._several(rule.definition))

    def _several(self, element: Element, many: bool = False) -> Iterator[Rule]:
        """The rules that an element repeats or has among its alternatives."""
        match element:
            case Reference() if many:
                target = self.grammar.find(element)
                if target is not None:
                    yield target
            case Alternation(items=items):
                for item in items:
                    yield from self._several(item, True)
            case Concatenation(items=items):
                for item in items:
                    yield from self._several(item, many)
            case Repetition(element=inner):
                yield from self._several(inner, True)
            case Option(element=inner):
                yield from self._several(inner, many)

    def _is_marked(self, rule: Rule) -> bool:
        """Whether a constant stands in a rule before anything of no fixed size."""
        definition = rule.definition
        return isinstance(definition, Concatenation) and self._mark(definition, 0) is True

    def _mark(self, element: Element, depth: int) -> bool | None:
        """True for a constant, False for what has no fixed size, None for octets to look behind."""
        if self.octets.constant(element):
            return True
        found: bool | None = False
        match element:
            case Reference() if (target := self.grammar.find(element)) and depth <= MAX_DEPTH:
                if str(target) not in self._marks:
                    self._marks[str(target)] = False
                    self._marks[str(target)] = self._mark(target.definition, depth + 1)
                found = self._marks[str(target)]
            case Concatenation(items=items):
                marks = [self._mark(item, depth + 1) for item in items]
                found = next((mark for mark in marks if mark is not None), None)
            case Alternation(items=items):
                either = {self._mark(item, depth + 1) for item in items}
                found = either.pop() if len(either) == 1 else False
        return None if found is False and self.octets.extent(element) is not None else found
