"""Say in ABNF's terms why Lark could not read a rule.

Lark knows the place and what it expected; the characters around the place, and the brackets that are open
there, tell which of a handful of mistakes it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

_WAITING = {"DEFINED_AS", "ALTERNATIVE", "REPEAT", "LPAR", "LSQB"}
"""Tokens that something has to follow; what else waits in the parser is an element that is complete."""
_CLOSING = {"(": ")", "[": "]"}
_NUMBERS = {"x": "hexadecimal number", "d": "decimal number", "b": "binary number"}
_ELEMENTS = 'an element is a name, "text", a number value, ( ), [ ] or <words>'
_DEFINE = "write at least one element after '='; <words> where ABNF cannot say it"
_EMPTY = "take out the operator, or write [ ] around what may be missing"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the text of a rule from `start` to `end`, offsets into that text."""

    code: str
    start: int
    end: int
    message: str
    help: str


def explain(error: UnexpectedInput, text: str) -> Fault:
    """Return what is wrong where Lark stopped reading `text`, a single rule."""
    if not isinstance(error, UnexpectedToken):
        assert error.pos_in_stream is not None
        return _explain_character(text, error.pos_in_stream)
    waiting = error.interactive_parser.parser_state.value_stack
    tokens = [item for item in waiting if isinstance(item, Token) and item.type in _WAITING]
    if not tokens:
        # Only the name was read: its '=' stands on a line that is not part of the rule.
        return Fault("E120", 0, len(text), "the rule has no definition", _DEFINE)
    if error.token.type == "$END":
        return _explain_end(text, tokens)
    return _explain_token(text, error.token, tokens)


def _explain_end(text: str, tokens: list[Token]) -> Fault:
    """`tokens` are those that still wait for what belongs to them, the last one last."""
    last = tokens[-1]
    if last.end_pos == len(text) and last.type == "DEFINED_AS":
        return Fault("E120", 0, len(text), "the rule has no definition", _DEFINE)
    if last.end_pos == len(text) and last.type in ("ALTERNATIVE", "REPEAT"):
        return _nothing_after(last)
    if last in _CLOSING:
        return _at(last, "E122", f"'{last}' is never closed", f"write '{_CLOSING[last]}' where it ends")
    return _at(last, "E101", f"'{last}' is not expected here", _ELEMENTS)


def _explain_token(text: str, found: Token, tokens: list[Token]) -> Fault:
    last = tokens[-1]
    directly = last.end_pos == len(text[: found.start_pos].rstrip())
    if found in ("/", "|", ")", "]"):
        if directly and last.type == "REPEAT":
            return _nothing_after(last)
        if directly and last.type in ("DEFINED_AS", "ALTERNATIVE", "LPAR", "LSQB"):
            return _at(found, "E121", "an alternative is empty", _EMPTY)
        if last in _CLOSING:
            message = f"'{last}' is closed by '{found}'"
            return _at(found, "E122", message, f"write '{_CLOSING[last]}' in its place")
        return _at(found, "E122", f"'{found}' closes nothing", "take it out, or open it before")
    if found.type == "DEFINED_AS":
        help = "a rule begins on a line of its own, and its name stands directly before '='"
        return _at(found, "E101", f"a second '{found}' in one rule", help)
    return _at(found, "E101", f"'{found}' is not expected here", _ELEMENTS)


def _nothing_after(last: Token) -> Fault:
    if last.type == "REPEAT":
        help = "write the element directly after the count: '4OCTET', '*VCHAR'"
        return _at(last, "E123", f"nothing stands after the repeat '{last}'", help)
    return _at(last, "E121", "an alternative is empty", _EMPTY)


def _explain_character(text: str, position: int) -> Fault:
    line_end = text.find("\n", position)
    rest = text[position : line_end if line_end >= 0 else len(text)].rstrip() or text[position]
    word = re.match(r"\S+", rest)
    end = position + len(word.group() if word else rest)
    match rest[0].lower():
        case "%" if re.match(r'%[si]"', rest, re.IGNORECASE):
            return _unclosed_string(position, position + len(rest))
        case '"':
            return _unclosed_string(position, position + len(rest))
        case "<":
            help = "write '>' where it ends, in the same line"
            return Fault("E125", position, position + len(rest), "the prose value is never closed", help)
        case "%":
            help = (
                "write %x41, %d65 or %b1000001, joined by '.' or as a range with '-' (RFC 5234 section 2.3)"
            )
            kind = _NUMBERS.get(rest[1:2].lower(), "number value")
            return Fault("E126", position, end, f"'{text[position:end]}' is not a {kind}", help)
        case ":" if re.match(r"::?=", rest):
            return Fault("E127", position, end, "ABNF does not define a rule with ':'", "write '='")
        case odd if not " " <= odd <= "~":
            help = "outside of comments ABNF is ASCII; type the character again"
            return Fault("E128", position, position + 1, f"U+{ord(rest[0]):04X} has no meaning in ABNF", help)
        case _:
            help = "names are letters, digits and '-'; text stands in double quotes; comments begin with ';'"
            return Fault("E101", position, position + 1, f"'{rest[0]}' is not expected here", help)


def _unclosed_string(start: int, end: int) -> Fault:
    return Fault(
        "E124", start, end, "the string is never closed", "write '\"' where it ends, in the same line"
    )


def _at(token: Token, code: str, message: str, help: str) -> Fault:
    assert token.start_pos is not None and token.end_pos is not None
    return Fault(code, token.start_pos, token.end_pos, message, help)
