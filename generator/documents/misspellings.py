"""Find what an undefined name in a published rule is meant to be, where there is hardly a doubt.

Three slips occur: a letter too many, too few, another or exchanged (``messsage``), a blank for the hyphen of a
name (``status code``), and a number without its percent sign (``x03``). Digits never count as slips: ``number-8``
is not ``number-4``. A dialog may offer a message that no rule defines, as one of several: it can never be sent, and the
others stay. Everything else is a question for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from specwire.generator.core_rules import core_rules
from specwire.generator.diagnostics import Span
from specwire.generator.passes.grammar import EXTERNALS
from specwire.generator.syntax import (
    Alternation,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
    Rulelist,
)

_SHORTEST = 5
"""Letters of a name in which one may be wrong."""
MAX_GUESSES = 200_000
"""Names that are compared with undefined ones, all together; a comparison takes about a microsecond."""
_NUMBER = re.compile(r"x([0-9A-F]{2})\Z", re.IGNORECASE)


@dataclass(slots=True)
class Speller:
    """Mends the names of definitions; `slips` says of the last one what was mended, and where."""

    names: dict[str, str]
    """What is defined: as names are compared, and as it is spelled."""
    slips: list[tuple[Span, str]] = field(default_factory=list)
    guesses: int = 0

    def mend(self, element: Element) -> Element:
        """Return `element` with its slips mended, each told in `slips`."""
        self.slips = []
        return self._mended(element)

    def _mended(self, element: Element) -> Element:
        match element:
            case Reference():
                return self._name(element)
            case Alternation():
                items = tuple(self._possible(tuple(map(self._mended, element.items))))
                return replace(element, items=items) if len(items) > 1 else items[0]
            case Concatenation():
                items = tuple(map(self._mended, self._joined(element.items)))
                return replace(element, items=items) if len(items) > 1 else items[0]
            case Repetition() | Option():
                return replace(element, element=self._mended(element.element))
        return element

    def _possible(self, items: Sequence[Element]) -> Iterator[Element]:
        """Yield the alternatives without messages that somebody sends and nothing defines; all, if none is left."""
        unknown = [item for item in items if isinstance(item, Reference) and self._is_unknown_message(item)]
        for item in items:
            if item in unknown and len(unknown) < len(items):
                assert isinstance(item, Reference)
                self.slips.append((item.span, f"There is no message {item}, which is left out."))
            else:
                yield item

    def _is_unknown_message(self, reference: Reference) -> bool:
        return bool(reference.role) and not self._is_defined(reference)

    def _joined(self, items: Sequence[Element]) -> Iterator[Element]:
        """Yield the items, two undefined names that make one defined name as that one."""
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

    def _name(self, reference: Reference) -> Element:
        if self._is_defined(reference):
            return reference
        if not reference.role and (number := _NUMBER.match(reference.name)):
            reason = f"A number has a percent sign in front: %{reference.name}."
            self.slips.append((reference.span, reason))
            return NumVal((int(number[1], 16),), reference.span)
        self.guesses += len(self.names)
        if self.guesses > MAX_GUESSES:
            return reference
        close = [name for key, name in self.names.items() if is_slip(_fold(reference.name), key)]
        if len(reference.name) < _SHORTEST or len(close) != 1:
            return reference
        self.slips.append((reference.span, f"There is no rule {reference.name}; {close[0]} is meant."))
        return replace(reference, name=close[0])

    def _is_defined(self, reference: Reference) -> bool:
        return _fold(reference.name) in self.names


def speller_of(rulelist: Rulelist) -> Speller:
    """Return what mends the names of a grammar by those that it defines, and RFC 5234's."""
    known = [*core_rules(), *(name.upper() for name in EXTERNALS), *(rule.name for rule in rulelist.rules)]
    return Speller({_fold(name): name for name in known})


def _fold(name: str) -> str:
    return name.lower().replace("_", "-")


def is_slip(word: str, name: str) -> bool:
    """Whether one letter more, less or other, or two exchanged, make `name` of `word`."""
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
