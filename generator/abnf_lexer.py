"""Lexer for a rule: one regular expression that also skips white space.

Lark's contextual lexer matches white space separately before each token. With short tokens and a
small grammar that is half of its work. The terminals, their order and the ignored ones come from
abnf.lark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import Token
from lark.common import LexerConf
from lark.exceptions import UnexpectedCharacters
from lark.lexer import Lexer, TerminalDef


class RuleLexer(Lexer):
    """Lexer for Lark's argument `lexer`. Its tokens have offsets but no line numbers."""

    def __init__(self, conf: LexerConf) -> None:
        ignored = "|".join(t.pattern.to_regexp() for t in conf.terminals if t.name in conf.ignore)
        kept = sorted((t for t in conf.terminals if t.name not in conf.ignore), key=_rank)
        named = "|".join(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})" for terminal in kept)
        skipped = f"(?>(?:{ignored})*)"  # atomic: no backtracking into long runs of blanks
        self._match = re.compile(f"{skipped}(?:{named}|\\Z)").match
        self._skip = re.compile(skipped).match

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Yield the tokens of `text`.

        Raises:
            UnexpectedCharacters: no terminal matches at some offset.
        """
        match, at, end = self._match, 0, len(text)
        while at < end:
            found = match(text, at)
            if found is None:
                skipped = self._skip(text, at)
                place = skipped.end() if skipped else at
                raise UnexpectedCharacters(text, place, 1, 1)  # type: ignore[no-untyped-call]
            kind = found.lastgroup
            if kind is None:
                return
            start, at = found.span(kind)
            yield Token(kind, text[start:at], start, None, None, None, None, at)


def _rank(terminal: TerminalDef) -> tuple[int, int, int, str]:
    """Return the sort key of Lark's order: priority, maximum width, length of the pattern, name."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name
