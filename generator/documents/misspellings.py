"""Correction of misspelled names in published rules, if the intended name is clear.

Three kinds of misspellings are corrected: one letter added, missing, wrong or exchanged
(``messsage``), a space instead of a hyphen in a name (``status code``), and a number without its
percent sign (``x03``). Digits are never corrected: ``number-8`` is not ``number-4``. In the rule
``hello``, the undefined name ``text`` is the rule ``hello-text``. An undefined message among the
alternatives of a dialog is removed, because it can never be sent.

One slip is in a number: zproto's generator writes ``%xAA %xA10`` for the signature 0xAAA0 | 10.
Everything else is left to the user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from specwire.generator.abnf.parser import core_rules
from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
    Rule,
    Rulelist,
)
from specwire.generator.diagnostics import Span
from specwire.generator.passes.grammar import EXTERNALS

_SHORTEST = 5
"""Minimum number of letters of a name in which one may be wrong."""
MAX_GUESSES = 200_000
"""Names that are compared with undefined ones, all together; a comparison takes about a microsecond."""
_SIGNATURE = 0xAA
"""The first octet of the signatures of zproto's protocols; the second is 0xA0 | number."""
_NUMBER = re.compile(r"x([0-9A-F]{2})\Z", re.IGNORECASE)


@dataclass(slots=True)
class Speller:
    """Corrector of the names in definitions.

    `slips` holds the corrections of the last one, with their places.
    """

    names: dict[str, str]
    """The defined names, by the key by which names are compared."""
    slips: list[tuple[Span, str]] = field(default_factory=list)
    guesses: int = 0
    _rule: str = ""

    def correct(self, rule: Rule) -> Element:
        """Return the definition of `rule` with its misspellings corrected; record each in `slips`."""
        self.slips = []
        self._rule = rule.name
        return self._corrected(rule.definition)

    def _corrected(self, element: Element) -> Element:
        match element:
            case Reference():
                return self._name(element)
            case Alternation():
                items = tuple(self._possible(tuple(map(self._corrected, element.items))))
                return replace(element, items=items) if len(items) > 1 else items[0]
            case Concatenation():
                items = self._with_signature(tuple(map(self._corrected, self._joined(element.items))))
                return replace(element, items=items) if len(items) > 1 else items[0]
            case Repetition() | Option():
                return replace(element, element=self._corrected(element.element))
        return element

    def _possible(self, items: Sequence[Element]) -> Iterator[Element]:
        """Yield the alternatives without undefined messages of a sender, or all if none would remain."""
        unknown = [item for item in items if isinstance(item, Reference) and self._is_unknown_message(item)]
        for item in items:
            if item in unknown and len(unknown) < len(items):
                assert isinstance(item, Reference)
                self.slips.append((item.span, f"Message {item} is not defined and is removed."))
            else:
                yield item

    def _is_unknown_message(self, reference: Reference) -> bool:
        return bool(reference.role) and not self._is_defined(reference)

    def _joined(self, items: Sequence[Element]) -> Iterator[Element]:
        """Yield the items; two undefined names that form a defined name are joined."""
        at = 0
        while at < len(items):
            one, other = items[at], items[at + 1] if at + 1 < len(items) else None
            at += 1
            if isinstance(one, Reference) and isinstance(other, Reference) and not other.role:
                name = self.names.get(_fold(f"{one.name}-{other.name}"))
                if name and not self._is_defined(one) and not self._is_defined(other):
                    self.slips.append((one.span.to(other.span), f"The rule is called {name}, with a hyphen."))
                    yield replace(one, name=name)
                    at += 1
                    continue
            yield one

    def _with_signature(self, items: tuple[Element, ...]) -> tuple[Element, ...]:
        """Return the items; zproto's ``%xAA %xA10`` becomes ``%xAA %xAA``, the octets of 0xAAA0 | 10."""
        match items:
            case (NumVal(values=(first,)), NumVal(values=(second,)) as number):
                digits = f"{second:X}"[1:]
                if first == _SIGNATURE and 0xA00 <= second <= 0xA99 and digits.isdecimal():
                    octet = 0xA0 | int(digits)
                    reason = f"zproto's signature {int(digits)} is the number 0xAAA0 | {int(digits)}: "
                    self.slips.append((number.span, f"{reason}%xAA.{octet:02X}."))
                    return items[0], replace(number, values=(octet,))
        return items

    def _name(self, reference: Reference) -> Element:
        if self._is_defined(reference):
            return reference
        if not reference.role and (number := _NUMBER.match(reference.name)):
            reason = f"A number value begins with a percent sign: %{reference.name}."
            self.slips.append((reference.span, reason))
            return NumVal((int(number[1], 16),), reference.span)
        if own := self.names.get(_fold(f"{self._rule}-{reference.name}")):
            reason = f"In {self._rule}, {reference.name} is the rule {own}."
            self.slips.append((reference.span, reason))
            return replace(reference, name=own)
        self.guesses += len(self.names)
        if self.guesses > MAX_GUESSES:
            return reference
        close = [name for key, name in self.names.items() if is_slip(_fold(reference.name), key)]
        if len(reference.name) < _SHORTEST or len(close) != 1:
            return reference
        self.slips.append(
            (reference.span, f"Rule {reference.name} is not defined and is read as {close[0]}.")
        )
        return replace(reference, name=close[0])

    def _is_defined(self, reference: Reference) -> bool:
        return _fold(reference.name) in self.names


def speller_of(rulelist: Rulelist, inherited: Collection[str] = ()) -> Speller:
    """Return the corrector for the names of a grammar.

    It knows the rules of the grammar, the `inherited` ones, and those of RFC 5234.
    """
    known = [*core_rules(), *(name.upper() for name in EXTERNALS), *inherited]
    known += [rule.name for rule in rulelist.rules]
    return Speller({_fold(name): name for name in known})


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")


def is_slip(word: str, name: str) -> bool:
    """Whether `name` differs from `word` by one letter added, removed or replaced, or two exchanged."""
    longer, shorter = sorted((word, name), key=len, reverse=True)
    if len(longer) - len(shorter) > 1 or word == name:
        return False
    start = next((n for n, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a != b), len(shorter))
    changed = longer[start]
    rest, other = longer[start + 1 :], shorter[start:]
    if len(longer) > len(shorter):
        return rest == other and changed.isalpha()
    exchanged = longer[start : start + 2] == other[:2][::-1] and rest[1:] == other[2:]
    return (rest == other[1:] or exchanged) and changed.isalpha() and other[0].isalpha()
