"""Cut the text of a rule into tokens with one regular expression, white space left out on the way.

Lark's own lexer asks for a token at a time and looks again for white space between any two; with short
tokens and a small grammar that is half of its work. The terminals, their order and what is ignored are
Lark's: they come from abnf.lark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import Token
from lark.common import LexerConf
from lark.exceptions import UnexpectedCharacters
from lark.lexer import Lexer, TerminalDef


class RuleLexer(Lexer):
    """A lexer as Lark takes it for the argument `lexer`; tokens know their offsets, and no lines."""

    def __init__(self, conf: LexerConf) -> None:
        ignored = "|".join(t.pattern.to_regexp() for t in conf.terminals if t.name in conf.ignore)
        kept = sorted((t for t in conf.terminals if t.name not in conf.ignore), key=_rank)
        named = "|".join(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})" for terminal in kept)
        skipped = f"(?>(?:{ignored})*)"  # never given back: a fault behind many blanks costs no more than one
        self._match = re.compile(f"{skipped}(?:{named}|\\Z)").match
        self._skip = re.compile(skipped).match

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Yield the tokens of `text`.

        Raises:
            UnexpectedCharacters: no terminal begins at some place.
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
    """Lark's order: by priority, then by the longest that a terminal can be, then by how it is written."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name
