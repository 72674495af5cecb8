"""Faults in Spark SQL: what is wrong with a row that is no message, with the error texts of the codec.

A fault is a struct with the content of an error. Missing values are an empty text or -1. Octets are
kept separately until they are shown (`found` is empty then). `told` builds the error from the one
fault that applies, so the sentences occur once and not for each fault.

Text that is not UTF-8 has its fault at the end of the longest valid prefix. A regular expression
finds it in the octets as ISO 8859-1, in which each octet is one character. The possessive ``*+``
prevents backtracking in Java, and so a stack as deep as the text is long.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator.emit.sql_text import Sum, quoted
from specwire.generator.support.errors import Kind
from specwire.generator.support.words import number_of

LATIN = "'ISO-8859-1'"
NO_NUMBER = "-1"
NO_TEXT = "''"
NO_OCTETS = "X''"

_REST = r"[\x80-\xBF]"
_GOOD = "|".join(
    (
        r"[\x00-\x7F]", rf"[\xC2-\xDF]{_REST}", rf"\xE0[\xA0-\xBF]{_REST}", rf"[\xE1-\xEC\xEE\xEF]{_REST}{{2}}",
        rf"\xED[\x80-\x9F]{_REST}", rf"\xF0[\x90-\xBF]{_REST}{{2}}", rf"[\xF1-\xF3]{_REST}{{3}}",
        rf"\xF4[\x80-\x8F]{_REST}{{2}}",
    )
)  # fmt: skip
"""One character of UTF-8."""
_CUT = "|".join(
    (
        r"\xE0[\xA0-\xBF]", rf"[\xE1-\xEC\xEE\xEF]{_REST}", r"\xED[\x80-\x9F]", rf"\xF0[\x90-\xBF]{_REST}?",
        rf"[\xF1-\xF3]{_REST}{{1,2}}", rf"\xF4[\x80-\x8F]{_REST}?",
    )
)  # fmt: skip
"""Truncated character of two octets or more."""


def fault(
    message: str,
    field: str,
    frame: str,
    offset: str,
    kind: Kind,
    expected: str,
    rule: str,
    *,
    found: str = NO_TEXT,
    octets: str = NO_OCTETS,
) -> str:
    """Return a fault; all arguments but `kind` are expressions."""
    said = {
        "message": message, "field": field, "frame": frame, "offset": offset, "kind": quoted(kind),
        "expected": expected, "found": found, "octets": octets, "rule": rule,
    }  # fmt: skip
    return f"named_struct({', '.join(f'{quoted(name)}, {value}' for name, value in said.items())})"


def told(fault: str, protocol: str) -> str:
    """Return the error for a fault; a row that the codec cannot read at all has the rule ``columns``."""
    no_text = "fault.expected = 'UTF-8'"
    good = f"if({no_text}, {_matched(_latin('fault.octets'), f'^(?:{_GOOD})*+')}, 0)"
    cut = _matched(_latin("substring(fault.octets, good + 1, 4)"), f"^(?:{_CUT})")
    octets = f"if({no_text}, substring(fault.octets, good + 1, greatest({cut}, 1)), fault.octets)"
    found = f"if(fault.found = '', {shown('octets')}, fault.found)"
    owner = f"CASE WHEN fault.message <> '' THEN fault.message WHEN fault.rule <> 'columns' THEN {quoted(protocol)} END"
    sentence = (
        f"concat_ws('.', {owner}, nullif(fault.field, ''))",
        f"if(fault.offset < 0, '', concat(' at octet ', {as_text('fault.offset + good')}))",
        f"if(fault.frame <= 0, '', concat(' in frame ', {as_text('fault.frame')}))",
        "': '",
        f"if({no_text}, concat({found}, ' is not UTF-8'), concat('expected ', fault.expected, ', found ', {found}))",
        "' ['",
        "fault.rule",
        "']'",
    )
    said = (
        "'message', nullif(fault.message, '')",
        "'field', nullif(fault.field, '')",
        "'frame', nullif(fault.frame, -1)",
        "'offset', if(fault.offset < 0, NULL, fault.offset + good)",
        "'kind', fault.kind",
        "'text', concat(\n    " + ",\n    ".join(sentence) + "\n  )",
    )
    error = "named_struct(\n  " + ",\n  ".join(said) + "\n)"
    return known("fault", fault, known("good", good, known("octets", octets, error)))


def known(name: str, value: str, expression: str) -> str:
    """Return an expression in which a value has a name, so that it is evaluated once."""
    return all_known([(name, value)], expression)


def all_known(names: Sequence[tuple[str, str]], expression: str) -> str:
    """Return an expression in which values have names; each may use those before it."""
    # Join once: nested string concatenation would copy the innermost text once for each level.
    heads = "".join(f"get(transform(array({value}), {name} -> " for name, value in names)
    return heads + expression + "), 0)" * len(names)


def shown(octets: str) -> str:
    """Return octets in readable form, shortened: quoted if they are text, else hexadecimal."""
    size, text = f"octet_length({octets})", _latin(octets)
    short = f"if({size} <= 40, {text}, concat(substring({text}, 1, 37), '...'))"
    return (
        f"CASE WHEN {size} = 0 THEN 'nothing'"
        f" WHEN {size} > 2 AND NOT rlike({text}, '[^ -~]') THEN concat(char(39), {short}, char(39))"
        f" WHEN {size} <= 16 THEN concat('0x', lower(hex({octets})))"
        f" ELSE concat('0x', lower(hex(substring({octets}, 1, 16))), '... (', {as_text(size)}, ' octets)') END"
    )


def position(octet: str, octets: str) -> str:
    """Return the position of the first `octet`, from 0; -1 if there is none."""
    return f"locate({_latin(octet)}, {_latin(octets)}) - 1"


def counted(number: Sum, thing: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    if not number.terms:
        return quoted(number_of(number.fixed, thing))
    return f"concat({as_text(str(number))}, if({number} = 1, ' {thing}', ' {thing}s'))"


def as_text(number: str) -> str:
    """Return a number as decimal digits."""
    return f"cast({number} AS STRING)"


def _latin(octets: str) -> str:
    return f"decode({octets}, {LATIN})"


def _matched(text: str, pattern: str) -> str:
    """Return the number of characters that a regular expression matches."""
    return f"length(regexp_extract({text}, r'{pattern}', 0))"
