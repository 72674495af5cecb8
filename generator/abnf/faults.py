"""Diagnostics in ABNF's terms for the errors of the Lark parser.

Lark reports the place and the tokens that it expected. The characters around the place and the open brackets
determine which mistake was made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

_WAITING = {"DEFINED_AS", "ALTERNATIVE", "REPEAT", "LPAR", "LSQB"}
"""Tokens that must be followed by something; any other token on the parser's stack is a complete element."""
_CLOSING = {"(": ")", "[": "]"}
_NUMBERS = {"x": "hexadecimal number", "d": "decimal number", "b": "binary number"}
_ELEMENTS = 'an element is a name, "text", a number value, ( ), [ ] or <words>'
_DEFINE = "write at least one element after '='; use <words> for what ABNF cannot express"
_EMPTY = "remove the operator, or write [ ] around the optional elements"


@dataclass(frozen=True, slots=True)
class Fault:
    """A syntax error in the text of a rule, from offset `start` to offset `end` of that text."""

    code: str
    start: int
    end: int
    message: str
    help: str


def explain(error: UnexpectedInput, text: str) -> Fault:
    """Return the fault at which Lark stopped reading `text`, a single rule."""
    if not isinstance(error, UnexpectedToken):
        assert error.pos_in_stream is not None
        return _explain_character(text, error.pos_in_stream)
    waiting = error.interactive_parser.parser_state.value_stack
    tokens = [item for item in waiting if isinstance(item, Token) and item.type in _WAITING]
    if not tokens:
        # Only the name was read: its '=' is on a line that is not part of the rule.
        return Fault("E120", 0, len(text), "the rule has no definition", _DEFINE)
    if error.token.type == "$END":
        return _explain_end(text, tokens)
    return _explain_token(text, error.token, tokens)


def _explain_end(text: str, tokens: list[Token]) -> Fault:
    """Return the fault at the end of the rule; `tokens` are the incomplete ones, in order."""
    last = tokens[-1]
    if last.end_pos == len(text) and last.type == "DEFINED_AS":
        return Fault("E120", 0, len(text), "the rule has no definition", _DEFINE)
    if last.end_pos == len(text) and last.type in ("ALTERNATIVE", "REPEAT"):
        return _nothing_after(last)
    if last in _CLOSING:
        return _at(last, "E122", f"'{last}' is never closed", f"write '{_CLOSING[last]}' at its end")
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
            return _at(found, "E122", message, f"write '{_CLOSING[last]}' instead")
        return _at(
            found, "E122", f"'{found}' has no opening bracket", "remove it, or write the opening bracket"
        )
    if found.type == "DEFINED_AS":
        help = "begin each rule on a separate line, with its name directly before '='"
        return _at(found, "E101", f"the rule has a second '{found}'", help)
    return _at(found, "E101", f"'{found}' is not expected here", _ELEMENTS)


def _nothing_after(last: Token) -> Fault:
    if last.type == "REPEAT":
        help = "write the element directly after the count: '4OCTET', '*VCHAR'"
        return _at(last, "E123", f"no element follows the repeat '{last}'", help)
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
            help = "write '>' at its end, on the same line"
            return Fault("E125", position, position + len(rest), "the prose value is never closed", help)
        case "%":
            help = (
                "write %x41, %d65 or %b1000001, joined by '.' or as a range with '-' (RFC 5234 section 2.3)"
            )
            kind = _NUMBERS.get(rest[1:2].lower(), "number value")
            return Fault("E126", position, end, f"'{text[position:end]}' is not a {kind}", help)
        case ":" if re.match(r"::?=", rest):
            return Fault("E127", position, end, "ABNF does not define rules with ':'", "write '='")
        case odd if not " " <= odd <= "~":
            help = "ABNF is ASCII, except in comments; replace the character"
            message = f"U+{ord(rest[0]):04X} is not an ABNF character"
            return Fault("E128", position, position + 1, message, help)
        case _:
            help = (
                "names consist of letters, digits and '-'; text is in double quotes; comments begin with ';'"
            )
            return Fault("E101", position, position + 1, f"'{rest[0]}' is not expected here", help)


def _unclosed_string(start: int, end: int) -> Fault:
    return Fault("E124", start, end, "the string is never closed", "write '\"' at its end, on the same line")


def _at(token: Token, code: str, message: str, help: str) -> Fault:
    assert token.start_pos is not None and token.end_pos is not None
    return Fault(code, token.start_pos, token.end_pos, message, help)
