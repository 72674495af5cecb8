"""Rules that contain themselves: at their left end (W208), or in every alternative (W209).

ABNF allows both. But a parser that reads from the left never gets past a rule that begins with
itself, and a rule that always contains itself matches nothing. A message with such a rule is E412.

Rules are followed without recursion. A rule is examined again only if one of its elements is found
to be empty or to end, so the time is proportional to the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, references

MAX_NAMES = 8
"""Maximum number of rules of a cycle that are named."""
CORE_EMPTY = frozenset({"LWSP"})
"""Core rules that may be empty."""
Holds = Callable[[Reference], bool]


def check_recursion(grammar: Grammar, diagnostics: Diagnostics) -> None:
    """Report one rule of each cycle."""
    ending = ending_rules(grammar)
    empty = _least(grammar, _may_be_empty, CORE_EMPTY)
    left: dict[str, list[Rule]] = {}
    endless: dict[str, list[Rule]] = {}
    for rule in grammar.rules:
        name = str(rule)
        left[name] = _targets(grammar, _left_end(rule.definition, _among(grammar, empty, CORE_EMPTY)))
        inside = [] if name in ending else _targets(grammar, references(rule.definition))
        endless[name] = [target for target in inside if str(target) not in ending]
    for rule, names in _cycles(grammar, left):
        diagnostics.warning(
            "W208",
            rule.name_span,
            f"rule '{rule}' is left-recursive: it begins with itself, {_shown(rule, names)}",
            "write the repetition with '*': 'item *( \",\" item )' instead of 'list \",\" item / item'",
        )
    for rule, names in _cycles(grammar, endless):
        diagnostics.warning(
            "W209",
            rule.name_span,
            f"rule '{rule}' never ends: every alternative leads back to it, {_shown(rule, names)}",
            "add an alternative without the rule, or write the rule in brackets: '[ ]'",
        )


def recursive_rules(grammar: Grammar) -> frozenset[str]:
    """Return the names of the rules on a cycle, and of rules on the way from one cycle to another."""
    uses = {
        str(rule): {str(t) for t in _targets(grammar, references(rule.definition))} for rule in grammar.rules
    }
    users: dict[str, set[str]] = {name: set() for name in uses}
    for name, targets in uses.items():
        for target in targets:
            users[target].add(name)
    return frozenset(_without_ends(_without_ends(set(uses), uses), users))


def _without_ends(names: set[str], edges: Mapping[str, set[str]]) -> set[str]:
    """Return the names from which edges lead on without end."""
    left = set(names)
    waiting = [name for name in left if not edges[name] & left]
    sources: dict[str, list[str]] = {}
    for name in left:
        for target in edges[name]:
            sources.setdefault(target, []).append(name)
    while waiting:
        name = waiting.pop()
        if name in left:
            left.remove(name)
            waiting += [source for source in sources.get(name, ()) if not edges[source] & left]
    return left


def unsound_rules(grammar: Grammar) -> frozenset[str]:
    """Return the names of the rules that never end or that begin with themselves."""
    ending = ending_rules(grammar)
    empty = _least(grammar, _may_be_empty, CORE_EMPTY)
    known = _among(grammar, empty, CORE_EMPTY)
    left = {str(rule): _targets(grammar, _left_end(rule.definition, known)) for rule in grammar.rules}
    beginning = {name for _, names in _cycles(grammar, left) for name in names}
    return frozenset(beginning | {str(rule) for rule in grammar.rules if str(rule) not in ending})


def ending_rules(grammar: Grammar) -> set[str]:
    """Return the names of the rules that match some text: those with an alternative that ends."""
    return _least(grammar, _ends, None)


def element_ends(grammar: Grammar, element: Element, ending: set[str]) -> bool:
    """Return whether the element matches some text, given the rules that end."""
    return _ends(element, _among(grammar, ending, None))


def _least(
    grammar: Grammar, holds: Callable[[Element, Holds], bool], others: frozenset[str] | None
) -> set[str]:
    """Return the least set of rules that is closed under `holds` (a fixed point).

    Args:
        others: the names without a rule in the grammar that are in the set, in capitals; None for
            all of them.
    """
    users: dict[str, list[Rule]] = {}
    for rule in grammar.rules:
        for target in _targets(grammar, references(rule.definition)):
            users.setdefault(str(target), []).append(rule)
    found: set[str] = set()
    known = _among(grammar, found, others)
    waiting = list(grammar.rules)
    while waiting:
        rule = waiting.pop()
        if str(rule) in found:
            continue
        if holds(rule.definition, known):
            found.add(str(rule))
            waiting.extend(users.get(str(rule), ()))
    return found


def _among(grammar: Grammar, found: set[str], others: frozenset[str] | None) -> Holds:
    def known(reference: Reference) -> bool:
        rule = grammar.find(reference)
        return str(rule) in found if rule else others is None or reference.name.upper() in others

    return known


def _ends(element: Element, known: Holds) -> bool:
    match element:
        case Reference():
            return known(element)
        case Concatenation(items=items):
            return all(_ends(item, known) for item in items)
        case Alternation(items=items):
            return any(_ends(item, known) for item in items)
        case Repetition(minimum=least, element=inner) if least:
            return _ends(inner, known)
    return True


def _may_be_empty(element: Element, known: Holds) -> bool:
    match element:
        case Reference():
            return known(element)
        case CharVal(text=text):
            return not text
        case Concatenation(items=items):
            return all(_may_be_empty(item, known) for item in items)
        case Alternation(items=items):
            return any(_may_be_empty(item, known) for item in items)
        case Repetition(minimum=least, element=inner):
            return not least or _may_be_empty(inner, known)
        case Option():
            return True
    return False


def _left_end(element: Element, empty: Holds) -> Iterator[Reference]:
    """Yield the references that the element can begin with."""
    match element:
        case Reference():
            yield element
        case Alternation(items=items):
            for item in items:
                yield from _left_end(item, empty)
        case Concatenation(items=items):
            for item in items:
                yield from _left_end(item, empty)
                if not _may_be_empty(item, empty):
                    return
        case Repetition(element=inner) | Option(element=inner):
            yield from _left_end(inner, empty)


def _targets(grammar: Grammar, used: Iterator[Reference]) -> list[Rule]:
    return [rule for reference in used if (rule := grammar.find(reference))]


def _cycles(grammar: Grammar, edges: Mapping[str, list[Rule]]) -> Iterator[tuple[Rule, list[str]]]:
    """Yield, for each rule that closes a cycle, that rule and the names on the way back to it."""
    seen: set[str] = set()
    closed: set[str] = set()
    for root in grammar.rules:
        path: dict[str, int] = {}
        pending: list[tuple[Rule, bool]] = [(root, False)]
        while pending:
            rule, done = pending.pop()
            name = str(rule)
            if done:
                path.popitem()
            elif name in path:
                if name not in closed:
                    closed.add(name)
                    yield rule, [*islice(path, path[name], None)]
            elif name not in seen:
                seen.add(name)
                path[name] = len(path)
                pending.append((rule, True))
                pending.extend((target, False) for target in reversed(edges[name]))


def _shown(rule: Rule, names: list[str]) -> str:
    shown = names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "…"]
    return " -> ".join([*shown, str(rule)])
