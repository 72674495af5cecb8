"""What an ABNF element says about octets: fixed ones, how many, and which.

Three questions that the layout asks of any element: is it always the same octets (`constant_of`), is it
one octet out of a class (`is_octet_class`), and which octets may it be (`pattern_of`, a regular expression
over octets). Rules are followed; a rule that contains itself has no answer (None).
"""

from __future__ import annotations

import re
from functools import partial

from specwire.generator.passes.resolve import Grammar
from specwire.generator.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
)

MAX_DEPTH = 40
"""Rules within rules; deeper is taken for recursion."""


def definition_of(reference: Reference, grammar: Grammar) -> Element | None:
    """Return what a rule or core rule is defined as; None for a name that stands for something external."""
    rule = grammar.find(reference)
    return rule.definition if rule else grammar.core(reference)


def constant_of(element: Element, grammar: Grammar, depth: int = 0) -> bytes | None:
    """Return the octets of an element that is always the same, None for any other."""
    inner = partial(constant_of, grammar=grammar, depth=depth + 1)
    if depth > MAX_DEPTH:
        return None
    match element:
        case NumVal(values=values):
            return bytes(values) if all(value <= 0xFF for value in values) else None
        case CharVal(text=text):
            return text.encode("ascii", "replace")
        case Repetition(minimum=low, maximum=high) if low == high:
            octets = inner(element.element) if low else b""
            return None if octets is None else octets * low
        case Concatenation(items=items):
            found = [inner(item) for item in items]
            return b"".join(o for o in found if o is not None) if None not in found else None
        case Reference():
            definition = definition_of(element, grammar)
            return inner(definition) if definition else None
    return None


def octet_count(element: Element, grammar: Grammar, depth: int = 0) -> int | None:
    """Return n where the element is n arbitrary octets (``4OCTET``, an alias of it), else None."""
    if depth > MAX_DEPTH:
        return None
    match element:
        case NumRange(first=0, last=0xFF):
            return 1
        case Repetition(minimum=low, maximum=high) if low == high and low:
            inner = octet_count(element.element, grammar, depth + 1)
            return None if inner is None else inner * low
        case Reference():
            definition = definition_of(element, grammar)
            return octet_count(definition, grammar, depth + 1) if definition else None
    return None


def is_octet_class(element: Element, grammar: Grammar, depth: int = 0) -> bool:
    """Whether the element is exactly one octet out of a class: ``VCHAR``, ``ALPHA / "."``, ``%x30-39``."""
    if depth > MAX_DEPTH:
        return False
    match element:
        case NumRange(last=last):
            return last <= 0xFF
        case NumVal(values=values):
            return len(values) == 1 and values[0] <= 0xFF
        case CharVal(text=text):
            return len(text) == 1
        case Alternation(items=items):
            return all(is_octet_class(item, grammar, depth + 1) for item in items)
        case Reference():
            definition = definition_of(element, grammar)
            return definition is not None and is_octet_class(definition, grammar, depth + 1)
    return False


def is_textual(element: Element, grammar: Grammar, depth: int = 0) -> bool:
    """Whether the element is made of printable ASCII and white space only: text, not binary fields."""
    inner = partial(is_textual, grammar=grammar, depth=depth + 1)
    if depth > MAX_DEPTH:
        return False
    match element:
        case NumVal(values=values):
            return all(map(_printable, values))
        case NumRange(first=first, last=last):
            return _printable(first) and _printable(last)
        case CharVal():
            return True
        case Concatenation(items=items) | Alternation(items=items):
            return all(map(inner, items))
        case Repetition() | Option():
            return inner(element.element)
        case Reference():
            definition = definition_of(element, grammar)
            return definition is not None and inner(definition)
    return False


def _printable(value: int) -> bool:
    return 0x20 <= value <= 0x7E or value in (0x09, 0x0A, 0x0D)


def pattern_of(element: Element, grammar: Grammar, depth: int = 0) -> str | None:
    """Return a regular expression over octets (each written ``\\xNN``) for the element's language."""
    inner = partial(pattern_of, grammar=grammar, depth=depth + 1)
    if depth > MAX_DEPTH:
        return None
    match element:
        case NumVal(values=values) if all(value <= 0xFF for value in values):
            return "".join(map(_octet, values))
        case NumRange(first=first, last=last) if last <= 0xFF:
            return f"[{_octet(first)}-{_octet(last)}]"
        case CharVal(text=text, case_sensitive=case_sensitive):
            return "".join(_character(c, case_sensitive) for c in text)
        case Concatenation(items=items):
            parts = [inner(item) for item in items]
            return "".join(p for p in parts if p is not None) if None not in parts else None
        case Alternation(items=items):
            parts = [inner(item) for item in items]
            return _one_of([p for p in parts if p is not None]) if None not in parts else None
        case Option():
            part = inner(element.element)
            return None if part is None else f"(?:{part})?"
        case Repetition(minimum=low, maximum=high):
            part = inner(element.element)
            return None if part is None else f"{_atom(part)}{_times(low, high)}"
        case Reference():
            definition = definition_of(element, grammar)
            return inner(definition) if definition else None
        case ProseVal():
            return None
    return None


def _octet(value: int) -> str:
    return f"\\x{value:02x}"


def _character(character: str, case_sensitive: bool) -> str:
    both = {character} if case_sensitive else {character.lower(), character.upper()}
    octets = "".join(_octet(ord(c)) for c in sorted(both))
    return f"[{octets}]" if len(both) > 1 else octets


def _one_of(parts: list[str]) -> str:
    """Alternatives of one octet each become one class, which matches without backtracking."""
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
