"""Which rules of a grammar are messages.

The profile may list them. Else the grammar says it, in one of three ways: rules that a role sends in a
dialog (``C:OHAI``); the rules that the first rule comes down to by names alone (``zre = greeting *traffic``
with ``traffic = whisper / shout``), or its alternatives (``msg = *( OHAI / NOM )``); or, where neither is
there, the rules that nothing uses and that begin with a constant, which is an assumption (W405).
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, references
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


def find_messages(grammar: Grammar, loaded: LoadedProfile, diagnostics: Diagnostics) -> Sequence[Rule]:
    """Return the rules of messages in the order of the profile, else of the grammar."""
    if loaded.profile.messages:
        return _listed(grammar, loaded, diagnostics)
    rules = {str(rule): rule for rule in grammar.rules}
    found = _sent(grammar, rules) or _reached(grammar) or _choices(grammar)
    if not found:
        found = _beginning_with_constants(grammar)
        for rule in (rules[name] for name in rules if name in found):
            diagnostics.warning(
                "W405", rule.name_span, f"rule '{rule}' is taken for a message: it begins with a constant, and nothing uses it",
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


def _reached(grammar: Grammar) -> set[str]:
    """The rules that the first rule comes down to by names alone, if all of them begin with a constant."""
    if not grammar.rules:
        return set()
    octets = Octets(grammar)
    waiting, seen, found = [grammar.rules[0]], {str(grammar.rules[0])}, set[str]()
    while waiting:
        rule = waiting.pop()
        if _begins_with_constant(rule, octets):
            found.add(str(rule))
            continue
        if not _made_of_names(rule.definition):
            return set()
        for reference in references(rule.definition):
            target = grammar.find(reference)
            if target is None:
                return set()
            if str(target) not in seen:
                seen.add(str(target))
                waiting.append(target)
    return found - {str(grammar.rules[0])}


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


def _made_of_names(element: Element) -> bool:
    match element:
        case Reference():
            return True
        case Alternation(items=items) | Concatenation(items=items):
            return all(map(_made_of_names, items))
        case Repetition() | Option():
            return _made_of_names(element.element)
    return False


def _begins_with_constant(rule: Rule, octets: Octets) -> bool:
    return (
        isinstance(rule.definition, Concatenation) and octets.constant(rule.definition.items[0]) is not None
    )


def _beginning_with_constants(grammar: Grammar) -> set[str]:
    octets = Octets(grammar)
    used = {str(target) for rule in grammar.rules for target in _targets(grammar, rule) if target is not rule}
    return {
        str(rule) for rule in grammar.rules if str(rule) not in used and _begins_with_constant(rule, octets)
    }
