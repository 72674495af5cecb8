"""The octets that an ABNF element matches: whether they are constant, how many, and which.

`Octets` answers the questions of the layout about an element: is it constant (`constant`), a number
of arbitrary octets (`count`), of fixed length (`extent`), one octet of a class (`is_class`), or
text (`is_textual`), and which octets does it match (`pattern`, a regular expression over octets).

References are followed, and each rule and each group is examined once, so the time is proportional
to the grammar. A rule that contains itself, or that exceeds the bounds below, has no answer (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

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
from specwire.generator.passes.resolve import Grammar

MAX_DEPTH = 100
"""Maximum nesting of elements, through rules; `specwire.generator.passes.nesting` rejects deeper messages."""
MAX_CONSTANT = 0xFFFF
"""Octets of a constant."""
MAX_PATTERN = 20_000
"""Characters of a regular expression."""
MAX_COUNT = 0xFFFF
"""The greatest count in a regular expression."""

Answer = TypeVar("Answer")


def _asked_once(ask: Callable[[Octets, Element], Answer]) -> Callable[[Octets, Element], Answer]:
    """Cache the answers about groups. Other elements are cheap, or references, whose rules are cached."""

    @wraps(ask)
    def answer(octets: Octets, element: Element) -> Answer:
        if not isinstance(element, Alternation | Concatenation | Repetition | Option):
            return ask(octets, element)
        key = (ask.__name__, id(element))
        if key not in octets.groups:
            before = octets.cut_off
            found = ask(octets, element)
            if octets.cut_off > before:
                return found  # incomplete: at a smaller depth there may be an answer
            octets.groups[key] = (element, found)
        return octets.groups[key][1]  # type: ignore[return-value]

    return answer


class Octets:
    """Answers for the elements of one grammar."""

    def __init__(self, grammar: Grammar, *, exact: bool = False) -> None:
        self.grammar = grammar
        self.exact = exact
        """Quoted strings are case-sensitive, also in patterns."""
        self._depth = 0
        self._known: dict[tuple[str, str], object] = {}
        self.groups: dict[tuple[str, int], tuple[Element, object]] = {}
        """Answers by question and identity of the group. Holding the group keeps its identity unique."""
        self.cut_off = 0
        """Number of elements that were too deep to be examined."""

    @_asked_once
    def constant(self, element: Element) -> bytes | None:
        """Return the octets of an element that is always the same, None for any other."""
        match element:
            case NumVal(values=values):
                return bytes(values) if all(value <= 0xFF for value in values) else None
            case CharVal(text=text):
                return text.encode() if text.isascii() else None
            case Repetition(minimum=low, maximum=high) if low == high:
                octets = self._inside(self.constant, element.element, None) if low else b""
                return None if octets is None or len(octets) * low > MAX_CONSTANT else octets * low
            case Concatenation(items=items):
                found = [self._inside(self.constant, item, None) for item in items]
                known = [octets for octets in found if octets is not None]
                fits = len(known) == len(found) and sum(map(len, known)) <= MAX_CONSTANT
                return b"".join(known) if fits else None
            case Reference():
                return self._follow("constant", self.constant, element, None)
        return None

    @_asked_once
    def is_folded(self, element: Element) -> bool:
        """Whether an element is a constant whose letters may be of either case (RFC 5234, section 2.3)."""
        match element:
            case CharVal(text=text, case_sensitive=case_sensitive):
                sensitive = case_sensitive or (self.exact and not element.case_marked)
                return not sensitive and text.lower() != text.upper()
            case Repetition(element=inner):
                return self._inside(self.is_folded, inner, False)
            case Concatenation(items=items) | Alternation(items=items):
                return any(self._inside(self.is_folded, item, False) for item in items)
            case Reference():
                return self._follow("folded", self.is_folded, element, False)
        return False

    @_asked_once
    def count(self, element: Element) -> int | None:
        """Return n if the element is n arbitrary octets (``4OCTET``, or an alias of it), else None."""
        match element:
            case NumRange(first=0, last=0xFF):
                return 1
            case Repetition(minimum=low, maximum=high) if low == high and low:
                inner = self._inside(self.count, element.element, None)
                return None if inner is None else inner * low
            case Reference():
                return self._follow("count", self.count, element, None)
        return None

    @_asked_once
    def extent(self, element: Element) -> int | None:
        """Return the number of octets of an element of fixed length, else None."""
        if self.is_class(element):
            return 1
        match element:
            case NumVal() | CharVal():
                constant = self.constant(element)
                return None if constant is None else len(constant)
            case Repetition(minimum=low, maximum=high) if low == high:
                inner = self._inside(self.extent, element.element, None) if low else 0
                return None if inner is None else inner * low
            case Concatenation(items=items):
                sizes = [self._inside(self.extent, item, None) for item in items]
                return sum(size for size in sizes if size is not None) if None not in sizes else None
            case Alternation(items=items):
                either = {self._inside(self.extent, item, None) for item in items}
                return either.pop() if len(either) == 1 else None
            case Reference():
                return self._follow("extent", self.extent, element, None)
        return None

    @_asked_once
    def is_class(self, element: Element) -> bool:
        """Whether the element is exactly one octet of a class: ``VCHAR``, ``ALPHA / "."``, ``%x30-39``."""
        match element:
            case NumRange(last=last):
                return last <= 0xFF
            case NumVal(values=values):
                return len(values) == 1 and values[0] <= 0xFF
            case CharVal(text=text):
                return len(text) == 1
            case Alternation(items=items):
                return all(self._inside(self.is_class, item, False) for item in items)
            case Reference():
                return self._follow("class", self.is_class, element, False)
        return False

    @_asked_once
    def octet_class(self, element: Element) -> frozenset[int]:
        """Return the octets of a class; empty if the element is not a class (`is_class`)."""
        match element:
            case NumRange(first=first, last=last):
                return frozenset(range(first, min(last, 0xFF) + 1))
            case NumVal(values=values):
                return frozenset(values)
            case CharVal(text=text, case_sensitive=case_sensitive):
                both = (text,) if case_sensitive or self.exact else (text.lower(), text.upper())
                return frozenset(octet for spelling in both for octet in spelling.encode())
            case Alternation(items=items):
                nothing: frozenset[int] = frozenset()
                return nothing.union(*(self._inside(self.octet_class, item, nothing) for item in items))
            case Reference():
                return self._follow("octets", self.octet_class, element, frozenset())
        return frozenset()

    @_asked_once
    def is_textual(self, element: Element) -> bool:
        """Whether the element is text, not binary fields: printable ASCII and white space, or all but NUL."""
        match element:
            case NumRange(first=first, last=0xFF) if 0 < first <= 0x20:
                return True
            case NumVal(values=values):
                return all(map(_printable, values))
            case NumRange(first=first, last=last):
                return _printable(first) and _printable(last)
            case CharVal(text=text):
                return text.isascii()
            case Concatenation(items=items) | Alternation(items=items):
                return all(self._inside(self.is_textual, item, False) for item in items)
            case Repetition() | Option():
                return self._inside(self.is_textual, element.element, False)
            case Reference():
                return self._follow("textual", self.is_textual, element, False)
        return False

    @_asked_once
    def pattern(self, element: Element) -> str | None:
        """Return a regular expression over octets (each written ``\\xNN``) for the element's language."""
        found = self._pattern(element)
        return found if found is not None and len(found) <= MAX_PATTERN else None

    def _pattern(self, element: Element) -> str | None:
        match element:
            case NumVal(values=values) if all(value <= 0xFF for value in values):
                return "".join(map(_octet, values))
            case NumRange(first=first, last=last) if last <= 0xFF:
                return f"[{_octet(first)}-{_octet(last)}]"
            case CharVal(text=text, case_sensitive=case_sensitive) if text.isascii():
                return "".join(_character(c, case_sensitive or self.exact) for c in text)
            case Concatenation(items=items):
                parts = self._patterns(items)
                return None if parts is None else "".join(parts)
            case Alternation(items=items):
                parts = self._patterns(items)
                return None if parts is None else _one_of(parts)
            case Option():
                part = self._inside(self.pattern, element.element, None)
                return None if part is None else f"(?:{part})?"
            case Repetition(minimum=low, maximum=high) if max(low, high or 0) <= MAX_COUNT:
                part = self._inside(self.pattern, element.element, None)
                return None if part is None else f"{_atom(part)}{_times(low, high)}"
            case Reference():
                return self._follow("pattern", self.pattern, element, None)
        return None

    def _patterns(self, items: tuple[Element, ...]) -> list[str] | None:
        found: list[str] = []
        left = MAX_PATTERN
        for item in items:
            part = self._inside(self.pattern, item, None)
            left -= len(part or "")
            if part is None or left < 0:
                return None
            found.append(part)
        return found

    def _inside(self, ask: Callable[[Element], Answer], element: Element, unknown: Answer) -> Answer:
        """Return the answer about an element one level deeper, or `unknown` if that is too deep."""
        if self._depth >= MAX_DEPTH:
            self.cut_off += 1
            return unknown
        self._depth += 1
        answer = ask(element)
        self._depth -= 1
        return answer

    def _follow(
        self, question: str, ask: Callable[[Element], Answer], reference: Reference, unknown: Answer
    ) -> Answer:
        """Return the answer about the rule or core rule of a reference; `unknown` for an external type."""
        rule = self.grammar.find(reference)
        definition = rule.definition if rule else self.grammar.core(reference)
        if definition is None:
            return unknown
        key = (question, str(rule) if rule else reference.name.upper())
        if key not in self._known:
            self._known[key] = unknown  # for a rule that contains itself
            self._known[key] = self._inside(ask, definition, unknown)
        return self._known[key]  # type: ignore[return-value]


def _printable(value: int) -> bool:
    return 0x20 <= value <= 0x7E or value in (0x09, 0x0A, 0x0D)


def _octet(value: int) -> str:
    return f"\\x{value:02x}"


def _character(character: str, case_sensitive: bool) -> str:
    both = {character} if case_sensitive else {character.lower(), character.upper()}
    octets = "".join(_octet(ord(c)) for c in sorted(both))
    return f"[{octets}]" if len(both) > 1 else octets


def _one_of(parts: list[str]) -> str:
    """Return a pattern of the alternatives; single octets are joined to one class, without backtracking."""
    single = [re.fullmatch(r"\[([^\]]+)\]|(\\x[0-9a-f]{2})", part) for part in parts]
    if all(single):
        return "[" + "".join(found[1] or found[2] for found in single if found) + "]"
    return "(?:" + "|".join(parts) + ")"


def _atom(part: str) -> str:
    return part if re.fullmatch(r"\[[^\]]+\]|\\x[0-9a-f]{2}", part) else f"(?:{part})"


def _times(low: int, high: int | None) -> str:
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"
