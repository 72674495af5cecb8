"""How deep the rules of messages go: a layout has to end.

A rule that contains itself has no layout of its own (E412), and rules within rules beyond
`specwire.generator.passes.octets.MAX_DEPTH` levels are taken for a mistake (E413). So are values that are no octets (E422) and counts beyond every message (E414).
All are found before any layout is read, by a walk that does not call itself for a rule, so that no grammar is too long for it:
later passes may then follow rules by recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.passes.octets import MAX_DEPTH, Octets
from specwire.generator.syntax import Alternation, Concatenation, Element, NumVal, Option, Repetition, Rule

MAX_REPEAT = 2**31 - 1
"""More octets or elements than any value on the wire has."""
MAX_NAMES = 8
"""Rules of a cycle that are named."""


def check_nesting(grammar: Grammar, messages: Sequence[Rule], diagnostics: Diagnostics) -> None:
    """Report rules that the messages are made of and that contain themselves, go too deep, or count too far."""
    depths: dict[str, int] = {}
    octets = Octets(grammar)
    for message in messages:
        _walk(octets, message, depths, diagnostics)
        if depths[str(message)] > MAX_DEPTH:
            diagnostics.error(
                "E413", message.name_span, f"the rules of message '{message}' go more than {MAX_DEPTH} levels deep",
                "specwire reads no deeper rules; write the layout with fewer of them in [[rules]] of the profile",
            )  # fmt: skip


def _walk(octets: Octets, root: Rule, depths: dict[str, int], diagnostics: Diagnostics) -> None:
    """Fill in the depth of `root` and of all rules below it, each after those it is made of."""
    grammar = octets.grammar
    path: dict[str, int] = {}
    """The rules between `root` and the one looked at, with their places."""
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
                if str(found) in path:
                    _report_cycle(found, [*islice(path, path[str(found)], None)], diagnostics)
            pending.extend((found, False) for found in reversed(inside))


def _report_cycle(rule: Rule, names: list[str], diagnostics: Diagnostics) -> None:
    shown = names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "…"]
    diagnostics.error(
        "E412", rule.name_span, f"rule '{rule}' contains itself: {' -> '.join([*shown, str(rule)])}",
        "specwire cannot express recursive messages; where the rule only repeats, write it with '*' in an erratum",
    )  # fmt: skip


def _parts(grammar: Grammar, rule: Rule) -> list[Rule]:
    found = (grammar.find(reference) for reference in references(rule.definition))
    return [target for target in found if target is not None]


def _check_extent(octets: Octets, rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a rule that always has too many octets, where no count and no rule in it has too many."""
    if (octets.extent(rule.definition) or 0) <= MAX_REPEAT or _most_repeats(rule.definition) > MAX_REPEAT:
        return
    if all((octets.extent(part.definition) or 0) <= MAX_REPEAT for part in _parts(octets.grammar, rule)):
        diagnostics.error(
            "E414", rule.name_span, f"rule '{rule}' always has more than {MAX_REPEAT} octets",
            "no value has as many: repeat less, or use fewer rules more than once",
        )  # fmt: skip


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
    """Report, once for each place, values of more than an octet and counts beyond every message."""
    match element:
        case Alternation(items=items) | Concatenation(items=items):
            for item in items:
                _check_numbers(item, rule, diagnostics)
        case NumVal(values=values) if max(values) > 0xFF:
            diagnostics.error(
                "E422", element.span, f"a value in rule '{rule}' is more than an octet",
                "an octet is from 0 to 255, and %xA1.00 is two of them; correct a slip of the document with an erratum in the profile",
            )  # fmt: skip
        case Repetition(minimum=low, maximum=high, element=inner):
            if max(low, high or 0) > MAX_REPEAT:
                diagnostics.error(
                    "E414", element.span, f"rule '{rule}' repeats an element {max(low, high or 0)} times",
                    f"no value has more than {MAX_REPEAT} octets or elements",
                )  # fmt: skip
            _check_numbers(inner, rule, diagnostics)
        case Option(element=inner):
            _check_numbers(inner, rule, diagnostics)
