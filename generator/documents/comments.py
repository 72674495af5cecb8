"""Removal of a document's comments from its grammar, except for words that the layout depends on.

Comments may be copyrighted text, while rules, names and numbers are facts. Import without comments
if you may not redistribute them. The words that determine the layout are kept in a short fixed
form: that a rule is a ZeroMQ frame, an integer in network order, or pairs written ``name=value``.
Key words that a layout may contradict are kept too: another byte order, a required value, more
frames, letter case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from specwire.generator.abnf.statements import fixed_value, frame_words, number_kinds, says_exact, says_folded
from specwire.generator.documents.joining import GrammarText
from specwire.generator.passes.layout import FRAME_WORDS
from specwire.generator.passes.types import INTEGER_WORDS

_PIECE = re.compile(r"""\"[^"]*"?|<[^>]*>?|%[bdx]'[^']*'?|;.*|[^"<%;]+|%""", re.IGNORECASE)
"""Quoted text first: a ';' inside it does not begin a comment."""
_SAID = (
    (re.compile(FRAME_WORDS, re.IGNORECASE), "ZeroMQ frame"),
    (re.compile(r"\bname=value\b"), "name=value"),
    (re.compile(r"\bpadded\b", re.IGNORECASE), "padded"),
    (INTEGER_WORDS, "integer, network order"),
)


def without_comments(text: GrammarText, kept_lines: int) -> GrammarText:
    """Return the text without its comments; the first `kept_lines` lines, which import wrote, are kept."""
    shorter = GrammarText()
    for number, (line, origin, moved) in enumerate(zip(text.lines, text.origins, text.moved, strict=True)):
        left = line if number < kept_lines else _without_comment(line)
        if left or (not line and shorter.lines[-1:] != [""]):
            shorter.add(left, origin, None if moved < 0 else moved)
    return shorter


def _statements(comment: str) -> Iterator[str]:
    """Yield the words of a comment that `specwire.generator.passes.claims` compares with the layouts."""
    yield from (words for _, words in number_kinds(comment))
    if fixed := fixed_value(comment):
        yield f'must be "{fixed.value}"' if isinstance(fixed.value, str) else f"must be {fixed.value}"
    if FRAME_WORDS not in comment.lower() and (frames := frame_words(comment)):
        yield frames
    if folded := says_folded(comment):
        yield folded
    elif says_exact(comment):
        yield "case-sensitive"


def _without_comment(line: str) -> str:
    code, comment = line, ""
    for piece in _PIECE.finditer(line):
        if piece.group().startswith(";"):
            code, comment = line[: piece.start()], piece.group()
            break
    said = [*(word for pattern, word in _SAID if pattern.search(comment)), *_statements(comment)]
    return f"{code.rstrip()} ; {', '.join(said)}" if said and code.strip() else code.rstrip()
