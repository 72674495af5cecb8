"""Conversion of Lark's tree of one rule to syntax nodes, with the checks that abnf.lark does not make.

abnf.lark accepts more than ABNF. This module checks that white space separates the elements of a
concatenation and does not follow a repeat count, and that ranges and counts are in order. It
reports each extension of the dialect. After a fault it continues with the most likely meaning, so
that one run reports every fault.

Number values and repeat counts (``%x41-5A``, ``2*4``) become integers. A value above the last code point of
Unicode, 10FFFF, is not a character and is an error. ``%xFFFFFFFF`` usually means four octets,
``%xFF.FF.FF.FF``.
"""

from __future__ import annotations

import re
from itertools import pairwise

from lark import Token, Tree

from specwire.generator.abnf.dialect import Dialect, Extension, report_extension
from specwire.generator.abnf.lines import Places, RuleText
from specwire.generator.abnf.syntax import (
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
    Rule,
)
from specwire.generator.diagnostics import Diagnostics, Span

DEEPEST_NESTING = 64
"""Maximum nesting of groups: later passes walk the tree recursively."""
LAST_CHARACTER = 0x10FFFF
_BASES = {"b": 2, "d": 10, "x": 16}
_COUNT_DIGITS = 20
"""Maximum digits of a repeat count, enough for 64 bits. Python does not parse thousands of digits."""
_VALUE_EXTENSIONS = {
    "BARE_HEX": Extension.BARE_HEX,
    "C_HEX": Extension.C_HEX,
    "QUOTED_VAL": Extension.QUOTED_VALUE,
}

Node = Tree[Token]


class RuleReader:
    """Converter of the tree of one rule; offsets in the tree count from the start of the rule's text."""

    def __init__(self, text: RuleText, *, places: Places, dialect: Dialect, diagnostics: Diagnostics) -> None:
        self._text = text
        self._places = places
        self._dialect = dialect
        self._diagnostics = diagnostics
        self._depth = 0

    def rule(self, tree: Node) -> Rule:
        """Return the rule of `tree`."""
        name, defined_as, definition = tree.children
        assert isinstance(name, Token)
        reference = self._reference(name)
        return Rule(
            name=reference.name,
            role=reference.role,
            definition=self._element(definition),
            incremental=defined_as == "=/",
            leading=self._text.leading,
            trailing=tuple(self._text.trailing),
            span=self._span(tree),
            name_span=reference.span,
        )

    def _element(self, node: Node | Token) -> Element:
        if isinstance(node, Token):
            return self._leaf(node)
        match node.data:
            case "alternation":
                return self._alternation(node)
            case "concatenation":
                return self._concatenation(node)
            case "repetition":
                return self._repetition(node)
            case _:
                return self._nested(node)

    def _leaf(self, token: Token) -> Element:
        match token.type:
            case "RULENAME" | "SENT_NAME":
                return self._reference(token)
            case "CHAR_VAL":
                return self._char_val(token)
            case "CHAR_RANGE":
                return self._char_range(token)
            case "PERCENT_NAME":
                return self._percent_name(token)
            case "PROSE_VAL":
                return ProseVal(token[1:-1], self._span(token))
            case _:
                return self._num_val(token)

    def _alternation(self, tree: Node) -> Element:
        for bar in tree.children[1::2]:
            if bar == "|":
                self._report(Extension.BAR, self._span(bar))
        return Alternation(tuple(map(self._element, tree.children[::2])), self._span(tree))

    def _concatenation(self, tree: Node) -> Element:
        for before, after in pairwise(tree.children):
            if _end(before) == _start(after):
                message = "no white space between this element and the one before it"
                help = "separate the elements of a concatenation (RFC 5234 section 3.1)"
                self._diagnostics.error("E134", self._span(after), message, help)
        return Concatenation(tuple(map(self._element, tree.children)), self._span(tree))

    def _repetition(self, tree: Node) -> Element:
        written, child = tree.children
        assert isinstance(written, Token)
        element = self._element(child)
        self._check_gap(written, child)
        least, greatest = self._counts(written)
        if isinstance(child, Tree) and isinstance(element, Option) and least == 0:
            element = self._repeated_option(element)
        return Repetition(least, greatest, element, self._span(tree))

    def _check_gap(self, repeat: Token, element: Node | Token) -> None:
        if repeat.end_pos == _start(element):
            return
        if "*" in repeat:
            self._report(Extension.LOOSE_REPEAT, self._span(repeat), str(repeat))
        else:
            message = f"white space between the repeat count {repeat} and its element"
            self._diagnostics.error(
                "E135", self._span(repeat), message, "write the count directly before the element: '4OCTET'"
            )

    def _repeated_option(self, option: Option) -> Element:
        self._report(Extension.REPEATED_OPTION, option.span)
        return option.element if self._dialect == "zeromq" else option

    def _counts(self, repeat: Token) -> tuple[int, int | None]:
        try:
            return read_counts(repeat)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, self._span(repeat), fault.message, fault.help)
            return 0, None

    def _reference(self, token: Token) -> Reference:
        span = self._span(token)
        role, _, name = str(token).rpartition(":")
        if role:
            self._report(Extension.ROLE, span, token)
        return self._named(name, role or None, span)

    def _percent_name(self, token: Token) -> Reference:
        self._report(Extension.PERCENT_NAME, self._span(token), token)
        return self._named(token[1:], None, self._span(token))

    def _named(self, name: str, role: str | None, span: Span) -> Reference:
        if "_" in name:
            self._report(Extension.UNDERSCORE, span, name)
        return Reference(name, role, span)

    def _nested(self, tree: Node) -> Element:
        span = self._span(tree)
        if self._depth == DEEPEST_NESTING:
            message = f"groups are nested more than {DEEPEST_NESTING} deep"
            self._diagnostics.error("E138", span, message, "move the inner groups to separate rules")
            return NumVal((0,), span)
        self._depth += 1
        element = self._element(tree.children[1])
        self._depth -= 1
        return Option(element, span) if tree.data == "option" else element

    def _char_val(self, token: Token) -> CharVal:
        span = self._span(token)
        prefix, _, rest = token.partition('"')
        text = rest[:-1]
        self._check_printable(text, span)
        return CharVal(text, prefix.lower() == "%s", span, case_marked=prefix.lower() == "%i")

    def _char_range(self, token: Token) -> Element:
        span = self._span(token)
        ends = token.split('"')[1::2]
        written = f'"{ends[0]}"-"{ends[1]}"'
        self._report(Extension.STRING_RANGE, span, written)
        if any(len(end) != 1 for end in ends):
            self._diagnostics.error(
                "E136",
                span,
                f"{written} is not a range of single characters",
                "write one character on each side",
            )
            return NumVal((0,), span)
        first, last = (ord(end) for end in ends)
        self._check_printable("".join(ends), span)
        try:
            check_range(first, last, written)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, span, fault.message, fault.help)
        return NumRange(first, last, span)

    def _num_val(self, token: Token) -> NumVal | NumRange:
        span = self._span(token)
        if extension := _VALUE_EXTENSIONS.get(token.type):
            self._report(extension, span, token)
        if token.type == "QUOTED_VAL":
            text = token[3:-1]
            self._check_printable(text, span)
            return NumVal(tuple(map(ord, text)), span)
        try:
            values, is_range = read_values(token)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, span, fault.message, fault.help)
            return NumVal((0,), span)
        return NumRange(values[0], values[1], span) if is_range else NumVal(values, span)

    def _check_printable(self, text: str, span: Span) -> None:
        odd = next((c for c in text if not " " <= c <= "~"), None)
        if odd:
            message = f"U+{ord(odd):04X} in a string is not a printable ASCII character"
            help = "write its octets as a number value, such as %xC3.A9 (RFC 5234 section 2.3)"
            self._diagnostics.error("E137", span, message, help)

    def _span(self, node: Node | Token) -> Span:
        return self._places.span(self._text.start + _start(node), self._text.start + _end(node))

    def _report(self, extension: Extension, span: Span, written: str = "") -> None:
        report_extension(
            extension, span, dialect=self._dialect, diagnostics=self._diagnostics, written=written
        )


def _start(node: Node | Token) -> int:
    """Return the offset of the first character. Every tree begins and ends with a token."""
    while isinstance(node, Tree):
        node = node.children[0]
    assert node.start_pos is not None
    return node.start_pos


def _end(node: Node | Token) -> int:
    while isinstance(node, Tree):
        node = node.children[-1]
    assert node.end_pos is not None
    return node.end_pos


class ValueFault(Exception):
    """Raised for an invalid value, with the code, message and help of its diagnostic."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def read_values(written: str) -> tuple[tuple[int, ...], bool]:
    """Return the values of a number value and whether they are the two ends of a range.

    Raises:
        ValueFault: a value is too large, or the range is in reverse order.
    """
    base, digits = _base_and_digits(written)
    parts = re.split(r"[.-]", digits)
    values = tuple(_value(part, base) for part in parts)
    if "-" not in digits:
        return values, False
    check_range(values[0], values[1], written)
    return values, True


def check_range(first: int, last: int, written: str) -> None:
    """Raise `ValueFault` if a range ends before it begins."""
    if first > last:
        raise ValueFault("E131", f"the range {written} is in reverse order", "write the lower value first")


def read_counts(written: str) -> tuple[int, int | None]:
    """Return the least and the greatest count of a repeat; None is no bound.

    Raises:
        ValueFault: a count has too many digits, or the counts are in reverse order.
    """
    low, star, high = written.partition("*")
    least = _count(low) if low else 0
    greatest = (_count(high) if high else None) if star else least
    if greatest is not None and greatest < least:
        message = f"the repeat {written} has a minimum of {least} and a maximum of {greatest}"
        raise ValueFault("E132", message, "write the lower count first")
    return least, greatest


def _base_and_digits(written: str) -> tuple[int, str]:
    if written[:2].lower() == "0x":
        return 16, written[2:]
    base = _BASES.get(written[1].lower())
    # 'b' and 'd' are hexadecimal digits too: a value without base letter has two digits at a time.
    if base is None or (base != 16 and re.search(r"[A-F]", written[2:], re.IGNORECASE)):
        return 16, written[1:]
    return base, written[2:]


def _value(digits: str, base: int) -> int:
    significant = digits.lstrip("0") or "0"
    value = int(significant, base) if len(significant) <= 24 else LAST_CHARACTER + 1
    if value > LAST_CHARACTER:
        help = "write single octets, such as %xFF.FF.FF.FF"
        raise ValueFault("E130", "a value is beyond the last character, 10FFFF", help)
    return value


def _count(digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > _COUNT_DIGITS:
        help = "omit the upper bound if there is none: '1*OCTET'"
        raise ValueFault("E133", f"the repeat count has {len(significant)} digits", help)
    return int(significant)
