"""Alternatives that are never reached, because an earlier one matches everything that they match (W210).

The check is sound but not complete. It finds alternatives that are written twice, and single characters that
the alternatives before them already include (``ALPHA / "b"``). Names of constants are not reported:
``OCTET / any`` gives a name to one value of the octet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    Reference,
    Repetition,
)
from specwire.generator.abnf.text_expressions import Characters, unite
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar, key_of

_BEYOND_UNICODE = 0x110000
MAX_FOLLOWED = 50
"""Maximum depth to which references are followed to find the characters of a rule."""


def check_alternatives(grammar: Grammar, diagnostics: Diagnostics) -> None:
    """Report each alternative that an earlier one of the same element covers."""
    classes = _Classes(grammar)
    for rule in grammar.rules:
        for element in alternations_in(rule.definition):
            for item, why in _unreached(element, classes):
                diagnostics.warning(
                    "W210",
                    item.span,
                    f"this alternative of rule '{rule}' is never reached: {why}",
                    "remove it, or correct it",
                )


def alternations_in(element: Element) -> Iterator[Alternation]:
    """Yield all alternations of an element, nested ones included."""
    match element:
        case Alternation(items=items):
            yield element
            for item in items:
                yield from alternations_in(item)
        case Concatenation(items=items):
            for item in items:
                yield from alternations_in(item)
        case Repetition(element=inner) | Option(element=inner):
            yield from alternations_in(inner)


def _unreached(element: Alternation, classes: _Classes) -> Iterator[tuple[Element, str]]:
    written: set[object] = set()
    taken: list[tuple[int, int]] = []
    for item in element.items:
        form = _form(item)
        characters = classes.of(item)
        if form in written or _spelled_out(item) in written:
            yield item, "it repeats an earlier alternative"
        elif _covers(taken, characters) and not classes.is_constant_name(item):
            yield item, "earlier alternatives include its characters"
        written.add(form)
        for run in characters.ranges if characters else ():
            _add(taken, *run)


def _spelled_out(element: Element) -> object:
    """Return the case-insensitive form of a case-sensitive string; None for other elements."""
    return element.text.lower() if isinstance(element, CharVal) and element.case_sensitive else None


def _covers(taken: list[tuple[int, int]], characters: Characters | None) -> bool:
    for first, last in characters.ranges if characters else ():
        place = bisect_right(taken, (first, _BEYOND_UNICODE))
        if not place or taken[place - 1][1] < last:
            return False
    return characters is not None


def _add(taken: list[tuple[int, int]], first: int, last: int) -> None:
    """Add a run to the runs, which are sorted and apart from each other."""
    start = bisect_right(taken, (first, _BEYOND_UNICODE))
    if start and taken[start - 1][1] >= first - 1:
        start -= 1
    end = start
    while end < len(taken) and taken[end][0] <= last + 1:
        first, last = min(first, taken[end][0]), max(last, taken[end][1])
        end += 1
    taken[start:end] = [(first, last)]


def _form(element: Element) -> object:
    """Return a value that is equal for elements that are written alike."""
    match element:
        case Reference():
            return key_of(element)
        case CharVal(text=text, case_sensitive=False):
            return text.lower()
        case CharVal(text=text):
            return ("exactly", text)
        case Alternation(items=items) | Concatenation(items=items):
            return type(element), tuple(map(_form, items))
        case Repetition(minimum=least, maximum=most, element=inner):
            return least, most, _form(inner)
        case Option(element=inner):
            return Option, _form(inner)
        case _:
            return element


class _Classes:
    """Cache of the character classes of rules and elements."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._known: dict[str, Characters | None] = {}
        self._depth = 0

    def of(self, element: Element) -> Characters | None:
        """Return the characters of an element that is a character class; None for other elements."""
        match element:
            case NumRange(first=first, last=last):
                return Characters(((first, last),), ())
            case NumVal(values=(value,)):
                return Characters(((value, value),), ())
            case CharVal(text=text, case_sensitive=exactly) if len(text) == 1:
                same = {text} if exactly else {text.lower(), text.upper()}
                return Characters(tuple((ord(c), ord(c)) for c in sorted(same)), ())
            case Alternation(items=items):
                found = [self.of(item) for item in items]
                known = [characters for characters in found if characters]
                return unite(known) if len(known) == len(found) else None
            case Reference():
                return self._follow(element)
        return None

    def _follow(self, reference: Reference) -> Characters | None:
        rule = self._grammar.find(reference)
        definition = rule.definition if rule else self._grammar.core(reference)
        if definition is None or self._depth == MAX_FOLLOWED:
            return None
        name = str(rule) if rule else reference.name.upper()
        if name not in self._known:
            self._known[name] = None  # for a rule that contains itself
            self._depth += 1
            self._known[name] = self.of(definition)
            self._depth -= 1
        return self._known[name]

    def is_constant_name(self, element: Element) -> bool:
        """Whether the element is the name of a constant."""
        rule = self._grammar.find(element) if isinstance(element, Reference) else None
        return rule is not None and isinstance(rule.definition, NumVal | CharVal | Reference)
