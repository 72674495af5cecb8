"""Checks that the rules of messages end: bounded depth, bounded numbers, no endless recursion.

A rule may contain itself if it ends and does not begin with itself; otherwise it has no layout
(E412). Rules nested deeper than
`specwire.generator.passes.octets.MAX_DEPTH` levels are errors (E413), and so are values that are
not octets (E422) and counts that no message can hold (E414). The walk uses an explicit stack, so
the length of a chain of rules is not limited. It runs before any layout is read, so later passes
can follow rules by recursion.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    NumVal,
    Option,
    Repetition,
    Rule,
)
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.passes.octets import MAX_DEPTH, Octets
from specwire.generator.passes.recursion import unsound_rules

MAX_REPEAT = 2**31 - 1
"""Maximum number of octets or elements of a value on the wire."""
MAX_NAMES = 8
"""Maximum number of rules of a cycle that a diagnostic names."""


def check_nesting(grammar: Grammar, messages: Sequence[Rule], diagnostics: Diagnostics) -> None:
    """Report rules of messages with recursion, too deep nesting, or values or counts that are too large."""
    depths: dict[str, int] = {}
    octets = Octets(grammar)
    unsound = unsound_rules(grammar)
    for message in messages:
        _walk(octets, message, depths, unsound, diagnostics)
        if depths[str(message)] > MAX_DEPTH:
            diagnostics.error(
                "E413",
                message.name_span,
                f"the rules of message '{message}' are nested more than {MAX_DEPTH} levels deep",
                "specwire cannot express deeper nesting; write the layout with fewer levels under "
                "[[rules]] in the profile",
            )


def _walk(
    octets: Octets, root: Rule, depths: dict[str, int], unsound: Collection[str], diagnostics: Diagnostics
) -> None:
    """Fill in `depths` for `root` and all rules below it, each rule after those that it uses."""
    grammar = octets.grammar
    path: dict[str, int] = {}
    """The rules from `root` to the current one, with their positions."""
    pending: list[tuple[Rule, bool]] = [(root, False)]
    while pending:
        rule, done = pending.pop()
        name = str(rule)
        if done:
            path.popitem()
            below = [depths.get(str(found), 0) for found in _parts(grammar, rule)]
            depths[name] = _depth(rule.definition) + max(below, default=0)
            _check_extent(octets, rule, diagnostics)
        elif name not in depths and name not in path:
            path[name] = len(path)
            pending.append((rule, True))
            _check_numbers(rule.definition, rule, diagnostics)
            inside = _parts(grammar, rule)
            for found in inside:
                if str(found) in path and str(found) in unsound:
                    _report_cycle(found, [*islice(path, path[str(found)], None)], diagnostics)
            pending.extend((found, False) for found in reversed(inside))


def _report_cycle(rule: Rule, names: list[str], diagnostics: Diagnostics) -> None:
    shown = names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "…"]
    diagnostics.error(
        "E412",
        rule.name_span,
        f"rule '{rule}' contains itself: {' -> '.join([*shown, str(rule)])}",
        "a rule that contains itself must have an alternative that does not, and begin with something else; "
        "if it only repeats an element, write it with '*' in an erratum",
    )


def _parts(grammar: Grammar, rule: Rule) -> list[Rule]:
    found = (grammar.find(reference) for reference in references(rule.definition))
    return [target for target in found if target is not None]


def _check_extent(octets: Octets, rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a rule that always has too many octets, unless a count or a rule in it is reported for that."""
    if (octets.extent(rule.definition) or 0) <= MAX_REPEAT or _most_repeats(rule.definition) > MAX_REPEAT:
        return
    if all((octets.extent(part.definition) or 0) <= MAX_REPEAT for part in _parts(octets.grammar, rule)):
        diagnostics.error(
            "E414",
            rule.name_span,
            f"rule '{rule}' always has more than {MAX_REPEAT} octets",
            "specwire cannot express larger values: lower a count, or use fewer rules more than once",
        )


def _depth(element: Element) -> int:
    match element:
        case Alternation(items=items) | Concatenation(items=items):
            return 1 + max(map(_depth, items))
        case Repetition(element=inner) | Option(element=inner):
            return 1 + _depth(inner)
    return 1


def _most_repeats(element: Element) -> int:
    match element:
        case Alternation(items=items) | Concatenation(items=items):
            return max(map(_most_repeats, items))
        case Repetition(minimum=low, maximum=high, element=inner):
            return max(low, high or 0, _most_repeats(inner))
        case Option(element=inner):
            return _most_repeats(inner)
    return 0


def _check_numbers(element: Element, rule: Rule, diagnostics: Diagnostics) -> None:
    """Report values of more than an octet and counts that no message can hold, once for each place."""
    match element:
        case Alternation(items=items) | Concatenation(items=items):
            for item in items:
                _check_numbers(item, rule, diagnostics)
        case NumVal(values=values) if max(values) > 0xFF:
            diagnostics.error(
                "E422",
                element.span,
                f"a value in rule '{rule}' does not fit in an octet",
                "an octet is 0 to 255, and %xA1.00 is two octets; if the document is wrong, correct it "
                "with an erratum in the profile",
            )
        case Repetition(minimum=low, maximum=high, element=inner):
            if max(low, high or 0) > MAX_REPEAT:
                diagnostics.error(
                    "E414",
                    element.span,
                    f"rule '{rule}' repeats an element {max(low, high or 0)} times",
                    f"specwire cannot express values of more than {MAX_REPEAT} octets or elements",
                )
            _check_numbers(inner, rule, diagnostics)
        case Option(element=inner):
            _check_numbers(inner, rule, diagnostics)
