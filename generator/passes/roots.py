"""Selection of the rules that are messages.

The profile may list them. Otherwise the grammar determines them, in this order:

1. the rules that a role sends in a dialog (``C:OHAI``);
2. the rules that an unused rule consists of by names alone (``zre = greeting *traffic`` with
   ``traffic = whisper / shout``), or its alternatives (``msg = *( OHAI / NOM )``);
3. the unused rules with a constant near their beginning, or if there are none, all unused rules with octets,
   or else the unused rules that repeat one character (``name = *name-char``).

Unused rules that are read as messages are an assumption (W405).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

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
from specwire.generator.passes.grammar import Grammar, is_made_of_names, references
from specwire.generator.passes.octets import MAX_DEPTH, Octets
from specwire.generator.profile.tables import LoadedProfile


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
        found = assumed = roots.marked(reached) or roots.holding_octets() or roots.values()
    if reached or not _choices(grammar):
        for rule in (rules[name] for name in rules if name in assumed):
            diagnostics.warning(
                "W405",
                rule.name_span,
                f"rule '{rule}' is read as a message: no other rule uses it",
                f"list the messages under `messages` in {loaded.source.path}",
            )
    if not found:
        diagnostics.error(
            "E508",
            loaded.place("name"),
            "the grammar does not define which of its rules are messages",
            "list them under `messages` in the profile",
        )
    return [rule for name, rule in rules.items() if name in found]


def message_names(grammar: Grammar, rules: Sequence[Rule], loaded: LoadedProfile) -> dict[str, str]:
    """Return the name of each message, by its rule as written.

    It is the name of the rule. Where the grammar has ``C:init`` and ``S:init``, it begins with the
    role: ``client-init`` if the profile names the roles, else ``C-init``.
    """
    count = Counter(fold(rule.name) for rule in grammar.rules if rule.role)
    roles = {letter: table.name for letter, table in loaded.profile.roles.items()}
    return {
        str(rule): f"{roles.get(rule.role, rule.role)}-{rule.name}"
        if rule.role and count[fold(rule.name)] > 1
        else rule.name
        for rule in rules
    }


def _listed(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> Sequence[Rule]:
    found: dict[str, Rule] = {}
    for number, name in enumerate(loaded.profile.messages):
        role, _, bare = name.rpartition(":")
        rule = grammar.rule(bare, role or None)
        if rule is None:
            place = loaded.place("messages", number)
            diagnostics.error(
                "E507",
                place,
                f"message '{name}' has no rule",
                "remove it from `messages`, or define the rule",
            )
        elif str(rule) in found:
            place = loaded.place("messages", number)
            diagnostics.error("E507", place, f"message '{name}' is listed twice", "remove one of the entries")
        else:
            found[str(rule)] = rule
    return tuple(found.values())


def _sent(grammar: Grammar, rules: dict[str, Rule]) -> set[str]:
    """Return the rules that dialog rules name and that are not dialog rules themselves."""
    speaking = {name for name, rule in rules.items() if _speaks(rule)}
    sent = {str(target) for name in speaking for target in _targets(grammar, rules[name])} - speaking
    return {name for name in sent if not _is_dialog(grammar, rules[name], speaking)}


def _speaks(rule: Rule) -> bool:
    """Whether the rule names a sender, and so is a dialog rule."""
    return any(reference.role for reference in references(rule.definition))


def _is_dialog(grammar: Grammar, rule: Rule, speaking: set[str]) -> bool:
    """Whether a rule consists only of dialog rules (``filemq-protocol`` itself names no role)."""
    targets = _targets(grammar, rule)
    whole = len(targets) == sum(1 for _ in references(rule.definition))
    return bool(targets) and whole and all(str(target) in speaking for target in targets)


def _targets(grammar: Grammar, rule: Rule) -> list[Rule]:
    found = [grammar.find(reference) for reference in references(rule.definition)]
    return [target for target in found if target is not None]


def _choices(grammar: Grammar) -> set[str]:
    """Return the alternatives of a first rule such as ``msg = *( OHAI | NOM )``."""
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
    """The unused rules of a grammar, and the rules that they consist of."""

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
        """Return the messages below roots that are sequences of messages."""
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
        """Return the roots with a constant near their beginning that do not consist of `messages`."""
        return {
            str(rule)
            for rule in self.rules
            if self._is_marked(rule)
            and not self._is_sequence(rule)
            and not any(str(self._meant(target)) in messages for target in _targets(self.grammar, rule))
        }

    def _meant(self, rule: Rule) -> Rule:
        """Return the rule that a name leads to, through rules that are only another name."""
        for _ in self.grammar.rules:
            target = self.grammar.find(rule.definition) if isinstance(rule.definition, Reference) else None
            if target is None:
                break
            rule = target
        return rule

    def holding_octets(self) -> set[str]:
        """Return the roots that use other rules and are not text."""
        return {
            str(rule)
            for rule in self.rules
            if any(True for _ in _targets(self.grammar, rule)) and not self.octets.is_textual(rule.definition)
        }

    def values(self) -> set[str]:
        """Return the roots that repeat one character of another rule: ``name = *name-char``."""
        return {
            str(rule)
            for rule in self.rules
            if isinstance(rule.definition, Repetition) and self.octets.is_class(rule.definition.element)
            if any(True for _ in _targets(self.grammar, rule))
        }

    def _is_sequence(self, rule: Rule, depth: int = 0) -> bool:
        """Whether a rule is a sequence of messages: only names, some of them repeated or alternatives."""
        if str(rule) not in self._sequences:
            self._sequences[str(rule)] = False  # for a rule that contains itself
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
        """Yield the rules that an element repeats or has among its alternatives."""
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
        """Whether a rule has a constant before any element of variable size."""
        definition = rule.definition
        return isinstance(definition, Concatenation) and self._mark(definition, 0) is True

    def _mark(self, element: Element, depth: int) -> bool | None:
        """Return True for a constant, False for variable size, None for a fixed number of octets to skip."""
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
